"""The statements about a slurmctld, and the times at which they change."""

from collections.abc import Sequence

import msgspec
import pytest

from fairlead_bus.facts.event_diff import RunEnd
from fairlead_contracts.base.instants import DAY
from fairlead_contracts.frontend.capabilities import TieRule
from fairlead_contracts.messages.state import (
    JobArray,
    JobHolder,
    JobState,
    Outcome,
    Phase,
    PoolState,
    QueueState,
    State,
    TenantState,
    task_uid,
)
from fairlead_slurm import SlurmJob, whole_job
from fairlead_slurm.ladder import Ladder
from fairlead_slurm_bridge.statements.jobs import before_its_time, phase_of
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

ROOM = Ladder.over(3000).room
"""Points of a rung that are there for a small nice."""


def context(**weights: int) -> SlurmContext:
    """A cluster of one partition with one node, and two accounts below another."""
    return SlurmContext(
        nodes=[a_node("n1", "gpu")],
        partitions=[a_partition("gpu", is_default=True)],
        accounts=some_accounts(),
        settings=some_settings(**weights),
    )


def a_view() -> StatedView:
    """A view of the cluster `lab`, before any reading."""
    return StatedView(
        "lab",
        naming=Naming.of(GPU),
        qos_classes={"urgent": "urgent"},
        array_window=8,
    )


def jobs_of(stated: dict[str, State | None]) -> dict[str, JobState]:
    """The jobs among statements, by id."""
    return {state.id: state for state in stated.values() if isinstance(state, JobState)}


def read(view: StatedView, jobs: Sequence[SlurmJob]) -> dict[str, JobState]:
    """The changed statements about jobs after a reading."""
    return jobs_of(view.read(jobs))


@pytest.fixture
def view() -> StatedView:
    found = a_view()
    found.take_context(context())
    return found


def test_partitions_pools_and_accounts_are_stated() -> None:
    stated = a_view().take_context(context()).values()
    [pool] = [state for state in stated if isinstance(state, PoolState)]
    assert (pool.name, pool.capacity[GPU]) == ("gpu", 8000)
    [queue] = [state for state in stated if isinstance(state, QueueState)]
    assert (queue.pool, queue.frontend, queue.default_level, queue.lowest_level) == ("gpu", "slurm", 0, 1)
    assert queue.highest_level == 214_747
    assert queue.able.ties is TieRule.CHANCE
    # People may have jobs in an account that others lie below, too.
    assert {one.scope for one in stated if isinstance(one, TenantState)} == {"research", "vision", "speech"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"preempt_type": "preempt/qos"}, "a job whose QOS may stop others starts from anywhere"),
        ({"weights": {"FairShare": 900_000_000}}, "leave room for 1 of 1000 levels (`fairlead slurm check`)"),
        ({"priority_flags": ("MAX_TRES", "NO_NORMAL_QOS")}, "with NO_NORMAL_QOS Slurm's own factors may"),
        ({"priority_type": "priority/basic"}, "leave room for 0 of 1000 levels"),
    ],
)
def test_settings_that_spoil_the_order_are_said_with_the_pool(
    view: StatedView, changes: dict[str, object], why: str
) -> None:
    """Somebody changes slurm.conf while Fairlead runs: the check at its start saw none of it."""
    around = context()
    spoiling = msgspec.structs.replace(around.settings, **changes)
    stated = view.take_context(msgspec.structs.replace(around, settings=spoiling)).values()
    [pool] = [state for state in stated if isinstance(state, PoolState)]
    assert pool.enforcement == "loose"
    assert why in pool.enforcement_why


def test_without_weights_slurms_own_tie_counts() -> None:
    bare = context()
    settings = msgspec.structs.replace(bare.settings, weights={})
    stated = a_view().take_context(msgspec.structs.replace(bare, settings=settings)).values()
    [queue] = [state for state in stated if isinstance(state, QueueState)]
    assert queue.able.ties is TieRule.JOB_NUMBER


def test_where_site_factor_counts_nothing_there_are_no_levels() -> None:
    basic = context()
    settings = msgspec.structs.replace(basic.settings, priority_type="priority/basic")
    stated = a_view().take_context(msgspec.structs.replace(basic, settings=settings)).values()
    [queue] = [state for state in stated if isinstance(state, QueueState)]
    assert queue.highest_level == 0


