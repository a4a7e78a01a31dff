"""Orders that are known not to be fair in one way or another: whoever states a property sees it fail with one of these.

Each serves the tenant that stands lowest, as DRF does, and measures by something else. What they lack is in table 2 of
Ghodsi et al., "Dominant Resource Fairness", NSDI 2011: asset fairness has no sharing incentive; competitive equilibrium
from equal incomes (CEEI) pays who lies, and takes from some when another leaves. A single resource looked at alone gives
no sharing incentive either. First come first served is fair to nobody, and equal partitions leave idle what others need.
"""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

from fairlead_testkit.oracles.filling import Backlog, Ordering, TaskDemand, alone, order_of

type Steps = Callable[[Backlog], Mapping[str, float]]
"""Steps by tenant: how much higher it stands by each task of its own."""


def lowest_first(steps: Steps) -> Ordering:
    """Progressive filling by some measure."""

    def ordering(backlog: Backlog) -> list[str]:
        step, tasks = steps(backlog), backlog.tasks
        heights = sorted((step[tenant] * held, tenant) for tenant in step for held in range(tasks[tenant]))
        return [tenant for _, tenant in heights]

    ordering.__name__ = getattr(steps, "__name__", ordering.__name__)
    return ordering


@lowest_first
def asset_fairness(backlog: Backlog) -> dict[str, float]:
    """Orders by the sum of the shares of all resources."""
    return {
        tenant: sum(_shares(backlog, tenant)) / float(backlog.weights[tenant]) for tenant in backlog.demands
    }


@lowest_first
def cpu_only(backlog: Backlog) -> dict[str, float]:
    """Orders by the share of one resource, whatever else is scarce."""
    return {
        tenant: demand["cpu"] / backlog.capacity["cpu"] / float(backlog.weights[tenant])
        for tenant, demand in backlog.demands.items()
    }


@lowest_first
def paid_by_memory(backlog: Backlog) -> dict[str, float]:
    """Orders by the dominant share, with a weight that grows with the square of the memory that is asked for."""
    return {
        tenant: max(_shares(backlog, tenant)) / (float(backlog.weights[tenant]) * demand["memory"] ** 2)
        for tenant, demand in backlog.demands.items()
    }


def _shares(backlog: Backlog, tenant: str) -> Iterator[float]:
    return (amount / backlog.capacity[name] for name, amount in backlog.demands[tenant].items())


@lowest_first
def first_come(backlog: Backlog) -> dict[str, float]:
    """First come, first served: all of one tenant, then all of the next."""
    return dict.fromkeys(backlog.demands, 0.0)


@lowest_first
def equal_incomes(backlog: Backlog) -> dict[str, float]:
    """CEEI: in proportion to the tasks that tenants with the same money buy, a weight of it each."""
    return {tenant: 1 / tasks for tenant, tasks in market(*backlog[:3]).items()}


def market(
    capacity: TaskDemand, demands: Mapping[str, TaskDemand], weights: Mapping[str, Fraction]
) -> dict[str, float]:
    """The tasks that each tenant buys where all that has a price is sold.

    A price times what is sold of its resource is the next price. That is expectation maximisation on the dual of the
    Eisenberg-Gale program, which finds these prices (Vazirani, "Combinatorial Algorithms for Market Equilibria", in
    Algorithmic Game Theory, 2007, chapter 5).
    """
    money = {tenant: float(weights[tenant] / sum(weights.values())) for tenant in demands}
    shares = {
        tenant: {name: d / capacity[name] for name, d in demand.items()} for tenant, demand in demands.items()
    }
    prices = dict.fromkeys(capacity, 1 / len(capacity))
    tasks = dict.fromkeys(demands, 0.0)
    for _ in range(200):
        tasks = {
            tenant: money[tenant] / sum(prices[name] * part for name, part in share.items())
            for tenant, share in shares.items()
        }
        prices = {
            name: price * sum(tasks[tenant] * share[name] for tenant, share in shares.items())
            for name, price in prices.items()
        }
    return tasks


def partitions(backlog: Backlog) -> list[str]:
    """Fixed partitions: each tenant has its part of everything, and what it leaves is nobody's."""
    whole = sum(backlog.weights.values()) or 1
    return [
        tenant
        for tenant, demand in backlog.demands.items()
        for _ in range(int(alone(backlog.capacity, demand) * backlog.weights[tenant] / whole))
    ]


def without_the_weightless(backlog: Backlog) -> list[str]:
    """The product's order, but who has no weight is left out of it instead of last."""
    return [tenant for tenant in order_of(backlog) if backlog.weights[tenant]]


def first_come_in_one_line(backlog: Backlog) -> list[str]:
    """First come, first served in one line: the first task that has no room stops all behind it."""
    line = first_come(backlog)
    free = dict(backlog.capacity)
    for place, tenant in enumerate(line):
        for name, amount in backlog.demands[tenant].items():
            free[name] -= amount
        if min(free.values()) < 0:
            return line[:place]
    return line
