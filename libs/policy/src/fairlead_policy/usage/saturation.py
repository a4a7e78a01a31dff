"""Used-up resources of a pool (H-DRF): nobody who waits could get more of them.

A resource is used up when less of it is free than the jobs need that wait for it, not only when nothing is left: one free
card of ten is nobody's while all that wait ask for two. What is needed is judged by what really waits, and by how much it
asks for. The smallest asks are left out as long as they come to less than a tenth of all that is asked of the resource:
else one parked job that asks for a thousandth of a card, and never starts, would say for everybody that there is room.

- What is free counts where a job could take it: in the cluster that it waits in, and of one flavor. A card that is free in
  another cluster helps nobody here.
- A job that is larger than all that its cluster has never starts. It says nothing about what is free.
- Of what nobody waits for, a resource is used up when none is left.

It is a function of what waits and runs, never of how that came to be: all shards of a pool find the same.
"""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Mapping

from fairlead_policy.rules.pool_rules import PoolRules

LEFT_OUT = 10
"""A tenth of what is asked for: small enough that few jobs which could start are taken for decoys, and so much that who
wants to park them needs a ninth of all that others honestly wait for. Held jobs and ended ones are not asked."""

type PoolPart = tuple[str, str]
"""Part of a pool: (cluster, the pool's name there)."""

type FlavorRoom = Mapping[str, Mapping[str, int]]
"""Amounts that a part has, by flavor and resource, base units. The flavor is empty where there are none."""


_UNTOLD = "\0"
"""No flavor has this name."""


def unflavored_room(capacity: Mapping[str, int]) -> FlavorRoom:
    """The room of a part whose flavors nobody tells."""
    return {"": capacity}


class Saturation:
    """The waiting and running jobs of a pool, as far as they say which resources are used up."""

    def __init__(self, rules: PoolRules, rooms: Mapping[PoolPart, FlavorRoom]) -> None:
        self._rules = rules
        self._parts = {part: _PartOfPool(room, rules.resources) for part, room in rooms.items()}

    def wait(self, part: PoolPart, demand: Mapping[str, int], step: int = 1) -> None:
        """Adds `step` waiting jobs of this demand to a part of the pool; removes them where the step is below 0."""
        self._part(part).wait(demand, step)

    def run(
        self, part: PoolPart, demand: Mapping[str, int], flavors: Mapping[str, str], step: int = 1
    ) -> None:
        """Adds `step` running jobs of this demand to a part of the pool.

        Args:
            demand: the demand of one job.
            flavors: the flavor of each resource that it holds, as far as that is told.
            step: the number of jobs; fewer run, where it is below 0.
        """
        self._part(part).run(demand, flavors, step)

    def used_up(self) -> frozenset[str]:
        """The resources that are used up now; what the pool never had is not among them."""
        return frozenset(filter(self._is_used_up, self._rules.resources))

    def _is_used_up(self, resource: str) -> bool:
        used = sum(part.used[resource] for part in self._parts.values())
        if used >= self._rules.capacity[resource]:
            return True
        asks = [part.asks[resource] for part in self._parts.values()]
        return sum(one.met for one in asks) * LEFT_OUT < sum(one.total for one in asks)

    def _part(self, part: PoolPart) -> "_PartOfPool":
        found = self._parts.get(part)
        if found is None:  # it has a queue, but nobody states what it has
            found = self._parts[part] = _PartOfPool({}, self._rules.resources)
        return found


class _PartOfPool:
    """The waiting and running jobs of one part of a pool."""

    def __init__(self, room: FlavorRoom, resources: tuple[str, ...]) -> None:
        self.used: Counter[str] = Counter()
        self.asks = {name: _Asks() for name in resources}
        self._capacity: Counter[str] = Counter()
        for amounts in room.values():
            self._capacity.update(amounts)
        self._free_by_flavor = {flavor: dict(amounts) for flavor, amounts in room.items()}
        for name in resources:
            self._free(name)

    def wait(self, demand: Mapping[str, int], step: int) -> None:
        capacity = self._capacity
        for name, amount in demand.items():
            if amount > capacity[name]:
                return
        for name, amount in demand.items():
            asks = self.asks.get(name)
            if asks is not None and amount > 0:
                asks.add(amount, step)

    def run(self, demand: Mapping[str, int], flavors: Mapping[str, str], step: int) -> None:
        for name, amount in demand.items():
            self.used[name] += step * amount
            free = self._free_by_flavor.get(flavors.get(name, _UNTOLD), {})
            if name in free:
                free[name] -= step * amount
            if name in self.asks:
                self._free(name)

    def _free(self, name: str) -> None:
        """The most that one job could take now: of one flavor, and no more than is left at all."""
        left = self._capacity[name] - self.used[name]
        most = max((free.get(name, 0) for free in self._free_by_flavor.values()), default=0)
        self.asks[name].meet(min(left, most))


class _Asks:
    """The waiting jobs' asks for one resource, and how much of it is asked for by jobs that could get it."""

    def __init__(self) -> None:
        self.total = 0
        self.met = 0
        self._free = 0
        self._amounts: list[int] | None = None
        """Distinct amounts that are asked for, ascending; None until free room changes, as each costs all that are larger."""
        self._counts: dict[int, int] = {}

    def add(self, amount: int, step: int) -> None:
        """Counts so many more jobs that ask for so much."""
        before = self._counts.get(amount, 0)
        if not before and self._amounts is not None:
            insort(self._amounts, amount)
        self._counts[amount] = before + step
        if not before + step:
            del self._counts[amount]
            if self._amounts is not None:
                del self._amounts[bisect_left(self._amounts, amount)]
        self.total += step * amount
        if amount <= self._free:
            self.met += step * amount

    def meet(self, free: int) -> None:
        """Takes in how much is free now. Costs the sizes between what was and what is."""
        if self._amounts is None and self._counts:
            self._amounts = sorted(self._counts)
        amounts, (first, last) = self._amounts or [], sorted((self._free, free))
        between = amounts[bisect_right(amounts, first) : bisect_right(amounts, last)]
        moved = sum(amount * self._counts[amount] for amount in between)
        self.met += moved if free > self._free else -moved
        self._free = free