@pytest.mark.parametrize(
    ("changes", "phase"),
    [
        ({}, Phase.WAITING),
        ({"priority": 0, "reason": "JobHeldUser"}, Phase.HELD),
        ({"dependency": "afterok:3(unfulfilled)", "reason": "Dependency"}, Phase.HELD),
        ({"reason": "BeginTime"}, Phase.HELD),
        ({"reason": "JobArrayTaskLimit"}, Phase.WAITING),
        ({"reason": "AssocGrpGRES"}, Phase.WAITING),
        ({"state": "REQUEUE_HOLD"}, Phase.HELD),
        ({"state": "RUNNING", "started": NOON}, Phase.RUNNING),
        ({"state": "COMPLETING", "started": NOON}, Phase.RUNNING),
        ({"state": "TIMEOUT", "started": NOON, "ends": NOON + 1}, Phase.ENDED),
    ],
)
def test_each_job_has_its_phase(view: StatedView, changes: dict[str, object], phase: Phase) -> None:
    stated = read(view, [a_slurm_job("1", **changes)])["1"]
    assert stated.phase is phase
    assert bool(stated.held_by) is (phase is Phase.HELD)


@pytest.mark.parametrize(
    ("state", "outcome"),
    [("COMPLETED", Outcome.SUCCEEDED), ("CANCELLED", Outcome.CANCELLED), ("NODE_FAIL", Outcome.FAILED)],
)
def test_an_end_has_its_outcome(view: StatedView, state: str, outcome: Outcome) -> None:
    assert read(view, [a_slurm_job("1", state=state, started=NOON, ends=NOON)])["1"].outcome is outcome


def test_a_waiting_job_is_stated_with_what_it_asks_for(view: StatedView) -> None:
    job = read(
        view, [a_slurm_job("12_3", number=300, qos="urgent", partitions=("gpu", "batch"), priority=71_234)]
    )
    stated = job["12_3"]
    assert (stated.scope, stated.queue, stated.requested_class, stated.level) == (
        "vision",
        "gpu",
        "urgent",
        7,
    )
    assert stated.demand == {"cpu": 1000, "memory": 2**20, GPU: 1000}
    assert stated.uid == f"lab-0000000012-{NOON}_0000000003"


def test_a_job_that_shares_no_node_counts_as_the_nodes_it_will_take() -> None:
    """Of each resource as much as its smallest node has, which has what it asks for; memory as asked for."""
    view = a_view()
    large, small = a_node("n1", "gpu"), a_node("n2", "gpu")
    small = msgspec.structs.replace(small, resources=small.resources | {"cpu": 4000, "gres/gpu": 2000})
    plain = msgspec.structs.replace(small, name="n3", resources={"cpu": 2000, "mem": 2**30})
    off = msgspec.structs.replace(plain, name="n4", usable=False, resources={"cpu": 1000})
    elsewhere = msgspec.structs.replace(plain, name="n5", partitions=("cpu",), resources={"cpu": 1000})
    nodes = [large, small, plain, off, elsewhere]
    view.take_context(msgspec.structs.replace(context(), nodes=nodes))
    alone = a_slurm_job("1", whole_nodes=True, nodes=3)
    alone = msgspec.structs.replace(alone, resources=alone.resources | {"license/a": 1000})  # of no node
    cpus = msgspec.structs.replace(alone, id="2", array=2, resources={"cpu": 7000, "mem": 2**20})
    runs = msgspec.structs.replace(alone, id="3", array=3, state="RUNNING")
    shares = a_slurm_job("4", nodes=3)
    parts = tuple(msgspec.structs.replace(part, id="5", array=5, nodes=1) for part in (alone, shares))
    both = msgspec.structs.replace(parts[0], parts=parts)
    found = read(view, [alone, cpus, runs, shares, both])
    amounts = {name: (job.demand["cpu"], job.demand.get(GPU)) for name, job in found.items()}
    assert amounts == {
        "1": (12_000, 6000),
        "2": (7000, None),
        "3": (1000, 1000),
        "4": (1000, 1000),
        "5": (5000, 3000),
    }
    assert found["1"].demand["memory"] == 2**20


def an_array(tasks: Sequence[int], **changes: object) -> list[SlurmJob]:
    """The waiting tasks of array 7, which share a record."""
    return [a_slurm_job(f"7_{task}", number=7, **changes) for task in tasks]


def test_an_array_is_stated_once_with_the_tasks_that_have_a_position(view: StatedView) -> None:
    stated = read(view, an_array(range(1, 201)))
    assert stated.keys() == {"7"}
    array = stated["7"]
    assert array.array == JobArray(tasks=200, window=list(range(1, 9)))
    assert array.demand[GPU] == 1000
    again = read(view, an_array(range(2, 201)))
    assert again["7"].array == JobArray(tasks=199, window=list(range(2, 10)))


