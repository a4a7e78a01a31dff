"""Ends of jobs that slurmctld forgot: asked of accounting until it answers, told once, over restarts of the bridge."""

from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import pytest

from fairlead_bus.facts.announcer import Outgoing, StateChange, Statements
from fairlead_contracts.base.instants import DAY, HOUR, MINUTE, SECOND, Micros
from fairlead_contracts.messages.events import EVENT, AnyEvent, JobEnded, JobQueued, JobStarted
from fairlead_contracts.messages.state import JobState, Outcome, subject_of
from fairlead_runtime.metrics import Metrics
from fairlead_slurm import SlurmJob
from fairlead_slurm.errors import SlurmUnreachableError
from fairlead_slurm_bridge.accounted_ends import AccountedEnds
from fairlead_slurm_bridge.instruments import BridgeInstruments
from fairlead_slurm_bridge.statements.first_seen import FirstSeen
from fairlead_slurm_bridge.statements.partition_pools import Naming
from fairlead_slurm_bridge.statements.stated_view import SlurmContext, StatedView
from fairlead_slurm_bridge.store import SubmissionStore, SubmittedJob
from fairlead_testkit.inputs.slurm_builders import (
    GPU,
    NOON,
    a_node,
    a_partition,
    a_slurm_job,
    some_settings,
)
from fairlead_testkit.timing.awaiting import eventually
from fairlead_testkit.timing.in_hand import beside


class Accounting:
    """A slurmdbd, as far as the ends of jobs go."""

    def __init__(self) -> None:
        self.away = False
        self.jobs: list[SlurmJob] = []
        self.asked: list[str | tuple[Micros, Micros]] = []

    async def ended(self, jobs: Sequence[str]) -> list[SlurmJob]:
        self.asked += jobs
        if self.away:
            raise SlurmUnreachableError("slurmdbd does not answer")
        return [job for job in self.jobs if job.id in jobs]

    async def ended_between(self, since: Micros, until: Micros) -> list[SlurmJob]:
        self.asked.append((since, until))
        return [job for job in self.jobs if job.ends is not None and since <= job.ends <= until]


class OneBridge:
    """What one bridge, from its start to its end, tells of jobs that ended; its announcer is played by hand."""

    def __init__(
        self, accounting: Accounting, store: SubmissionStore, now: Micros = NOON, *, began: bool = True
    ) -> None:
        self.now = now
        self.looks = 0
        self.heard_at: Micros | None = None
        self.outbox: list[Outgoing] = []
        self.view = StatedView("lab", Naming.of(GPU), {}, 8, FirstSeen(store.first_seen()), store.made_of)
        if began:
            self.begin()
        instruments = BridgeInstruments(Metrics("slurm-bridge"))
        fake: Any = accounting
        self.ends = AccountedEnds(fake, self.view, store, instruments, lambda: self.now, lambda _: None)

    def begin(self) -> None:
        partitions, nodes = [a_partition("gpu", is_default=True)], [a_node("n1", "gpu")]
        self.view.take_context(
            SlurmContext(nodes=nodes, partitions=partitions, accounts=[], settings=some_settings())
        )

    def read(self, *jobs: SlurmJob) -> dict[str, JobState]:
        stated = self.view.read(jobs)[0].values()
        return {state.id: state for state in stated if isinstance(state, JobState)}

    def lost(self) -> JobState:
        """A job that ran, and of which slurmctld knows nothing any more, nor anybody how it ended."""
        runs = self.read(RUNS)["2"]
        self.read()
        assert self.gone(runs) == []
        return runs

    def gone(self, job: JobState) -> list[AnyEvent]:
        return _events(self.ends.between(StateChange(subject_of(job), job, None)))

    def tell(self, _: Statements, outgoing: Collection[Outgoing] = ()) -> None:
        self.outbox += outgoing

    def running(self) -> AbstractAsyncContextManager[None]:
        return beside(self.ends.run(self.tell, self.leads, lambda: self.heard_at))

    def leads(self) -> bool:
        self.looks += 1
        return True

    async def looked(self) -> None:
        """Return once all that is known now was looked at."""
        end = self.looks + 6
        await eventually(lambda: self.looks > end, 10)

    def ended_as(self, outcome: Outcome) -> None:
        """Check that one end is told, and how."""
        [ended] = self.acked()
        assert isinstance(ended, JobEnded)
        assert ended.outcome is outcome

    def acked(self) -> list[AnyEvent]:
        """The events in the outbox, which NATS has from now on."""
        outbox, self.outbox = self.outbox, []
        self.ends.published([one.seq for one in outbox])
        return _events(outbox)


