"""Properties that make DRF what it is, on random pools; for tasks that cannot be cut.

The paper's theorems are about divisible tasks. With whole tasks each holds up to a number of tasks that does not depend
on the size of the pool, and that the tests here state exactly, as it follows from progressive filling: while both wait,
no two tenants' shares are further apart than one task; and what is left when the first of them finds no room is less
than one task of it. Most pools are cut fine: they hold so many tasks that these few are small against what a wrong
rule does. Each property is seen to fail with rules that are known not to have it, and to hold with others that are known
to have it, by table 2 of the paper.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import islice
from math import floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.oracles.filling import (
    Backlog,
    Ordering,
    ProgressiveFilling,
    TaskDemand,
    dominant,
    fill,
    order_of,
)
from fairlead_testkit.oracles.unfair import (
    asset_fairness,
    cpu_only,
    equal_incomes,
    first_come,
    first_come_in_one_line,
    paid_by_memory,
    partitions,
    without_the_weightless,
)

rngs = st.integers(0, 2**32).map(random.Random)
RESOURCES = ("cpu", "gpu", "memory")
SIZES = (1, 30, 30, 30)
"""A pool holds about ten tasks, or some hundreds: tasks that are cut fine."""

type Demands = dict[str, dict[str, int]]
type TenantWeights = dict[str, Fraction]
type DrfProperty = Callable[[random.Random, Ordering], None]


def a_pool(rng: random.Random, most: int = 4, size: int = 1) -> tuple[dict[str, int], Demands, TenantWeights]:
    """Every tenant asks for something of every resource: what one of them cannot have, soon nobody can."""
    capacity = {name: rng.randint(15, 60) * size for name in RESOURCES}
    names = [f"t{number}" for number in range(rng.randint(2, most))]
    demands = {name: {resource: rng.randint(1, 6) for resource in capacity} for name in names}
    return capacity, demands, {name: Fraction(rng.choice(["1", "1", "2", "3", "1/2"])) for name in names}


def steps(
    capacity: TaskDemand, demands: Mapping[str, TaskDemand], weights: TenantWeights
) -> dict[str, Fraction]:
    """The part that one task adds to its tenant's share, by tenant."""
    return {name: dominant(capacity, demand) / weights[name] for name, demand in demands.items()}


def used(demands: Mapping[str, TaskDemand], count: Mapping[str, int]) -> Counter[str]:
    total = Counter[str]()
    for tenant, demand in demands.items():
        total.update({name: amount * count[tenant] for name, amount in demand.items()})
    return total


def useful(bundle: Mapping[str, int | Fraction], demand: TaskDemand) -> int:
    """Whole tasks that somebody could run with what somebody has."""
    return floor(min(bundle[name] / Fraction(amount) for name, amount in demand.items()))


def leftover(demands: Mapping[str, TaskDemand], tenant: str) -> Fraction:
    """A bound above the tenant's tasks that fit into what is left when the first of the others finds no room."""
    return max(
        Fraction(amount, demands[tenant][name])
        for other, demand in demands.items()
        if other != tenant
        for name, amount in demand.items()
    )


def uneven(step: Mapping[str, Fraction], tenant: str) -> Fraction:
    """One task of anybody, in tasks of the tenant."""
    return max(Fraction(1), *(one / step[tenant] for other, one in step.items() if other != tenant))


# --- one at a time


def sharing_incentive(rng: random.Random, ordering: Ordering) -> None:
    """Each dominant share is at least `w / sum of w * (1 - the dominant shares of one task of each tenant)`."""
    capacity, demands, weights = a_pool(rng, size=rng.choice(SIZES))
    count, part = fill(capacity, demands, weights, ordering).counts(), 1 / sum(weights.values())
    one_of_each = sum(dominant(capacity, demand) for demand in demands.values())
    for tenant, demand in demands.items():
        assert count[tenant] * dominant(capacity, demand) > weights[tenant] * part * (1 - one_of_each)


