import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from fairlead_cli.client.explained import explain_text, headline
from fairlead_cli.client.live import Throughput, dashboard
from fairlead_cli.client.marks import share_bar
from fairlead_cli.client.phrases import (
    of_part,
    promised_in_words,
    reason,
    what_is_known,
)
from fairlead_cli.client.plain_table import Cell, Column, StyledText, table_lines
from fairlead_cli.client.tables import queue_view, tenants_view
from fairlead_cli.console import Screen, coloured, unstyled
from fairlead_contracts.base.instants import from_datetime
from fairlead_contracts.messages.decisions import EffectiveJob, SiblingStanding
from fairlead_contracts.messages.explanations import RoomForecast, WhatIf
from fairlead_contracts.messages.questions import (
    Adherence,
    AheadOf,
    Explanation,
    PromisedStarts,
    QueueReply,
    RankedPosition,
    Steering,
    TenantsReply,
)
from fairlead_testkit.inputs.builders import (
    a_pool_queue,
    a_pool_tenants,
    a_position,
    a_queue_reply,
    a_queued_event,
    a_ranked_position,
    a_started_event,
    a_tenant_line,
    a_tenant_share,
    a_tenants_reply,
    an_ended_event,
    an_explain_reply,
    an_explanation,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
GPU = "nvidia.com/gpu"
POSITION = a_position(
    uid="u1",
    id="train [red]",
    job_class="urgent",
    use=8000,
    tag=0.25,
    key=12.5,
    submitted=from_datetime(NOW - timedelta(seconds=90)),
    demand={GPU: 8000, "cpu": 500, "memory": 64 * 2**30},
)
STANDING = a_tenant_share(weight=3.0, entitled=0.5, use={GPU: 8000}, share=0.25, running=2)
TENANTS = a_tenants_reply(
    pools=[
        a_pool_tenants(
            pool="gpu",
            capacity={GPU: 32000},
            tenants=[a_tenant_line(standing=STANDING, tag=0.5, part_now=0.5)],
        )
    ]
)


def ranked(**changes: object) -> RankedPosition:
    return a_ranked_position(**{"position": POSITION, "share": 0.125, "entitled": 0.5} | changes)


def queue_of(*positions: RankedPosition, **pool: object) -> QueueReply:
    """A pool in which seven wait, the first of all unless others are named."""
    found = {"pool": "gpu", "waiting": 7, "positions": list(positions or [ranked()])} | pool
    return a_queue_reply(at=NOW, pools=[a_pool_queue(**found)])


def waits(*, room: RoomForecast | None = None, **changes: object) -> Explanation:
    """The explanation of a job that waits, the sixth of forty."""
    plain = an_explanation(
        cluster="sim", id="train", uid="u1", pool="gpu", tenant="team-a", rank=5, waiting=40, position=POSITION,
        standing=STANDING, level=12, what_if=WhatIf(room=room),
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def explained(found: Explanation, *, verbose: bool = False) -> str:
    return explain_text(an_explain_reply(at=NOW, found=[found]), verbose=verbose)


def test_the_queue_shows_positions_reasons_and_what_is_missing() -> None:
    text = queue_view(queue_of(silent_shards=[3]))
    for part in (
        "pool gpu: 7 waiting",
        "train [red]",
        "urgent",
        "gpu=8 cpu=500m memory=64Gi",
        "12.5%",
        "50.0%",
        "1.5 min",
        "and 6 more",
    ):
        assert part in text
    assert "1 shard of gpu did not answer" in text


def test_what_an_answer_leaves_out_is_said_with_how_to_see_it() -> None:
    def end(tenant: str | None = None, **keys: object) -> str:
        return queue_view(queue_of(**keys), tenant=tenant).splitlines()[-1]

    assert end(more=5, most=2000) == "… and 5 more (--limit N shows up to 2000)"
    assert end(more=5, most=1) == (
        "… and 5 more (an answer holds at most 1: `fairlead snapshot`, then `fairlead order`, lists all)"
    )
    assert end("team-a", more=3, most=200) == "… and 3 more of team-a (--limit N shows up to 200)"
    assert "more" not in end("team-a", more=0, most=200), "the others are not counted as left out"
    assert end("team-b", positions=[], most=200) == "No job of team-b waits here."


def test_a_position_says_why_the_one_above_goes_first() -> None:
    second = ranked(rank=1, why="it has waited longer, worth 3.0 %")
    lines = queue_view(queue_of(ranked(), second, ranked(rank=700)), Screen(160)).splitlines()
    assert lines[1].rstrip().endswith("the one above goes first because")
    assert lines[3].rstrip().endswith("first")
    assert lines[4].rstrip().endswith("it has waited longer, worth 3.0 %")
    assert lines[5].rstrip().endswith("(its tenant is at 25.00% of its part of gpu)"), "not told so far down"


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_names_of_jobs_are_whole_however_narrow_the_terminal_is(columns: int) -> None:
    name = "job-with-a-long-name-0123456789"
    why = "its tenant comes to 97.0 % of its part, this one's to 100.0 %"
    queue = queue_of(ranked(position=msgspec.structs.replace(POSITION, id=name), why=why))
    frame = dashboard("top", Screen(columns), tenants=TENANTS, queue=queue, throughput=Throughput())
    text = f"{queue_view(queue, Screen(columns))}\n{frame}"
    assert text.count(name) == 2
    assert max(map(len, text.splitlines())) <= columns
    assert "since this view began: 0 queued" in text


@pytest.mark.parametrize("columns", [60, 200])
def test_a_name_longer_than_its_column_stands_on_a_line_of_its_own_and_the_others_stay_in_place(
    columns: int,
) -> None:
    long = "a-name-that-is-quite-long-as-people-write-them-when-they-date-what-they-do-2026-11-23"
    why = "its tenant comes to 97.0 % of its part, this one's to 100.0 %"
    queue = queue_of(
        *(
            ranked(rank=rank, position=msgspec.structs.replace(POSITION, id=name), why=why)
            for rank, name in enumerate(["short", long])
        )
    )
    lines = queue_view(queue, Screen(columns)).splitlines()
    [line] = [line for line in lines if long in line]
    assert line.startswith(f"2  {long}")
    [own] = [line for line in lines if "short" in line]
    tenant = line if columns == 200 else lines[lines.index(line) + 1]
    assert tenant.rindex("team-a") == own.rindex("team-a")
    assert max(len(one) for one in lines if one != line) <= columns


def test_cells_of_other_scripts_stand_under_one_another() -> None:
    heads = [Column("job", is_name=True), Column("n", right=True)]
    lines = list(table_lines(heads, [["日本", "1"], ["e\u0301a", "22"]], Screen(40)))
    assert lines[2:] == ["日本   1", "e\u0301a    22"]


def test_styles_take_no_room() -> None:
    heads = [Column("job", is_name=True), Column("n", right=True)]
    row: list[Cell] = [StyledText("a", "bold"), [StyledText("1", "cyan"), StyledText("2", "dim")]]
    bare, styled = (list(table_lines(heads, [row], Screen(9, one))) for one in (unstyled, coloured))
    assert [re.sub(r"\033\[[0-9;]*m", "", line) for line in styled] == bare
    assert styled != bare


def test_shares_say_of_what_they_are_and_large_ones_are_counted_not_written_in_percent() -> None:
    text = queue_view(queue_of(ranked(share=157.562)))
    assert "157.6x" in text
    assert "15756" not in text
    assert "share then" in text
    assert "share now" in tenants_view(TENANTS)
    assert of_part(0.25) == "25.00% of its part"
    assert of_part(157.562) == "157.6 times its part"


def test_an_empty_queue_says_so() -> None:
    assert "No pool is known yet, so no job is" in queue_view(QueueReply(at=NOW, pools=[]))
    assert queue_view(queue_of(waiting=0, positions=[])) == "Nobody waits."


def test_what_is_the_matter_with_a_cluster_stands_above_its_order_and_where_nobody_waits() -> None:
    promised = PromisedStarts(
        job="team-b/gang", tenant="team-b", by=NOW, passing=[f"team-a/{n}" for n in range(7)]
    )
    steering = Steering(
        cluster="sim",
        frontend="sim",
        enforcement="exact",
        withheld="no admitter leads there",
        unheard="the API server has said nothing of jobs for 40 s",
        untaken=2,
        promised=promised,
    )
    some = queue_of(steering=[steering])
    for queue in (some, queue_of(steering=[steering], waiting=0, positions=[])):
        text = " ".join(queue_view(queue).split())
        for told in (
            "sim: what stands here may be old: the API server has said nothing of jobs for 40 s",
            "sim: nothing is written: no admitter leads there",
            "sim: 2 submissions are published and not taken up yet",
            "team-b/gang is the first that does not fit, and starts by",
            "wait for it, but for team-a/0, team-a/1, team-a/2, team-a/3, team-a/4 and 2 more: they end by then",
        ):
            assert told in text
    lines = queue_view(some).splitlines()
    assert lines.index(next(line for line in lines if "may be old" in line)) < 3


def test_a_cluster_of_which_nothing_is_known_yet_is_told_with_the_reason() -> None:
    text = queue_view(QueueReply(at=NOW, pools=[], unheard={"lab": "the API server has said nothing"}))
    assert text.startswith("lab: nothing is known of it yet: the API server has said nothing\n")


def test_promises_are_told_without_names_to_a_tenant_and_with_the_reason_where_there_is_none() -> None:
    assert "a job of team-b is the first that does not fit" in promised_in_words(
        PromisedStarts(tenant="team-b", by=NOW)
    )
    assert "no start is promised to it: nobody knows" in promised_in_words(
        PromisedStarts(job="a/b", tenant="a", why_none="nobody knows")
    )
    unlimited = PromisedStarts(
        job="a/b", tenant="a", why_none="runs without a limit", in_its_way=["a/nl", "c/more"]
    )
    assert promised_in_words(unlimited).endswith(": runs without a limit: a/nl, c/more")
    assert promised_in_words(PromisedStarts(job="ns/x", tenant="a", by=NOW)).startswith(
        "ns/x of a is the first"
    )
    assert promised_in_words(PromisedStarts(why_not="it is BestEffortFIFO")).endswith(
        ": it is BestEffortFIFO"
    )


def test_tenants_show_share_beside_entitlement() -> None:
    text = tenants_view(TENANTS)
    for part in ("team-a", "50.0%", "25.0%", "of its part", "32 gpu", "gpu=8"):
        assert part in text
    assert "No pool is known" in tenants_view(TenantsReply(at=NOW, pools=[]))


def test_whose_standing_is_told_is_named_where_it_is_that_of_a_tenant_above() -> None:
    above = msgspec.structs.replace(STANDING, tenant="org-a", weight=2.0)
    text = explained(waits(standing=above))
    assert "above it, org-a  weight 2" in text
    assert "its tenant  " not in text


def test_an_explanation_shows_all_terms() -> None:
    found = waits(
        rank=4,
        waiting=9,
        ahead=[AheadOf(tenant="team-b", jobs=3)],
        refused_class="approved",
        reasons=["its tenant holds a quarter"],
        trace="4bf92f3577b34da6a3ce929d0e0e4736",
    )
    text = explained(found, verbose=True)
    for part in (
        "team-a/train",
        "4bf92f3577b34da6a3ce929d0e0e4736",
        "5 of 9",
        "0.25",
        "3 of team-b",
        "12",
        "approved",
        "its tenant holds a quarter",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            waits(room=RoomForecast(free={GPU: 0}, missing={GPU: 8000})),
            "Waiting, 6th of 40: needs 8 gpu, none free; team-a is under its share.",
        ),
        (
            waits(
                rank=0, room=RoomForecast(free={GPU: 6000}, missing={GPU: 2000}), standing=msgspec.structs.replace(STANDING, share=0.7)
            ),
            "Waiting, 1st of 40: needs 8 gpu, 6 free.",  # nobody is before it: its tenant's share keeps it from nothing
        ),
        (
            waits(rank=11, room=RoomForecast(free={GPU: 9000}, in_turn={GPU: 1000})),
            "Waiting, 12th of 40: it would fit now, but jobs before it go first; team-a is under its share.",
        ),
        (
            waits(
                room=RoomForecast(free={GPU: 0}, missing={GPU: 8000}),
                ahead=[AheadOf(tenant="team-a", jobs=3), AheadOf(tenant="team-b", jobs=2)],
            ),
            "Waiting, 6th of 40: needs 8 gpu, none free; team-a is under its share, but 3 jobs of its own go first.",
        ),
        (
            waits(
                room=RoomForecast(free={GPU: 0}, missing={GPU: 8000}),
                ahead=[AheadOf(tenant="team-a", jobs=3)],
                standing=msgspec.structs.replace(STANDING, share=0.7),
            ),
            "Waiting, 6th of 40: needs 8 gpu, none free; team-a is over its share.",
        ),
        (
            waits(never=["a pod asks for 9 gpu"], standing=None),
            "Waiting, 6th of 40: no node of its cluster can hold it, even empty.",
        ),
        (
            waits(rank=0, said="AssocGrpGRES", room=RoomForecast(free={GPU: 9000})),
            "Waiting, 1st of 40: what it asks for is free, but see what its frontend said.",
        ),
        (waits(rank=0, room=RoomForecast(free={GPU: 9000})), "Waiting, 1st of 40: it fits now."),
        (
            waits(
                rank=0,
                room=RoomForecast(free={GPU: 9000}),
                steering=Steering(cluster="gpus", frontend="kueue", enforcement="exact"),
            ),
            "Waiting, 1st of 40: it fits now; where it does not start, `fairlead doctor` may say why.",
        ),
        (waits(phase="running", rank=None), "Running."),
        (waits(phase="held", rank=None), "Held."),
        (waits(phase="held", rank=None, reasons=["Held: its queue is on hold."]), "Held: its queue is on hold."),
    ],
)  # fmt: skip
def test_an_explanation_leads_with_one_sentence(found: Explanation, said: str) -> None:
    assert headline(found) == said
    assert said in " ".join(explained(found).split())


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("103", "Of an array's tasks each is a job of its own, as 103_1."),
        ("103_9", "those behind them are not known one by one"),
        ("speech/107+1", "A heterogeneous job is called as its first part, 107."),
        ("train", "On Kubernetes a job without the label"),
    ],
)
def test_who_names_a_job_that_nobody_knows_hears_what_its_name_lets_one_think_of(job: str, said: str) -> None:
    hint = what_is_known(job, ())
    assert said in hint
    assert ("On Kubernetes" in hint) is (job == "train")