def _events(outgoing: Sequence[Outgoing]) -> list[AnyEvent]:
    return [EVENT.decode(one.payload) for one in outgoing]


@pytest.fixture
def accounting() -> Accounting:
    return Accounting()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LOOK_SECONDS", "_FIRST_PAUSE", "_LONGEST_PAUSE"):
        monkeypatch.setattr(f"fairlead_slurm_bridge.accounted_ends.{name}", 0.01)


RUNS = a_slurm_job("2", state="RUNNING", started=NOON)
FAILED = msgspec.structs.replace(RUNS, state="FAILED", ends=NOON + 6 * SECOND)


async def test_an_end_is_told_once_accounting_answers_and_not_before(
    accounting: Accounting, store: SubmissionStore
) -> None:
    """Also by the next bridge there."""
    first = OneBridge(accounting, store)
    accounting.away = True
    runs = first.read(RUNS)["2"]
    first.read()
    async with first.running():
        assert first.gone(runs) == []
        await eventually(lambda: len(accounting.asked) > 2, 10)
        assert first.outbox == []
    accounting.away, accounting.jobs = False, [FAILED]
    second = OneBridge(accounting, store)
    async with second.running():
        await eventually(lambda: second.outbox, 10)
        [ended] = second.acked()
    assert isinstance(ended, JobEnded)
    assert (ended.uid, ended.outcome, ended.ran_seconds) == (runs.uid, Outcome.FAILED, 6.0)
    assert store.owed() == []


async def test_nothing_is_told_before_slurmctld_was_read(
    accounting: Accounting, store: SubmissionStore
) -> None:
    """The announcer would take the ends for all that there is, and every job from NATS."""
    first = OneBridge(accounting, store)
    first.lost()
    accounting.jobs = [FAILED]
    second = OneBridge(accounting, store, began=False)
    async with second.running():
        await second.looked()
        assert second.outbox == []
        second.begin()
        await eventually(lambda: second.outbox, 10)


async def test_a_job_counts_as_cancelled_after_a_day_in_which_accounting_was_asked_and_silent(
    accounting: Accounting, store: SubmissionStore
) -> None:
    """Not because the bridge was off for two: slurmdbd may only be late to start."""
    first = OneBridge(accounting, store)
    first.lost()
    accounting.away = True
    second = OneBridge(accounting, store, NOON + 2 * DAY)
    async with second.running():
        await second.looked()
        assert second.outbox == []
        second.now += DAY + 1
        await eventually(lambda: second.outbox, 10)
    second.ended_as(Outcome.CANCELLED)


async def test_accounting_has_its_minute_anew_after_each_time_that_it_was_away(
    accounting: Accounting, store: SubmissionStore
) -> None:
    bridge = OneBridge(accounting, store)
    bridge.lost()
    async with bridge.running():
        await bridge.looked()
        accounting.away = True
        bridge.now += HOUR
        await bridge.looked()
        accounting.away = False
        await bridge.looked()
        assert bridge.outbox == []
        accounting.jobs = [FAILED]
        await eventually(lambda: bridge.outbox, 10)
    bridge.ended_as(Outcome.FAILED)


async def test_what_accounting_never_hears_of_counts_as_cancelled_after_a_minute(
    accounting: Accounting, store: SubmissionStore
) -> None:
    bridge = OneBridge(accounting, store)
    bridge.lost()
    async with bridge.running():
        await eventually(lambda: len(accounting.asked) > 2, 10)
        assert bridge.outbox == []
        bridge.now += MINUTE + 1
        await eventually(lambda: bridge.outbox, 10)
    bridge.ended_as(Outcome.CANCELLED)


async def test_of_a_job_that_is_there_again_no_end_is_told(
    accounting: Accounting, store: SubmissionStore
) -> None:
    bridge = OneBridge(accounting, store)
    runs = bridge.lost()
    assert bridge.read(RUNS)["2"].uid == runs.uid
    bridge.now += MINUTE + 1
    accounting.jobs = [FAILED]
    async with bridge.running():
        await eventually(lambda: not store.owed(), 10)
    assert bridge.outbox == []


async def test_under_a_number_that_was_given_again_accounting_tells_of_another_job(
    accounting: Accounting, store: SubmissionStore
) -> None:
    bridge = OneBridge(accounting, store)
    runs = bridge.read(RUNS)["2"]
    later = a_slurm_job("2", submitted=NOON + 9 * SECOND)
    bridge.read(later)
    bridge.gone(runs)
    accounting.jobs = [msgspec.structs.replace(later, state="COMPLETED", ends=NOON + 20 * SECOND)]
    async with bridge.running():
        await eventually(lambda: accounting.asked, 10)
        bridge.now += MINUTE + 1
        await eventually(lambda: bridge.outbox, 10)
    bridge.ended_as(Outcome.CANCELLED)


