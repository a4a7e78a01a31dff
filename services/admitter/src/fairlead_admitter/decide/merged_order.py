"""A pool's merged front, as deep as it is needed.

Each shard publishes the first places of each queue; together they are many times the window. The parts are in order
already, so a prefix of each is enough: the merge of the prefixes is the beginning of the whole merge up to the first
place that is the last of a prefix that was cut. What lies behind is merged only if the window reaches that far.
"""

import msgspec

from fairlead_admitter.observe.decision_gate import DecisionOrigin, PoolHeads
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Place
from fairlead_policy.order.merging import merge_places
from fairlead_policy.rules.pool_rules import PoolRules

_DEEPER = 4


class MergedHeads(msgspec.Struct, frozen=True):
    """The first places of a merged front, exact."""

    places: list[Place]
    origins: dict[str, DecisionOrigin]
    whole: bool
    """Whether these are all places of the front."""


class MergedOrder:
    """The merge of one pool's fronts at one instant.

    Args:
        front: the decisions, of one basis.
        rules: the rules of that basis.
        now: the instant at which all keys are compared.
        size: number of places of a queue that make its front: a first guess at the depth.
    """

    def __init__(self, front: PoolHeads, rules: PoolRules, now: Micros, size: int) -> None:
        self.front = front
        self._rules = rules
        self._now = now
        self._parts = front.parts()
        submitted = (place.submitted for _, places in self._parts for place in places)
        self._oldest = None if rules.cap is None else min(submitted, default=None)
        longest = max((len(places) for _, places in self._parts), default=1)
        # Past the aging cap places move against each other by time alone: a part's own order is of its own instant.
        self._depth = longest if self.moves_at(now) else 2 * size // max(1, len(self._parts)) + 8
        self.beginning = self._merge()

    def deepen(self) -> MergedHeads:
        """Merge further, and give the longer beginning."""
        self._depth *= _DEEPER
        self.beginning = self._merge()
        return self.beginning

    def moves_at(self, now: Micros) -> bool:
        """Whether time alone may have moved its places at that instant: one of them waits for longer than the cap."""
        cap = self._rules.cap
        return cap is not None and self._oldest is not None and self._oldest < now - cap

    def _merge(self) -> MergedHeads:
        merged = merge_places([places[: self._depth] for _, places in self._parts], self._rules, self._now)
        cut = {places[self._depth - 1].uid for _, places in self._parts if len(places) > self._depth}
        if cut:
            end = next(number for number, place in enumerate(merged) if place.uid in cut)
            merged = merged[: end + 1]
        origins = {place.uid: origin for origin, places in self._parts for place in places[: self._depth]}
        return MergedHeads(merged, origins, not cut)
