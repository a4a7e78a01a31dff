"""Answers in words: jobs without a position or behind a promised start, granted classes, admissions out of order, amounts."""

from datetime import UTC, datetime

import msgspec
import pytest

from fairlead_cli.client.explained import explain_text
from fairlead_cli.client.live import Throughput, dashboard
from fairlead_cli.client.phrases import adherence_in_words, ahead_in_words, demand, duration
from fairlead_cli.client.tables import queue_view, tenants_view
from fairlead_contracts.messages.questions import (
    Adherence,
    Approval,
    ExplainReply,
    Explanation,
    PoolQueue,
    PromisedStarts,
    QueueReply,
    Steering,
    UnrankedJob,
)
from fairlead_testkit.inputs.builders import a_queue_reply, a_tenants_reply

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_jobs_that_have_no_position_are_told_with_the_reason_though_nobody_waits() -> None:
    [pool] = a_queue_reply().pools
    told = UnrankedJob(
        job="team-a/gang", tenant="team-a", why="has its quota; admission check gang-fit is Pending"
    )
    idle = msgspec.structs.replace(
        pool, waiting=0, positions=[], silent_shards=[], steering=[], unranked=3, unranked_first=[told]
    )
    assert queue_view(msgspec.structs.replace(a_queue_reply(), pools=[idle])).splitlines() == [
        "Nobody waits in line.",
        f"pool {pool.pool}",
        "3 jobs do not run now, and have no position in this order:",
        "  · team-a/gang: has its quota; admission check gang-fit is Pending",
        "  … and 2 more (--limit N names up to 500; `fairlead explain JOB` says why)",
    ]
    many = [UnrankedJob(job=f"team-a/{number}", tenant="team-a", why="held") for number in range(500)]
    full = msgspec.structs.replace(idle, unranked=501, unranked_first=many)
    shown = queue_view(msgspec.structs.replace(a_queue_reply(), pools=[full])).splitlines()
    assert shown[-1] == "  … and 1 more (an answer names 500; `fairlead explain JOB` says why)"
    cut = msgspec.structs.replace(idle, unranked=501, unranked_first=many[:250])
    for limit, said in (
        (0, "one answer holds no more of them"),
        (500, "one answer holds no more of them"),
        (251, "one answer holds no more of them"),
        (250, "--limit N names up to 500"),
        (50, "--limit N names up to 500"),
    ):
        shown = queue_view(msgspec.structs.replace(a_queue_reply(), pools=[cut]), limit=limit).splitlines()
        assert shown[-1] == f"  … and 251 more ({said}; `fairlead explain JOB` says why)"
    beside = msgspec.structs.replace(pool, unranked=1, unranked_first=[told])
    assert "1 job does not run now, and has no position" in queue_view(
        msgspec.structs.replace(a_queue_reply(), pools=[beside])
    )


def test_tasks_behind_the_window_of_an_array_are_not_told_twice() -> None:
    [pool] = a_queue_reply().pools
    array = UnrankedJob(job="team-a/7", tenant="team-a", why="197 tasks of this array", tasks=197)
    held = UnrankedJob(job="team-a/8", tenant="team-a", why="its user holds it")
    behind = msgspec.structs.replace(pool, unranked=198, unranked_first=[array, held])
    shown = queue_view(msgspec.structs.replace(a_queue_reply(), pools=[behind]))
    assert "198 jobs do not run now" in shown
    assert "team-a/7: 197 tasks" in shown
    assert "`fairlead explain" not in shown


def test_why_a_job_is_held_leads_its_explanation_and_stands_there_once() -> None:
    found = Explanation(
        cluster="prod", scope="team-a", id="train", uid="u1", phase="held", queue="main", pool="gpu", tenant="team-a",
        no_quota=["Pool gpu has too little quota left."], reasons=["Held: its queue is on hold.", "spec.x: mend it."],
    )  # fmt: skip
    lines = explain_text(ExplainReply(at=NOW, found=[found])).splitlines()
    assert lines[1] == "Held: its queue is on hold."
    assert lines[-2:] == ["  · Pool gpu has too little quota left.", "  · spec.x: mend it."]
    assert "\n".join(lines).count("on hold") == 1


def test_who_waits_behind_a_promised_start_is_told_of_it_and_the_first_is_not_told_twice() -> None:
    promised = PromisedStarts(job="team-b/big", tenant="team-b", by=NOW)
    steering = Steering(cluster="prod", frontend="kueue", enforcement="standing", promised=promised)
    found = Explanation(
        cluster="prod", scope="team-a", id="small", uid="u1", phase="waiting", queue="main", pool="gpu", tenant="team-a",
        rank=1, waiting=2, steering=steering,
    )  # fmt: skip
    told = "reserved     team-b/big is the first that does not fit, and starts by 2026-11-21 12:00:00 UTC"
    assert told in explain_text(ExplainReply(at=NOW, found=[found]))
    first = msgspec.structs.replace(found, rank=0)
    assert "reserved" not in explain_text(ExplainReply(at=NOW, found=[first]))