@pytest.mark.parametrize("by", ["a start", "a silence of NATS"])
async def test_a_run_that_nobody_saw_is_told_once_with_its_submission(
    accounting: Accounting, store: SubmissionStore, by: str
) -> None:
    store.note_asked("vision", "train-1", SubmittedJob(digest="d" * 16, job="2", queue="gpu", at=1.0))
    store.keep_told_until(NOON)
    bridge = OneBridge(accounting, store)
    seen = msgspec.structs.replace(FAILED, id="3", array=3, number=3)
    bridge.read(seen)
    accounting.jobs = [FAILED, seen]
    bridge.heard_at = NOON + (301 * SECOND if by == "a start" else 0)
    async with bridge.running():
        if by != "a start":
            await eventually(lambda: store.told_until() == NOON, 10)
            bridge.heard_at = None
            await bridge.looked()
            bridge.heard_at = NOON + 301 * SECOND
        await bridge.looked()
        assert bridge.outbox == []  # slurmctld may still hand on to accounting what it kept for it
        bridge.now += MINUTE + 1
        await eventually(lambda: bridge.outbox, 10)
        told = bridge.acked()
        await eventually(lambda: store.told_until() == bridge.heard_at, 10)
    assert [type(event) for event in told] == [JobQueued, JobStarted, JobEnded]
    assert {(event.job, event.submission) for event in told} == {("2", "train-1")}
    assert accounting.asked == [(NOON, NOON + 301 * SECOND)] * 2


async def test_a_long_time_is_asked_about_hour_by_hour(
    accounting: Accounting, store: SubmissionStore
) -> None:
    store.keep_told_until(NOON)
    bridge = OneBridge(accounting, store, NOON + 3 * HOUR)
    bridge.read()
    later = msgspec.structs.replace(FAILED, id="3", array=3, number=3, ends=NOON + 90 * MINUTE)
    accounting.jobs = [FAILED, later]
    bridge.heard_at = NOON + 2 * HOUR + MINUTE
    told = []
    async with bridge.running():
        await bridge.looked()
        bridge.now += MINUTE + 1
        for hour in (1, 2):
            await eventually(lambda: bridge.outbox, 10)
            told.append({event.job for event in bridge.acked()})
            assert store.told_until() == NOON + hour * HOUR
            assert not bridge.ends.caught_up
        bridge.heard_at = bridge.now
        await eventually(lambda: bridge.ends.caught_up, 10)
    assert told == [{"2"}, {"3"}]


def test_uids_are_kept_no_longer_than_accounting_is_asked_back(
    accounting: Accounting, store: SubmissionStore
) -> None:
    """A sacct that never answers fills the store for a week and not for ever."""
    bridge = OneBridge(accounting, store)
    assert bridge.ends.caught_up
    store.keep_told_until(NOON)
    found = []
    for bridge.now in (NOON + MINUTE, NOON + HOUR, NOON + 7 * DAY, NOON + 7 * DAY + 1):
        found.append(bridge.ends.caught_up)
    assert found == [True, False, False, True]


async def test_nothing_is_asked_while_slurmctld_still_has_all_that_ended(
    accounting: Accounting, store: SubmissionStore
) -> None:
    store.keep_told_until(NOON)
    bridge = OneBridge(accounting, store)
    bridge.heard_at = NOON + 299 * SECOND
    async with bridge.running():
        await eventually(lambda: store.told_until() == bridge.heard_at, 10)
    assert accounting.asked == []


def test_a_job_that_takes_a_submission_s_name_is_not_it(
    accounting: Accounting, store: SubmissionStore
) -> None:
    """Of one account anybody may write the comment; the bridge knows the number of the job that it had made."""
    store.note_asked("vision", "train-1", SubmittedJob(digest="d" * 16, job="2", queue="gpu", at=1.0))
    store.note_asked("vision", "on-its-way", SubmittedJob(digest="d" * 16, job="", queue="gpu", at=1.0))
    of = {
        "2": f"fairlead=train-1 digest={'d' * 16}",
        "3": f"fairlead=train-1 digest={'d' * 16}",
        "4": "fairlead=on-its-way digest=e",
        "5": f"fairlead=on-its-way digest={'d' * 16}",
        "6": "fairlead=of-a-store-that-is-lost digest=e",
    }
    read = OneBridge(accounting, store).read(
        *(a_slurm_job(name, comment=comment) for name, comment in of.items())
    )
    found = {name: job.submission for name, job in read.items()}
    assert found == {"2": "train-1", "3": None, "4": None, "5": "on-its-way", "6": "of-a-store-that-is-lost"}
