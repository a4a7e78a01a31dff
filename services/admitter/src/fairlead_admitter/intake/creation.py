"""Making and cancelling jobs in a frontend: the port, orders and outcomes, and a creator that waits for a frontend that is down."""

import asyncio
import enum
import time
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from typing import Protocol

import msgspec

from fairlead_admitter.errors import (
    FrontendBalkedError,
    FrontendDownError,
    FrontendRefusedError,
    FrontendSlowError,
)
from fairlead_bus import NotYetError
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.submissions import Cancellation, Submission
from fairlead_runtime.waiting import pause_after

_FIRST_WAIT = 0.05
_LONGEST_WAIT = 2.0
_IN_LINE_SECONDS = 300.0
"""Seconds after which an order in line asks again by itself; mostly it is called before."""
_HANGS_SECONDS = 10.0
"""Seconds of orders that all waited in vain after which the frontend is down: one that is slow to one tenant answers
another."""
_LATELY_SECONDS = 300.0
"""Seconds after which people hear no more of a trouble that nobody ran into: no submission of the scope waits."""


class JobOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A checked submission, as a frontend makes a job of it.

    The job's scope is the tenant and its name is the submission's id: making it twice is making it once.
    """

    submission: Submission
    submitted: Micros
    """The instant at which the server took the submission in: the same at each delivery."""
    job_class: str = ""
    """The class that the job has, asked for or not."""
    traceparent: str | None = None

    @property
    def scope(self) -> str:
        """Namespace or account of the job."""
        return self.submission.tenant

    @property
    def id(self) -> str:
        """The job's name in its scope."""
        return self.submission.id


class Creation(enum.StrEnum):
    """The outcome of an order to create a job."""

    CREATED = "created"
    EXISTS = "exists"
    """The order was carried out before: its job exists."""
    CONFLICT = "conflict"
    """A job of that name was made from another body."""
    NO_QUEUE = "no-queue"
    """The frontend has no such queue, or none for the scope."""