def test_jobs_whose_check_nobody_answers_are_told_with_what_lets_them_start() -> None:
    [pool] = a_queue_reply().pools
    silent = Steering(cluster="lab", frontend="kueue", enforcement="exact", unanswered=2)
    shown = queue_view(
        msgspec.structs.replace(a_queue_reply(), pools=[msgspec.structs.replace(pool, steering=[silent])])
    )
    assert (
        "lab: 2 jobs have their quota and start nothing: no checker leads, so nobody answers the check gang-fit. "
        "Start one, or let them through unchecked by `fairlead watchdog --check gang-fit`"
    ) in " ".join(shown.split())


def test_jobs_whose_queue_leads_nowhere_are_told_whether_or_not_others_wait() -> None:
    first = [UnrankedJob(job="team-a/stray", tenant="team-a", why="no LocalQueue 'typo' in namespace team-a")]
    for pools in (
        [],
        [PoolQueue(pool="gpu", waiting=0, positions=[])],
        [PoolQueue(pool="gpu", waiting=1, positions=[])],
    ):
        text = queue_view(QueueReply(at=NOW, pools=pools, nowhere=3, nowhere_first=first))
        assert text.endswith(
            "3 jobs are in no order, as no pool is behind the queue:\n"
            "  · team-a/stray: no LocalQueue 'typo' in namespace team-a\n"
            "  … and 2 more (--limit N names up to 500; `fairlead explain JOB` says why)"
        )
        assert "Nobody waits." not in text


def test_a_wide_queue_says_who_granted_a_class_to_a_job_when_and_why() -> None:
    approved = Approval(job_class="urgent", by="ann", why="demo at noon", since=NOW)
    reply = a_queue_reply()
    [pool] = reply.pools
    first, *others = pool.positions
    positions = [msgspec.structs.replace(first, approved=approved), *others]
    queue = msgspec.structs.replace(reply, pools=[msgspec.structs.replace(pool, positions=positions)])
    job = f"{first.position.scope}/{first.position.id}"
    told = f"  · {job} is urgent, granted to it by ann since 2026-11-21 12:00 UTC (demo at noon)"
    assert queue_view(queue, approvals=True).splitlines()[-1] == told
    assert told not in queue_view(queue)
    assert "(by ann)" in queue_view(queue)


def test_what_was_not_seen_is_not_claimed() -> None:
    nothing = Adherence(since=NOW, admissions=0, missed=0, idle={})
    assert "no admission judged since" in adherence_in_words(nothing)
    assert "nothing idle" in adherence_in_words(nothing)
    apart = msgspec.structs.replace(nothing, newcomers=3, takeovers=2)
    told = "(not judged: 3 that had just come and 2 while the lead changed hands)"
    assert told in adherence_in_words(apart)
    unknown = msgspec.structs.replace(nothing, newcomers=3, unordered=4, unseen=5)
    told = "(not judged: 3 that had just come, 4 while there was no order and 5 while the admitter did not know everything)"
    assert told in adherence_in_words(unknown)
    cores = Adherence(since=NOW, admissions=4, missed=0, idle={"cpu": 2000.0, "memory": 1e12})
    assert adherence_in_words(cores).startswith(
        "0 of 4 admissions out of order (0%), 2.0 core-seconds idle (0.50 an admission)"
    )


def test_memory_and_cores_of_cards_are_no_cards_that_stand_idle() -> None:
    idle = {"nvidia.com/gpu": 2000.0, "nvidia.com/gpumem": 2e7, "nvidia.com/gpucores": 60_000.0}
    assert ", 2.0 GPU-seconds idle (0.50 an admission)," in adherence_in_words(
        Adherence(since=NOW, admissions=4, missed=0, idle=idle)
    )


def test_durations_and_demands_are_in_words() -> None:
    assert [duration(seconds) for seconds in (3.2, 240, 7800, 270_000)] == [
        "3.2 s",
        "4 min",
        "2 h 10 min",
        "3 d 3 h",
    ]
    assert demand({"memory": 2**30, "cpu": 1000, "x.io/fpga": 2000}) == "fpga=2 cpu=1 memory=1Gi"
    many = {f"x.io/r{number:02}": 1000 for number in range(13)}
    assert demand(many).endswith(" r10=1 r11=1 and 1 more")


@pytest.mark.parametrize(
    ("tenants", "told"),
    [
        (1, "9 of t0"),
        (7, "9 of t0, 8 of t1, 7 of t2, 6 of t3, 5 of t4, 4 of t5, 3 of t6"),
        (8, "9 of t0, 8 of t1, 7 of t2, 6 of t3, 5 of t4, 4 of t5, 5 of 2 others"),
    ],
)
def test_of_many_tenants_before_a_job_the_first_are_named(tenants: int, told: str) -> None:
    assert ahead_in_words([(f"t{number}", 9 - number) for number in range(tenants)]) == told


def test_tenants_that_no_answer_holds_are_counted() -> None:
    [pool] = a_tenants_reply().pools
    assert "more tenant" not in tenants_view(a_tenants_reply())
    cut = a_tenants_reply(pools=[msgspec.structs.replace(pool, more=2)])
    frame = dashboard("Fairlead", tenants=cut, queue=None, throughput=Throughput())
    for shown in (tenants_view(cut), frame):
        assert "… and 2 more tenants, more than an answer holds (--tenant T shows one)" in shown.splitlines()
