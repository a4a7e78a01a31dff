"""What makes DRF what it is, on random pools; for tasks that cannot be cut.

The paper's theorems are about divisible tasks. With whole tasks each holds up to a number of tasks that does not depend
on the size of the pool, and that the tests here state exactly, as it follows from progressive filling: while both wait,
no two tenants' shares are further apart than one task; and what is left when the first of them finds no room is less
than one task of it. With tasks cut finer and finer the theorems of the paper come out.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_policy import PoolOrder, PoolRules, WaitingJob
from fairlead_testkit.cases import cases
from fairlead_testkit.filling import Demand, Filling, alone, dominant, fill, order_of

rngs = st.integers(0, 2**32).map(random.Random)
RESOURCES = ("cpu", "gpu", "memory")

type Demands = dict[str, dict[str, int]]
type Weights = dict[str, Fraction]


def a_pool(rng: random.Random, most: int = 4) -> tuple[dict[str, int], Demands, Weights]:
    """Every tenant asks for something of every resource: what one of them cannot have, soon nobody can."""
    capacity = {name: rng.randint(15, 60) for name in RESOURCES}
    names = [f"t{number}" for number in range(rng.randint(2, most))]
    demands = {name: {resource: rng.randint(1, 6) for resource in capacity} for name in names}
    return capacity, demands, {name: Fraction(rng.choice(["1", "1", "2", "3", "1/2"])) for name in names}


def steps(capacity: Demand, demands: Mapping[str, Demand], weights: Weights) -> dict[str, Fraction]:
    """What one task adds to its tenant's share."""
    return {name: dominant(capacity, demand) / weights[name] for name, demand in demands.items()}


def used(demands: Mapping[str, Demand], count: Mapping[str, int]) -> Counter[str]:
    total = Counter[str]()
    for tenant, demand in demands.items():
        total.update({name: amount * count[tenant] for name, amount in demand.items()})
    return total


def useful(bundle: Mapping[str, int | Fraction], demand: Demand) -> int:
    """Whole tasks that somebody could run with what somebody has."""
    return floor(min(bundle[name] / Fraction(amount) for name, amount in demand.items()))


def leftover(demands: Mapping[str, Demand], tenant: str) -> Fraction:
    """More tasks of the tenant than fit into what is left when the first of the others finds no room."""
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


@given(rngs)
@settings(max_examples=cases())
def test_sharing_incentive(rng: random.Random) -> None:
    """Each dominant share is at least `w / sum of w * (1 - the dominant shares of one task of each tenant)`."""
    capacity, demands, weights = a_pool(rng)
    count, part = fill(capacity, demands, weights).counts(), 1 / sum(weights.values())
    one_of_each = sum(dominant(capacity, demand) for demand in demands.values())
    for tenant, demand in demands.items():
        assert count[tenant] * dominant(capacity, demand) > weights[tenant] * part * (1 - one_of_each)


@given(rngs)
@settings(max_examples=cases())
def test_pareto_efficiency(rng: random.Random) -> None:
    """Exact: nobody's task fits any more, and no more was given away than there is."""
    capacity, demands, weights = a_pool(rng)
    taken = used(demands, fill(capacity, demands, weights).counts())
    assert all(taken[name] <= amount for name, amount in capacity.items())
    for demand in demands.values():
        assert any(capacity[name] - taken[name] < amount for name, amount in demand.items())


@given(rngs)
@settings(max_examples=cases())
def test_no_envy_over_scaled_bundles(rng: random.Random) -> None:
    """At every moment at which a tenant waits, another's bundle, scaled by their weights, holds at most as many of its
    tasks as it runs, and one task of that other. What others start later fits less than one task of it."""
    capacity, demands, weights = a_pool(rng, most=3)
    filling = fill(capacity, demands, weights)
    step = steps(capacity, demands, weights)
    for tenant, stopped in filling.stopped.items():
        for moment in range(stopped + 1):
            check_no_envy(filling.counts(moment), demands, weights, step, tenant)
        for other, count in (filling.counts() - filling.counts(stopped)).items():
            assert useful({name: n * count for name, n in demands[other].items()}, demands[tenant]) < 1


def check_no_envy(
    count: Mapping[str, int], demands: Demands, weights: Weights, step: Mapping[str, Fraction], tenant: str
) -> None:
    for other, demand in demands.items():
        scale = count[other] * weights[tenant] / weights[other]
        bundle = {name: amount * scale for name, amount in demand.items()}
        assert useful(bundle, demands[tenant]) <= count[tenant] + step[other] / step[tenant]


@given(rngs)
@settings(max_examples=cases())
def test_dominant_shares_are_never_further_apart_than_one_task(rng: random.Random) -> None:
    """Exact, among all that still wait: no larger than the step of the one with more."""
    capacity, demands, weights = a_pool(rng)
    step = steps(capacity, demands, weights)
    shares = dict.fromkeys(demands, Fraction(0))
    for tenant in order_of(capacity, demands, weights, dict.fromkeys(demands, 30))[:30]:
        assert shares[tenant] == min(shares.values())
        shares[tenant] += step[tenant]
        for one, other in ((a, b) for a in shares for b in shares):
            assert shares[one] - shares[other] <= step[one]


