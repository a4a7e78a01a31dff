"""Ends of jobs that slurmctld forgot: asked of accounting until it answers, told once, over restarts of the bridge."""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead_bus.facts.announcer import Statements
from fairlead_bus.facts.statement_publisher import OutgoingEvent, StateChange
from fairlead_contracts.base.instants import DAY, HOUR, MINUTE, SECOND, Micros, to_seconds
from fairlead_contracts.messages.events import EVENT, AnyEvent, JobEnded, JobQueued, JobStarted
from fairlead_contracts.messages.state import JobState, Outcome, State, subject_of
from fairlead_runtime.metrics import Metrics
from fairlead_slurm import SlurmJob
from fairlead_slurm.errors import SlurmUnreachableError
from fairlead_slurm_bridge.accounted_ends import AccountedEnds
from fairlead_slurm_bridge.instruments import BridgeInstruments
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
        self,
        accounting: Accounting,
        store: SubmissionStore,
        now: Micros = NOON,
        nats: dict[str, State] | None = None,
    ) -> None:
        self.now = now
        self.uptime = 0.0
        self.looks = 0
        self.heard_at: Micros | None = None
        self.outbox: list[OutgoingEvent] = []
        self.leading = nats is None
        self.nats = {} if nats is None else nats
        self.truth: dict[str, State] = {}
        self.view = StatedView("lab", Naming.of(GPU), {}, 8, store.made_of)
        partitions, nodes = [a_partition("gpu", is_default=True)], [a_node("n1", "gpu")]
        self.view.take_context(
            SlurmContext(nodes=nodes, partitions=partitions, accounts=[], settings=some_settings())
        )
        instruments = BridgeInstruments(Metrics("slurm-bridge"))
        fake: Any = accounting
        self.ends = AccountedEnds(
            fake, self.view, store, instruments, lambda: self.now, lambda _: None, lambda: self.uptime
        )

    def passes(self, time: Micros) -> None:
        self.now += time
        self.uptime += to_seconds(time)

    def read(self, *jobs: SlurmJob) -> dict[str, JobState]:
        self.tell(self.view.read(jobs))
        return {state.id: state for state in self.nats.values() if isinstance(state, JobState)}

    def takes_over(self) -> None:
        self.leading = True
        stood = dict(self.nats)
        self.tell(self.view.adopt(stood))
        for subject in stood | self.truth:
            self.publish(subject)

    def lost(self) -> JobState:
        """A job that ran, and of which slurmctld knows nothing any more, nor anybody how it ended."""
        runs = self.read(RUNS)["2"]
        self.read()
        assert JobEnded not in map(type, self.acked())
        return runs

    def tell(self, statements: Statements, outgoing: Collection[OutgoingEvent] = ()) -> None:
        for subject, state in statements.items():
            self.truth.pop(subject, None)
            if state is not None:
                self.truth[subject] = state
            self.publish(subject)
        self.outbox += outgoing

    def publish(self, subject: str) -> None:
        if not self.leading:
            return
        after = self.truth.get(subject)
        self.outbox += self.ends.between(StateChange(subject, self.nats.get(subject), after))
        self.nats.pop(subject, None)
        if after is not None:
            self.nats[subject] = after

    def running(self) -> AbstractAsyncContextManager[None]:
        return beside(self.ends.run(self.tell, self.leads, lambda: self.heard_at))

    def leads(self) -> bool:
        self.looks += 1
        return True

    async def looked(self) -> None:
        """Return once all that is known now was looked at."""
        end = self.looks + 6
        await eventually(lambda: self.looks > end, 10)

    def ended_as(self, outcome: Outcome) -> JobEnded:
        """Check that one end is told, and how."""
        [ended] = self.acked()
        assert isinstance(ended, JobEnded)
        assert ended.outcome is outcome
        return ended

    def acked(self) -> list[AnyEvent]:
        """The events in the outbox, which NATS has from now on."""
        outbox, self.outbox = self.outbox, []
        self.ends.published([one.seq for one in outbox])
        return _events(outbox)


