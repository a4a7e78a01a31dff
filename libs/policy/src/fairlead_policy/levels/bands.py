"""Bands: the levels of each class in a frontend that keeps classes apart by them.

Such a frontend gives each job a level of its own before anybody steers: the cluster's value of its class, 0 without one.
A class's band begins above that value, its floor, and ends below the next higher class's floor: a level never lifts a
job over a higher class, and a job of a higher class that nobody labelled yet still stands before all labelled ones of
the classes below.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

from fairlead_policy.levels.plan import Band

ROOM = 2_000
"""Least number of levels in a band: with less a front of some hundred jobs is rewritten as a whole each time
that two of its jobs have no level left between them."""


class NarrowBand(msgspec.Struct, frozen=True, kw_only=True):
    """Two classes whose values in the cluster leave the lower one too few levels, or stand the wrong way round."""

    lower: str
    upper: str
    lower_floor: int
    upper_floor: int

    @property
    def room(self) -> int:
        """Levels that the lower class has between the two floors; negative where they stand the wrong way round."""
        return self.upper_floor - self.lower_floor - 1


def class_bands(classes: Sequence[str], values: Mapping[str, int], *, width: int) -> dict[str, Band]:
    """The band of each class.

    Args:
        classes: the policy's classes, first goes first.
        values: the cluster's value of each class that it knows; the last class is 0 unless it says otherwise, another
            begins where the one below it ends, or shares the room up to the next one that the cluster knows.
        width: number of levels that a class has unless the next one begins before.
    """
    floors = _floors(classes, values, width)
    ceilings = [None, *floors[:-1]]
    return {
        name: Band(
            default=floor,
            lowest=floor + 1,
            highest=floor + width if above is None else min(floor + width, above - 1),
        )
        for name, floor, above in zip(classes, floors, ceilings, strict=True)
    }


def narrow_bands(classes: Sequence[str], values: Mapping[str, int], *, width: int) -> list[NarrowBand]:
    """The classes whose values leave no room for levels."""
    floors = list(zip(classes, _floors(classes, values, width), strict=True))
    pairs = [
        NarrowBand(lower=lower, upper=upper, lower_floor=low, upper_floor=high)
        for (upper, high), (lower, low) in pairwise(floors)
    ]
    return [pair for pair in pairs if pair.room < ROOM]


def _floors(classes: Sequence[str], values: Mapping[str, int], width: int) -> list[int]:
    """The floor of each class, in the order of the classes.

    Classes that the cluster has no value for share the room up to the next higher one that it has one for.
    """
    floors: list[int] = []
    upward = list(reversed(classes))
    for at, name in enumerate(upward):
        if name in values:
            floors.append(values[name])
        elif not floors:
            floors.append(0)
        else:
            floors.append(floors[-1] + _step(upward[at:], values, floors[-1], width))
    return floors[::-1]


def _step(from_here: Sequence[str], values: Mapping[str, int], below: int, width: int) -> int:
    """The distance between two floors: `below`, and that of the first of these classes."""
    fixed = next((at for at, name in enumerate(from_here) if name in values), None)
    if fixed is None:
        return width + 1
    return min(width + 1, (values[from_here[fixed]] - below) // (fixed + 1))
