"""The gate between what scorers publish and what is written to a cluster: it tells which decisions count.

A decision is followed only while its shard's owner lives, owns the shard by its own lease, and has current state;
and a pool's order exists only while all its shards were decided from one basis. Everything else is worse than none:
the pool is then *unsettled*, and nothing is written for it.

Compare-and-swap on the server already keeps an old owner from publishing (see `OwnedSubject` of the bus). This is the
second line: it holds for a purged or restored stream and for a publisher that bypasses the swap.
"""

import enum
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from fairlead_contracts.messages.decisions import Basis, Decision, Position, QueueHeads
from fairlead_contracts.messages.members import MemberLease


class DecisionVerdict(enum.StrEnum):
    """The verdict on one decision."""

    TAKEN = "taken"
    CLAIM = "claim"
    """The shard changes hands; what was decided before stands, but isn't followed."""
    REPEATED = "repeated"
    """Seen before: a mirror that reconnects replays what it has."""
    LOWER_EPOCH = "lower-epoch"
    LOWER_TURN = "lower-turn"

    @property
    def dropped(self) -> bool:
        """Whether the decision came from the past."""
        return self in (DecisionVerdict.LOWER_EPOCH, DecisionVerdict.LOWER_TURN)


class Doubt(enum.StrEnum):
    """The doubt for which a pool is unsettled."""

    MISSING = "missing"
    """A shard has no decision."""
    CHANGING_HANDS = "changing-hands"
    """A shard was claimed and its new owner has not decided yet."""
    OWNER_GONE = "owner-gone"
    """The owner of a shard has no lease any more."""
    NOT_HELD = "not-held"
    """The owner lives, but its lease doesn't name the shard."""
    NOT_CURRENT = "not-current"
    """The owner says that its state is incomplete."""
    OTHER_POLICY = "other-policy"
    """A shard was decided from another revision of the policy than the one known here."""
    MIXED_BASIS = "mixed-basis"
    """The decisions of two shards were made from different capacities, or by the rules of two releases: their keys
    don't compare."""
    NO_POLICY = "no-policy"
    """The policy here is missing or invalid: there is none to merge by."""
    NO_BAND = "no-band"
    """The pool's queues take levels in bands that have nothing in common."""


class UnsettledPool(msgspec.Struct, frozen=True, kw_only=True):
    """A pool without an order that may be followed, and why."""

    doubt: Doubt
    shard: int | None = None
    owner: str = ""


class DecisionOrigin(NamedTuple):
    """The decision that a job's position comes from, and the heads that it is among."""

    decision: Decision
    heads: QueueHeads


class PoolHeads(msgspec.Struct, frozen=True, kw_only=True):
    """A pool's decisions that may be merged: one per shard, in the order of the shards, of one basis."""

    basis: Basis
    decisions: tuple[Decision, ...]

    def same_as(self, other: "PoolHeads") -> bool:
        """Whether it is made of the very same decisions. Comparing their thousands of positions would cost a merge."""
        return len(self.decisions) == len(other.decisions) and all(
            mine is its for mine, its in zip(self.decisions, other.decisions, strict=True)
        )

    def parts(self) -> list[tuple[DecisionOrigin, list[Position]]]:
        """The positions of every queue's heads of every shard, and where they come from: the parts of one merge."""
        return [
            (DecisionOrigin(decision, heads), heads.positions)
            for decision in self.decisions
            for heads in decision.queue_heads
            if heads.positions
        ]

    def waiting(self, cluster: str) -> dict[str, int]:
        """Number of jobs that wait in each queue of the cluster, among its heads or behind them; without flavorless ones."""
        waiting: dict[str, int] = {}
        for decision in self.decisions:
            for heads in decision.queue_heads:
                if heads.cluster == cluster and not heads.flavorless:
                    waiting[heads.queue] = waiting.get(heads.queue, 0) + heads.waiting
        return waiting


class Holders:
    """The scorers that may decide: the leases of live ones, by pool and shard."""

    def __init__(self, leases: Iterable[MemberLease]) -> None:
        self._held: dict[str, dict[tuple[str, int], bool]] = {}
        for lease in leases:
            self._held[lease.replica] = {
                (holding.pool, shard): holding.current
                for holding in lease.holdings
                for shard in holding.shards
            }

    def doubt(self, owner: str, pool: str, shard: int) -> Doubt | None:
        """The doubt about the owner's word on the shard; None if there is none."""
        held = self._held.get(owner)
        if held is None:
            return Doubt.OWNER_GONE
        current = held.get((pool, shard))
        if current is None:
            return Doubt.NOT_HELD
        return None if current else Doubt.NOT_CURRENT


