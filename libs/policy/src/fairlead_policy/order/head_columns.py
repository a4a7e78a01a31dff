"""The jobs that queues' heads are taken from, side by side, as each asker had them last: an event then costs its own tenant."""

from collections.abc import Collection, Sequence
from itertools import compress, count
from operator import is_not
from typing import NamedTuple

from fairlead_contracts.base.instants import Micros
from fairlead_policy.tenants.sequence_columns import SequenceColumns
from fairlead_policy.tenants.tenant_tree import TenantTree

_MOST = 64
"""Askers that are remembered: one scorer owns fewer shards of a pool."""

type ChosenTree = tuple[TenantTree, Collection[str] | None]
"""A tree, and the tenants in it that somebody asks for; None for all."""


class _KnownHeads(NamedTuple):
    """The answer to whoever asked for these trees."""

    trees: Sequence[TenantTree]
    moving: Sequence[int]
    """Numbers of the trees that time alone may change: they do not stand alone."""
    parts: Sequence[SequenceColumns]
    joined: SequenceColumns


class HeadColumns:
    """A cache: what it knows of a tree holds while that is the same value."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, tuple[str, ...] | None], _KnownHeads] = {}

    def columns(
        self, chosen: Sequence[ChosenTree], now: Micros, window: int, names: tuple[str, ...] | None
    ) -> SequenceColumns:
        """The first `window` jobs of each queue of each tree.

        Args:
            chosen: the trees.
            window: number of jobs of each queue.
            names: the tenants that were asked for, whoever of them has a tree; None for all.
        """
        trees = [tree for tree, _ in chosen]
        known = self._known.pop((window, names), None)
        if known is None or len(known.trees) != len(trees):
            parts = [tree.heads(now, window, some) for tree, some in chosen]
            moving = [number for number, tree in enumerate(trees) if not tree.alone]
            known = _KnownHeads(trees, moving, parts, SequenceColumns.joined(parts))
        else:
            known = _moved(known, trees, chosen, now, window)
        self._known[window, names] = known
        if len(self._known) > _MOST:
            del self._known[next(iter(self._known))]
        return known.joined


def _moved(
    known: _KnownHeads, trees: Sequence[TenantTree], chosen: Sequence[ChosenTree], now: Micros, window: int
) -> _KnownHeads:
    others = {*compress(count(), map(is_not, trees, known.trees)), *known.moving}
    found = {number: chosen[number][0].heads(now, window, chosen[number][1]) for number in others}
    found = {number: part for number, part in found.items() if part is not known.parts[number]}
    parts = [*known.parts]
    for number, part in found.items():
        parts[number] = part
    moving = [number for number in others if not trees[number].alone]
    return _KnownHeads(trees, moving, parts, known.joined.with_parts(found))
