"""Kueue's words on each shape of Workloads, its newest verdict and what it counts: they hold for all of the shape. Pure.

Of Workloads of one shape Kueue tries the first alone, and says nothing new of the others (see `equivalence`). So what it
once said of one of them is old as soon as it says something else of another: a flavor or a topology was changed since.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import NamedTuple

from fairlead_contracts.base.instants import Micros
from fairlead_kube.reflector import Key
from fairlead_watcher.objects.refused_flavors import RefusedFlavors


class WorkloadShape(NamedTuple):
    """A shape of Workloads in a queue."""

    queue: str
    equivalence: str
    """The digest; see `equivalence`."""
    namespace: str = ""
    """The only namespace for which the words on it hold; empty where they hold for all."""


class FlavorVerdict(NamedTuple):
    """Kueue's verdict on the flavors for a Workload."""

    at: Micros
    """The instant, in whole seconds: that is all that the API server tells."""
    refused: RefusedFlavors


class _ByShape[W, V]:
    """Kueue's words on Workloads, and what follows from those on each shape.

    The words on a shape are kept in a line: of 50,000 of one shape each new word had cost 24 ms to look at them all.
    """

    _unsaid: object = None
    """The word on a shape of which nothing was said."""

    def __init__(self) -> None:
        self._words: dict[Key, tuple[WorkloadShape, W]] = {}
        self._lines: dict[WorkloadShape, list[tuple[tuple[int, ...], Key]]] = {}
        """The Workloads of each shape, each behind those whose words count less."""
        self._found: dict[WorkloadShape, V] = {}

    def take(self, words: Mapping[Key, tuple[WorkloadShape, W] | None]) -> list[WorkloadShape]:
        """Takes words in, None for a Workload without any; returns the shapes of which something else follows now."""
        touched: set[WorkloadShape] = set()
        for key, found in words.items():
            before = self._words.pop(key, None)
            if before is not None:
                shape, word = before
                line = self._lines[shape]
                del line[bisect_left(line, (self._rank(word), key))]
                touched.add(shape)
            if found is not None:
                shape, word = self._words[key] = found
                insort(self._lines.setdefault(shape, []), (self._rank(word), key))
                touched.add(shape)
        return [shape for shape in touched if self._renew(shape)]

    def _renew(self, shape: WorkloadShape) -> bool:
        line, before = self._lines[shape], self._found.pop(shape, self._unsaid)
        if line:
            self._found[shape] = self._follows(self._words[line[-1][1]][1])
        else:
            del self._lines[shape]
        return self._found.get(shape, self._unsaid) != before

    def _rank(self, word: W) -> tuple[int, ...]:  # noqa: ARG002 # all of a shape count alike, unless it says more
        return ()

    def _follows(self, word: W) -> V:
        raise NotImplementedError


class ShapeVerdicts(_ByShape[FlavorVerdict, RefusedFlavors]):
    """The verdicts on the Workloads that wait, and the newest of each shape."""

    _unsaid = ()

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[WorkloadShape, RefusedFlavors] = {}
        """The last refusals of each shape of which no words stand any more."""

    def refused(self, shape: WorkloadShape) -> RefusedFlavors:
        """The flavors that Kueue says refuse the shape."""
        return self._found.get(shape, ())

    def refused_last(self, shape: WorkloadShape) -> RefusedFlavors:
        """The flavors that Kueue said last refuse the shape, also where the Workload of which it said so has started since.

        It says the same of the next one: to forget it meanwhile had all of a shape stated twice at each start.
        """
        return self._found[shape] if shape in self._found else self._last.get(shape, ())

    def forget(self, shape: WorkloadShape) -> None:
        """Forgets what was said last of a shape of which nobody waits."""
        self._last.pop(shape, None)

    def _renew(self, shape: WorkloadShape) -> bool:
        before = self.refused_last(shape)
        changed = super()._renew(shape)
        if shape in self._found:
            self._last.pop(shape, None)
        elif before:
            self._last[shape] = before
        return changed or self.refused_last(shape) != before

    def _rank(self, word: FlavorVerdict) -> tuple[int, ...]:
        """The newest counts; of one second the mildest, as who counts is tried, and told of again."""
        return (word.at, not word.refused)

    def _follows(self, word: FlavorVerdict) -> RefusedFlavors:
        return word.refused


class ShapeCounts(_ByShape[Mapping[str, int], Mapping[str, int]]):
    """The demands that Kueue counts in other resources than Workloads ask for, and that of each shape."""

    def of(self, shape: WorkloadShape) -> Mapping[str, int] | None:
        """The demand that Kueue counts of each Workload of the shape; None where it said none."""
        return self._found.get(shape)

    def _follows(self, word: Mapping[str, int]) -> Mapping[str, int]:
        return word