def _events(outgoing: Sequence[OutgoingEvent]) -> list[AnyEvent]:
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


@pytest.fixture
def other_store(tmp_path: Path) -> Iterator[SubmissionStore]:
    """The store of a bridge on another host."""
    with contextlib.closing(SubmissionStore(tmp_path / "other.db")) as found:
        yield found


async def test_an_end_is_told_once_accounting_answers_and_not_before(
    accounting: Accounting, store: SubmissionStore, other_store: SubmissionStore
) -> None:
    """Also by the next bridge, which has another store; and by no third one."""
    first = OneBridge(accounting, store)
    accounting.away = True
    runs = first.lost()
    async with first.running():
        await eventually(lambda: len(accounting.asked) > 2, 10)
        assert first.outbox == []
    accounting.away, accounting.jobs = False, [FAILED]
    second = OneBridge(accounting, other_store, nats=first.nats)
    second.read()
    second.takes_over()
    second.read()
    async with second.running():
        await eventually(lambda: second.outbox, 10)
        ended = second.ended_as(Outcome.FAILED)
    assert (ended.uid, ended.ran_seconds) == (runs.uid, 6.0)
    first.takes_over()
    async with first.running():
        await first.looked()
    assert first.outbox == []


async def test_what_stands_on_nats_stays_until_slurmctld_was_read(
    accounting: Accounting, store: SubmissionStore, other_store: SubmissionStore
) -> None:
    first = OneBridge(accounting, store)
    stood = first.read(RUNS)
    accounting.jobs = [FAILED]
    second = OneBridge(accounting, other_store, nats=first.nats)
    second.takes_over()
    async with second.running():
        await second.looked()
        assert second.read(RUNS) == stood
    assert second.outbox == []


async def test_a_job_goes_by_the_instant_that_nats_knows_whoever_bridges(
    accounting: Accounting, store: SubmissionStore, other_store: SubmissionStore
) -> None:
    """One was the second of its second, and one was requeued, which only the bridge before has seen."""
    first = OneBridge(accounting, store)
    requeued = msgspec.structs.replace(RUNS, id="3", array=3, number=3)
    first.read(a_slurm_job("1"), RUNS, requeued)
    requeued = msgspec.structs.replace(requeued, submitted=NOON + HOUR, started=NOON + HOUR, restarts=1)
    stood = first.read(RUNS, requeued)
    second = OneBridge(accounting, other_store, nats=first.nats)
    second.read(RUNS, requeued)
    second.takes_over()
    assert second.read(RUNS, requeued) == stood
    assert second.outbox == []


async def test_a_job_counts_as_cancelled_after_a_day_in_which_accounting_was_asked_and_silent(
    accounting: Accounting, store: SubmissionStore
) -> None:
    """Not because the bridge was off for two: slurmdbd may only be late to start."""
    first = OneBridge(accounting, store)
    first.lost()
    accounting.away = True
    second = OneBridge(accounting, store, NOON + 2 * DAY, first.nats)
    second.takes_over()
    second.read()
    async with second.running():
        await second.looked()
        assert second.outbox == []
        second.passes(DAY + 1)
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
        bridge.passes(HOUR)
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
    """A minute that passes, not one by which somebody sets the clock."""
    bridge = OneBridge(accounting, store)
    bridge.lost()
    async with bridge.running():
        await eventually(lambda: len(accounting.asked) > 2, 10)
        bridge.now += HOUR
        await bridge.looked()
        assert bridge.outbox == []
        bridge.passes(MINUTE + 1)
        await eventually(lambda: bridge.outbox, 10)
    bridge.ended_as(Outcome.CANCELLED)


class Standby(OneBridge):
    """A bridge that does not lead, and looks all the same."""

    def leads(self) -> bool:
        super().leads()
        return False