def pareto_efficiency(rng: random.Random, ordering: Ordering) -> None:
    """Exact: nobody's task fits any more, and no more was given away than there is.

    Here most ask for some resources only, and some have no weight: who is last of all is not left out.
    """
    capacity, demands, weights = a_pool(rng)
    for demand in demands.values():
        for name in rng.sample(RESOURCES, rng.choice([0, 1, 2])):
            del demand[name]
    weights |= {name: Fraction(0) for name in demands if rng.random() < 0.2}
    taken = used(demands, fill(capacity, demands, weights, ordering).counts())
    assert all(taken[name] <= amount for name, amount in capacity.items())
    for demand in demands.values():
        assert any(capacity[name] - taken[name] < amount for name, amount in demand.items())


def no_envy_over_scaled_bundles(rng: random.Random, ordering: Ordering) -> None:
    """A waiting tenant envies nobody: another's bundle, scaled by their weights, holds at most as many of its tasks as it
    runs, and one task of that other. What others start later fits less than one task of it."""
    size = rng.choice(SIZES)
    capacity, demands, weights = a_pool(rng, most=3, size=size)
    filling = fill(capacity, demands, weights, ordering)
    step = steps(capacity, demands, weights)
    for tenant, stopped in filling.stopped.items():
        moments = (
            range(stopped + 1) if size == 1 else [*rng.sample(range(stopped + 1), min(stopped, 3)), stopped]
        )
        for moment in moments:
            check_no_envy(filling.counts(moment), demands, weights, step, tenant)
        for other, count in (filling.counts() - filling.counts(stopped)).items():
            assert useful({name: n * count for name, n in demands[other].items()}, demands[tenant]) < 1


def check_no_envy(
    count: Mapping[str, int],
    demands: Demands,
    weights: TenantWeights,
    step: Mapping[str, Fraction],
    tenant: str,
) -> None:
    for other, demand in demands.items():
        scale = count[other] * weights[tenant] / weights[other]
        bundle = {name: amount * scale for name, amount in demand.items()}
        assert useful(bundle, demands[tenant]) <= count[tenant] + step[other] / step[tenant]


def shares_at_most_a_task_apart(rng: random.Random, ordering: Ordering) -> None:
    """Exact, among all that still wait: no larger than the step of the one with more."""
    capacity, demands, weights = a_pool(rng)
    step = steps(capacity, demands, weights)
    shares = dict.fromkeys(demands, Fraction(0))
    for tenant in ordering(Backlog(capacity, demands, weights, dict.fromkeys(demands, 30)))[:30]:
        assert shares[tenant] == min(shares.values())
        shares[tenant] += step[tenant]
        for one, other in ((a, b) for a in shares for b in shares):
            assert shares[one] - shares[other] <= step[one]


def strategy_proofness(rng: random.Random, ordering: Ordering) -> None:
    """A tenant that asks for something else than it needs gains at most one task of anybody, one task of the lie, and
    what is left when the first finds no room; all in its own true tasks."""
    capacity, demands, weights = a_pool(rng, most=rng.choice((2, 2, 3)), size=rng.choice(SIZES))
    liar = rng.choice(sorted(demands))
    true = demands[liar]
    said = {name: max(1, amount + rng.randint(-3, 4)) for name, amount in true.items()}
    honest = fill(capacity, demands, weights, ordering).counts()[liar]
    lying = fill(capacity, {**demands, liar: said}, weights, ordering).counts()[liar]
    got = useful({name: amount * lying for name, amount in said.items()}, true)
    one_of_the_lie = min(Fraction(said[name], amount) for name, amount in true.items())
    slack = uneven(steps(capacity, demands, weights), liar) + one_of_the_lie + leftover(demands, liar)
    assert got <= honest + slack


def population_monotonicity(rng: random.Random, ordering: Ordering) -> None:
    """A tenant's leaving costs nobody more than a task, one task of anybody, and what was left at first."""
    capacity, demands, weights = a_pool(rng, size=rng.choice(SIZES))
    gone = rng.choice(sorted(demands))
    before = fill(capacity, demands, weights, ordering).counts()
    stay = {tenant: demand for tenant, demand in demands.items() if tenant != gone}
    after = fill(capacity, stay, weights, ordering).counts()
    step = steps(capacity, demands, weights)
    for tenant in stay:
        assert after[tenant] >= before[tenant] - 1 - uneven(step, tenant) - leftover(demands, tenant)


PROPERTIES: list[DrfProperty] = [
    sharing_incentive,
    pareto_efficiency,
    no_envy_over_scaled_bundles,
    shares_at_most_a_task_apart,
    strategy_proofness,
    population_monotonicity,
]


