"""What is stated of a slurmctld, and when."""

from collections.abc import Sequence

import msgspec
import pytest

from fairlead_contracts.frontend.capabilities import TieRule
from fairlead_contracts.messages.state import (
    JobState,
    Outcome,
    Phase,
    PoolState,
    QueueState,
    State,
    TenantState,
)
from fairlead_slurm import SlurmJob
from fairlead_slurm_bridge.domains import Naming
from fairlead_slurm_bridge.first_seen import FirstSeen
from fairlead_slurm_bridge.view import Surroundings, View
from fairlead_testkit.slurm_builders import (
    GPU,
    NOON,
    SECOND,
    a_node,
    a_partition,
    a_slurm_job,
    some_accounts,
    some_settings,
)


def surroundings(**weights: int) -> Surroundings:
    """One partition of one node, two accounts below another."""
    return Surroundings(
        nodes=[a_node("n1", "gpu")],
        partitions=[a_partition("gpu", is_default=True)],
        accounts=some_accounts(),
        settings=some_settings(**weights),
    )


def a_view() -> View:
    """Of the cluster `lab`, nothing read yet."""
    return View(
        "lab",
        naming=Naming.of(GPU),
        qos_classes={"urgent": "urgent"},
        array_window=8,
        first_seen=FirstSeen({}),
    )


def jobs_of(stated: dict[str, State | None]) -> dict[str, JobState]:
    """The jobs among statements, by id."""
    return {state.id: state for state in stated.values() if isinstance(state, JobState)}


def read(view: View, jobs: Sequence[SlurmJob]) -> dict[str, JobState]:
    """What is stated differently of jobs after a reading."""
    return jobs_of(view.read(jobs)[0])


@pytest.fixture
def view() -> View:
    found = a_view()
    found.surround(surroundings())
    return found


def test_partitions_pools_and_accounts_are_stated() -> None:
    stated = a_view().surround(surroundings()).values()
    [pool] = [state for state in stated if isinstance(state, PoolState)]
    assert (pool.name, pool.capacity[GPU]) == ("gpu", 8000)
    [queue] = [state for state in stated if isinstance(state, QueueState)]
    assert (queue.pool, queue.frontend, queue.default_level, queue.lowest_level) == ("gpu", "slurm", 0, 1)
    assert queue.highest_level == 214_747
    assert queue.able.ties is TieRule.CHANCE
    assert {state.scope for state in stated if isinstance(state, TenantState)} == {"vision", "speech"}


def test_without_weights_slurms_own_tie_counts() -> None:
    bare = surroundings()
    settings = msgspec.structs.replace(bare.settings, weights={})
    stated = a_view().surround(msgspec.structs.replace(bare, settings=settings)).values()
    [queue] = [state for state in stated if isinstance(state, QueueState)]
    assert queue.able.ties is TieRule.JOB_NUMBER


def test_where_site_factor_counts_nothing_there_are_no_levels() -> None:
    basic = surroundings()
    settings = msgspec.structs.replace(basic.settings, priority_type="priority/basic")
    stated = a_view().surround(msgspec.structs.replace(basic, settings=settings)).values()
    [queue] = [state for state in stated if isinstance(state, QueueState)]
    assert queue.highest_level == 0


@pytest.mark.parametrize(
    ("changes", "phase"),
    [
        ({}, Phase.WAITING),
        ({"priority": 0, "reason": "JobHeldUser"}, Phase.HELD),
        ({"dependency": "afterok:3(unfulfilled)", "reason": "Dependency"}, Phase.HELD),
        ({"reason": "BeginTime"}, Phase.HELD),
        ({"reason": "JobArrayTaskLimit"}, Phase.HELD),
        ({"reason": "AssocGrpGRES"}, Phase.WAITING),
        ({"state": "REQUEUE_HOLD"}, Phase.HELD),
        ({"state": "RUNNING", "started": NOON}, Phase.RUNNING),
        ({"state": "COMPLETING", "started": NOON}, Phase.RUNNING),
        ({"state": "TIMEOUT", "started": NOON, "ends": NOON + 1}, Phase.ENDED),
    ],
)
def test_each_job_has_its_phase(view: View, changes: dict[str, object], phase: Phase) -> None:
    stated = read(view, [a_slurm_job("1", **changes)])["1"]
    assert stated.phase is phase
    assert bool(stated.held_by) is (phase is Phase.HELD)


