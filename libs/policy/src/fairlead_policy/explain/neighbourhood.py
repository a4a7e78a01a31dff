"""What stands around a place: the jobs directly before and behind it, what those before it ask for, who holds what.

Each shard tells its part; `join_around` puts parts together exactly. Tuples ascend along every top-level tenant's sequence,
so a part costs a binary search a tree; tenants that stand alone are looked at side by side.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest, nsmallest

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Place
from fairlead_contracts.messages.explanations import Around, Holder
from fairlead_policy.exact.ranking import Ints
from fairlead_policy.exact.terms import top_of
from fairlead_policy.explain.demand_ahead import asked_in_turn, leaves_out
from fairlead_policy.explain.side_by_side import SideBySide
from fairlead_policy.order.positions import (
    SortKey,
    merge_places,
    place_at,
    sort_key_of,
)
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.tenants.service_order import ServiceOrder
from fairlead_policy.tenants.tenant_queue import TenantQueue

MOST_HOLDERS = 3
"""Told of each resource."""


class Chain:
    """One top-level tenant's jobs in the sequence in which they are served, at one instant."""

    def __init__(self, part: TenantQueue | ServiceOrder, now: Micros) -> None:
        self._part = part
        self._now = now
        self.top = part.top

    def __len__(self) -> int:
        return len(self._part)

    def key_at(self, at: int) -> SortKey:
        """What the order goes by."""
        return sort_key_of(self._part, at, self._now)

    def place_at(self, at: int) -> Place:
        """The place of a job."""
        return place_at(self._part, at, self._now)

    def uid_at(self, at: int) -> str:
        """The uid of a job."""
        return self._part.uid_at(at)

    def before(self, bar: SortKey) -> int:
        """How many of its jobs stand before a place."""
        return bisect_left(range(len(self)), bar, key=self.key_at)

    def leads(self, leading: int, ahead: int) -> int:
        """How many of the first `ahead` jobs are of a higher class than this."""
        return int(np.searchsorted(self._part.rows.rank[:ahead], leading))

    def asked(self, ahead: int, rules: PoolRules) -> Counter[str]:
        """What the first `ahead` jobs ask for, of each resource that counts."""
        return _summed(self._part.first_columns(ahead).demand, rules)

    def asked_by_startable(self, ahead: int, rules: PoolRules) -> Counter[str]:
        """What the first `ahead` jobs ask for of every resource, without those larger than the pool: these never start."""
        if leaves_out(rules):
            return asked_in_turn(map(self._part.job_at, range(ahead)), rules)
        return _summed(self._part.first_columns(ahead).demand_of_startable(rules), rules)


def _summed(demand: Ints, rules: PoolRules) -> Counter[str]:
    # Sums of Python's integers: 64 bits may not hold them.
    sums = [sum(column.tolist()) for column in demand.T]
    return Counter(dict(zip(rules.resources, sums, strict=True)))


def around(side: SideBySide, chains: Sequence[Chain], place: Place, rules: PoolRules, count: int) -> Around:
    """What stands around a place, of these jobs; who holds what is not known here.

    Args:
        side: the jobs of tenants that stand alone, as they stand to the place.
        chains: of all others, of the same instant.
        place: may be of none of them.
        rules: of the pool.
        count: how many neighbours on each side.
    """
    bar, top = side.bar, top_of(place)
    own = next(
        (number for number, tenant_queue in enumerate(side.tenant_queues) if tenant_queue.tenant == top), None
    )
    found = [(chain, chain.before(bar)) for chain in chains]
    asked = side.asked(rules)
    for chain, ahead in found:
        asked.update(chain.asked_by_startable(ahead, rules))
    foremost, higher = _foremost(side, own, [part for part in found if part[0].top != top], bar)
    mine = sum(ahead for chain, ahead in found if chain.top == top)
    return Around(
        nearest=_nearest(side, found, count),
        behind=_behind(side, own, found, place, count),
        foremost=foremost,
        fixed=higher + mine + (0 if own is None else int(side.ahead[own])),
        asked=_of(asked, place),
    )


type _Job = tuple[SortKey, Chain, int]
"""A job with its chain and its position there."""


