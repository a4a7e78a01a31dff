"""Choice of who is woken next, and at which levels. Pure.

A frontend that parks tries a job when it comes, and when its level changes; one that did not fit is *parked* until the
frontend's own batch, in which it tries all of them anew: so long after something came free as it states (`retry_seconds`).
So a level that is written while room is free is an admission: whoever gets it takes the room, whatever stands before it.
Therefore nothing is written then but the levels of the jobs that should start next: of those that have room beside one
another, whichever is tried first. They are tried alone, at once, and long before the batch.

It may park a job untried where one of its shape was refused at its level since the last batch (in Kueue,
SchedulingEquivalenceHashing). So a job is woken at a level at which none was refused since.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from fairlead_admitter.decide.frontend_order import LinePosition
from fairlead_admitter.decide.merged_order import Ranked
from fairlead_contracts.frontend.capabilities import Capabilities
from fairlead_contracts.messages.state import JobState
from fairlead_policy.levels.plan import Band

BATCH_MARGIN_SECONDS = 0.3
"""Seconds after which the frontend's own batch is surely over and seen, beyond those that it states."""
ORDERED_SECONDS = 0.15
"""The longest wait for the order that follows from what just ended. It takes some 0.02 s."""
SPARE = 256
"""Levels at the top of a wide band that only wake-ups use."""
_SPARE_PART = 8
MUCH_AT_ONCE = 64
"""Jobs that are woken at a time where much is free: a second of a busy frontend's time, and no more if none of them fits."""
MUCH_TRIED_SECONDS = 10.0
"""Seconds for which a woken job holds its room where much is free: the frontend may be slow to start so many, and its batch
starts whoever it has room for besides."""
_LONG_AGO = float("-inf")
_STEPS = 64
"""Steps that a gap between two levels is cut into, so that jobs woken later find room."""


class WakeInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The facts at one instant of a pool in which something may be free."""

    now: float
    """Seconds of a monotonic clock, as all others here."""
    freed: float
    """Second at which something came free last."""
    ordered: bool
    """Whether the order knows of everything that ended."""
    woken: Mapping[str, float]
    """Second at which a job was woken last, by uid."""
    tried: float
    """Seconds after which a woken job was surely tried."""
    able: Capabilities
    refused: Collection[str] = ()
    """The uids of those of them that are known to have been tried, and did not fit."""

    @property
    def batch_ends(self) -> float:
        """Second at which the frontend's own batch has surely passed."""
        return self.freed + batch_seconds(self.able)


class WakeStep(msgspec.Struct, frozen=True, kw_only=True):
    """The writes that may be made now."""

    wake: Sequence[Ranked] = ()
    """The jobs whose levels alone may be written now."""
    until: float | None = None
    """Second until which nothing is written, unless something happens; None where there is no need to wait."""

    @property
    def everything(self) -> bool:
        """Whether the whole plan may be written."""
        return not self.wake and self.until is None


def batch_seconds(able: Capabilities) -> float:
    """Seconds after something came free in which the frontend's own batch has surely passed."""
    return max(0.0, able.retry_seconds) + BATCH_MARGIN_SECONDS


def in_hand_until(uids: Iterable[str], inputs: WakeInputs) -> dict[str, float]:
    """The jobs in hand among these waiting ones, by uid, and until when: woken, and not seen to be refused yet."""
    woken = ((uid, inputs.woken.get(uid, _LONG_AGO) + inputs.tried) for uid in uids)
    return {uid: until for uid, until in woken if until > inputs.now and uid not in inputs.refused}


