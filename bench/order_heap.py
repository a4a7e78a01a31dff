"""The same order by the plain way: a heap of the tenants' next jobs, one job at a time.

This is progressive filling as it is usually written, and what Fairlead is measured against. It counts in integers over a
common denominator, as floats put jobs with nearly equal keys in a wrong order: of a million, some hundred. Integers of a
few hundred bits cost it a few percent.
"""

import heapq
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from order_pools import NOW, MadePool


@dataclass(frozen=True)
class PlainPool:
    """A pool as plain lists, by job and by tenant."""

    tenant: list[int]
    job_class: list[int]
    submitted: list[int]
    demand: list[list[int]]
    units: list[list[int]]
    """Number that one base unit of each resource adds to a tag, for each tenant, over the common denominator."""
    rate: int
    """Rate of aging, over the common denominator."""
    horizon: int

    @classmethod
    def of(cls, pool: MadePool) -> "PlainPool":
        """The same pool; its rules have a cap, and no entitlement is 0."""
        columns, rules = pool.columns, pool.rules
        parts = [rules.entitlements[name] for name in pool.tenants]
        shares = {part: [unit / part for unit in rules.unit_shares] for part in set(parts)}
        common = lcm(rules.rate.denominator, *(one.denominator for row in shares.values() for one in row))
        scaled = {part: [_over(common, one) for one in row] for part, row in shares.items()}
        return cls(
            pool.tenant.tolist(),
            columns.rank.tolist(),
            columns.submitted.tolist(),
            columns.demand.T.tolist(),
            [scaled[part] for part in parts],
            _over(common, rules.rate),
            NOW - (rules.cap or NOW),
        )


def _over(common: int, fraction: Fraction) -> int:
    """The numerator over a multiple of its denominator."""
    return fraction.numerator * (common // fraction.denominator)


def order_by_heap(pool: PlainPool) -> list[int]:
    """The numbers of the jobs, first job first."""
    lines: list[list[int]] = [[] for _ in pool.units]
    for number, tenant in enumerate(pool.tenant):
        lines[tenant].append(number)
    for line in lines:
        line.sort(key=lambda number: (pool.job_class[number], pool.submitted[number], number), reverse=True)
    use = [[0] * len(units) for units in pool.units]
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


def _head(pool: PlainPool, number: int, use: list[int]) -> tuple[int, int, int, int]:
    shares = [held * unit for held, unit in zip(use, pool.units[pool.tenant[number]], strict=True)]
    submitted = pool.submitted[number]
    key = max(shares) + pool.rate * max(submitted, pool.horizon)
    return pool.job_class[number], key, submitted, number
