"""The loop and the verbs: observe slurmctld, decide what is stated differently, apply what is asked, record.

Readings and writes take turns: a reading that began before a write would show the world before it.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from fairlead_bus import Rejected
from fairlead_bus.facts.announcer import Statements
from fairlead_contracts.base.instants import from_seconds
from fairlead_contracts.frontend.verbs import (
    UNAVAILABLE,
    CreateJob,
    CreateOutcome,
    CreateReply,
    DeleteJob,
    DeleteReply,
    LevelReply,
    SetLevel,
    VerbOutcome,
)
from fairlead_contracts.messages.state import JobState, State
from fairlead_runtime.waiting import wake_or_timeout
from fairlead_slurm import is_gone
from fairlead_slurm.controller import Controller
from fairlead_slurm.errors import RetryableSlurmError, SlurmError
from fairlead_slurm.ladder import UNLABELLED
from fairlead_slurm_bridge.creating import Creator
from fairlead_slurm_bridge.instruments import BridgeInstruments
from fairlead_slurm_bridge.observing import Observer
from fairlead_slurm_bridge.statements.jobs import before_its_time
from fairlead_slurm_bridge.statements.stated_view import StatedView
from fairlead_slurm_bridge.store import SubmissionStore

BY_SBATCH = "jobs enter this Slurm cluster by sbatch: its bridge has no submitting helper (--submit-socket)"
_SOON_SECONDS = 0.5
"""Seconds from a hook, or a change, to the next reading: slurmctld goes on once it has its answer, and others
follow."""
_REST = 20.0
"""Least pause after a reading, in times that the reading took: so readings cost slurmctld a twentieth of its
time at most."""


@dataclass(eq=False)
class Bridge:
    """The bridge of one slurmctld: the loop that reads it, and the verbs of a frontend."""

    controller: Controller
    observer: Observer
    view: StatedView
    store: SubmissionStore
    instruments: BridgeInstruments
    poll_seconds: float
    """Most seconds between two readings."""
    creator: Creator | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _wake: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _hinted: asyncio.TimerHandle | None = field(default=None, init=False)
    _tell: Callable[[Statements], None] | None = field(default=None, init=False)
    _is_read: bool = field(default=False, init=False)
    """Whether slurmctld was read since this bridge took the lead: before that, a job that it does not know may live."""
    _log: structlog.typing.FilteringBoundLogger = field(default_factory=structlog.get_logger, init=False)
    _complained: set[type[SlurmError]] = field(default_factory=set, init=False)

    # --- the loop

    async def run(self, tell: Callable[[Statements], None]) -> None:
        """Read slurmctld, and tell what is stated differently, until cancelled."""
        self._tell = tell
        while True:
            pause = self.poll_seconds
            try:
                pause = await self._pass(tell)
                self._read_again()
            except SlurmError as error:
                self.instruments.failures.inc()
                self._complain(error)
            await wake_or_timeout(self._wake, pause)

    def hint(self) -> None:
        """Hear that a hook of Slurm's came: what becomes of its job is read soon, once for all such hooks."""
        if self._hinted is None:
            self._hinted = asyncio.get_running_loop().call_later(_SOON_SECONDS, self._look_now)

    def taken_over(self, stood: Mapping[str, State]) -> None:
        """Take in what stands on NATS as this bridge takes the lead: the next reading says what became of it."""
        self._is_read = False
        if self._tell is not None:
            self._tell(self.view.adopt(stood))
        if self.creator is not None:
            made = (one for one in stood.values() if isinstance(one, JobState) and one.submission is not None)
            self.creator.made_before = {(one.scope, one.submission): one.id for one in made if one.submission}
        self._wake.set()

    def _look_now(self) -> None:
        self._hinted = None
        self._wake.set()

    async def _pass(self, tell: Callable[[Statements], None]) -> float:
        """Read once; returns the seconds to the next reading: fewer after a change and for a short queue."""
        async with self._turn:
            with self.instruments.read_seconds.time():
                context = await self.observer.context()
                began = time.monotonic()
                reading = await self.observer.jobs()
                took = time.monotonic() - began
            stated = {} if context is None else self.view.take_context(context)
            now = from_seconds(time.time())
            changed = self.view.read([before_its_time(job, now) for job in reading.jobs])
            self._is_read = True
            tell(stated | changed)
            self.instruments.passed(self.view.phases, len(stated) + len(changed), reading.unreadable)
        soon = max(_SOON_SECONDS, took * _REST) if changed else self.poll_seconds
        return min(soon, self.poll_seconds)

    # --- the verbs

    async def create(self, jobs: Sequence[CreateJob]) -> list[CreateReply]:
        """Have batch jobs made of submissions by the submitting helper; refuses all where there is none.

        Raises:
            Rejected: slurmctld was not read since this bridge took the lead; nothing was made.
        """
        if self.creator is None:
            return [CreateReply(outcome=CreateOutcome.REFUSED, reason=BY_SBATCH) for _ in jobs]
        self._check_read()
        replies = await self.creator.create(jobs)
        for reply in replies:
            self.instruments.creations.labels(reply.outcome).inc()
        self._wake.set()
        return replies

    async def set_levels(self, levels: Sequence[SetLevel]) -> list[LevelReply]:
        """Write levels of waiting jobs as SiteFactors, and state those that slurmctld took.

        Raises:
            Rejected: slurmctld does not answer, or was not read since this bridge took the lead.
        """
        async with self._turn:
            self._check_read()
            replies = [self._judged(wanted) for wanted in levels]
            open_ones = [wanted for wanted, reply in zip(levels, replies, strict=True) if reply is None]
            refused = await self._write(open_ones)
            stated: Statements = {}
            for wanted in open_ones:
                if wanted.id not in refused:
                    stated |= self.view.levelled(wanted.id, _level(wanted))
            if self._tell is not None and stated:
                self._tell(stated)
        self._wake.set()
        answered = [
            reply or _reply(LevelReply, refused.get(wanted.id))
            for wanted, reply in zip(levels, replies, strict=True)
        ]
        for reply in answered:
            self.instruments.levels.labels(reply.verdict).inc()
        return answered

    async def delete(self, jobs: Sequence[DeleteJob]) -> list[DeleteReply]:
        """Cancel the jobs that are still those of their uids or submissions; the others are gone already.

        Raises:
            Rejected: slurmctld does not answer, or was not read since this bridge took the lead.
        """
        async with self._turn:
            self._check_read()
            there = [self._number_of(job) for job in jobs]
            try:
                numbers = {one for one in there if not isinstance(one, VerbOutcome)}
                refused = await self.controller.cancel(sorted(numbers))
            except RetryableSlurmError as error:
                raise Rejected(UNAVAILABLE, str(error)) from error
        self._wake.set()
        return [
            DeleteReply(verdict=one)
            if isinstance(one, VerbOutcome)
            else _reply(DeleteReply, refused.get(one))
            for one in there
        ]

    # --- how

    def _check_read(self) -> None:
        if not self._is_read:
            raise Rejected(UNAVAILABLE, "slurmctld was not read since this bridge took the lead")

    def _number_of(self, wanted: DeleteJob) -> str | VerbOutcome:
        """The number of the job that is to go, or why none is."""
        if wanted.submission is None:
            uid = self.view.uid_of(wanted.id)
            return wanted.id if uid is not None and wanted.uid in (None, uid) else VerbOutcome.GONE
        read = self.view.jobs_of(wanted.scope, wanted.submission)
        asked = self.store.asked(wanted.scope, wanted.submission)
        # Not read: made since the last reading. Read as another's: the number was given again.
        if asked is not None and asked.job and (asked.job in read or self.view.uid_of(asked.job) is None):
            return VerbOutcome.LATER if wanted.spares(from_seconds(asked.at)) else asked.job
        return next(iter(read), VerbOutcome.GONE)

    def _judged(self, wanted: SetLevel) -> LevelReply | None:
        """The answer to a level that is not written; None where it is to be written."""
        known = self.view.context
        if known is None or self.view.waiting(wanted.id, wanted.uid) is None:
            return LevelReply(verdict=VerbOutcome.GONE)
        if not UNLABELLED <= _level(wanted) <= known.highest_level:
            why = f"level {wanted.level} is out of range: Slurm's own factors leave room up to {known.highest_level}"
            return LevelReply(verdict=VerbOutcome.REFUSED, reason=why)
        return None

    async def _write(self, levels: Sequence[SetLevel]) -> dict[str, str]:
        known = self.view.context
        if known is None or not levels:
            return {}
        factors: list[tuple[str, int]] = []
        whole: dict[str, str] = {}
        for wanted in levels:
            job = self.view.waiting(wanted.id, wanted.uid)
            if job is not None:
                factor = known.ladder.site_factor(_level(wanted), job.nice)
                parts = [part.id for part in job.parts] or [wanted.id]
                factors += [(part, factor) for part in parts]
                whole |= dict.fromkeys(parts, wanted.id)
        try:
            with self.instruments.write_seconds.time():
                refused = await self.controller.set_site_factors(factors)
        except RetryableSlurmError as error:
            raise Rejected(UNAVAILABLE, str(error)) from error
        return {whole.get(job, job): why for job, why in refused.items()}

    def _complain(self, trouble: SlurmError) -> None:
        """Log each kind of trouble once: slurmctld may be down for long, and its commands word it in turns."""
        if type(trouble) not in self._complained:
            self._complained.add(type(trouble))
            self._log.warning("slurm_not_read", error=str(trouble))

    def _read_again(self) -> None:
        if self._complained:
            self._complained.clear()
            self._log.info("slurm_read_again")


def _level(wanted: SetLevel) -> int:
    return UNLABELLED if wanted.level is None else wanted.level


def _reply[T: (LevelReply, DeleteReply)](kind: type[T], refused: str | None) -> T:
    if refused is None:
        return kind(verdict=VerbOutcome.DONE)
    gone = is_gone(refused)
    return kind(verdict=VerbOutcome.GONE) if gone else kind(verdict=VerbOutcome.REFUSED, reason=refused)
