"""Jobs that Slurm does not start whatever comes free: limits, holds, their users' nice, and partitions of several pools."""

from collections.abc import Sequence

import msgspec
import pytest

from fairlead_contracts.frontend.capabilities import TieRule
from fairlead_contracts.messages.state import JobHolder, JobState, Phase, QueueState
from fairlead_slurm import SlurmJob, whole_job
from fairlead_slurm.cluster import Licence
from fairlead_slurm.ladder import LOWEST, Ladder
from fairlead_slurm_bridge.statements.partition_pools import Naming
from fairlead_slurm_bridge.statements.stated_view import SlurmContext, StatedView
from fairlead_testkit.inputs.slurm_builders import (
    GPU,
    NOON,
    SECOND,
    a_node,
    a_partition,
    a_slurm_job,
    some_accounts,
    some_settings,
)

LADDER = Ladder.over(3000)
LIMIT = "AssocMaxJobsLimit"
READINGS = 30
"""Readings for which a limit counts after Slurm told it last."""


@pytest.fixture
def view() -> StatedView:
    """A view of a cluster with a partition of three nodes, and one of a node of its own."""
    found = StatedView("lab", naming=Naming.of(GPU), qos_classes={}, array_window=8)
    nodes = [*(a_node(f"n{number}", "gpu") for number in (1, 2, 3)), a_node("n4", "debug")]
    partitions = [a_partition("gpu", is_default=True), a_partition("debug")]
    settings = some_settings()
    found.take_context(
        SlurmContext(nodes=nodes, partitions=partitions, accounts=some_accounts(), settings=settings)
    )
    return found


def read(view: StatedView, jobs: Sequence[SlurmJob]) -> dict[str, JobState]:
    """The changed statements about jobs after a reading, by id."""
    stated = view.read(jobs).values()
    return {state.id: state for state in stated if isinstance(state, JobState)}


def of_one_user(count: int, reason: str, **changes: object) -> list[SlurmJob]:
    return [
        a_slurm_job(str(number), reason=reason, submitted=NOON + number * SECOND, **changes)
        for number in range(1, count + 1)
    ]


def positioned(states: dict[str, JobState]) -> set[str]:
    return {name for name, state in states.items() if state.phase is Phase.WAITING}


# --- limits


def test_one_job_stands_for_all_that_wait_for_the_same_limit(view: StatedView) -> None:
    others = [a_slurm_job("8", user="bob", reason="Priority"), a_slurm_job("9", account="speech", user="eve")]
    found = read(view, [*of_one_user(4, LIMIT), *others])
    assert positioned(found) == {"1", "8", "9"}
    assert found["2"].held_by == (
        "a limit of its user's in Slurm is reached (AssocMaxJobsLimit), and job 1 comes first"
    )
    assert found["1"].said == LIMIT
    assert {name for name, one in found.items() if one.limited} == {"1"}


def test_a_limit_of_an_account_by_a_qos_is_one_too(view: StatedView) -> None:
    assert positioned(read(view, of_one_user(3, "MaxGRESPerAccount"))) == {"1"}


def test_jobs_that_slurm_did_not_come_to_wait_for_the_limit_too(view: StatedView) -> None:
    """Slurm says a limit of a job only when it comes to it: of those far behind it says that others come first."""
    jobs = [*of_one_user(1, LIMIT), *of_one_user(4, "Priority")[1:]]
    assert positioned(read(view, jobs)) == {"1"}


def test_who_asks_for_less_may_fit_below_the_limit(view: StatedView) -> None:
    small = {"cpu": 1000, "gres/gpu": 0}
    jobs = [
        *of_one_user(3, "AssocGrpGRES", time_limit=60 * SECOND),
        a_slurm_job("7", resources=small, time_limit=60 * SECOND),
        a_slurm_job("8", time_limit=30 * SECOND),
    ]
    assert positioned(read(view, jobs)) == {"1", "7", "8"}