def test_a_task_that_gets_a_level_leaves_its_array(view: StatedView) -> None:
    tasks = an_array(range(1, 101))
    array = read(view, tasks)["7"]
    uid = task_uid(array.uid, 3)
    assert view.waiting("7_3", uid) == tasks[2]
    assert view.waiting("7_9", task_uid(array.uid, 9)) is None
    stated = jobs_of(view.levelled("7_3", 4) | view.levelled("7_1", 5))
    assert {name: (one.uid, one.level) for name, one in stated.items() if one.array is None} == {
        "7_3": (uid, 4),
        "7_1": (task_uid(array.uid, 1), 5),
    }
    assert stated["7"].array == JobArray(tasks=98, window=[2, 4, 5, 6, 7, 8])
    tasks[2] = a_slurm_job("7_3", number=301, priority=40_003)
    tasks[0] = a_slurm_job("7_1", number=302, priority=50_003)
    assert not read(view, tasks)
    tasks[0] = msgspec.structs.replace(tasks[0], state="RUNNING", started=NOON, resources=tasks[0].resources)
    found = read(view, tasks)
    assert (found["7_1"].phase, found["7_1"].uid) == (Phase.RUNNING, task_uid(array.uid, 1))
    assert found["7"].array == JobArray(tasks=98, window=[2, 4, 5, 6, 7, 8, 9])


def test_an_array_whose_window_is_split_off_still_says_how_many_wait(view: StatedView) -> None:
    split = [a_slurm_job(f"7_{task}", number=100 + task, priority=10_000) for task in range(1, 9)]
    assert read(view, [*split, *an_array(range(9, 201))])["7"].array == JobArray(tasks=192, window=[])


def test_whoever_holds_a_job_is_stated_and_where_it_may_start(view: StatedView) -> None:
    jobs = [
        a_slurm_job("1", priority=0, reason="JobHeldUser"),
        a_slurm_job("2", priority=0, reason="JobHeldAdmin"),
        a_slurm_job("3", dependency="afterok:1(unfulfilled)", reason="Dependency"),
        a_slurm_job("4", dependency="singleton(unfulfilled)", reason="Priority"),
        a_slurm_job("5", reason="BeginTime"),
        a_slurm_job("6", partitions=("gpu", "batch")),
    ]
    found = read(view, jobs)
    holders = [found[str(number)].holder for number in range(1, 7)]
    assert holders == [
        JobHolder.USER,
        JobHolder.ADMIN,
        JobHolder.DEPENDENCY,
        JobHolder.DEPENDENCY,
        None,
        None,
    ]
    assert found["5"].held_by == "may not begin yet (begin time)"
    assert (found["6"].queue, found["6"].queues, found["1"].queues) == ("gpu", ("gpu", "batch"), ())
    started = msgspec.structs.replace(jobs[5], state="RUNNING", partitions=("batch",), started=NOON)
    assert (read(view, [*jobs[:5], started])["6"].queue) == "batch"


def test_a_nicer_array_lets_the_others_of_its_account_past(view: StatedView) -> None:
    array, other = an_array([1, 2, 3], nice=50), a_slurm_job("8")
    found = read(view, [*array, other])
    assert found["8"].submitted == NOON
    assert found["7"].submitted == NOON + 1


def test_a_pass_without_a_change_says_nothing(view: StatedView) -> None:
    jobs = [a_slurm_job(str(number), priority=10_000 * number) for number in range(1, 50)]
    assert len(read(view, jobs)) == 49
    older = [msgspec.structs.replace(job, priority=job.priority + 3) for job in jobs]
    assert not view.read(older)
    assert not view.take_context(context())


def test_a_job_whose_begin_time_is_to_come_is_held_whatever_slurmctld_says_after_a_write() -> None:
    job = a_slurm_job("1", reason="None")
    begins = msgspec.structs.replace(job, eligible=NOON + SECOND)
    assert [phase_of(before_its_time(begins, now)) for now in (NOON, NOON + SECOND)] == [
        Phase.HELD,
        Phase.WAITING,
    ]
    assert before_its_time(job, NOON) is job


@pytest.mark.parametrize("kind", ["single", "of whole nodes", "heterogeneous"])
def test_a_job_waits_for_its_reservation_until_slurm_says_another_reason(view: StatedView, kind: str) -> None:
    """After each write slurmctld gives none for a moment; where the job asks for something else, it says nothing yet."""
    waits, nothing = (
        a_slurm_job("1", reservation="late", reason=reason, whole_nodes=kind == "of whole nodes")
        for reason in ("Reservation", "None")
    )
    if kind == "heterogeneous":
        waits, nothing = whole_job([waits]), whole_job([nothing])
    read(view, [waits])
    assert not read(view, [msgspec.structs.replace(nothing, priority=7)])
    assert not read(view, [nothing])
    other = msgspec.structs.replace(nothing, reservation="")
    assert [read(view, [one])["1"].phase for one in (other, waits, nothing_else(waits))] == [
        Phase.WAITING,
        Phase.HELD,
        Phase.WAITING,
    ]


def nothing_else(job: SlurmJob) -> SlurmJob:
    """The job once Slurm has come by."""
    return msgspec.structs.replace(job, reason="Priority")