@pytest.mark.parametrize(
    ("state", "outcome"),
    [("COMPLETED", Outcome.SUCCEEDED), ("CANCELLED", Outcome.CANCELLED), ("NODE_FAIL", Outcome.FAILED)],
)
def test_an_end_has_its_outcome(view: View, state: str, outcome: Outcome) -> None:
    assert read(view, [a_slurm_job("1", state=state, started=NOON, ends=NOON)])["1"].outcome is outcome


def test_a_waiting_job_is_stated_with_what_it_asks_for(view: View) -> None:
    job = read(
        view, [a_slurm_job("12_3", number=12, qos="urgent", partitions=("gpu", "batch"), priority=71_234)]
    )
    stated = job["12_3"]
    assert (stated.scope, stated.queue, stated.requested_class, stated.level) == (
        "vision",
        "gpu",
        "urgent",
        7,
    )
    assert stated.demand == {"cpu": 1000, "memory": 2**20, GPU: 1000}
    assert stated.uid == f"lab-0000000012_0000000003-{NOON}"


def test_a_pass_without_a_change_says_nothing(view: View) -> None:
    jobs = [a_slurm_job(str(number), priority=10_000 * number) for number in range(1, 50)]
    assert len(read(view, jobs)) == 49
    older = [msgspec.structs.replace(job, priority=job.priority + 3) for job in jobs]
    stated, remembered = view.read(older)
    assert not stated
    assert not remembered.seen
    assert not view.surround(surroundings())


def test_what_is_gone_is_taken_back(view: View) -> None:
    read(view, [a_slurm_job("1"), a_slurm_job("2")])
    stated, remembered = view.read([a_slurm_job("2")])
    assert list(stated.values()) == [None]
    assert remembered.forgotten == {"1"}


def test_a_written_level_is_stated_at_once_and_the_next_reading_agrees(view: View) -> None:
    read(view, [a_slurm_job("1", priority=250)])
    [state] = jobs_of(view.levelled("1", 9)).values()
    assert state.level == 9
    assert not read(view, [a_slurm_job("1", priority=90_250)])
    assert read(view, [a_slurm_job("1", priority=250)])["1"].level == 0  # somebody took it away


def test_nice_trades_waiting_times_within_the_account_alone(view: View) -> None:
    jobs = [a_slurm_job(str(number), account="speech" if number == 2 else "vision") for number in (1, 2, 3)]
    before = read(view, jobs)
    jobs[0] = msgspec.structs.replace(jobs[0], nice=100)
    after = read(view, jobs)
    assert after.keys() == {"1", "3"}
    assert after["1"].submitted == before["3"].submitted
    assert after["3"].submitted == before["1"].submitted
    assert after["1"].queue_time == NOON


def test_a_requeued_job_keeps_its_age(view: View) -> None:
    first = read(view, [a_slurm_job("1")])["1"]
    again = read(view, [a_slurm_job("1", submitted=NOON + 900 * SECOND, restarts=1)])["1"]
    assert (again.submitted, again.uid) == (first.submitted, first.uid)
    assert again.queue_time == NOON + 900 * SECOND


def test_only_its_own_waiting_job_is_written_to(view: View) -> None:
    states = read(view, [a_slurm_job("1"), a_slurm_job("2", state="RUNNING", started=NOON)])
    assert view.waiting("1", states["1"].uid) is not None
    assert view.waiting("1", "another") is None
    assert view.waiting("2", states["2"].uid) is None
    assert view.waiting("3", "x") is None
    assert isinstance(states["1"], JobState)