def test_the_next_one_stands_for_the_rest_once_the_first_runs_and_the_limit_ends_by_silence(
    view: StatedView,
) -> None:
    first, *rest = of_one_user(4, LIMIT)
    read(view, [first, *rest])
    started = msgspec.structs.replace(first, state="RUNNING", started=NOON)
    ordinary = [msgspec.structs.replace(job, reason="Priority") for job in rest]
    assert positioned(read(view, [started, *ordinary])) == {"2"}
    for _ in range(READINGS - 2):
        assert not read(view, [started, *ordinary])
    found = read(view, [started, *ordinary])
    assert positioned(found) == {"2", "3", "4"}
    assert not any(one.limited for one in found.values())


NODE_DOWN = "ReqNodeNotAvail, UnavailableNodes:n1"
HEAD_OF_SHARED_NODES = (
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
)
"""Slurm's words of the head of a partition that shares its nodes with another one: it did not come to it."""


@pytest.mark.parametrize(
    ("reason", "nodes"),
    [
        (NODE_DOWN, "n1"),
        ("Licenses", ""),
        ("BadConstraints", ""),
        ("JobArrayTaskLimit", ""),
        ("InvalidQOS", ""),
        ("QOSMinGRES", ""),
        ("QOSUsageThreshold", ""),
        ("MaxMemPerLimit", ""),
        ("PartitionConfig", ""),
    ],
)
def test_who_waits_for_what_its_own_words_ask_for_is_passed_by_at_its_position(
    view: StatedView, reason: str, nodes: str
) -> None:
    """Slurm says so of a job that it comes to: until it comes to it again, that stands."""
    said = of_one_user(40, reason, required_nodes=nodes)
    others = [a_slurm_job("90", user="bob", reason="Priority")]
    found = read(view, [*said, *others])
    assert positioned(found) == {job.id for job in (*said, *others)}
    assert {name for name, one in found.items() if one.limited} == {job.id for job in said}
    not_looked_at = [
        msgspec.structs.replace(job, reason=("Priority", "None", HEAD_OF_SHARED_NODES)[number % 3])
        for number, job in enumerate(said)
    ]
    for _ in range(READINGS + 1):
        assert not read(view, [*not_looked_at, *others]), "what Slurm said last is still told"
    looked_at = [msgspec.structs.replace(job, reason="Resources") for job in said]
    found = read(view, [*looked_at, *others])
    assert len(found) == len(said)
    assert not any(one.limited for one in found.values())


@pytest.mark.parametrize(
    "job",
    [
        # Nodes are missing to everybody, and come back for everybody.
        a_slurm_job("1", reason=NODE_DOWN),
        a_slurm_job("1", reason="ReqNodeNotAvail, Reserved for maintenance"),
        a_slurm_job("1", required_nodes="n1", reason=HEAD_OF_SHARED_NODES),
        a_slurm_job("1", partitions=("gpu", "debug"), reason=NODE_DOWN, required_nodes="n1"),
        a_slurm_job("1", required_nodes="n1", reason="Priority"),
    ],
)
def test_who_waits_as_others_do_is_not_passed_by(view: StatedView, job: SlurmJob) -> None:
    assert not read(view, [job])["1"].limited


NOT_ITS_ACCOUNT = "Job's account not permitted to use this partition (long denies vision including vision)"


@pytest.mark.parametrize(
    "changes",
    [
        {"denied_accounts": ("vision",)},
        {"allowed_accounts": ("speech",), "denied_accounts": ()},
        {"denied_qos": ("normal",)},
        {"allowed_qos": ("urgent",)},
    ],
)
def test_whom_all_its_partitions_keep_out_by_their_lists_is_passed_by_as_long_as_they_do(
    view: StatedView, changes: dict[str, object]
) -> None:
    """Slurm says so of the first ones alone, says the last partition's word, and lets it stand once the list is changed."""
    around = view.context
    assert around is not None
    out = [msgspec.structs.replace(a_partition(name), **changes) for name in ("long", "third")]
    nodes = [a_node("n1", "gpu", "long", "third")]
    view.take_context(msgspec.structs.replace(around, nodes=nodes, partitions=[a_partition("gpu"), *out]))
    jobs = [
        a_slurm_job(name, partitions=listed, reason=reason)
        for name, listed, reason in (
            ("1", ("long", "third"), NOT_ITS_ACCOUNT),
            ("2", ("long",), NOT_ITS_ACCOUNT),
            ("3", ("long",), "Priority"),
            ("4", ("long", "gpu"), NOT_ITS_ACCOUNT),
        )
    ]
    found = read(view, jobs)
    assert {name for name, one in found.items() if one.limited} == {"1", "2", "3"}
    assert positioned(found) == {"1", "2", "3", "4"}
    nowhere = "no partition that it lists takes it now"
    assert [found[name].said for name in "123"] == [nowhere, NOT_ITS_ACCOUNT, nowhere]
    view.take_context(around)
    found = read(view, jobs)
    assert not any(found[name].limited for name in "123")


