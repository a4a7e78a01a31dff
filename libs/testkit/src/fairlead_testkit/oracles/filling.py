"""Backlogged tenants with one kind of task each, as in the papers on DRF: who gets how many tasks of a pool.

The order is the product's own; room is counted here. A tenant stops at its first task that has no room, the others go on.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit.oracles.waiting import a_waiting_job

type TaskDemand = Mapping[str, int]


class Backlog(NamedTuple):
    """Tenants with tasks that wait for a pool."""

    capacity: TaskDemand
    demands: Mapping[str, TaskDemand]
    """Demand of one task of each tenant."""
    weights: Mapping[str, Fraction]
    tasks: Mapping[str, int]
    """Number of tasks that each tenant has waiting."""


type Ordering = Callable[[Backlog], list[str]]
"""Order in which the tenants' tasks would start, as `order_of` says it."""


@dataclass(frozen=True)
class ProgressiveFilling:
    """The tasks that started, in order."""

    tenants: tuple[str, ...]
    """Tenants of the tasks, one after the other."""
    stopped: Mapping[str, int]
    """Number of tasks that had started, of all tenants, when one of the tenant's had no room or none of it was left;
    by tenant."""

    def counts(self, moment: int | None = None) -> Counter[str]:
        """Number of tasks of each tenant among the first, or among all."""
        return Counter(dict.fromkeys(self.stopped, 0)) + Counter(self.tenants[:moment])


def order_of(backlog: Backlog) -> list[str]:
    """The tenants in the order in which their tasks would start, were there room for all."""
    rules = PoolRules(capacity=backlog.capacity, classes=("normal",), entitlements=backlog.weights)
    order = PoolFacts(rules)
    order.wait_all(
        a_waiting_job(f"{tenant}-{number:05d}", tenant=tenant, demand=demand)
        for tenant, demand in backlog.demands.items()
        for number in range(backlog.tasks[tenant])
    )
    return [uid.rpartition("-")[0] for uid in order.at(0).uids()]


def fill(
    capacity: TaskDemand,
    demands: Mapping[str, TaskDemand],
    weights: Mapping[str, Fraction] | None = None,
    ordering: Ordering = order_of,
) -> ProgressiveFilling:
    """Fills a pool for which everybody has more tasks waiting than the whole of it would hold.

    Args:
        demands: demand of one task of each tenant; each asks for something.
        weights: each tenant's weight; equal ones by default.
        ordering: the order; the product's by default, a wrong one to see a test fail.
    """
    tasks = {tenant: alone(capacity, demand) + 1 for tenant, demand in demands.items()}
    free, started, stopped = dict(capacity), list[str](), dict[str, int]()
    for tenant in ordering(Backlog(capacity, demands, weights or dict.fromkeys(demands, Fraction(1)), tasks)):
        if tenant in stopped:
            continue
        demand = demands[tenant]
        if any(free[name] < amount for name, amount in demand.items()):
            stopped[tenant] = len(started)
            continue
        started.append(tenant)
        for name, amount in demand.items():
            free[name] -= amount
    return ProgressiveFilling(tuple(started), dict.fromkeys(demands, len(started)) | stopped)


def alone(capacity: TaskDemand, demand: TaskDemand) -> int:
    """Number of tasks that an amount of everything would hold."""
    return min(capacity[name] // amount for name, amount in demand.items() if amount)


def dominant(capacity: TaskDemand, demand: TaskDemand) -> Fraction:
    """The dominant share of one task."""
    return max(Fraction(amount, capacity[name]) for name, amount in demand.items())
