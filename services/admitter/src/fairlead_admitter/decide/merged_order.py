"""A pool's merged heads, as deep as they are needed.

Each shard publishes the first positions of each queue; together they are many times the window. The parts are in order
already, so a prefix of each is enough: the merge of the prefixes is the beginning of the whole merge up to the first
position that is the last of a prefix that was cut. What lies behind is merged only if the window reaches that far.
"""

import msgspec

from fairlead_admitter.observe.decision_gate import DecisionOrigin, PoolHeads
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position
from fairlead_policy.order.merging import merge_positions
from fairlead_policy.rules.pool_rules import PoolRules

_DEEPER = 4


class MergedHeads(msgspec.Struct, frozen=True):
    """The first of a pool's merged heads, exact."""

    positions: list[Position]
    origins: dict[str, DecisionOrigin]
    whole: bool
    """Whether these are all of them."""


class MergedOrder:
    """The merge of one pool's heads at one instant: one value, of which no more is worked out than was asked for.

    What is worked out is a cache, and it only grows: each beginning is a prefix of the whole merge. So a window that closes
    by its own rule is the same from any beginning that reaches so far, and who asks does not show in what others get.

    Args:
        heads: the decisions, of one basis.
        rules: the rules of that basis.
        now: the instant at which all keys are compared.
        size: number of positions of a queue that are its heads: a first guess at the depth.
    """

    def __init__(self, heads: PoolHeads, rules: PoolRules, now: Micros, size: int) -> None:
        self.heads = heads
        self._rules = rules
        self._now = now
        self._parts = heads.parts()
        submitted = (position.submitted for _, positions in self._parts for position in positions)
        self._oldest = None if rules.cap is None else min(submitted, default=None)
        longest = max((len(positions) for _, positions in self._parts), default=1)
        # Past the aging cap positions move against each other by time alone: a part's own order is of its own instant.
        self._depth = longest if self.moves_at(now) else 2 * size // max(1, len(self._parts)) + 8
        self.beginning = self._merge()

    def deepen(self) -> MergedHeads:
        """The beginning, worked out further than before."""
        self._depth *= _DEEPER
        self.beginning = self._merge()
        return self.beginning

    def moves_at(self, now: Micros) -> bool:
        """Whether time alone may have moved its positions at that instant: one of them waits for longer than the cap."""
        cap = self._rules.cap
        return cap is not None and self._oldest is not None and self._oldest < now - cap

    def _merge(self) -> MergedHeads:
        merged = merge_positions(
            [positions[: self._depth] for _, positions in self._parts], self._rules, self._now
        )
        cut = {positions[self._depth - 1].uid for _, positions in self._parts if len(positions) > self._depth}
        if cut:
            end = next(number for number, position in enumerate(merged) if position.uid in cut)
            merged = merged[: end + 1]
        origins = {
            position.uid: origin for origin, positions in self._parts for position in positions[: self._depth]
        }
        return MergedHeads(merged, origins, not cut)