@given(rngs)
@settings(max_examples=cases())
def test_strategy_proofness(rng: random.Random) -> None:
    """Who asks for something else than it needs gains at most: one task of anybody, one task of the lie, and what is
    left when the first finds no room; all in its own true tasks."""
    capacity, demands, weights = a_pool(rng, most=3)
    liar = rng.choice(sorted(demands))
    true = demands[liar]
    said = {name: max(1, amount + rng.randint(-3, 4)) for name, amount in true.items()}
    honest = fill(capacity, demands, weights).counts()[liar]
    lying = fill(capacity, {**demands, liar: said}, weights).counts()[liar]
    got = useful({name: amount * lying for name, amount in said.items()}, true)
    one_of_the_lie = min(Fraction(said[name], amount) for name, amount in true.items())
    slack = uneven(steps(capacity, demands, weights), liar) + one_of_the_lie + leftover(demands, liar)
    assert got <= honest + slack


@given(rngs)
@settings(max_examples=cases())
def test_population_monotonicity(rng: random.Random) -> None:
    """When one leaves, nobody loses more than a task, one task of anybody, and what was left at first."""
    capacity, demands, weights = a_pool(rng)
    gone = rng.choice(sorted(demands))
    before = fill(capacity, demands, weights).counts()
    stay = {tenant: demand for tenant, demand in demands.items() if tenant != gone}
    after = fill(capacity, stay, weights).counts()
    step = steps(capacity, demands, weights)
    for tenant in stay:
        assert after[tenant] >= before[tenant] - 1 - uneven(step, tenant) - leftover(demands, tenant)


# --- as tasks get finer


@given(rngs)
@settings(max_examples=cases(0.03))
def test_cut_fine_the_theorems_of_the_paper_come_out(rng: random.Random) -> None:
    """A hundred times as much of everything: what was a few tasks is now a few hundredths of one."""
    fine = 100
    capacity, demands, weights = a_pool(rng, most=3)
    capacity = {name: amount * fine for name, amount in capacity.items()}
    count = fill(capacity, demands, weights).counts()
    most = sum(weights.values())
    for tenant, demand in demands.items():
        slice_ = Fraction(alone(capacity, demand)) * weights[tenant] / most
        assert count[tenant] >= slice_ - 12
        for other, theirs in demands.items():
            scale = count[other] * weights[tenant] / weights[other]
            assert useful({n: a * scale for n, a in theirs.items()}, demand) <= count[tenant] + 20


# --- what changes nothing


def plain_order(capacity: Demand, demands: Mapping[str, Demand], weights: Weights) -> list[str]:
    return order_of(capacity, demands, weights, dict.fromkeys(demands, 20))


@given(rngs)
@settings(max_examples=cases(0.5))
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
    """It takes no room, and leaves the order of the others as it is."""
    capacity, demands, weights = a_pool(rng)
    idle: Mapping[str, Demand] = {**demands, "idle": rng.choice([{}, {"cpu": 0}])}
    found = plain_order(capacity, idle, {**weights, "idle": Fraction(rng.choice([0, 1, 5]))})
    assert found.count("idle") == 20
    assert [tenant for tenant in found if tenant != "idle"] == plain_order(capacity, demands, weights)


@given(rngs)
@settings(max_examples=cases())
def test_the_order_in_which_facts_are_told(rng: random.Random) -> None:
    """To the byte: places with all their terms, and standings."""
    capacity, demands, weights = a_pool(rng)
    waiting = [
        WaitingJob(
            uid=f"{tenant}-{number}",
            scope=tenant,
            id="",
            tenant=tenant,
            urgency="normal",
            submitted=rng.randrange(3),
            demand=dict(demand),
            queue=("c", "q"),
        )
        for tenant, demand in demands.items()
        for number in range(5)
    ]
    found = set()
    for _ in range(2):
        rng.shuffle(waiting)
        found.add(told(capacity, weights, waiting))
    assert len(found) == 1


def told(capacity: Demand, weights: Weights, waiting: Sequence[WaitingJob]) -> bytes:
    order = PoolOrder(PoolRules(capacity=capacity, classes=("normal",), rate=Fraction(1, 9), weights=weights))
    for job in waiting[::2]:
        order.wait(job)
    order.wait_all(waiting[1::2])
    return msgspec.msgpack.encode((order.order(1), order.standings()))


def test_a_moment_in_the_middle_counts_what_had_started() -> None:
    filling = Filling(("a", "b", "a"), {"b": 2, "a": 3})
    assert (filling.counts(2), filling.counts()) == ({"a": 1, "b": 1}, {"a": 2, "b": 1})