def test_an_explanation_shows_what_counts_most_unless_all_is_asked_for() -> None:
    found = waits(reasons=[f"reason {number}" for number in range(10)], no_quota=["no quota"])
    brief = explained(found)
    assert ("no quota" in brief, "reason 3" in brief, "reason 4" in brief) == (True, True, False)
    assert "6 more with -v" in brief
    assert not {"start tag", "level", "key"} & {line.split("  ")[0] for line in brief.splitlines()}
    whole = explained(found, verbose=True)
    assert all(part in whole for part in ("reason 9", "start tag", "level"))
    assert "more with -v" not in whole


def test_an_explanation_says_who_spoke_and_names_nothing_that_there_is_not() -> None:
    past = msgspec.structs.replace(STANDING, past={GPU: 12500})
    kueue = Steering(cluster="gpus", frontend="kueue", enforcement="exact")
    found = waits(queue="", said="no quota", steering=kueue, standing=past)
    text = " ".join(explained(found).split())
    assert "Kueue said no quota" in text
    assert "past use of 12.5 gpu" in text
    assert ("pool gpu" in text, "queue" in text) == (True, False)


def test_that_quota_is_short_is_told_once() -> None:
    reasons = ["It cannot start yet: it needs 2 gpu more than are free."]
    room = RoomForecast(free={GPU: 6000}, missing={GPU: 2000})
    found = waits(room=room, reasons=reasons, no_quota=["too little quota left"])
    assert "too little quota left" not in explained(found, verbose=True)


