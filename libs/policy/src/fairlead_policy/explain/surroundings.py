"""Neighbours of a place, and what stands around it, asked of an order. The place may be another shard's."""

from collections.abc import Iterable

import msgspec

from fairlead_contracts.messages.decisions import Place
from fairlead_contracts.messages.explanations import Around
from fairlead_policy.exact.terms import top_of
from fairlead_policy.explain.neighbourhood import around, holders_of
from fairlead_policy.explain.side_by_side import SideBySide
from fairlead_policy.order.merging import sort_key
from fairlead_policy.order.order import Order


def count_before(order: Order, place: Place, tenants: Iterable[str] | None = None) -> dict[str, int]:
    """The number of jobs before the place, by tenant; of these tenants, or of all."""
    trees, rules, now = order.chosen_trees(tenants), order.rules, order.now
    side = SideBySide([tree.sequence(now) for tree, _ in trees], sort_key(place, rules, now), rules, now)
    counts: dict[str, int] = {}
    for (_, chosen), sequence, ahead in zip(trees, side.sequences, side.ahead.tolist(), strict=True):
        found = sequence.count_by_tenant(ahead)
        counts |= {name: count for name, count in found.items() if chosen is None or name in chosen}
    return counts


def count_others_before(order: Order, place: Place, tenants: Iterable[str] | None = None) -> int:
    """The number of jobs of other top-level tenants before the place."""
    counts, top = count_before(order, place, tenants), top_of(place)
    return sum(count for tenant, count in counts.items() if order.rules.top_of(tenant) != top)


def around_place(order: Order, place: Place, count: int, tenants: Iterable[str] | None = None) -> Around:
    """The surroundings of a place among the jobs of these tenants, or all.

    Args:
        order: of these jobs.
        place: of the job.
        count: how many neighbours on each side.
        tenants: with each of them, all below its top-level tenant.
    """
    names, now = None if tenants is None else list(tenants), order.now
    trees = {tree: tree.sequence(now) for tree, _ in order.chosen_trees(names)}
    side = SideBySide(list(trees.values()), sort_key(place, order.rules, now), order.rules, now)
    found = around(order, side, place, count)
    used, holders = holders_of(order.snapshot.tenant_queues(names), place)
    tops = {top_of(one) for one in (place, *found.nearest, *found.behind)}
    flips = [tree.next_flip(sequence) for tree, sequence in trees.items() if tree.top in tops]
    return msgspec.structs.replace(
        found,
        used=used,
        holders=holders,
        fading=bool(order.snapshot.past),
        moves_at=min((flip for flip in flips if flip is not None), default=None),
    )
