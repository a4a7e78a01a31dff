"""Demands of a snapshot's jobs, in base units."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress, repeat
from operator import not_

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.snapshot.values import EntryPlace, SnapshotValues

_REMEMBERED = 32_768
"""Different demands of the same resources: some 10 MB."""

type _Names = tuple[str, ...]
"""Resources that demands name, in this order."""
type _Shape = tuple[str, _Names]
"""A pool, and the resources that demands there name."""
type _AmountRow = tuple[int, ...]
"""Amounts that a demand states, one of each of its resources."""


class DemandReader:
    """Reads demands, without what is 0. Jobs that ask for the same mostly share one dict.

    Args:
        resources: names of the pools' resources, by pool.
        values: reads amounts, and collects problems.
    """

    def __init__(self, resources: Mapping[str, AbstractSet[str]], values: SnapshotValues) -> None:
        self._resources = resources
        self._values = values
        self._known: defaultdict[_Names, dict[_AmountRow, dict[str, int]]] = defaultdict(dict)
        self._varied: set[_Names] = set()
        """Resources whose amounts hardly repeat: to look for them costs a third of reading them."""

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
        if names and set(names) <= self._resources.get(pool, set(names)):
            try:
                columns = self._values.columns_of_amounts(names, [one.values() for one in found])
            except FieldError:
                pass
            else:
                return self._shared(names, list(zip(*columns, strict=True)))
        return [self.one(("jobs", at, "demand"), one, pool) for one in found]

    def _shared(self, names: _Names, rows: Sequence[_AmountRow]) -> list[dict[str, int]]:
        """Demands of these resources: for amounts that are known one dict, which all who ask for them share."""
        known = self._known[names]
        if names in self._varied:
            return _made(names, rows)
        read = list(map(known.get, rows))
        new = list(compress(rows, map(not_, read)))
        made = _made(names, new)
        if len(known) < _REMEMBERED:
            known.update(zip(new, made, strict=True))
        elif len(new) > len(rows) / 2:
            self._varied.add(names)
            known.clear()
        following = iter(made)
        return [one or next(following) for one in read]


def _made(names: _Names, rows: Sequence[_AmountRow]) -> list[dict[str, int]]:
    made = list(map(dict, map(zip, repeat(names), rows)))
    for name, column in zip(names, zip(*rows, strict=True), strict=False):
        if 0 in column:
            for demand in compress(made, map(not_, column)):
                del demand[name]
    return made