async def test_while_another_bridge_leads_its_ends_are_remembered_by_nats_alone(
    accounting: Accounting, store: SubmissionStore
) -> None:
    """A lapse of the lead that nobody else took is none: then NATS still has what this bridge said."""
    bridge = Standby(accounting, store)
    runs = bridge.lost()
    bridge.leading = False
    async with bridge.running():
        await bridge.looked()
        assert [job.uid for job in bridge.view.owed().values()] == [runs.uid]
        bridge.heard_at = bridge.now
        await bridge.looked()
    assert (bridge.view.owed(), bridge.truth) == ({}, {})
    bridge.nats = {subject_of(runs): runs}
    bridge.takes_over()
    bridge.read()
    assert [job.uid for job in bridge.view.owed().values()] == [runs.uid]
    assert JobEnded not in map(type, bridge.acked())


async def test_of_a_job_that_is_there_again_no_end_is_told(
    accounting: Accounting, store: SubmissionStore
) -> None:
    bridge = OneBridge(accounting, store)
    runs = bridge.lost()
    assert bridge.read(RUNS) == {"2": runs}
    bridge.passes(MINUTE + 1)
    accounting.jobs = [FAILED]
    async with bridge.running():
        await bridge.looked()
    assert bridge.outbox == []


def test_a_job_that_is_moved_to_another_account_has_not_ended(
    accounting: Accounting, store: SubmissionStore
) -> None:
    bridge = OneBridge(accounting, store)
    bridge.read(RUNS)
    assert bridge.read(msgspec.structs.replace(RUNS, account="speech"))["2"].scope == "speech"
    assert JobEnded not in map(type, bridge.acked())


@pytest.mark.parametrize("account", ["vision", "speech"])
async def test_under_a_number_that_was_given_again_accounting_tells_of_another_job(
    accounting: Accounting, store: SubmissionStore, account: str
) -> None:
    bridge = OneBridge(accounting, store)
    runs = bridge.read(RUNS)["2"]
    later = a_slurm_job("2", account=account, submitted=NOON + 9 * SECOND)
    bridge.read(later)
    accounting.jobs = [msgspec.structs.replace(later, state="COMPLETED", ends=NOON + 20 * SECOND)]
    async with bridge.running():
        await bridge.looked()
        bridge.passes(MINUTE + 1)
        await bridge.looked()
    ends = [one for one in bridge.acked() if isinstance(one, JobEnded)]
    assert [(one.uid, one.outcome) for one in ends] == [(runs.uid, Outcome.CANCELLED)]


@pytest.mark.parametrize("by", ["a start", "a silence of NATS"])
async def test_a_run_that_nobody_saw_is_told_once_with_its_submission(
    accounting: Accounting, store: SubmissionStore, by: str
) -> None:
    store.note_asked("vision", "train-1", SubmittedJob(digest="d" * 16, job="2", queue="gpu", at=1.0))
    store.keep_told_until(NOON)
    bridge = OneBridge(accounting, store)
    seen = msgspec.structs.replace(FAILED, id="3", array=3, number=3)
    bridge.read(seen)
    bridge.outbox.clear()
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
        bridge.passes(MINUTE + 1)
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
        bridge.passes(MINUTE + 1)
        for hour in (1, 2):
            await eventually(lambda: bridge.outbox, 10)
            told.append({event.job for event in bridge.acked()})
            assert store.told_until() == NOON + hour * HOUR
        await eventually(lambda: store.told_until() == bridge.heard_at, 10)
    assert told == [{"2"}, {"3"}]


async def test_of_a_longer_time_only_the_last_week_is_asked_about(
    accounting: Accounting, store: SubmissionStore
) -> None:
    store.keep_told_until(NOON)
    bridge = OneBridge(accounting, store, NOON + 9 * DAY)
    bridge.read()
    bridge.heard_at = bridge.now
    async with bridge.running():
        await eventually(lambda: accounting.asked, 10)
    assert accounting.asked[0] == (NOON + 2 * DAY, NOON + 2 * DAY + HOUR)


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
