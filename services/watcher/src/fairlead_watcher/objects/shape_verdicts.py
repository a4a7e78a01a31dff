"""Kueue's words on each shape of Workloads, its newest verdict and what it counts: they hold for all of the shape. Pure.

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


class _ByShape[W, V]:
    """Kueue's words on Workloads, and what follows from those on each shape."""

    def __init__(self) -> None:
        self._words: dict[WorkloadShape, dict[Key, W]] = {}
        self._shape_of: dict[Key, WorkloadShape] = {}
        self._found: dict[WorkloadShape, V] = {}

    def take(self, words: Mapping[Key, tuple[WorkloadShape, W] | None]) -> list[WorkloadShape]:
        """Takes words in, None for a Workload without any; returns the shapes of which something else follows now."""
        touched: set[WorkloadShape] = set()
        for key, found in words.items():
            before = self._shape_of.pop(key, None)
            if before is not None:
                del self._words[before][key]
                touched.add(before)
            if found is not None:
                shape, word = found
                self._shape_of[key] = shape
                self._words.setdefault(shape, {})[key] = word
                touched.add(shape)
        return [shape for shape in touched if self._renew(shape)]

    def _renew(self, shape: WorkloadShape) -> bool:
        words, before = self._words[shape], self._found.pop(shape, None)
        if words:
            self._found[shape] = self._chosen(words)
        else:
            del self._words[shape]
        return (self._found.get(shape) or None) != (before or None)

    def _chosen(self, words: Mapping[Key, W]) -> V:
        raise NotImplementedError


class ShapeVerdicts(_ByShape[FlavorVerdict, RefusedFlavors]):
    """The verdicts on the Workloads that wait, and the newest of each shape."""

    def refused(self, shape: WorkloadShape) -> RefusedFlavors:
        """The flavors that Kueue says refuse the shape."""
        return self._found.get(shape, ())

    def _chosen(self, words: Mapping[Key, FlavorVerdict]) -> RefusedFlavors:
        """The newest; of one second the mildest, as who counts is tried, and told of again."""
        newest = max(words, key=lambda key: (words[key].at, not words[key].refused, key))
        return words[newest].refused


class ShapeCounts(_ByShape[Mapping[str, int], Mapping[str, int]]):
    """The demands that Kueue counts in other resources than Workloads ask for, and that of each shape."""

    def of(self, shape: WorkloadShape) -> Mapping[str, int] | None:
        """The demand that Kueue counts of each Workload of the shape; None where it said none."""
        return self._found.get(shape)

    def _chosen(self, words: Mapping[Key, Mapping[str, int]]) -> Mapping[str, int]:
        """The count of the first Workload by name: all of a shape have the same."""
        return words[min(words)]