KUEUE = Steering(
    cluster="lab",
    frontend="kueue",
    enforcement="tie-break",
    enforcement_why="its queues have quota of their own",
    withheld="paused by ann",
    adherence=Adherence(
        since=NOW, admissions=8, missed=7, idle={"nvidia.com/gpu": 8320.0, "cpu": 33_280.0, "memory": 1e12}
    ),
)


def test_an_explanation_names_what_people_know_and_what_kueue_said() -> None:
    found = an_explanation(
        cluster="lab",
        id="job-train-1f2e3",
        level=7,
        base=5,
        owner="Job/train",
        said="insufficient unused quota for nvidia.com/gpu in flavor a100, 8 more needed",
        steering=KUEUE,
    )
    text = explained(found, verbose=True)
    for part in (
        "team-a/train (Job; its Workload is job-train-1f2e3) on lab",
        "7 (5 when nobody steers)",
        "tie-break, once levels are written: its queues have quota of their own",
        "paused by ann",
        "8 more needed",
    ):
        assert part in text


def test_of_a_cluster_that_is_silent_nothing_is_claimed() -> None:
    silent = "slurmctld has said nothing for 40 s: squeue: Munge encode failed"
    steering = Steering(cluster="hpc", frontend="slurm", enforcement="exact", unheard=silent)
    text = queue_view(queue_of(steering=[steering]))
    assert "hpc (slurm) would follow the order exactly" in text
    assert "follows the order" not in text
    assert f"hpc: what stands here may be old: {silent}" in text
    assert "exact, as it was last heard" in explained(an_explanation(steering=steering))