def test_where_lists_hold_for_accounts_below_too_slurms_word_counts(view: StatedView) -> None:
    around = view.context
    assert around is not None
    newer = msgspec.structs.replace(around.settings, version="23.02.1")
    listed = [a_partition("gpu", allowed_accounts=("research",)), a_partition("debug")]
    view.take_context(msgspec.structs.replace(around, settings=newer, partitions=listed))
    found = read(view, [a_slurm_job("1"), a_slurm_job("2", reason=NOT_ITS_ACCOUNT)])
    assert {name for name, one in found.items() if one.limited} == {"2"}


def test_who_asks_for_more_time_than_all_its_partitions_give_is_passed_by(view: StatedView) -> None:
    around = view.context
    assert around is not None
    short = [a_partition(name, max_time=60 * SECOND) for name in ("gpu", "debug")]
    view.take_context(msgspec.structs.replace(around, partitions=short))
    both = {"partitions": ("gpu", "debug"), "time_limit": 61 * SECOND}
    said, lifted = a_slurm_job("1", reason="PartitionTimeLimit", **both), a_slurm_job("2", **both)
    found = read(view, [said, lifted])
    assert [found[name].limited for name in "12"] == [True, msgspec.UNSET], "a QOS may lift that limit"
    not_looked_at = a_slurm_job("1", reason="Priority", **both)
    assert "1" not in read(view, [not_looked_at, lifted]), "Slurm has not come to it anew: nothing changed"
    endless = a_slurm_job("3", reason="PartitionTimeLimit", partitions=("gpu", "debug"), time_limit=None)
    assert read(view, [endless])["3"].limited is True


def test_who_waits_for_a_licence_is_passed_by_until_there_is_one_for_it(view: StatedView) -> None:
    """Slurm's word of it stands once it is free: then as many count as there are licences."""
    around = view.context
    assert around is not None
    jobs = [
        a_slurm_job(str(number), reason=reason, licences=asked, submitted=NOON + number)
        for number, reason, asked in (
            (1, "Licenses", "a:2"),
            (2, "Licenses", "a"),
            (3, "Licenses", "b|a"),
            (4, "Priority", "a:2"),
        )
    ]
    passed_by = {}
    for used in (2, 1, 0):
        there = Licence(name="a", total=3, used=used, reserved=1)
        view.take_context(msgspec.structs.replace(around, licences=[there]))
        view.read([])
        found = read(view, jobs)
        passed_by[used] = {name for name, one in found.items() if one.limited}
    assert passed_by == {2: {"1", "2", "3"}, 1: {"1", "3"}, 0: {"2", "3"}}


def test_jobs_of_a_reservation_that_one_account_alone_waits_for_are_passed_by(view: StatedView) -> None:
    """It waits for nodes that are nobody else's, however many stand before it."""
    bound = [a_slurm_job(str(number), reservation="mine") for number in (1, 2)]
    found = read(view, [*bound, a_slurm_job("3"), a_slurm_job("4", account="speech")])
    assert {name for name, one in found.items() if one.limited} == {"1", "2"}
    assert positioned(found) == {"1", "2", "3", "4"}
    assert found["1"].said == "waits for nodes of reservation mine"
    of_another = a_slurm_job("5", account="speech", reservation="mine")
    found = read(view, [*bound, of_another])
    assert not any(one.limited for one in found.values()), "they take turns there"