class CreatedJob(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome, the queue that the job stands in, and the name that it has there."""

    outcome: Creation
    queue: str = ""
    job: str = ""
    """The job's name in the frontend; empty where it is the submission's id."""


class Removal(enum.StrEnum):
    """The outcome of a cancellation in a frontend."""

    DONE = "done"
    """The frontend stops the job, or takes it out of its queue."""
    GONE = "gone"
    """The submission has no job that waits or runs."""
    FOREIGN = "foreign"
    """An object with the job's name was not made of the submission."""
    LATER = "later"
    """The submission came in after the cancellation."""


class JobRefusedError(FrontendRefusedError):
    """The frontend will not make a job of the submission, and its sender can be told which field is why."""

    def __init__(self, problem: FieldError) -> None:
        super().__init__(str(problem))
        self.problem = problem


class JobCreator(Protocol):
    """Makes and cancels jobs in a frontend, idempotent by scope and id."""

    keeps_names: bool
    """Whether a job that was cancelled keeps its name, so that none is made under it again."""

    def begin_anew(self) -> None:
        """Forgets what earlier orders met: another replica may have asked meanwhile."""

    async def create(self, order: JobOrder) -> CreatedJob:
        """Carry the order out, or say what stands in its way.

        Raises:
            FrontendDownError: the outcome is not known; ask again.
            FrontendRefusedError: the frontend will not take it.
        """

    async def cancel(self, wanted: Cancellation, before: Micros) -> Removal:
        """Take the job of a submission that came in before this instant away, and no other.

        Raises:
            FrontendDownError: the outcome is not known; ask again.
            FrontendRefusedError: the frontend will not do it.
        """


class RetryObserver(Protocol):
    """Hears of attempts that failed and are made again."""

    def __call__(self, scope: str, why: str, *, new: bool) -> None:
        """Hears of one in this scope; `new`: the attempt before it went well, or failed for another reason."""


class _Trouble(msgspec.Struct):
    """A scope for which the frontend fails."""

    why: str
    failures: int
    """Failures before the last one."""
    until: float
    """Clock seconds before which nobody tries again."""
    probing: bool = False
    """Whether an order is finding out if the trouble is over; the others wait for that without a slot."""


class _ScopeSlots:
    """The slots of one scope, and the orders that wait for one."""

    def __init__(self, share: int) -> None:
        self._share = share
        self._free = share
        self._line: dict[asyncio.Future[None], None] = {}
        """Orders that wait, in the order of asking; without those that gave up."""
        self._called = 0
        """Number of orders that were called and have not come back yet."""

    def arrive(self) -> None:
        """Notes an order that asks for a slot; called or not, it stands for one that was called."""
        self._called = max(0, self._called - 1)

    def enter(self) -> None:
        """Takes a slot, until `leave`.

        Raises:
            NotYetError: no slot is free; its `sooner` is done when one is.
        """
        if not self._free:
            sooner: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._line[sooner] = None
            sooner.add_done_callback(lambda one: self._line.pop(one, None))
            text = f"{self._share} submissions of its tenant are being carried out"
            raise NotYetError(text, seconds=_IN_LINE_SECONDS, sooner=sooner)
        self._free -= 1

    def leave(self) -> None:
        """Gives the slot back, to an order that waits for one."""
        self._free += 1
        self._call()

    def _call(self) -> None:
        """Calls as many orders as find a slot; one at least, should a called one not come."""
        for sooner in list(islice(self._line, max(1, self._free - self._called))):
            del self._line[sooner]
            if not sooner.done():
                sooner.set_result(None)
                self._called += 1

    @property
    def waiting(self) -> int:
        """Number of orders that wait for a slot."""
        return len(self._line)

    @property
    def idle(self) -> bool:
        """Whether no order has a slot or waits for one."""
        return self._free == self._share and not self._line


@dataclass(eq=False)
class RetryingCreator:
    """A creator that asks again until the frontend answers, and keeps the trouble of one scope from the others.

    A frontend that is down for an hour is no fault of any submission: while it is, deliveries stay in progress and use
    up none of their attempts. Nor may a scope whose orders fail, or hang, take up the places of all others: it has so
    many at once, and one while it is in trouble. Orders that wait for their turn take none of the intake's places.
    """

    creator: JobCreator
    _: KW_ONLY
    share: int
    """Number of one scope's orders that are carried out at once."""
    troubled: RetryObserver
    """Hears of each attempt that failed: the scope, why, and whether that is new of the scope."""
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._slots: dict[str, _ScopeSlots] = {}
        """Slots of each scope that has orders on the way."""
        self._troubles: dict[str, _Trouble] = {}
        self._silent = False
        """Whether the frontend left the last order, of any scope, without an answer."""
        self._hangs_since: float | None = None
        """Clock seconds since which every order, of any scope, waited in vain; None where the last one was answered."""

    async def create(self, order: JobOrder) -> CreatedJob:
        """Creates the job by the port, without its FrontendDownError.

        Raises:
            NotYetError: the frontend does not answer for the scope now, or as many of its orders as may be are on the way.
            FrontendRefusedError: the frontend will not take it.
        """
        return await self._in_turn(order.scope, lambda: self.creator.create(order))

    async def cancel(self, wanted: Cancellation, before: Micros) -> Removal:
        """Cancels the job by the port; raises as `create`."""
        return await self._in_turn(wanted.tenant, lambda: self.creator.cancel(wanted, before))

    async def _in_turn[T](self, scope: str, call: Callable[[], Awaitable[T]]) -> T:
        slots = self._slots.setdefault(scope, _ScopeSlots(self.share))
        slots.arrive()
        try:
            trouble = self._troubles.get(scope)
            if trouble is not None:
                self._check_turn(trouble)
            slots.enter()
            try:
                return await self._ask(scope, call, trouble)
            finally:
                slots.leave()
        finally:
            if slots.idle and self._slots.get(scope) is slots:
                del self._slots[scope]

    def begin_anew(self) -> None:
        """Forgets troubles and lines, and has the frontend do so: another replica may have asked meanwhile."""
        self.creator.begin_anew()
        self._troubles.clear()
        self._slots.clear()
        self._silent = False
        self._hangs_since = None

    @property
    def keeps_names(self) -> bool:
        """See JobCreator."""
        return self.creator.keeps_names

    @property
    def down(self) -> bool:
        """Whether the frontend does not answer at all, as far as is known. One that fails a scope's orders answers."""
        hangs = self._hangs_since is not None and self.clock() - self._hangs_since >= _HANGS_SECONDS
        return bool(self._troubles) and (self._silent or hangs)

    def told(self) -> str | None:
        """The scopes in trouble and why, and those that wait for their turn, for people; None if there are none."""
        lately = self.clock() - _LATELY_SECONDS
        said = [
            f"{scope}: {trouble.why}"
            for scope, trouble in sorted(self._troubles.items())
            if trouble.until > lately
        ] + [
            f"{scope}: {slots.waiting} wait for their turn, {self.share} at once"
            for scope, slots in sorted(self._slots.items())
            if slots.waiting
        ]
        return "; ".join(said) or None

    async def _ask[T](self, scope: str, call: Callable[[], Awaitable[T]], trouble: _Trouble | None) -> T:
        """Asks once; where the scope is in trouble, this order finds out whether that is over."""
        if trouble is not None:
            trouble.probing = True
        try:
            answered = await call()
        except FrontendDownError as error:
            raise self._failed(scope, error) from error
        except FrontendRefusedError:
            self._answered(scope)
            raise
        finally:
            if trouble is not None:
                trouble.probing = False
        self._answered(scope)
        return answered

    def _check_turn(self, trouble: _Trouble) -> None:
        """Raises NotYetError where it is not this order's turn to find out."""
        left = trouble.until - self.clock()
        if left > 0 or trouble.probing:
            longest = pause_after(0, first=_LONGEST_WAIT, longest=_LONGEST_WAIT)
            raise NotYetError(trouble.why, seconds=max(left, longest))

    def _failed(self, scope: str, error: FrontendDownError) -> NotYetError:
        why = str(error)
        before = self._troubles.get(scope)
        self.troubled(scope, why, new=before is None or before.why != why)
        failures = 0 if before is None else before.failures + 1
        seconds = pause_after(failures, first=_FIRST_WAIT, longest=_LONGEST_WAIT)
        self._troubles[scope] = _Trouble(why=why, failures=failures, until=self.clock() + seconds)
        self._silent = not isinstance(error, FrontendBalkedError)
        if not isinstance(error, FrontendSlowError):
            self._hangs_since = None
        elif self._hangs_since is None:
            self._hangs_since = self.clock()
        return NotYetError(why, seconds=seconds)

    def _answered(self, scope: str) -> None:
        self._troubles.pop(scope, None)
        self._silent = False
        self._hangs_since = None
