"""Class bands: which levels which jobs of a pool may get. One for all, or one for each class.

Where a frontend keeps classes apart by bands, a pool falls into class bands, and each is planned within its own band. A
job that stands above the band of its class is *out of band*: it is lowered to the floor of its class wherever it stands.
"""

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

import msgspec

from fairlead_contracts.messages.state import QueueState
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.snapshot.types import SnapshotQueue
from fairlead_policy.levels.bands import class_bands
from fairlead_policy.levels.plan import Band

type LevelQueue = QueueState | SnapshotQueue
"""A queue as a cluster states it, or a snapshot."""


class ClassBand(msgspec.Struct, frozen=True, kw_only=True):
    """A band, and whose it is."""

    band: Band
    job_class: str | None = None
    """The class whose jobs it takes; None for the jobs of every class."""
    ceiling: int | None = None
    """The highest level at which a job of the class may stand at all; None where none is too high."""

    def takes(self, job_class: str | None) -> bool:
        """Whether jobs of the class get their levels from this band."""
        return self.job_class is None or self.job_class == job_class

    def out_of_band(self, level: int) -> bool:
        """Whether the level is above everything that the class may have."""
        return self.ceiling is not None and level > self.ceiling

    def settled(self, level: int) -> int:
        """The level to plan by: an out-of-band job's counts as what it will be."""
        return self.band.default if self.out_of_band(level) else level


def common_band(queues: Collection[LevelQueue]) -> Band | None:
    """The band in which every queue of a pool takes levels; None where there is none, or the defaults differ."""
    defaults = {queue.default_level for queue in queues}
    lowest = max((queue.lowest_level for queue in queues), default=0)
    highest = min((queue.highest_level for queue in queues), default=0)
    if len(defaults) != 1 or lowest > highest:
        return None
    return Band(default=defaults.pop(), lowest=lowest, highest=highest)


def class_bands_by(
    document: PolicyDocument, queues: Collection[LevelQueue], values: Mapping[str, int]
) -> list[ClassBand]:
    """The class bands of a pool under this policy, the highest first; empty where its queues have no band in common.

    Args:
        queues: the pool's, in one cluster.
        values: that cluster's values of the classes that it knows.
    """
    bands = class_bands(document.classes, values, width=document.bands.width)
    strict = document.class_mode == "strict"
    return class_bands_of(queues, bands, protect=document.preemption == "protect", strict=strict)


def class_bands_of(
    queues: Collection[LevelQueue], bands: Mapping[str, Band], *, protect: bool, strict: bool = True
) -> list[ClassBand]:
    """The class bands of a pool, the highest first; empty where its queues have no band in common.

    Args:
        queues: the pool's, in one cluster.
        bands: each class's band, the first class first.
        protect: keep the top level of each band for jobs that run: what waits stays below it.
        strict: whether every job of a class goes before the next class's. Where it does not, bands would say otherwise:
            there is one for all, from the lowest floor to the highest level.
    """
    if bands and not strict:
        floor = min(band.default for band in bands.values())
        highest = max(band.highest for band in bands.values())
        bands = {"": Band(default=floor, lowest=floor + 1, highest=highest)}
    if queues and all(queue.bands_by_class for queue in queues):
        return [
            ClassBand(
                job_class=job_class or None,
                band=Band(default=band.default, lowest=band.lowest, highest=band.highest - protect),
                ceiling=max(band.highest, band.default),
            )
            for job_class, band in bands.items()
        ]
    band = common_band(queues)
    if band is None or any(queue.bands_by_class for queue in queues):
        return []
    return [ClassBand(band=band)]


class LevelChange(msgspec.Struct, frozen=True, gc=False):
    """One level to write."""

    uid: str
    before: int
    level: int
    out_of_band: bool = False
    """Whether it stood above its class."""


class ClassBandChanges:
    """The changes of one class band's plan.

    Args:
        planned: the planned writes, in the order of the plan.
        lowering: the writes that lower jobs out of band, outside of the window.
    """

    def __init__(self, planned: Iterable[LevelChange], lowering: Iterable[LevelChange]) -> None:
        self.raised: list[LevelChange] = []
        self.lowered: list[LevelChange] = []
        for change in planned:
            (self.raised if change.level > change.before else self.lowered).append(change)
        self.lowering = list(lowering)


def in_safe_order(parts: Sequence[ClassBandChanges]) -> list[LevelChange]:
    """The writes of all class bands, the highest class band's given first, so that no pair that stood right is turned round.

    By the level that a job leaves or gets, the highest first: each write counts from the front. A job out of band may be
    lowered at any moment: whatever of the window it stands before, it does so wrongly.
    """
    first = heapq.merge(
        chain.from_iterable(part.raised for part in parts),
        sorted(
            chain.from_iterable(part.lowering for part in parts),
            key=lambda change: change.before,
            reverse=True,
        ),
        key=lambda change: max(change.before, change.level),
        reverse=True,
    )
    return [*first, *chain.from_iterable(part.lowered for part in reversed(parts))]