@pytest.mark.parametrize("state", ["DOWN", "INACTIVE"])
def test_who_waits_in_a_closed_partition_alone_is_passed_by_until_it_opens(state: str) -> None:
    """Others of the account, in a partition of the same nodes that is open, wait for none of them."""
    view = StatedView("lab", naming=Naming.of(GPU), qos_classes={}, array_window=8)
    around = SlurmContext(
        nodes=[a_node("n1", "gpu", "long")],
        partitions=[a_partition("gpu"), a_partition("long", state=state)],
        accounts=some_accounts(),
        settings=some_settings(),
    )
    view.take_context(around)
    closed, open_, either = (
        a_slurm_job(name, partitions=listed)
        for name, listed in (("1", ("long",)), ("2", ("gpu",)), ("3", ("long", "gpu")))
    )
    found = read(view, [closed, open_, either])
    assert {name for name, one in found.items() if one.limited} == {"1"}
    assert positioned(found) == {"1", "2", "3"}
    starts_what_waits = [a_partition("gpu"), a_partition("long", state="DRAIN")]
    view.take_context(msgspec.structs.replace(around, partitions=starts_what_waits))
    assert not read(view, [closed, open_, either])["1"].limited


def test_while_nothing_of_a_pool_starts_all_keep_their_turn(view: StatedView) -> None:
    """Somebody closes a partition for a while: when it opens, Slurm starts by the levels that stand."""
    around = view.context
    assert around is not None
    partitions = [a_partition("gpu", state="DOWN"), a_partition("debug")]
    view.take_context(msgspec.structs.replace(around, partitions=partitions))
    assert not any(job.limited for job in read(view, of_one_user(3, "PartitionDown")).values())


def test_who_asks_for_more_than_one_job_may_have_has_no_position(view: StatedView) -> None:
    large = a_slurm_job("1", reason="QOSMaxGRESPerJob", resources={"gres/gpu": 24_000})
    found = read(view, [large, *of_one_user(3, "Priority")[1:]])
    assert positioned(found) == {"2", "3"}
    assert found["1"].held_by == "asks for more than a limit in Slurm lets one job have (QOSMaxGRESPerJob)"


def test_what_is_left_of_an_array_waits_for_a_limit_as_one(view: StatedView) -> None:
    tasks = [a_slurm_job(f"7_{task}", reason=LIMIT, number=7, submitted=NOON + SECOND) for task in range(20)]
    found = read(view, [a_slurm_job("3", reason=LIMIT), *tasks])
    assert positioned(found) == {"3"}
    assert found["7"].phase is Phase.HELD


def test_the_first_task_of_an_array_stands_for_what_is_left_of_it(view: StatedView) -> None:
    """The tasks that have levels are records of their own, numbered after the array's."""
    own = [a_slurm_job(f"7_{task}", reason=LIMIT, number=8 + task, submitted=NOON) for task in range(3)]
    rest = [a_slurm_job(f"7_{task}", reason="Priority", number=7, submitted=NOON) for task in range(3, 20)]
    found = read(view, [*own, *rest])
    assert positioned(found) == {"7_0"}
    assert found["7"].held_by.endswith("and job 7_0 comes first")


@pytest.mark.parametrize("reason", ["PartitionTimeLimit", "PartitionNodeLimit"])
def test_what_its_partition_never_starts_has_no_position(view: StatedView, reason: str) -> None:
    found = read(view, of_one_user(2, reason))
    assert positioned(found) == set()
    assert found["1"].held_by == f"its partition does not take it ({reason})"
    assert positioned(read(view, of_one_user(2, "Priority"))) == {"1", "2"}


def test_a_limit_holds_back_the_jobs_that_it_is_for_and_no_others(view: StatedView) -> None:
    of_debug = a_slurm_job("1", reason="QOSMaxJobsPerUserLimit", partitions=("debug",))
    too_few = a_slurm_job("2", user="bob", reason="QOSMinCpuNotSatisfied")
    wide = a_slurm_job("3", user="eve", reason="QOSMaxCpuPerNode", resources={"cpu": 64_000})
    others = [
        a_slurm_job("11"),
        a_slurm_job("12", user="bob", resources={"cpu": 4000}),
        a_slurm_job("13", user="eve", resources={"cpu": 64_000}, nodes=4),
    ]
    found = read(view, [of_debug, too_few, wide, *others])
    assert positioned(found) == {"1", "2", "11", "12", "13"}


