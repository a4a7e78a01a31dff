"""The papers' own numbers, and the properties that make DRF what it is."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_policy import PoolOrder, PoolRules, WaitingJob

type Demand = Mapping[str, int]

FINE = 200
"""Tasks are cut this fine where a paper divides them: a difference of one task is then small."""


def rules(capacity: Demand, weights: Mapping[str, Fraction]) -> PoolRules:
    return PoolRules(capacity=capacity, classes=("normal",), weights=weights)


def order_of(
    capacity: Demand, demands: Mapping[str, Demand], weights: Mapping[str, Fraction], tasks: int
) -> list[str]:
    """The tenants in the order in which their tasks would start, were there room for all."""
    order = PoolOrder(rules(capacity, weights))
    order.wait_all(
        WaitingJob(
            uid=f"{tenant}-{number:05d}",
            scope=tenant,
            id="",
            tenant=tenant,
            urgency="normal",
            submitted=0,
            demand=dict(demand),
            queue=("c", "q"),
        )
        for tenant, demand in demands.items()
        for number in range(tasks)
    )
    return [uid.rpartition("-")[0] for uid in order.uids(0)]


def fill(
    capacity: Demand,
    demands: Mapping[str, Demand],
    weights: Mapping[str, Fraction] | None = None,
    tasks: int = 40,
) -> Counter[str]:
    """How many tasks of each tenant start before the first of it that has no room."""
    equal = dict.fromkeys(demands, Fraction(1))
    free, done, count = dict(capacity), set[str](), Counter(dict.fromkeys(demands, 0))
    for tenant in order_of(capacity, demands, weights or equal, tasks):
        demand = demands[tenant]
        if tenant in done or any(free[name] < amount for name, amount in demand.items()):
            done.add(tenant)
            continue
        count[tenant] += 1
        for name, amount in demand.items():
            free[name] -= amount
    return count


A, B = {"cpu": 1, "memory": 4}, {"cpu": 3, "memory": 1}
CAPACITY = {"cpu": 9, "memory": 18}


def test_section_4_1_of_the_paper() -> None:
    """9 CPUs and 18 GB, A asks <1, 4>, B <3, 1>: three tasks and two, both at 2/3. B goes first at the tie of nothing."""
    demands = {"b": A, "a": B}  # the tie goes by name: the paper's B is called a
    assert fill(CAPACITY, demands) == {"b": 3, "a": 2}
    picks = order_of(CAPACITY, demands, dict.fromkeys(demands, Fraction(1)), 10)[:5]
    assert picks == ["a", "b", "b", "a", "b"]


@pytest.mark.parametrize(("weight", "a", "b"), [(1, 3, 2), (2, 4.1538, 1.3846), (3, 4.2632, 0.9474)])
def test_weights_of_section_4_3(weight: int, a: float, b: float) -> None:
    capacity = {name: amount * FINE for name, amount in CAPACITY.items()}
    found = fill(capacity, {"a": A, "b": B}, {"a": Fraction(weight), "b": Fraction(1)}, tasks=1500)
    assert [found["a"] / FINE, found["b"] / FINE] == pytest.approx([a, b], abs=0.02)


def test_a_lie_that_pays_under_equal_incomes_does_not_pay_here() -> None:
    """100/100, <16, 1> and <1, 2>: under CEEI user 1 gains by asking <16, 8>."""
    capacity = {"cpu": 100 * FINE, "memory": 100 * FINE}
    honest = fill(capacity, {"a": {"cpu": 16, "memory": 1}, "b": {"cpu": 1, "memory": 2}}, tasks=14_000)
    lying = fill(capacity, {"a": {"cpu": 16, "memory": 8}, "b": {"cpu": 1, "memory": 2}}, tasks=14_000)
    assert lying["a"] <= honest["a"]


def test_who_leaves_harms_nobody_where_equal_incomes_would() -> None:
    """<4, 1>, <1, 16>, <16, 1>: under CEEI user 2 loses when user 3 leaves."""
    capacity = {"cpu": 100 * FINE, "memory": 100 * FINE}
    demands = {"a": {"cpu": 4, "memory": 1}, "b": {"cpu": 1, "memory": 16}, "c": {"cpu": 16, "memory": 1}}
    three = fill(capacity, demands, tasks=6000)
    two = fill(capacity, {name: demands[name] for name in "ab"}, tasks=6000)
    assert two["b"] >= three["b"]
    assert two["a"] >= three["a"]


def test_everybody_gets_a_half_at_least_where_asset_fairness_gives_less() -> None:
    """30/30, <1, 3> and <1, 1>: by the sum of assets user 2 gets 12 tasks, less than by its own half."""
    found = fill(
        {"cpu": 30 * FINE, "memory": 30 * FINE},
        {"a": A | {"memory": 3}, "b": {"cpu": 1, "memory": 1}},
        tasks=4000,
    )
    assert found["b"] / FINE >= 15 - 0.02


# --- properties

cases = st.integers(0, 2**32).map(random.Random)


def a_pool(rng: random.Random, most: int = 4) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Every tenant asks for something of every resource, and is backlogged."""
    capacity = {name: rng.randint(300, 600) for name in ("cpu", "gpu", "memory")}
    names = [f"t{number}" for number in range(rng.randint(2, most))]
    return capacity, {name: {resource: rng.randint(1, 6) for resource in capacity} for name in names}


