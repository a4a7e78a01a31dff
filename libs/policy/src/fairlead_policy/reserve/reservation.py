"""The words of reserve mode: facts, what was decided before, and a decision with its reasons. See `easy`."""

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_policy.reserve.shadow import CapacityHold, Shadow


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Reaction times and graces."""

    reaction: Micros
    """The longest time from a fact to the level that follows from it."""
    grace: Micros
    """Time from a run's limit to the moment at which the frontend can give away what the run held."""
    rest: Micros
    """Time for which a job gets no pass after one that it did not use."""

    def latest_end(self, now: Micros, limit: Micros | None) -> Micros | None:
        """The latest end of a job that is let start now; None where nobody knows its longest run time."""
        return None if limit is None else now + 2 * self.reaction + limit + self.grace


class Waiting(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A waiting job."""

    uid: str
    demand: dict[str, int]
    job_class: str = ""
    """Class of the job; the same for all where classes are not strict."""
    limit: Micros | None = None
    """Longest run time of the job; None where nobody knows."""


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """A start by a known instant."""

    uid: str
    job_class: str
    shadow: Micros
    made: Micros
    capacity: dict[str, int]
    """Capacity of the pool when the promise was made."""


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """A position before the head."""

    uid: str
    demand: dict[str, int]
    """Demand that the pass was given for, base units."""
    limit: Micros | None
    """Longest run time that the pass was given for; None where nobody knows."""
    given: Micros
    begins: Micros
    """The instant by which it has begun, or never will."""
    ends: Micros | None
    """Latest instant at which it has given back what it holds; None where it may run beside the head."""
    beside: bool = False
    """Whether the head fits beside it."""
    withdrawn: "Withdrawal | None" = None
    """Reason for which it is taken back, else None. It counts until it is seen to stand behind the head."""


class Withdrawal(enum.StrEnum):
    """Reason for which a pass is taken back."""

    UNUSED = "unused"
    """The frontend did not start the job although it seemed to fit."""
    HEAD_GONE = "head-gone"
    """The head for which it was given has started, or waits no more."""
    HELD = "held"
    """The job of the pass may not start just now."""
    CHANGED = "changed"
    """The job of the pass asks for more now than the pass was given for, or runs for longer."""
    PROMISE_LOST = "promise-lost"
    """The head for which it was given has no promise any more."""


class BreakCause(enum.StrEnum):
    """Cause for which a promise was broken."""

    HIGHER_CLASS = "higher-class"
    """A job of a higher class came, and does not fit either."""
    OVERDUE = "overdue"
    """Something runs beyond its limit and grace."""
    CAPACITY = "capacity"
    """The pool has less than when it was made."""
    NOT_STARTED = "not-started"
    """The head fits, and the frontend did not start it."""
    OVERTAKEN = "overtaken"
    """Others were started before it: of a higher class, or lifted by somebody else."""


class NoReservation(enum.StrEnum):
    """Reason for which there is no promise."""

    NO_HEAD = "no-head"
    """All that waits fits, so nothing is at the head."""
    STARTING = "starting"
    """Jobs before the head, or the head itself, are about to start."""
    NOT_IN_PLACE = "not-in-place"
    """The frontend is not seen yet to have the head in front."""
    ENDLESS = "endless"
    """Runs without a limit are in its way."""
    OVERDUE = "overdue"
    """Runs beyond their limit are in its way."""


class HeadInPlace(NamedTuple):
    """A head that nothing stands before, and since when that is known."""

    uid: str
    since: Micros


class Breach(NamedTuple):
    """A promise that was not kept."""

    promise: Promise
    cause: BreakCause


class ReserveInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that a reservation is decided from."""

    now: Micros
    timing: Timing
    capacity: Mapping[str, int]
    running: Sequence[CapacityHold]
    """The runs; their `ends` include the grace."""
    order: Sequence[Waiting]
    """Waiting jobs as the policy orders them; as far as that is known."""
    writable: bool = True
    """Whether levels can be written now. Where they cannot, nobody gets a pass."""
    held: Sequence[Waiting] = ()
    """Jobs with a pass that may not start just now; once let go, they stand where they stood."""
    ahead: Callable[[str], Collection[str] | None]
    """The uids of the jobs before a job in the frontend: lifted ones that are held, too, and those that a write under way may
    put there. None for a job at the default level: whoever comes may stand before it."""


class ReservationState(msgspec.Struct, frozen=True, kw_only=True):
    """The promise and passes that were decided before and hold."""

    promise: Promise | None = None
    passes: dict[str, Pass] = {}
    """Passes that count, by uid, those too that are taken back."""
    resting: dict[str, Micros] = {}
    """Instant until which a job gets no pass, by uid."""
    in_place: HeadInPlace | None = None
    recalled: str = ""
    """The uid of a job that keeps its position in front of its class without a promise: who takes over found it there,
    and it may have had one."""


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """The order that reserve mode wants of the frontend, and why."""

    standing: ReservationState
    order: tuple[str, ...]
    """The uids in the order that is wanted of the frontend."""
    head: Waiting | None = None
    shadow: Shadow | None = None
    """The head's shadow, as far as is known now; a promise may be earlier."""
    why_none: NoReservation | None = None
    """Reason for which there is no promise; None where there is one."""
    given: tuple[Pass, ...] = ()
    withdrawn: tuple[Pass, ...] = ()
    """Passes that are taken back from now on."""
    breach: Breach | None = None
    starting: tuple[str, ...] = ()
    """Jobs before the head, which fit."""
    aside: tuple[str, ...] = ()
    """Jobs that ask for more than the pool has: at the head they would stop the queue for ever."""
    wake: Micros | None = None
    """Instant at which the next pass is due to be taken back, or the promise to be kept; None for none."""

    @property
    def promise(self) -> Promise | None:
        """The head's promise."""
        return self.standing.promise

    @property
    def passing(self) -> list[str]:
        """The uids of the jobs that go before the head."""
        return [one.uid for one in self.standing.passes.values() if one.withdrawn is None]
