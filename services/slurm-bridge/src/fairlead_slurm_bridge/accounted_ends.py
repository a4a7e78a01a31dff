"""Ends of jobs that slurmctld forgot before they were read: accounting is asked beside the loop, until it answers.

slurmdbd may be away for hours. Meanwhile such a job is stated no more, as it holds nothing; what became of it is told
once that is known. The store keeps whose end is owed, so that the next bridge here tells it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field

import msgspec
import structlog

from fairlead_bus.facts.announcer import Outgoing, StateChange, Statements
from fairlead_bus.facts.event_diff import EventDiff, RunEnd, is_one_job
from fairlead_contracts.base.instants import DAY, HOUR, MINUTE, Micros
from fairlead_contracts.messages.events import Event
from fairlead_contracts.messages.state import JobState, Outcome, Phase, State, subject_of
from fairlead_runtime.waiting import pause_after, wake_or_timeout
from fairlead_slurm import SlurmJob
from fairlead_slurm.controller import Controller
from fairlead_slurm.errors import SlurmError
from fairlead_slurm_bridge.instruments import BridgeInstruments
from fairlead_slurm_bridge.statements.jobs import OUTCOMES
from fairlead_slurm_bridge.statements.stated_view import StatedView
from fairlead_slurm_bridge.store import OwedEnd, SubmissionStore

type Tell = Callable[[Statements, Collection[Outgoing]], None]
_LOOK_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_NO_END = MINUTE
"""Time for which accounting, once it answers, may still learn of ends: slurmctld hands on what it kept for it meanwhile."""
_NO_ANSWER = DAY
"""Time without an answer after which a job counts as cancelled."""
_LONGEST_GAP = 7 * DAY
"""Time before now of which accounting is asked at most."""
_SLICE = HOUR
"""Time of which it is asked at once: sacct may need too long for a week, and the events of one would hold up the loop."""
_CAUGHT_UP = 6 * MINUTE
"""Time by which what NATS has heard of lags at most in ordinary times: a reading is five minutes old at most (`poll_seconds`)."""
_UNSEEN = -1
"""Number, in the outbox, of what happened unseen: the store's numbers are above 0."""