class _Shard:
    """A shard as it is known. An epoch that was once seen is never forgotten."""

    __slots__ = ("claimed", "decision", "epoch", "turn")

    def __init__(self) -> None:
        self.epoch = 0
        self.turn = -1
        self.decision: Decision | None = None
        self.claimed = False

    def accept(self, decision: Decision) -> DecisionVerdict:
        if decision.basis is None:
            return self._claim(decision)
        if decision.epoch == decision.turn == 0 and self.epoch:
            # A claim with its content, for readers that know nothing yet. Its owner's first decision follows at once.
            return DecisionVerdict.CLAIM
        if decision.epoch < self.epoch or (self.claimed and decision.epoch <= self.epoch):
            return DecisionVerdict.LOWER_EPOCH
        if decision.epoch == self.epoch and decision.turn <= self.turn:
            return DecisionVerdict.REPEATED if decision.turn == self.turn else DecisionVerdict.LOWER_TURN
        self.epoch, self.turn = decision.epoch, decision.turn
        self.decision, self.claimed = decision, False
        return DecisionVerdict.TAKEN

    def _claim(self, claim: Decision) -> DecisionVerdict:
        """Takes a claim in. Its epoch, the claim's sequence, is not in it: the next decision tells it."""
        if 0 < claim.epoch < self.epoch:
            return DecisionVerdict.LOWER_EPOCH
        if self.claimed:
            return DecisionVerdict.REPEATED
        self.claimed = True
        return DecisionVerdict.CLAIM


class _SettledPool(NamedTuple):
    """The last answer on a pool, and what it was found from."""

    asked: tuple[int, int]
    """The number of shards, and the revision of the policy."""
    holders: Holders
    found: PoolHeads | UnsettledPool


class DecisionGate:
    """Keeps the decisions of all pools, and says which may be followed."""

    def __init__(self) -> None:
        self._pools: dict[str, dict[int, _Shard]] = {}
        self._settled_pools: dict[str, _SettledPool] = {}
        """Settled pools by name: two callers ask in each turn, and mostly no shard of the pool has changed."""

    def accept(self, decision: Decision) -> DecisionVerdict:
        """Takes a decision in, unless it is of the past."""
        self._settled_pools.pop(decision.pool, None)
        shards = self._pools.setdefault(decision.pool, {})
        return shards.setdefault(decision.shard, _Shard()).accept(decision)

    def withdraw(self, pool: str, shard: int) -> None:
        """Forgets the shard's decision, which was deleted from the stream. Its epoch still stands."""
        self._settled_pools.pop(pool, None)
        known = self._pools.get(pool, {}).get(shard)
        if known is not None:
            known.decision = None

    def settle(self, pool: str, *, shards: int, policy: int, holders: Holders) -> PoolHeads | UnsettledPool:
        """The decisions of the pool if all of them may be followed together.

        Args:
            policy: the revision of the policy document known here.
            holders: the scorers that live now; never changed.
        """
        before = self._settled_pools.get(pool)
        if before is None or before.holders is not holders or before.asked != (shards, policy):
            found = self._settle(pool, shards, policy, holders)
            before = self._settled_pools[pool] = _SettledPool((shards, policy), holders, found)
        return before.found

    def _settle(self, pool: str, shards: int, policy: int, holders: Holders) -> PoolHeads | UnsettledPool:
        known = self._pools.get(pool, {})
        decisions: list[Decision] = []
        for shard in range(shards):
            found = _settled(pool, shard, known.get(shard), policy, holders)
            if isinstance(found, UnsettledPool):
                return found
            decisions.append(found)
        basis = decisions[0].basis
        assert basis is not None  # noqa: S101 # only decisions with a basis are kept
        for decision in decisions:
            if decision.basis != basis:
                return UnsettledPool(doubt=Doubt.MIXED_BASIS, shard=decision.shard, owner=decision.owner)
        return PoolHeads(basis=basis, decisions=tuple(decisions))


def _settled(
    pool: str, shard: int, known: _Shard | None, policy: int, holders: Holders
) -> Decision | UnsettledPool:
    if known is None or known.decision is None:
        doubt = Doubt.CHANGING_HANDS if known is not None and known.claimed else Doubt.MISSING
        return UnsettledPool(doubt=doubt, shard=shard)
    decision = known.decision
    if known.claimed:
        return UnsettledPool(doubt=Doubt.CHANGING_HANDS, shard=shard, owner=decision.owner)
    doubtful = holders.doubt(decision.owner, pool, shard)
    if doubtful is None and (decision.basis is None or decision.basis.policy != policy):
        doubtful = Doubt.OTHER_POLICY
    if doubtful is not None:
        return UnsettledPool(doubt=doubtful, shard=shard, owner=decision.owner)
    return decision
