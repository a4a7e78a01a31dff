"""Jobs that do not run and have no place or wait behind one that is promised a start, as people read of them."""

from datetime import UTC, datetime

import msgspec

from fairlead_cli.client.explained import explain_text
from fairlead_cli.client.tables import queue_view
from fairlead_contracts.messages.questions import ExplainReply, Explanation, Promised, Steering, UnplacedJob
from fairlead_testkit.builders import a_queue_reply

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_jobs_that_have_no_place_are_told_with_the_reason_though_nobody_waits() -> None:
    [pool] = a_queue_reply().pools
    told = UnplacedJob(
        job="team-a/gang", tenant="team-a", why="has its quota; admission check gang-fit is Pending"
    )
    idle = msgspec.structs.replace(
        pool, waiting=0, places=[], silent_shards=[], steering=[], unplaced=3, unplaced_first=[told]
    )
    assert queue_view(msgspec.structs.replace(a_queue_reply(), pools=[idle])).splitlines() == [
        "Nobody waits in line.",
        f"pool {pool.pool}",
        "3 jobs do not run now, and have no place in this order:",
        "  · team-a/gang: has its quota; admission check gang-fit is Pending",
        "  … and 2 more (`fairlead explain JOB` says why)",
    ]
    beside = msgspec.structs.replace(pool, unplaced=1, unplaced_first=[told])
    assert "1 job does not run now, and has no place" in queue_view(
        msgspec.structs.replace(a_queue_reply(), pools=[beside])
    )


def test_tasks_behind_the_window_of_an_array_are_not_told_twice() -> None:
    [pool] = a_queue_reply().pools
    array = UnplacedJob(job="team-a/7", tenant="team-a", why="197 tasks of this array", tasks=197)
    held = UnplacedJob(job="team-a/8", tenant="team-a", why="its user holds it")
    behind = msgspec.structs.replace(pool, unplaced=198, unplaced_first=[array, held])
    shown = queue_view(msgspec.structs.replace(a_queue_reply(), pools=[behind]))
    assert "198 jobs do not run now" in shown
    assert "team-a/7: 197 tasks" in shown
    assert "more (`fairlead explain" not in shown


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
    promised = Promised(job="team-b/big", tenant="team-b", by=NOW)
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
