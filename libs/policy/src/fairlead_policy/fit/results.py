"""The two answers."""

import msgspec

from fairlead_policy.fit.unschedulable import Obstacle


class PlacedPod(msgspec.Struct, frozen=True, gc=False):
    """One pod on one node."""

    shape: int
    """Position of its shape in the gang."""
    node: str
    cards: tuple[tuple[str, ...], ...] = ()
    """The cards' uuids for each vGPU ask of the shape."""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where all pods of the gang fit, in an order of starting in which each one finds room."""

    pods: tuple[PlacedPod, ...]
    zone: str | None = None
    """The value of the gang's zone label; None where it has no zone key."""

    @property
    def nodes(self) -> dict[str, int]:
        """The nodes used and the number of pods on each, by name."""
        counts: dict[str, int] = {}
        for pod in sorted(self.pods, key=lambda pod: pod.node):
            counts[pod.node] = counts.get(pod.node, 0) + 1
        return counts


class Unfit(msgspec.Struct, frozen=True, kw_only=True):
    """The gang fits nowhere, or nothing was found."""

    obstacles: tuple[Obstacle, ...]
    """What stands in the way; never empty."""
    exact: bool
    """True: proven. False: the search ended at its limit, or a part of the nodes is not modelled (MIG)."""
