"""Ends of jobs that slurmctld forgot before they were read: accounting is asked beside the loop, until it answers.

slurmdbd may be away for hours. Meanwhile such a job is stated as one that ended somehow: it holds nothing, and whoever
bridges next knows from NATS that its end is owed.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import structlog

from fairlead_bus.facts.announcer import Statements
from fairlead_bus.facts.event_diff import EventDiff, RunEnd, is_one_job
from fairlead_bus.facts.statement_publisher import OutgoingEvent, StateChange
from fairlead_contracts.base.instants import DAY, HOUR, MINUTE, Micros, from_seconds
from fairlead_contracts.messages.events import Event
from fairlead_contracts.messages.state import JobState, Outcome, subject_of
from fairlead_runtime.waiting import pause_after, wake_or_timeout
from fairlead_slurm import SlurmJob
from fairlead_slurm.controller import Controller
from fairlead_slurm.errors import SlurmError
from fairlead_slurm_bridge.instruments import BridgeInstruments
from fairlead_slurm_bridge.statements.jobs import OUTCOMES
from fairlead_slurm_bridge.statements.stated_view import StatedView
from fairlead_slurm_bridge.store import SubmissionStore

type Tell = Callable[[Statements, Collection[OutgoingEvent]], None]
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
_UNSEEN = -1
"""Number, in the outbox, of what happened unseen."""


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
    uptime: Callable[[], float] = time.monotonic
    """Monotonic seconds: no step of the clock makes a wait shorter."""
    _wake: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _owed_since: dict[str, Micros] = field(default_factory=dict, init=False)
    """Uptime at which each end that is owed was first looked at, by uid."""
    _answers: bool = field(default=False, init=False)
    """Whether accounting answered when it was asked last."""
    _unseen_until: Micros | None = field(default=None, init=False)
    """Time until which nobody saw what happened, while the events of it are on their way to NATS."""
    _log: structlog.typing.FilteringBoundLogger = field(default_factory=structlog.get_logger, init=False)

    def __post_init__(self) -> None:
        self._diff = EventDiff(self.view.ended, self.clock, self.told)
        self._turned = self._now()
        """Uptime since which accounting answers, or does not."""

    # --- what the announcer asks and tells

    def between(self, step: StateChange) -> list[OutgoingEvent]:
        """The events of a change; no end of a job that is stated under another account from now on."""
        before = step.before
        if is_one_job(before) and step.after is None and self.view.uid_of(before.id) == before.uid:
            step = step._replace(before=None)
        return self._diff.between(step)

    def published(self, numbers: Collection[int]) -> None:
        """Take note that NATS has the events of these numbers."""
        if _UNSEEN in numbers and self._unseen_until is not None:
            self.store.keep_told_until(self._unseen_until)
            self._unseen_until = None
            self._wake.set()

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
                if leads():
                    await self._tell_owed(tell)
                elif heard_at() is not None and (forgotten := self.view.forget_owed()):
                    tell(forgotten, ())  # another leads: NATS has them, for whoever bridges next
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
        owed = self.view.owed().values()
        self._owed_since = {job.uid: self._owed_since.get(job.uid, self._now()) for job in owed}
        if not owed:
            return
        try:
            found = await self._asked(self.controller.ended(sorted({job.id for job in owed})))
        except SlurmError:
            self._settle(
                {job.uid: self._given_up(job) for job in owed if self._waits(job) > _NO_ANSWER}, tell
            )
            raise
        ended = {job.id: job for job in found}
        ends = {job.uid: self._end_of(job, ended.get(job.id)) for job in owed}
        self._settle({uid: end for uid, end in ends.items() if end is not None}, tell)

    def _settle(self, ends: Mapping[str, RunEnd], tell: Tell) -> None:
        if changed := self.view.settle(ends):
            tell(changed, ())

    def _end_of(self, job: JobState, found: SlurmJob | None) -> RunEnd | None:
        """The job's end by what accounting found; as cancelled once accounting has had its time, None before."""
        # Under a number that was given again accounting tells of the other job.
        another = self.view.uid_of(job.id) not in (None, job.uid)
        if another or found is None or found.ends is None or found.ends < job.submitted:
            return self._given_up(job) if self._waits(job) > _NO_END else None
        return RunEnd(at=found.ends, outcome=OUTCOMES.get(found.state, Outcome.FAILED), started=found.started)

    def _given_up(self, job: JobState) -> RunEnd:
        """The end of a job of which accounting knows none, though it had its time."""
        return RunEnd(at=self.clock(), outcome=Outcome.CANCELLED, started=job.started)

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
            self._answers, self._turned = answers, self._now()

    def _now(self) -> Micros:
        return from_seconds(self.uptime())

    def _waits(self, job: JobState) -> Micros:
        """Time for which the job's end was owed and accounting has answered all along, or has not."""
        return self._now() - max(self._owed_since[job.uid], self._turned)

    async def _tell_unseen(self, tell: Tell, heard_at: Micros | None, *, leads: bool) -> None:
        """Tell of the jobs that came and went since NATS last heard of a reading, if slurmctld may have forgotten any, slice by slice."""
        known = self.view.context
        if heard_at is None or known is None or self._unseen_until is not None:
            return
        since, until = self.store.told_until(), heard_at
        if leads and known.settings.has_accounting and since and heard_at - since > known.settings.ended_kept:
            if self._answers and self._now() - self._turned <= _NO_END:
                return
            begins = max(since, heard_at - _LONGEST_GAP)
            until = min(begins + _SLICE, heard_at)
            found = await self._asked(self.controller.ended_between(begins, until))
            if self._now() - self._turned <= _NO_END:
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