def _foremost(
    side: SideBySide, own: int | None, others: Sequence[tuple[Chain, int]], bar: SortKey
) -> tuple[Place | None, int]:
    """The first job of others that a place may pass, and how many stand before it by their class."""
    first = [(chain, chain.leads(bar[0], ahead), ahead) for chain, ahead in others]
    found = [*_of_tenant_queues(side, side.foremost(own))]
    found += [(chain.key_at(at), chain, at) for chain, at, ahead in first if at < ahead]
    higher = side.higher(own) + sum(at for _, at, _ in first)
    if not found:
        return None, higher
    _, chain, at = min(found, key=_key)
    return chain.place_at(at), higher


def _nearest(side: SideBySide, found: Sequence[tuple[Chain, int]], count: int) -> list[Place]:
    jobs = [
        *_of_tenant_queues(side, side.nearest(count)),
        *(
            (chain.key_at(at), chain, at)
            for chain, ahead in found
            for at in range(max(0, ahead - count), ahead)
        ),
    ]
    return [chain.place_at(at) for _, chain, at in nlargest(count, jobs, key=_key)]


def _behind(
    side: SideBySide, own: int | None, found: Sequence[tuple[Chain, int]], place: Place, count: int
) -> list[Place]:
    skipped = None
    if own is not None and side.ahead[own] < len(side.tenant_queues[own]):
        skipped = own if side.tenant_queues[own].uid_at(int(side.ahead[own])) == place.uid else None
    jobs = _of_tenant_queues(side, side.next_behind(skipped, count))
    for chain, ahead in found:
        itself = chain.top == top_of(place) and ahead < len(chain) and chain.uid_at(ahead) == place.uid
        ends = min(len(chain), ahead + itself + count)
        jobs += [(chain.key_at(at), chain, at) for at in range(ahead + itself, ends)]
    return [chain.place_at(at) for _, chain, at in nsmallest(count, jobs, key=_key)]


def _of_tenant_queues(side: SideBySide, rows: Iterable[tuple[int, int]]) -> list[_Job]:
    return [
        (side.key_of(tenant_queue, row), Chain(side.tenant_queues[tenant_queue], side.now), row)
        for tenant_queue, row in rows
    ]


def _key(job: _Job) -> SortKey:
    return job[0]


def holders_of(tenant_queues: Iterable[TenantQueue], place: Place) -> tuple[dict[str, int], list[Holder]]:
    """What runs of the resources that a job asks for, and who holds most of it."""
    used: Counter[str] = Counter()
    held: dict[str, list[tuple[int, str]]] = {name: [] for name in _asked_for(place)}
    for tenant_queue in tenant_queues:
        for resource, parts in held.items():
            if amount := tenant_queue.use.get(resource, 0):
                used[resource] += amount
                parts.append((amount, tenant_queue.tenant))
    return dict(used), _most(held)


def join_around(parts: Sequence[Around], rules: PoolRules, now: Micros, count: int) -> Around:
    """What stands around a place in the whole pool.

    Args:
        parts: of shards, each with what stands around the same place at the same instant.
        rules: of their basis.
        now: the instant.
        count: how many neighbours on each side.
    """
    before = merge_places([part.nearest for part in parts], rules, now)
    behind = merge_places([part.behind for part in parts], rules, now)
    foremost = merge_places([[part.foremost] for part in parts if part.foremost is not None], rules, now)
    held: dict[str, list[tuple[int, str]]] = {}
    for one in (one for part in parts for one in part.holders):
        held.setdefault(one.resource, []).append((one.amount, one.tenant))
    return Around(
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


def _most(held: Mapping[str, list[tuple[int, str]]]) -> list[Holder]:
    return [
        Holder(tenant=tenant, resource=resource, amount=amount)
        for resource, parts in sorted(held.items())
        for amount, tenant in sorted(parts, key=_largest_first)[:MOST_HOLDERS]
    ]


def _largest_first(part: tuple[int, str]) -> tuple[int, str]:
    return -part[0], part[1]


def _of(amounts: Mapping[str, int], place: Place) -> dict[str, int]:
    return {name: amounts[name] for name in _asked_for(place) if name in amounts}


def _asked_for(place: Place) -> list[str]:
    return sorted(name for name, amount in place.demand.items() if amount > 0)


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(sorted(total.items()))
