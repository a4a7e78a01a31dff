"""Demands of a snapshot's jobs, in base units."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress
from operator import is_, not_
from typing import cast

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.snapshot.values import EntryPlace, SnapshotValues

_REMEMBERED = 32_768
"""Different demands: some 10 MB."""


class DemandReader:
    """Reads demands, without what is 0. Jobs that ask for the same mostly share one dict.

    Args:
        resources: names of the pools' resources, by pool.
        values: reads amounts, and collects problems.
    """

    def __init__(self, resources: Mapping[str, AbstractSet[str]], values: SnapshotValues) -> None:
        self._resources = resources
        self._values = values
        self._known: dict[tuple[object, ...], dict[str, int]] = {}
        self._varied = False
        """Whether demands hardly repeat: to look for them costs as much as reading them."""

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
        named = set[str]().union(*found)
        for pool in set(pools):
            known = self._resources.get(pool, named)
            if not named <= known and any(
                not one.keys() <= known for one, its in zip(found, pools, strict=True) if its == pool
            ):
                return self._one_by_one(at, found, pools)
        try:
            return self._shared(self._side_by_side(found, named))
        except FieldError:
            return self._one_by_one(at, found, pools)

    def _one_by_one(
        self, at: int, found: Sequence[Mapping[str, object]], pools: Sequence[str]
    ) -> list[dict[str, int]]:
        return [self.one(("jobs", at, "demand"), one, pool) for one, pool in zip(found, pools, strict=True)]

    def _side_by_side(
        self, found: Sequence[Mapping[str, object]], named: AbstractSet[str]
    ) -> list[dict[str, int]]:
        """The demands, resource by resource; `named` are those that some of them names.

        Raises:
            FieldError: some resource is none, or an amount cannot be read; nothing is told.
        """
        read = cast("list[dict[str, int]]", list(map(dict, found)))  # as soon as each amount is read
        for resource in named:
            asking = [one for one in read if resource in one]
            amounts = self._values.column_of_amounts(resource, [one[resource] for one in asking])
            for one, amount in zip(asking, amounts, strict=True):
                one[resource] = amount
            if 0 in amounts:
                for one in compress(asking, map(not_, amounts)):
                    del one[resource]
        return read

    def _shared(self, read: list[dict[str, int]]) -> list[dict[str, int]]:
        """Demands of which those that are known are one dict, which all who ask for the same share."""
        if self._varied:
            return read
        known = self._known
        is_full = len(known) >= _REMEMBERED
        names_and_amounts = [(*one, *one.values()) for one in read]
        shared = list(map(known.get if is_full else known.setdefault, names_and_amounts, read))
        if is_full and sum(map(is_, shared, read)) > len(read) / 2:
            self._varied = True
            known.clear()
        return shared
