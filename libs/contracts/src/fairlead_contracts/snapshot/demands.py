"""Demands of a snapshot's jobs, in base units."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, compress, repeat
from operator import not_

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.snapshot.values import EntryPlace, SnapshotValues

_REMEMBERED = 32_768
"""Different demands of one shape: some 10 MB."""

type _Shape = tuple[str, tuple[str, ...]]
"""A pool, and the resources that demands there name in this order."""
type _StatedAmounts = tuple[object, ...]
"""Amounts that a demand states, one of each resource of its shape."""


class DemandReader:
    """Reads demands, without what is 0. Jobs that ask for the same mostly share one dict, which is read once.

    Args:
        resources: names of the pools' resources, by pool.
        values: reads amounts, and collects problems.
    """

    def __init__(self, resources: Mapping[str, AbstractSet[str]], values: SnapshotValues) -> None:
        self._resources = resources
        self._values = values
        self._known: defaultdict[_Shape, dict[_StatedAmounts, dict[str, int]]] = defaultdict(dict)
        self._varied: set[_Shape] = set()
        """Shapes whose demands hardly repeat: to look for one costs a third of reading it."""

    def one(self, place: EntryPlace, found: Mapping[str, object], pool: str) -> dict[str, int]:
        """Reads one demand, and tells its problems."""
        amounts = self._values.amounts(place, found)
        self._values.check_resources(place, found, pool, self._resources.get(pool))
        return {resource: amount for resource, amount in amounts.items() if amount}

    def all(
        self, at: int, found: Sequence[Mapping[str, object]], pools: Sequence[str]
    ) -> list[dict[str, int]]:
        """The demands of waiting jobs of these pools.

        Args:
            at: the position of the first; problems are told of that one.
            found: the demands as written.
            pools: the pool of each.
        """
        shapes = list(zip(pools, map(tuple, found), strict=True))
        if len(distinct := set(shapes)) == 1:
            return self._alike(at, distinct.pop(), found)
        by_shape = defaultdict[_Shape, list[Mapping[str, object]]](list)
        for shape, one in zip(shapes, found, strict=True):
            by_shape[shape].append(one)
        read = {shape: iter(self._alike(at, shape, alike)) for shape, alike in by_shape.items()}
        return [next(read[shape]) for shape in shapes]

    def _alike(self, at: int, shape: _Shape, found: Sequence[Mapping[str, object]]) -> list[dict[str, int]]:
        """Demands of one shape."""
        pool, names = shape
        rows = _rows_of(found)
        if rows is not None and set(names) <= self._resources.get(pool, set(names)):
            try:
                return self._read(shape, rows)
            except FieldError:
                pass
        return [self.one(("jobs", at, "demand"), one, pool) for one in found]

    def _read(self, shape: _Shape, rows: Sequence[_StatedAmounts]) -> list[dict[str, int]]:
        """Demands of one shape, those that are not known resource by resource.

        Raises:
            FieldError: something is wrong with one of them; nothing is told.
        """
        names, known = shape[1], self._known[shape]
        if shape in self._varied:
            return self._made(names, rows)
        read = list(map(known.get, rows))
        new = list(compress(rows, map(not_, read)))
        made = self._made(names, new)
        if len(known) < _REMEMBERED:
            known.update(zip(new, made, strict=True))
        elif len(new) > len(rows) / 2:
            self._varied.add(shape)
            known.clear()
        following = iter(made)
        return [one or next(following) for one in read]

    def _made(self, names: tuple[str, ...], rows: Sequence[_StatedAmounts]) -> list[dict[str, int]]:
        if not names or not rows:
            return [{} for _ in rows]
        columns = self._values.columns_of_amounts(names, rows)
        made = list(map(dict, map(zip, repeat(names), zip(*columns, strict=True))))
        for name, column in zip(names, columns, strict=True):
            if 0 in column:
                for demand in compress(made, map(not_, column)):
                    del demand[name]
        return made


def _rows_of(found: Sequence[Mapping[str, object]]) -> list[_StatedAmounts] | None:
    """The amounts that demands state, a row each; None where something is neither number nor text."""
    rows = [tuple(one.values()) for one in found]
    kinds = set(map(type, chain.from_iterable(rows)))
    if float in kinds:  # its digits are what it means, and it is taken for no integer that it equals
        rows = [tuple(repr(one) if type(one) is float else one for one in row) for row in rows]
    return rows if kinds <= {int, str, float} else None
