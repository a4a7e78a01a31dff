"""The same order by the plain way: a heap of the tenants' next jobs, one job at a time, in floats.

This is progressive filling as it is usually written, and what Fairlead is measured against. Floats decide its ties, so on
a large pool it may differ in places that lie next to each other.
"""

import heapq
from dataclasses import dataclass

from fairlead_cli.benching.pools import NOW, MadePool


@dataclass(frozen=True)
class PlainPool:
    """A pool as plain lists, by job and by tenant."""

    tenant: list[int]
    urgency: list[int]
    submitted: list[int]
    demand: list[list[int]]
    weights: list[float]
    units: list[float]
    rate: float
    horizon: int

    @classmethod
    def of(cls, pool: MadePool) -> "PlainPool":
        """The same pool; its rules have a cap."""
        columns, rules = pool.columns, pool.rules
        return cls(
            columns.tenant.tolist(),
            columns.urgency.tolist(),
            columns.submitted.tolist(),
            columns.demand.T.tolist(),
            [float(weight) for weight in pool.holdings.weights],
            [float(unit) for unit in rules.unit_shares],
            float(rules.rate),
            NOW - (rules.cap or NOW),
        )


def order_by_heap(pool: PlainPool) -> list[int]:
    """The numbers of the jobs, first job first."""
    lines: list[list[int]] = [[] for _ in pool.weights]
    for number, tenant in enumerate(pool.tenant):
        lines[tenant].append(number)
    for line in lines:
        line.sort(key=lambda number: (pool.urgency[number], pool.submitted[number], number), reverse=True)
    use = [[0] * len(pool.units) for _ in lines]
    heap = [_head(pool, line[-1], use[tenant]) for tenant, line in enumerate(lines) if line]
    heapq.heapify(heap)
    order = []
    while heap:
        *_, number = heap[0]
        order.append(number)
        tenant = pool.tenant[number]
        lines[tenant].pop()
        use[tenant] = [held + asked for held, asked in zip(use[tenant], pool.demand[number], strict=True)]
        if lines[tenant]:
            heapq.heapreplace(heap, _head(pool, lines[tenant][-1], use[tenant]))
        else:
            heapq.heappop(heap)
    return order


def _head(pool: PlainPool, number: int, use: list[int]) -> tuple[int, float, int, int]:
    shares = [held * unit for held, unit in zip(use, pool.units, strict=True)]
    submitted = pool.submitted[number]
    key = max(shares) / pool.weights[pool.tenant[number]] + pool.rate * max(submitted, pool.horizon)
    return pool.urgency[number], key, submitted, number
