"""Attempts that start: the prologs that are being answered now, and what they leave for others to know.

Nothing of it outlives the process. A prolog that is killed is asked again, and so is one that this process could not answer.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from weakref import WeakValueDictionary

import structlog

from fairlead_contracts.frontend.observed import ObservedPods
from fairlead_kube.reflector import Key
from fairlead_slurm import SlurmJob
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.pods.verdicts import START, PrologVerdict, is_over

_REMEMBERED = 10_000


class StartingAttempts:
    """The starting attempts of one partition's jobs."""

    def __init__(self) -> None:
        self.making: set[Key] = set()
        """Keys of pods that are being made."""
        self.short: dict[int, ObservedPods | None] = {}
        """Asks of the jobs that were sent back, by number; None for a job that needs no new pod."""
        self.refusals: dict[Attempt, str] = {}
        """Reason for which an attempt never gets a pod, by attempt; its process tells the user."""
        self._asked: dict[Attempt, bool] = {}
        """Attempts whose prolog is being answered, with whether they were ended meanwhile."""
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    def send_back(self, job: int, ask: ObservedPods | None) -> None:
        """Note that the job goes back into the queue until there is room for its ask; None: until it may start again."""
        self.short[job] = ask

    def settle(self, job: int) -> None:
        """Note that the job is not short of room any more."""
        self.short.pop(job, None)

    def turn(self, job: int) -> asyncio.Lock:
        """The lock of a job, for which one thing at a time is done."""
        return self._turns.setdefault(job, asyncio.Lock())

    @contextlib.contextmanager
    def asked(self, attempt: Attempt) -> Iterator[None]:
        """Count the attempt's prolog as being answered while the block lasts."""
        self._asked[attempt] = False
        try:
            yield
        finally:
            self._asked.pop(attempt, None)

    def __contains__(self, attempt: Attempt) -> bool:
        return attempt in self._asked

    def ends(self, number: int, job: SlurmJob | None) -> None:
        """Note which attempts of a job end while they begin, by slurmctld's word alone.

        The process whose end a hook tells may be one that slurmctld has forgotten: of the same restart count as what begins.
        """
        for attempt in self._asked:
            if attempt.job == number:
                self._asked[attempt] |= is_over(attempt, job, completing=True)

    def has_ended(self, attempt: Attempt) -> bool:
        """Whether the attempt has ended while its prolog is being answered."""
        return self._asked.get(attempt, False)

    def refuse(self, attempt: Attempt, why: str) -> PrologVerdict:
        """Let the job start, but end at once with the reason in its output, where its user looks."""
        self._log.warning("pod_refused", job=attempt.job, restarts=attempt.restarts, why=why)
        self.refusals[attempt] = why
        while len(self.refusals) > _REMEMBERED:
            self.refusals.pop(next(iter(self.refusals)))
        return PrologVerdict(code=START, why=why, kind="refused")