def test_who_waits_for_something_else_stands_for_nobody(view: StatedView) -> None:
    [licence, *rest] = of_one_user(4, LIMIT)
    found = read(view, [msgspec.structs.replace(licence, reason="Licenses"), *rest])
    assert positioned(found) == {"1", "2"}


def test_a_user_of_a_thousand_unlike_jobs_costs_a_reading_no_more_than_each_is_worth(
    view: StatedView,
) -> None:
    """None asks for no less than another: each was compared with all that stand before it."""
    unlike = [
        a_slurm_job(
            str(number + 1),
            reason=LIMIT,
            submitted=NOON + number,
            resources={"cpu": 1000, "mem": 2**20 + number},
            time_limit=(2000 - number) * SECOND,
        )
        for number in range(1000)
    ]
    assert len(positioned(read(view, unlike))) < 1000


def test_a_job_of_several_partitions_is_refused_by_all_or_by_none(view: StatedView) -> None:
    """Slurm leaves the reason of the last one that refuses it, though another one takes it."""
    found = read(view, [a_slurm_job("1", reason="PartitionTimeLimit", partitions=("gpu", "debug"))])
    assert found["1"].phase is Phase.WAITING


# --- holds and nice


def test_a_job_that_ran_and_is_held_again_has_the_level_that_it_had(view: StatedView) -> None:
    """A user may requeue and hold a job of theirs, and release it when something comes free."""
    job = a_slurm_job("1", priority=LADDER.site_factor(7, 0) + 66)
    read(view, [job])
    read(view, [msgspec.structs.replace(job, state="RUNNING", started=NOON)])
    held = msgspec.structs.replace(job, priority=0, reason="JobHeldUser")
    state = read(view, [held])["1"]
    assert (state.phase, state.level) == (Phase.HELD, 7)


def test_a_held_job_s_level_is_stated_until_it_is_taken_away(view: StatedView) -> None:
    """Its SiteFactor stands, and counts again the moment that its user releases it."""
    job = a_slurm_job("1", priority=LADDER.site_factor(7, 0) + 66)
    assert read(view, [job])["1"].level == 7
    held = msgspec.structs.replace(job, priority=0, reason="JobHeldUser")
    state = read(view, [held])["1"]
    assert (state.phase, state.level) == (Phase.HELD, 7)
    assert view.waiting("1", state.uid) == held
    view.levelled("1", 0)
    assert not read(view, [held])
    assert read(view, [a_slurm_job("1", priority=66)])["1"].level == 0


@pytest.mark.parametrize("told", [{"priority": 0, "reason": "JobHeldUser"}, {"priority": 1, "nice": 10**9}])
@pytest.mark.parametrize("ran", [False, True])
def test_of_a_job_from_before_the_start_a_level_may_stand_and_is_taken_away(
    view: StatedView, told: dict[str, object], *, ran: bool
) -> None:
    """Slurm shows no SiteFactor but in the priority: before the first reading a bridge may have written one."""
    silent = a_slurm_job("1", **told)
    if ran:
        read(view, [msgspec.structs.replace(silent, state="RUNNING", started=NOON)])
    found = read(view, [silent, a_slurm_job("2", priority=66)])
    assert (found["1"].phase, found["1"].level, found["2"].level) == (Phase.HELD, LOWEST, 0)
    assert [one.level for one in view.levelled("1", 0).values() if isinstance(one, JobState)] == [0]
    assert not read(view, [silent, a_slurm_job("2", priority=66)])
    assert read(view, [silent, a_slurm_job("3", **told)])["3"].level == 0, "it came when nothing was written"


def test_a_nice_beyond_all_measure_changes_no_level_and_takes_the_position(view: StatedView) -> None:
    read(view, [a_slurm_job("1", priority=66)])
    view.levelled("1", 7)
    state = read(view, [a_slurm_job("1", priority=1, nice=10**9)])["1"]
    assert (state.phase, state.level, state.holder) == (Phase.HELD, 7, JobHolder.USER)
    assert state.held_by == f"its nice of 1000000000 puts it behind all levels: up to {LADDER.room} would not"
    assert read(view, [a_slurm_job("1", priority=LADDER.site_factor(7, 0))])["1"].level == 7