def test_how_far_a_cluster_follows_is_shown_everywhere() -> None:
    queue = queue_of(ranked(owner="Job/known"), steering=[KUEUE])
    [pool] = TENANTS.pools
    tenants = TenantsReply(at=NOW, pools=[msgspec.structs.replace(pool, steering=[KUEUE])])
    idle = queue_of(waiting=0, positions=[], steering=[KUEUE])
    frame = dashboard("Fairlead", tenants=tenants, queue=queue, throughput=Throughput())
    for view in (queue_view(queue), tenants_view(tenants), frame, queue_view(idle)):
        text = view
        assert "lab (kueue) would take the order as a tie-break: its queues have quota of their own" in text
        assert "lab: nothing is written: paused by ann" in text
        headline = f"lab: 7 of 8 admissions out of order (88%), 8.3 GPU-seconds idle (1.04 an admission), since {NOW:%Y-%m-%d %H:%M} UTC"
        assert headline in " ".join(text.split())
    assert "known" in queue_view(queue)
    assert "train [red]" not in queue_view(queue)


def test_an_order_that_levels_come_too_late_for_is_not_called_exact() -> None:
    loose = msgspec.structs.replace(KUEUE, enforcement="loose", enforcement_why="jobs start too fast")
    assert "lab (kueue) would follow the order loosely: jobs start too fast" in queue_view(
        queue_of(steering=[loose])
    )
    followed = msgspec.structs.replace(loose, withheld="")
    assert "lab (kueue) follows the order loosely: jobs start too fast" in queue_view(
        queue_of(steering=[followed])
    )
    explanation = " ".join(explained(an_explanation(cluster="lab", steering=followed)).split())
    assert "enforcement loose: jobs start too fast" in explanation


