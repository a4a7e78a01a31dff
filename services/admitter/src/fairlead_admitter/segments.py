"""Segments: which levels which jobs of a pool may get. One for all, or one for each class."""

from collections.abc import Collection, Mapping

import msgspec

from fairlead_contracts.state import QueueState
from fairlead_policy import Band, class_bands


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A band, and whose it is."""

    band: Band
    urgency: str | None = None
    """The class whose jobs it takes; None for the jobs of every class."""
    ceiling: int | None = None
    """The highest level at which a job of the class may stand at all; None where none is too high."""

    def takes(self, urgency: str | None) -> bool:
        """Whether jobs of the class get their levels from this band."""
        return self.urgency is None or self.urgency == urgency

    def trespassed(self, level: int) -> bool:
        """Whether the level is above everything that the class may have."""
        return self.ceiling is not None and level > self.ceiling


def common_band(queues: Collection[QueueState]) -> Band | None:
    """The band in which every queue of a pool takes levels; None where there is none, or the defaults differ."""
    defaults = {queue.default_level for queue in queues}
    lowest = max((queue.lowest_level for queue in queues), default=0)
    highest = min((queue.highest_level for queue in queues), default=0)
    if len(defaults) != 1 or lowest > highest:
        return None
    return Band(default=defaults.pop(), lowest=lowest, highest=highest)


def segments_of(
    queues: Collection[QueueState], bands: Mapping[str, Band], *, protect: bool, strict: bool = True
) -> list[Segment]:
    """The segments of a pool, the highest first; empty where its queues have no band in common.

    Args:
        queues: the pool's, in one cluster.
        bands: of each class, the first class first.
        protect: keep the top level of each band for jobs that run: what waits stays below it.
        strict: whether every job of a class goes before the next class's. Where it does not, bands would say otherwise:
            there is one for all, from the lowest floor to the highest level.
    """
    if bands and not strict:
        bands = {"": _over_all(bands.values())}
    if queues and all(queue.bands_by_class for queue in queues):
        return [
            Segment(
                urgency=urgency or None,
                band=Band(default=band.default, lowest=band.lowest, highest=band.highest - protect),
                ceiling=max(band.highest, band.default),
            )
            for urgency, band in bands.items()
        ]
    band = common_band(queues)
    if band is None or any(queue.bands_by_class for queue in queues):
        return []
    return [Segment(band=band)]


def _over_all(bands: Collection[Band]) -> Band:
    floor = min(band.default for band in bands)
    return Band(default=floor, lowest=floor + 1, highest=max(band.highest for band in bands))


def bands_of(classes: Collection[str], values: Mapping[str, int], width: int) -> dict[str, Band]:
    """The band of each class of the policy, the first class first."""
    return class_bands(list(classes), values, width=width)
