"""Kueue's newest verdict on each shape of Workloads: it holds for all of the shape. Pure.

Of Workloads of one shape Kueue tries the first alone, and says nothing new of the others (see `equivalence`). So what it
once said of one of them is old as soon as it says something else of another: a flavor or a topology was changed since.
"""

from collections.abc import Mapping
from typing import NamedTuple

from fairlead_contracts.base.instants import Micros
from fairlead_kube.reflector import Key
from fairlead_watcher.objects.refused_flavors import RefusedFlavors


class WorkloadShape(NamedTuple):
    """A shape of Workloads in a queue."""

    queue: str
    """The ClusterQueue."""
    equivalence: str
    """The digest; see `equivalence`."""


class FlavorVerdict(NamedTuple):
    """Kueue's verdict on the flavors for a Workload."""

    at: Micros
    """The instant, in whole seconds: that is all that the API server tells."""
    refused: RefusedFlavors


class ShapeVerdicts:
    """The verdicts on the Workloads that wait, and the newest of each shape."""

    def __init__(self) -> None:
        self._verdicts: dict[WorkloadShape, dict[Key, FlavorVerdict]] = {}
        self._shape_of: dict[Key, WorkloadShape] = {}
        self._newest: dict[WorkloadShape, RefusedFlavors] = {}

    def refused(self, shape: WorkloadShape) -> RefusedFlavors:
        """The flavors that Kueue says refuse the shape."""
        return self._newest.get(shape, ())

    def take(self, verdicts: Mapping[Key, tuple[WorkloadShape, FlavorVerdict] | None]) -> list[WorkloadShape]:
        """Takes verdicts in, None for a Workload without one; returns the shapes of which something else is said now."""
        touched: set[WorkloadShape] = set()
        for key, found in verdicts.items():
            before = self._shape_of.pop(key, None)
            if before is not None:
                del self._verdicts[before][key]
                touched.add(before)
            if found is not None:
                shape, verdict = found
                self._shape_of[key] = shape
                self._verdicts.setdefault(shape, {})[key] = verdict
                touched.add(shape)
        return [shape for shape in touched if self._renew(shape)]

    def _renew(self, shape: WorkloadShape) -> bool:
        """Finds the newest verdict; of one second the mildest, as who counts is tried, and told of again."""
        verdicts = self._verdicts[shape]
        before = self._newest.pop(shape, ())
        if not verdicts:
            del self._verdicts[shape]
            return bool(before)
        newest = max(verdicts, key=lambda key: (verdicts[key].at, not verdicts[key].refused, key))
        self._newest[shape] = verdicts[newest].refused
        return self._newest[shape] != before