def test_a_job_that_is_left_alone_is_marked_at_any_width() -> None:
    alone = ranked(rank=1, left_alone=NOW)
    for columns in (60, 90, 200):
        lines = queue_view(queue_of(ranked(), alone), Screen(columns)).splitlines()
        assert sum(line.startswith("2* ") for line in lines) == 1
        assert "* the admitter leaves its level alone, as somebody else keeps changing it" in " ".join(lines)
    assert "leaves its level alone" not in queue_view(queue_of(ranked()))


def test_levels_that_should_be_gone_are_said_to_stand() -> None:
    unsafe = msgspec.structs.replace(
        KUEUE, withheld="a level could stop a running job", levels_left=3, preemptions_by_left_levels=2
    )
    text = queue_view(queue_of(waiting=0, positions=[], steering=[unsafe]))
    assert "lab: nothing is written: a level could stop a running job" in text
    stopped = "lab: 2 running jobs were stopped for others while levels stood that should have been gone"
    assert stopped in " ".join(text.split())
    assert "lab: 3 levels stand that should be gone" in text
    found = an_explanation(cluster="lab", steering=unsafe)
    text = " ".join(explained(found).split())
    assert f"enforcement {KUEUE.enforcement}, once levels are written" in text
    assert "levels left 3 levels stand that should be gone" in text
    told = "preempted 2 running jobs were stopped for others while levels stood that should have been gone"
    assert told in text
    quiet = explained(msgspec.structs.replace(found, steering=KUEUE))
    assert "by these levels, or by the jobs' own classes (the frontend does not say which)" in text
    assert "preempted" not in quiet
    written = msgspec.structs.replace(found, steering=msgspec.structs.replace(KUEUE, withheld=""))
    assert "once levels are written" not in explained(written)