@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda check: check.__name__)
def test_our_order_has_the_property(holds: DrfProperty) -> None:
    @given(rngs)
    @settings(max_examples=cases())
    def in_any_pool(rng: random.Random) -> None:
        holds(rng, order_of)

    in_any_pool()


LACKING: list[tuple[DrfProperty, Ordering]] = [
    (sharing_incentive, asset_fairness),
    (sharing_incentive, cpu_only),
    (sharing_incentive, first_come),
    (pareto_efficiency, partitions),
    (pareto_efficiency, first_come_in_one_line),
    (pareto_efficiency, without_the_weightless),
    (no_envy_over_scaled_bundles, paid_by_memory),
    (no_envy_over_scaled_bundles, first_come),
    (shares_at_most_a_task_apart, asset_fairness),
    (shares_at_most_a_task_apart, cpu_only),
    (shares_at_most_a_task_apart, equal_incomes),
    (strategy_proofness, equal_incomes),
    (strategy_proofness, paid_by_memory),
    (population_monotonicity, equal_incomes),
]
HAVING: list[tuple[DrfProperty, Ordering]] = [
    (sharing_incentive, equal_incomes),
    (no_envy_over_scaled_bundles, asset_fairness),
    (no_envy_over_scaled_bundles, equal_incomes),
    (strategy_proofness, asset_fairness),
    (population_monotonicity, asset_fairness),
]


def failures(check: DrfProperty, ordering: Ordering, tried: int = 400) -> Iterator[int]:
    """The pools, of so many, in which a rule is seen to lack a property."""
    for seed in range(tried):
        try:
            check(random.Random(seed), ordering)
        except AssertionError:
            yield seed


def named(one: object) -> str:
    return getattr(one, "__name__", "")


@pytest.mark.parametrize(("check", "ordering"), LACKING, ids=named)
def test_a_rule_that_lacks_a_property_is_caught(check: DrfProperty, ordering: Ordering) -> None:
    assert len(list(islice(failures(check, ordering), 3))) == 3


@pytest.mark.parametrize(("check", "ordering"), HAVING, ids=named)
def test_a_rule_that_has_a_property_is_not(check: DrfProperty, ordering: Ordering) -> None:
    assert list(failures(check, ordering, cases(2))) == []


# --- what changes nothing


def plain_order(capacity: TaskDemand, demands: Mapping[str, TaskDemand], weights: TenantWeights) -> list[str]:
    return order_of(Backlog(capacity, demands, weights, dict.fromkeys(demands, 20)))


@given(rngs)
@settings(max_examples=cases())
def test_the_units_of_resources_and_the_size_of_weights(rng: random.Random) -> None:
    """(2, 2) is (1, 1): only what weights are to one another counts. Cores or millicores, bytes or gibibytes too."""
    capacity, demands, weights = a_pool(rng)
    plain = plain_order(capacity, demands, weights)
    times = Fraction(rng.randint(1, 50), rng.randint(1, 50))
    assert plain_order(capacity, demands, {name: one * times for name, one in weights.items()}) == plain
    units = {name: rng.choice([1, 7, 1000, 2**30]) for name in capacity}
    scaled = {tenant: {n: amount * units[n] for n, amount in d.items()} for tenant, d in demands.items()}
    assert plain_order({n: amount * units[n] for n, amount in capacity.items()}, scaled, weights) == plain


@given(rngs)
@settings(max_examples=cases())
def test_a_tenant_that_asks_for_nothing(rng: random.Random) -> None:
    """A tenant that asks for nothing takes no room, and leaves the order of the others as it is."""
    capacity, demands, weights = a_pool(rng)
    idle: Mapping[str, TaskDemand] = {**demands, "idle": rng.choice([{}, {"cpu": 0}])}
    found = plain_order(capacity, idle, {**weights, "idle": Fraction(rng.choice([0, 1, 5]))})
    assert found.count("idle") == 20
    assert [tenant for tenant in found if tenant != "idle"] == plain_order(capacity, demands, weights)


def test_a_moment_in_the_middle_counts_what_had_started() -> None:
    filling = ProgressiveFilling(("a", "b", "a"), {"b": 2, "a": 3})
    assert (filling.counts(2), filling.counts()) == ({"a": 1, "b": 1}, {"a": 2, "b": 1})
