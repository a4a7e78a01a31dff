"""The surroundings of a position: who and how many stand before it, who behind it, what they ask for, and who holds what.

Asked of an order; the position may be another shard's. Each shard tells its part; `join_around` puts parts together exactly.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest, nsmallest

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.explanations import Surroundings, TenantHolding
from fairlead_policy.exact.terms import top_of
from fairlead_policy.explain.side_by_side import SideBySide
from fairlead_policy.order.merging import merge_positions, sort_key
from fairlead_policy.order.order import Order
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.tenants.tenant_queue import TenantQueue

MOST_HOLDERS = 3
"""Holders that are told of each resource at most."""


def count_before(order: Order, position: Position, tenants: Iterable[str] | None = None) -> dict[str, int]:
    """The number of jobs before the position, by tenant; of these tenants, or of all."""
    trees, rules, now = order.chosen_trees(tenants), order.rules, order.now
    side = SideBySide([tree.sequence(now) for tree, _ in trees], sort_key(position, rules, now), rules, now)
    counts: dict[str, int] = {}
    for (_, chosen), sequence, ahead in zip(trees, side.sequences, side.ahead.tolist(), strict=True):
        found = sequence.count_by_tenant(ahead)
        counts |= {name: count for name, count in found.items() if chosen is None or name in chosen}
    return counts


def count_others_before(order: Order, position: Position, tenants: Iterable[str] | None) -> int:
    """The number of jobs of other top-level tenants before the position."""
    counts, top = count_before(order, position, tenants), top_of(position)
    return sum(count for tenant, count in counts.items() if order.rules.top_of(tenant) != top)


def around_position(
    order: Order, position: Position, count: int, tenants: Iterable[str] | None = None
) -> Surroundings:
    """The surroundings of a position among the jobs of these tenants, or all.

    Args:
        count: number of neighbours on each side.
        tenants: the tenants, with each of them all below its top-level tenant.
    """
    names, now = None if tenants is None else list(tenants), order.now
    trees = {tree: tree.sequence(now) for tree, _ in order.chosen_trees(names)}
    side = SideBySide(list(trees.values()), sort_key(position, order.rules, now), order.rules, now)
    found = _around(order, side, position, count)
    used, holders = _holders_of(order.snapshot.tenant_queues(names), position)
    tops = {top_of(one) for one in (position, *found.nearest, *found.behind)}
    flips = [tree.next_flip(sequence) for tree, sequence in trees.items() if tree.top in tops]
    return msgspec.structs.replace(
        found,
        used=used,
        holders=holders,
        fading=bool(order.snapshot.past),
        moves_at=min((flip for flip in flips if flip is not None), default=None),
    )


def _around(order: Order, side: SideBySide, position: Position, count: int) -> Surroundings:
    """The surroundings of a position among these jobs; who holds what is not known here.

    Args:
        side: the jobs, as they stand to the position.
        position: may be of none of them.
        count: number of neighbours on each side.
    """
    top = top_of(position)
    own = next((number for number, one in enumerate(side.sequences) if one.top == top), None)
    skipped = None
    if own is not None and side.ahead[own] < len(side.sequences[own]):
        skipped = own if side.sequences[own].uid_at(int(side.ahead[own])) == position.uid else None
    foremost = min(side.foremost(own), key=lambda job: side.key_of(*job), default=None)
    asked = side.asked(order.rules)
    before = nlargest(count, side.last_before(count), key=lambda job: side.key_of(*job))
    behind = nsmallest(count, side.next_behind(skipped, count), key=lambda job: side.key_of(*job))
    return Surroundings(
        nearest=_positions(order, side, before),
        behind=_positions(order, side, behind),
        foremost=None if foremost is None else _positions(order, side, [foremost])[0],
        fixed=side.higher(own) + (0 if own is None else int(side.ahead[own])),
        asked={name: asked[name] for name in _asked_for(position) if name in asked},
    )


def _positions(order: Order, side: SideBySide, jobs: Sequence[tuple[int, int]]) -> list[Position]:
    return [order.position_at(side.sequences[sequence], at) for sequence, at in jobs]


def _holders_of(
    tenant_queues: Iterable[TenantQueue], position: Position
) -> tuple[dict[str, int], list[TenantHolding]]:
    """The tenants that hold most of the resources that a job asks for."""
    used: Counter[str] = Counter()
    held: dict[str, list[tuple[int, str]]] = {name: [] for name in _asked_for(position)}
    for tenant_queue in tenant_queues:
        for resource, parts in held.items():
            if amount := tenant_queue.use.get(resource, 0):
                used[resource] += amount
                parts.append((amount, tenant_queue.tenant))
    return dict(used), _most(held)


def join_around(parts: Sequence[Surroundings], rules: PoolRules, now: Micros, count: int) -> Surroundings:
    """The surroundings of a position in the whole pool, from its parts.

    Args:
        parts: the shards' parts, each with what stands around the same position at the same instant.
        count: number of neighbours on each side.
    """
    before = merge_positions([part.nearest for part in parts], rules, now)
    behind = merge_positions([part.behind for part in parts], rules, now)
    foremost = merge_positions([[part.foremost] for part in parts if part.foremost is not None], rules, now)
    held: dict[str, list[tuple[int, str]]] = {}
    for one in (one for part in parts for one in part.holders):
        held.setdefault(one.resource, []).append((one.amount, one.tenant))
    return Surroundings(
        nearest=before[::-1][:count],
        behind=behind[:count],
        foremost=foremost[0] if foremost else None,
        fixed=sum(part.fixed for part in parts),
        asked=_sum(part.asked for part in parts),
        used=_sum(part.used for part in parts),
        fading=any(part.fading for part in parts),
        moves_at=min((part.moves_at for part in parts if part.moves_at is not None), default=None),
        holders=_most(held),
    )


def _most(held: Mapping[str, list[tuple[int, str]]]) -> list[TenantHolding]:
    return [
        TenantHolding(tenant=tenant, resource=resource, amount=amount)
        for resource, parts in sorted(held.items())
        for amount, tenant in sorted(parts, key=lambda part: (-part[0], part[1]))[:MOST_HOLDERS]
    ]


def _asked_for(position: Position) -> list[str]:
    return sorted(name for name, amount in position.demand.items() if amount > 0)


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(sorted(total.items()))