def test_a_plain_simulated_cluster_is_no_news() -> None:
    steering = [Steering(cluster="sim", frontend="sim", enforcement="exact")]
    text = queue_view(queue_of(steering=steering))
    assert "exactly" not in text
    for frontend in ("slurm", "one-that-nobody-ships"):
        other = [msgspec.structs.replace(steering[0], frontend=frontend)]
        assert f"sim ({frontend}) follows the order exactly" in queue_view(queue_of(steering=other))


def plain(bar: Sequence[StyledText]) -> str:
    return "".join(one.text for one in bar)


def test_a_bar_marks_the_entitlement_inside_and_outside() -> None:
    assert plain(share_bar(0.25, 0.5, scale=0.5, width=4)) == "██·│"
    assert plain(share_bar(0.5, 0.25, scale=0.5, width=4)) == "██┃█"
    assert plain(share_bar(0.0, 0.0, scale=0.0, width=4)) == "····"


def test_a_reason_names_the_share_before_the_job() -> None:
    assert reason(POSITION) == "is at 25.00% of its part of gpu"


A1 = EffectiveJob(uid="u-a1", id="a1", job_class="normal", dominant="cpu", use=10, submitted=0)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"top": "org"}, "is below org, which is at 25.00% of its part of gpu"),
        (
            {"top": "org", "own_rank": 1, "effective": A1},
            "is below org, which is at 25.00% of its part of gpu; behind a1, which org serves first",
        ),
        (
            {"own_rank": 1, "effective": A1},
            "is at 25.00% of its part of gpu; behind a1, which it serves first",
        ),
        (
            {
                "top": "org",
                "within": [SiblingStanding(tenant="a", dominant="", use=0, tag=0, unbounded_by="weight")],
            },
            "is below org, which is at 25.00% of its part of gpu; a has weight 0: last of org's",
        ),
        ({"top": "org", "share": "1/4"}, "is below org, which counts at 25.00% of its part of gpu by H-DRF"),
        ({"blocked": True}, "is at 25.00% of its part of gpu; the job asks for what is used up"),
        ({"unbounded": True, "unbounded_by": "weight"}, "has weight 0: last"),
        ({"unbounded": True, "unbounded_by": "held"}, "holds gpu, of which the pool has none: last"),
        (
            {"unbounded": True, "unbounded_by": "asked"},
            "asked for gpu before, of which the pool has none: last",
        ),
        ({"unbounded": True}, "has an infinite share: last"),
    ],
)
def test_a_reason_names_whose_share_it_is_and_the_one_cause(changed: dict[str, object], words: str) -> None:
    assert reason(msgspec.structs.replace(POSITION, **changed)) == words


def test_a_reason_beyond_the_cap_goes_by_the_clock_where_that_is_known() -> None:
    position = msgspec.structs.replace(
        POSITION, own_rank=2, effective=A1, effective_late=msgspec.structs.replace(A1, id="a0")
    )
    assert reason(position).endswith("; behind a1 or a0, which it serves first")
    assert reason(position, A1).endswith("; behind a1, which it serves first")
    assert reason(position, position) == "is at 25.00% of its part of gpu"


def test_a_frame_shows_tenants_next_jobs_and_throughput() -> None:
    throughput = Throughput()
    for event in (a_queued_event(), a_started_event(), an_ended_event()):
        throughput.take(event)
    text = dashboard("Fairlead", tenants=TENANTS, queue=queue_of(), throughput=throughput)
    for part in ("1 queued, 1 started, 1 ended", "pool gpu", "next of 7 waiting", "train [red]"):
        assert part in text
    assert "waiting for a scorer" in dashboard("Fairlead", tenants=None, queue=None, throughput=throughput)


def test_a_frame_on_a_narrow_terminal_keeps_each_row_on_its_line() -> None:
    text = dashboard("Fairlead", Screen(80), tenants=TENANTS, queue=queue_of(), throughput=Throughput())
    assert "asks for" not in text
    assert "uses" not in text
    tenant = next(line for line in text.splitlines() if line.startswith("team-a"))
    assert "·" in tenant
    shown = next(line for line in text.splitlines() if "train [red]" in line)
    assert shown.endswith("  first")