def test_a_job_that_is_requeued_does_not_start_while_it_still_completes(view: StatedView) -> None:
    read(view, [a_slurm_job("1", state="RUNNING", started=NOON)])
    assert not read(view, [a_slurm_job("1", state="COMPLETING", started=NOON + SECOND, restarts=1)])


@pytest.mark.parametrize("accounting", [True, False])
def test_what_is_gone_is_taken_back(view: StatedView, *, accounting: bool) -> None:
    """At once where nobody will tell how it ended; else it is stated to have ended until accounting does."""
    settings = msgspec.structs.replace(some_settings(), has_accounting=accounting)
    view.take_context(msgspec.structs.replace(context(), settings=settings))
    read(view, [a_slurm_job("1"), a_slurm_job("2")])
    [stated] = view.read([a_slurm_job("2")]).values()
    assert isinstance(stated, JobState) is accounting
    assert [job.id for job in view.owed().values()] == (["1"] if accounting else [])


def test_how_a_job_ended_is_known_once_slurmctld_has_forgotten_it(view: StatedView) -> None:
    """NATS may have been away meanwhile: it tells of a job that runs."""
    runs = read(view, [a_slurm_job("1", state="RUNNING", started=NOON)])["1"]
    read(view, [a_slurm_job("1", state="FAILED", started=NOON, ends=NOON + 6 * SECOND)])
    read(view, [])
    found = view.ended.end_of(runs)
    assert found == RunEnd(at=NOON + 6 * SECOND, outcome=Outcome.FAILED, started=NOON)


@pytest.mark.parametrize(
    ("state", "seconds", "ran"),
    [
        ("CANCELLED", 0, False),
        ("DEADLINE", 0, False),
        ("NODE_FAIL", 0, False),
        ("CANCELLED", 1, True),
        ("FAILED", 0, True),
    ],
)
def test_a_job_that_ended_while_it_waited_did_not_start(
    view: StatedView, *, state: str, seconds: int, ran: bool
) -> None:
    """Slurm gives it a start time, that of its end."""
    ends = NOON + seconds * SECOND
    job = read(view, [a_slurm_job("1", state=state, started=NOON, ends=ends)])["1"]
    assert (job.started, job.ended) == (NOON if ran else None, ends)


def test_the_last_ends_are_kept_however_far_apart_they_are(
    view: StatedView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bridge was away over a weekend: what ended at its beginning was not seen either."""
    monkeypatch.setattr("fairlead_slurm_bridge.statements.ended_jobs._MOST", 3)
    runs = read(view, [a_slurm_job(name, state="RUNNING", started=NOON) for name in "1234"])
    for name in "1234":
        read(view, [a_slurm_job(name, state="COMPLETED", started=NOON, ends=NOON + int(name) * DAY)])
    read(view, [])
    assert [view.ended.end_of(runs[name]) is not None for name in "1234"] == [False, True, True, True]


def test_a_written_level_is_stated_at_once_and_the_next_reading_agrees(view: StatedView) -> None:
    read(view, [a_slurm_job("1", priority=250)])
    [state] = jobs_of(view.levelled("1", 9)).values()
    assert state.level == 9
    assert not read(view, [a_slurm_job("1", priority=ROOM + 90_250)])
    assert read(view, [a_slurm_job("1", priority=250)])["1"].level == 0  # somebody took it away


def test_nice_trades_waiting_times_within_the_account_alone(view: StatedView) -> None:
    jobs = [a_slurm_job(str(number), account="speech" if number == 2 else "vision") for number in (1, 2, 3)]
    before = read(view, jobs)
    jobs[0] = msgspec.structs.replace(jobs[0], nice=100)
    after = read(view, jobs)
    assert after.keys() == {"1", "3"}
    assert after["1"].submitted == before["3"].submitted
    assert after["3"].submitted == before["1"].submitted
    assert after["1"].queue_time == NOON


def test_a_requeued_job_keeps_its_age(view: StatedView) -> None:
    first = read(view, [a_slurm_job("1")])["1"]
    again = read(view, [a_slurm_job("1", submitted=NOON + 900 * SECOND, restarts=1)])["1"]
    assert (again.submitted, again.uid) == (first.submitted, first.uid)
    assert again.queue_time == NOON + 900 * SECOND


def test_only_its_own_waiting_job_is_written_to(view: StatedView) -> None:
    states = read(view, [a_slurm_job("1"), a_slurm_job("2", state="RUNNING", started=NOON)])
    assert view.waiting("1", states["1"].uid) is not None
    assert view.waiting("1", "another") is None
    assert view.waiting("2", states["2"].uid) is None
    assert view.waiting("3", "x") is None
    assert isinstance(states["1"], JobState)