def next_step(
    fitting: Sequence[Ranked],
    inputs: WakeInputs,
    takes_room: Callable[[JobState], bool],
    line: Callable[[Ranked], LinePosition] | None = None,
) -> WakeStep:
    """The jobs to wake now, if any, or how long to write nothing.

    Args:
        fitting: the waiting jobs that each have room now, in the wanted order, and behind them those in hand that the
            order does not show.
        inputs: facts as they are known now.
        takes_room: whether a job has room beside those that took it before; if so, takes it.
        line: where a job stands in the frontend's own line, if much is free: then those are woken that the batch would come
            to last, as it starts the others by itself. None to wake the first of the order.
    """
    if not fitting:
        return WakeStep()
    in_hand = in_hand_until((one.job.uid for one in fitting), inputs)
    found = _next_with_room(fitting, in_hand, inputs, takes_room)
    most, ordered = max(1, inputs.able.tries_at_once), inputs.ordered
    if line is not None:
        found.sort(key=line, reverse=True)
        most = max(most, MUCH_AT_ONCE)
        # Who has no room ends the order; where nobody does, more of it is to come.
        ordered &= len(in_hand) + len(found) < len(fitting)
    orders_by = inputs.freed + ORDERED_SECONDS
    if not ordered and inputs.now < orders_by:
        return WakeStep(until=max([orders_by, *in_hand.values()]))
    if wake := found[: max(0, most - len(in_hand))]:
        return WakeStep(wake=wake)
    if in_hand:
        return WakeStep(until=max(in_hand.values()))
    return WakeStep(until=inputs.batch_ends) if inputs.now < inputs.batch_ends else WakeStep()


def _next_with_room(
    fitting: Sequence[Ranked],
    in_hand: Collection[str],
    inputs: WakeInputs,
    takes_room: Callable[[JobState], bool],
) -> list[Ranked]:
    """The jobs that have room beside those in hand. A job without room is not passed over, as one in hand may be refused."""
    found: list[Ranked] = []
    for one in fitting:
        if one.job.uid in in_hand:
            takes_room(one.job)
    for one in fitting:
        # Who was tried before something came free may have been refused before it did.
        if one.job.uid in in_hand or inputs.woken.get(one.job.uid, _LONG_AGO) >= inputs.freed:
            continue
        if not takes_room(one.job):
            break
        found.append(one)
    return found


def planning_band(band: Band) -> Band:
    """The band without the levels that are kept for waking."""
    spare = min(SPARE, (band.highest - band.lowest) // _SPARE_PART)
    return Band(default=band.default, lowest=band.lowest, highest=band.highest - spare)


def wake_level(
    standing: int, *, behind: int, before: int, band: Band, refused: Callable[[int], bool]
) -> int | None:
    """A level that wakes a job.

    Between those of its neighbours where there is one: then it stays right if the job is not admitted. Otherwise above
    them all, or below: among those that are parked no order matters.

    Args:
        standing: the job's level now.
        behind: the highest level of those that shall stand behind it.
        before: the lowest of those that shall stand before it; above the band for nobody.
        band: levels that may be written.
        refused: whether an equivalent job may have been refused at a level since the last batch.

    Returns:
        None where the band has no level left.
    """
    floor = max(band.lowest, band.default + 1)
    gaps = [
        (max(behind + 1, floor), min(before - 1, band.highest)),
        (max(behind + 1, floor), band.highest),
        (floor, band.highest),
    ]
    for lowest, highest in gaps:
        step = max(1, (highest - lowest) // _STEPS)
        starts = range(lowest + step - 1, highest + 1, step)
        for levels in (starts, range(lowest, highest + 1)):
            for level in levels[:_MOST_LEVELS_TRIED]:
                if level != standing and not refused(level):
                    return level
    return None


_MOST_LEVELS_TRIED = 4096
"""Levels that are looked at in one gap."""


def untried_level(wanted: int, *, behind: int, before: int, refused: Callable[[int], bool]) -> int:
    """A level between the job's neighbours at which nobody was refused. A job that comes between has room, too.

    Args:
        wanted: the planned level.
        behind: the highest level of those that shall stand behind it.
        before: the lowest of those that shall stand before it.
        refused: whether an equivalent job may have been refused at a level since the last batch.

    Returns:
        The wanted one where there is no other.
    """
    middle = (behind + before) // 2
    for away in range(min(_MOST_LEVELS_TRIED, before - middle)):
        for level in (middle - away, middle + away):
            if behind < level < before and not refused(level):
                return level
    return wanted