def test_a_nice_sorts_within_a_level_so_ties_are_told_no_more() -> None:
    bare = StatedView("lab", naming=Naming.of(GPU), qos_classes={}, array_window=8)
    settings = msgspec.structs.replace(some_settings(), weights={})
    bare.take_context(
        SlurmContext(
            nodes=[a_node("n1", "gpu")],
            partitions=[a_partition("gpu")],
            accounts=some_accounts(),
            settings=settings,
        )
    )
    assert not [one for one in bare.read([a_slurm_job("1")]).values() if isinstance(one, QueueState)]
    stated = bare.read([a_slurm_job("1", nice=3)]).values()
    assert [one.able.ties for one in stated if isinstance(one, QueueState)] == [TieRule.CHANCE]


# --- partitions of several pools


def backlog(partition: str, account: str, first: int, count: int = 12) -> list[SlurmJob]:
    return [
        a_slurm_job(str(first + number), account=account, partitions=(partition,)) for number in range(count)
    ]


def test_who_lists_partitions_of_two_pools_is_ranked_where_others_wait_for_more(view: StatedView) -> None:
    """An account alone in a small pool would have a high level there, and with it pass the queue of the large one."""
    both = a_slurm_job("1", partitions=("debug", "gpu"))
    alone = [both, *backlog("debug", "vision", 100, count=40)]
    assert read(view, alone)["1"].queue == "debug", "nobody else waits anywhere"
    found = read(view, [*alone, *backlog("gpu", "speech", 200)])
    assert (found["1"].queue, found["1"].queues) == ("gpu", ("gpu", "debug"))


def test_a_job_changes_its_pool_only_where_another_is_clearly_fuller(view: StatedView) -> None:
    both = a_slurm_job("1", partitions=("debug", "gpu"))
    queued = [*backlog("gpu", "speech", 200), *backlog("debug", "speech", 300, count=4)]
    assert read(view, [both, *queued])["1"].queue == "debug"
    assert not read(view, [both, *queued, *backlog("gpu", "speech", 400, count=2)]).keys() & {"1"}
    assert read(view, [both, *queued, *backlog("gpu", "speech", 400, count=6)])["1"].queue == "gpu"


def test_a_job_is_ranked_in_no_pool_that_cannot_hold_it(view: StatedView) -> None:
    """There it would stand first for good, and with that level in the other pool, too."""
    large = {"cpu": 4000, "gres/gpu": 16_000}
    both = a_slurm_job("1", partitions=("debug", "gpu"), resources=large)
    assert read(view, [both, *backlog("debug", "speech", 100, count=40)])["1"].queue == "gpu"


def test_parts_of_a_heterogeneous_job_count_in_their_own_pools(view: StatedView) -> None:
    """As one job in one pool it would ask for more than that has, and never start there."""
    parts = [
        a_slurm_job("11", resources={"gres/gpu": 16_000}),
        a_slurm_job("12", partitions=("debug",), resources={"gres/gpu": 8000}),
        a_slurm_job("13", resources={"gres/gpu": 8000}),
    ]
    found = read(view, [whole_job(parts)])
    asked = {name: (one.queue, one.demand[GPU]) for name, one in found.items()}
    assert asked == {"11": ("gpu", 24_000), "12": ("debug", 8000)}
    written = view.waiting("11", found["11"].uid)
    assert written is not None
    assert [one.id for one in written.parts] == ["11", "13"]
    running = [msgspec.structs.replace(one, state="RUNNING", started=NOON) for one in parts]
    held = {name: (one.queue, one.demand[GPU]) for name, one in read(view, [whole_job(running)]).items()}
    assert held == asked


def test_partitions_of_one_pool_stay_as_listed(view: StatedView) -> None:
    both = a_slurm_job("1", partitions=("gpu",))
    assert read(view, [both, *backlog("debug", "speech", 200)])["1"].queues == ()