@dataclass(eq=False)
class AccountedEnds:
    """The events of one cluster; those of jobs that nobody saw end come from accounting."""

    controller: Controller
    view: StatedView
    store: SubmissionStore
    instruments: BridgeInstruments
    clock: Callable[[], Micros]
    told: Callable[[Event], None]
    """Hears of each event."""
    _wake: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _sent: set[int] = field(default_factory=set, init=False)
    """Numbers of the owed ends that are on their way to NATS."""
    _answers: bool = field(default=False, init=False)
    """Whether accounting answered when it was asked last."""
    _unseen_until: Micros | None = field(default=None, init=False)
    """Time until which nobody saw what happened, while the events of it are on their way to NATS."""
    _log: structlog.typing.FilteringBoundLogger = field(default_factory=structlog.get_logger, init=False)

    def __post_init__(self) -> None:
        self._diff = EventDiff(self.view.ended, self.clock, self.told)
        self._turned = self.clock()
        """Time since which accounting answers, or does not."""

    # --- what the announcer asks and tells

    def between(self, step: StateChange) -> list[Outgoing]:
        """The events of a change, but for an end that accounting is to tell: that one is owed from now on."""
        before = step.before
        if is_one_job(before) and self._is_lost(before, step.after):
            self.store.owe(before, self.clock())
            self._wake.set()
            step = step._replace(before=None)
        return self._diff.between(step)

    def published(self, numbers: Collection[int]) -> None:
        """Take note that NATS has the events of these numbers."""
        told = self._sent.intersection(numbers)  # nearly all events are no owed ends, and have the number 0
        self.store.settle(told)
        self._sent -= told
        if _UNSEEN in numbers and self._unseen_until is not None:
            self.store.keep_told_until(self._unseen_until)
            self._unseen_until = None
            self._wake.set()

    def _is_lost(self, before: JobState, after: State | None) -> bool:
        """Whether a job is gone, nobody knows how it ended, and there is accounting to ask."""
        known = self.view.context
        if before.phase is Phase.ENDED or (isinstance(after, JobState) and after.uid == before.uid):
            return False
        asked = known is not None and known.settings.has_accounting
        return asked and self.view.ended.end_of(before) is None

    @property
    def caught_up(self) -> bool:
        """Whether accounting is asked nothing more of what nobody saw: else who bridges next has to know the uids of jobs that are gone."""
        return not _CAUGHT_UP <= self.clock() - self.store.told_until() <= _LONGEST_GAP

    # --- the loop

    async def run(self, tell: Tell, leads: Callable[[], bool], heard_at: Callable[[], Micros | None]) -> None:
        """Ask accounting of what is owed and of what nobody saw, until cancelled.

        Args:
            tell: hears of the events.
            leads: whether events are ours to tell.
            heard_at: time of the last reading of slurmctld, while NATS hears of readings; else None.
        """
        failed = 0
        while True:
            try:
                # Before the first reading nobody knows which jobs are there again, and events alone would pass for all there
                # is: the announcer would take every job from NATS.
                if leads() and self.view.context is not None:
                    await self._tell_owed(tell)
                await self._tell_unseen(tell, heard_at(), leads=leads())
            except SlurmError as error:
                self.instruments.failures.inc()
                if not failed:
                    self._log.warning("ends_not_known", error=str(error))
                await asyncio.sleep(pause_after(failed, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE))
                failed += 1
            else:
                failed = 0
                await wake_or_timeout(self._wake, _LOOK_SECONDS)

    async def _tell_owed(self, tell: Tell) -> None:
        owed = [one for one in self.store.owed() if one.number not in self._sent]
        if not owed:
            return
        try:
            found = await self._asked(self.controller.ended(sorted({one.job.id for one in owed})))
        except SlurmError:
            self._send([one for one in owed if self._waited(one.at) > _NO_ANSWER], tell)
            raise
        ended = {job.id: job for job in found}
        self._send([one for one in owed if self._is_settled(one, ended.get(one.job.id))], tell)

    async def _asked(self, question: Awaitable[list[SlurmJob]]) -> list[SlurmJob]:
        """Returns the answer of accounting, and notes since when it answers, or does not."""
        try:
            found = await question
        except SlurmError:
            self._note_answers(answers=False)
            raise
        self._note_answers(answers=True)
        return found

    def _note_answers(self, *, answers: bool) -> None:
        if self._answers is not answers:
            self._answers, self._turned = answers, self.clock()

    def _waited(self, since: Micros) -> Micros:
        """Time from then on for which accounting has answered all along, or has not."""
        return self.clock() - max(since, self._turned)

    def _is_settled(self, one: OwedEnd, ended: SlurmJob | None) -> bool:
        """Whether the end can be told, which is kept if it is known: as cancelled, once accounting has had its time."""
        job, there = one.job, self.view.uid_of(one.job.id)
        # Under a number that was given again accounting tells of the other job.
        if ended is None or ended.ends is None or ended.ends < job.submitted or there not in (None, job.uid):
            return self._waited(one.at) > _NO_END
        outcome = OUTCOMES.get(ended.state, Outcome.FAILED)
        self.view.ended.keep({job.uid: RunEnd(at=ended.ends, outcome=outcome, started=ended.started)})
        return True

    def _send(self, settled: Sequence[OwedEnd], tell: Tell) -> None:
        """Tell the ends; none of a job that is there again."""
        back = {one.number for one in settled if self.view.uid_of(one.job.id) == one.job.uid}
        self.store.settle(back)
        outgoing = []
        for one in settled:
            if one.number not in back:
                gone = StateChange(subject_of(one.job), one.job, None)
                outgoing += [
                    msgspec.structs.replace(event, seq=one.number) for event in self._diff.between(gone)
                ]
                self._sent.add(one.number)
        if outgoing:
            tell({}, outgoing)

    async def _tell_unseen(self, tell: Tell, heard_at: Micros | None, *, leads: bool) -> None:
        """Tell of the jobs that came and went since NATS last heard of a reading, if slurmctld may have forgotten any, slice by slice."""
        known = self.view.context
        if heard_at is None or known is None or self._unseen_until is not None:
            return
        since, until = self.store.told_until(), heard_at
        if leads and known.settings.has_accounting and since and heard_at - since > known.settings.ended_kept:
            if self._answers and self._waited(since) <= _NO_END:
                return
            begins = max(since, heard_at - _LONGEST_GAP)
            until = min(begins + _SLICE, heard_at)
            found = await self._asked(self.controller.ended_between(begins, until))
            if self._waited(since) <= _NO_END:
                return
            outgoing = [
                msgspec.structs.replace(event, seq=_UNSEEN)
                for job in self.view.unseen(self._marked(found))
                for event in self._diff.between(StateChange(subject_of(job), None, job))
            ]
            if outgoing:
                self._unseen_until = until
                tell({}, outgoing)
                return
        self.store.keep_told_until(until)
        if until < heard_at:
            self._wake.set()

    def _marked(self, jobs: Sequence[SlurmJob]) -> list[SlurmJob]:
        """The jobs with the comments that accounting keeps none of: those of submissions."""
        marks = self.store.marks() if jobs else {}
        return [
            msgspec.structs.replace(job, comment=marks[job.account, job.id].comment())
            if (job.account, job.id) in marks
            else job
            for job in jobs
        ]