def dominant(capacity: Demand, demand: Demand) -> Fraction:
    return max(Fraction(amount, capacity[name]) for name, amount in demand.items())


def alone(capacity: Demand, demand: Demand, part: Fraction = Fraction(1)) -> int:
    """Tasks that fit into a part of the pool."""
    return min(int(capacity[name] * part / amount) for name, amount in demand.items())


@given(cases)
@settings(max_examples=150, deadline=None)
def test_sharing_incentive_pareto_efficiency_and_no_envy(rng: random.Random) -> None:
    capacity, demands = a_pool(rng)
    count = fill(capacity, demands, tasks=600)
    largest = max(dominant(capacity, demand) for demand in demands.values())
    used = Counter[str]()
    for tenant, demand in demands.items():
        used.update({name: amount * count[tenant] for name, amount in demand.items()})
    for tenant, demand in demands.items():
        # Each has what an equal part of the pool would hold, but for a task.
        assert count[tenant] >= alone(capacity, demand, Fraction(1, len(demands))) - 1
        # None could run more with another's bundle, but for tasks' sizes.
        for other, theirs in demands.items():
            bundle = {name: amount * count[other] for name, amount in theirs.items()}
            extra = largest / dominant(capacity, demand) + 1
            assert alone(bundle, demand) <= count[tenant] + extra
        # No task fits any more.
        assert any(capacity[name] - used[name] < amount for name, amount in demand.items())


@given(cases)
@settings(max_examples=150, deadline=None)
def test_dominant_shares_are_never_further_apart_than_one_task(rng: random.Random) -> None:
    capacity, demands = a_pool(rng)
    weights = {tenant: Fraction(rng.randint(1, 3)) for tenant in demands}
    step = {t: dominant(capacity, demand) / weights[t] for t, demand in demands.items()}
    shares = dict.fromkeys(demands, Fraction(0))
    for tenant in order_of(capacity, demands, weights, 60)[:60]:
        shares[tenant] += step[tenant]
        assert max(shares.values()) - min(shares.values()) <= max(step.values())


@given(cases)
@settings(max_examples=150, deadline=None)
def test_a_misreport_never_gains_more_than_a_task(rng: random.Random) -> None:
    capacity, demands = a_pool(rng, most=3)
    liar = rng.choice(sorted(demands))
    honest = fill(capacity, demands, tasks=600)
    said = {name: amount + rng.randint(0, 4) for name, amount in demands[liar].items()}
    lied = fill(capacity, {**demands, liar: said}, tasks=600)
    got = {name: amount * lied[liar] for name, amount in said.items()}
    # Useful are the tasks that the bundle holds by the true demand.
    others = [dominant(capacity, demand) for tenant, demand in demands.items() if tenant != liar]
    tolerance = max(others) / dominant(capacity, demands[liar]) + 1
    assert alone(got, demands[liar]) <= honest[liar] + tolerance


@given(cases)
@settings(max_examples=150, deadline=None)
def test_who_leaves_takes_nothing_from_the_others_but_a_task(rng: random.Random) -> None:
    capacity, demands = a_pool(rng)
    before = fill(capacity, demands, tasks=600)
    gone = rng.choice(sorted(demands))
    after = fill(
        capacity, {tenant: demand for tenant, demand in demands.items() if tenant != gone}, tasks=600
    )
    assert all(after[tenant] >= before[tenant] - 1 for tenant in after)


@given(cases)
@settings(max_examples=150, deadline=None)
def test_units_and_the_size_of_weights_change_nothing(rng: random.Random) -> None:
    capacity, demands = a_pool(rng)
    ones = dict.fromkeys(demands, Fraction(1))
    plain = order_of(capacity, demands, ones, 40)
    assert order_of(capacity, demands, dict.fromkeys(demands, Fraction(2)), 40) == plain
    units = {name: rng.randint(1, 1000) for name in capacity}
    scaled = {tenant: {n: amount * units[n] for n, amount in d.items()} for tenant, d in demands.items()}
    assert order_of({n: amount * units[n] for n, amount in capacity.items()}, scaled, ones, 40) == plain


@given(cases)
@settings(max_examples=150, deadline=None)
def test_a_tenant_that_asks_for_nothing_changes_nothing(rng: random.Random) -> None:
    capacity, demands = a_pool(rng)
    ones = dict.fromkeys([*demands, "idle"], Fraction(1))
    with_idle = order_of(capacity, {**demands, "idle": {}}, ones, 30)
    assert with_idle.count("idle") == 30
    assert without(with_idle, "idle") == order_of(capacity, demands, ones, 30)


def without(names: Sequence[str], one: str) -> list[str]:
    return [name for name in names if name != one]
