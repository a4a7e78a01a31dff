"""Tenants that are sorted and scored side by side, in one pass, against the same pool kept up step by step."""

import random
from fractions import Fraction

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.instants import HOUR
from fairlead_policy.exact.scoring import JobColumns
from fairlead_policy.order.order import Order
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.order.pool_snapshot import PoolSnapshot
from fairlead_policy.order.positions import Positions
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import FARTHEST, PoolRules
from fairlead_policy.tenants.sorted_jobs import OwnLines
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.oracles.waiting import a_waiting_job, set_apart

TENANTS = ("ada", "bob", "cyd", "dan", "eve")
CLASSES = ("urgent", "approved", "normal")
RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
NOW = 1_760_000_000_000_000
weights = st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1), Fraction(2), Fraction(1, 10)])
amounts = st.one_of(st.integers(0, 4), st.integers(0, 10**6))
instants = st.one_of(
    st.integers(NOW - 4, NOW),
    st.integers(0, 60).map(lambda hours: NOW - hours * HOUR),
    st.sampled_from([-FARTHEST, -(2**70), FARTHEST, 2**70]),
)


@st.composite
def pools(draw: st.DrawFn) -> tuple[PoolFacts, list[WaitingJob]]:
    capacity = draw(
        st.fixed_dictionaries(dict.fromkeys(RESOURCES, st.sampled_from([0, 3, 1000, 3000, 10**9])))
    )
    rules = PoolRules(
        capacity=capacity,
        classes=CLASSES,
        rate=draw(st.sampled_from([Fraction(0), Fraction(6, 100) / HOUR, Fraction(1, 3) / HOUR])),
        cap=draw(st.sampled_from([None, 0, 5 * HOUR, 336 * HOUR])),
        resource_weights=draw(st.sampled_from([{}, {"cpu": Fraction(0)}, {"memory": Fraction(1, 7)}])),
        entitlements={name: draw(weights) for name in TENANTS[:-1]},
        unlisted_entitlement=draw(weights),
    )
    order = PoolFacts(rules)
    for number in range(draw(st.integers(0, 4))):
        demand = draw(st.dictionaries(st.sampled_from(RESOURCES), amounts, max_size=2))
        order.run(f"r{number}", draw(st.sampled_from(TENANTS)), demand)
    if draw(st.booleans()):
        order.remember(draw(st.sampled_from(TENANTS)), {"memory": draw(amounts)})
    large = draw(st.sampled_from([0, 0, 0, 2**60, 2**62]))
    # Figures of few jobs are divided out, of many estimated; many share what they ask for.
    copies = draw(st.sampled_from([1, 1, 6]))
    asked = draw(st.lists(st.dictionaries(st.sampled_from(RESOURCES), amounts, max_size=3), max_size=12))
    demands = [{name: amount + large for name, amount in one.items()} for one in asked] * copies
    jobs = [
        a_waiting_job(
            f"u{number}",
            tenant=draw(st.sampled_from(TENANTS)),
            job_class=draw(st.sampled_from([*CLASSES, "unheard-of"])),
            submitted=draw(instants),
            demand=demand,
        )
        for number, demand in enumerate(demands)
    ]
    sharing = [msgspec.structs.replace(job, demand=one) for job, one in zip(jobs, demands, strict=True)]
    sharing = [set_apart(job) if draw(st.integers(0, 4)) == 0 else job for job in sharing]
    return order, draw(st.permutations(sharing))


def side_by_side(pool: PoolFacts, jobs: list[WaitingJob]) -> Positions:
    """The order of a pool in which these jobs wait beside what runs."""
    snapshot = pool.snapshot
    apart = np.array([job.apart for job in jobs], np.bool_)
    lines = OwnLines.of(jobs, None, snapshot.measure, apart)
    return Order(snapshot.with_lines(lines), NOW).positions()


def step_by_step(pool: PoolFacts, jobs: list[WaitingJob]) -> None:
    """The jobs come one by one, and somebody looks at each tenant now and then."""
    for number, job in enumerate(jobs):
        pool.wait(job)
        if number % 7 == 0:
            pool.at(NOW).queue_heads(2)
    for queue in pool.snapshot.tenant_queues():
        queue.scored()


@settings(max_examples=cases())
@given(pools())
def test_positions_are_those_of_the_pool_kept_up_step_by_step(
    pool: tuple[PoolFacts, list[WaitingJob]],
) -> None:
    order, jobs = pool
    found = side_by_side(order, jobs)
    step_by_step(order, jobs)
    expected = order.at(NOW).positions()[:]
    assert list(found) == expected
    assert len(found) == len(expected)
    assert [found[at] for at in range(len(found))] == expected
    assert [found[-1]] == expected[-1:] if expected else not list(found)
    assert found[2:5] == expected[2:5]
    assert [job.uid for job in found.jobs()] == [position.uid for position in expected]


def beside_a_middle(rng: random.Random, side: int) -> tuple[int, int]:
    """A use and a capacity whose quotient lies right beside the middle of two floats: 2^-90 from it or so."""
    while True:
        capacity = rng.randrange(2**40, 2**41) | 1
        use = capacity + side * pow(2**53, -1, capacity) % capacity
        # Floats between 1 and 2 are 2^-52 apart: the middles between them are odd multiples of 2^-53.
        middle = (use * 2**53 - side) // capacity
        if middle % 2:
            return use, capacity


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("jobs", [1, 40], ids=["divided out", "estimated"])
def test_a_tag_beside_the_middle_of_two_floats_is_the_nearest(side: int, jobs: int) -> None:
    rng = random.Random(side)
    tenants = [f"tenant-{number}" for number in range(jobs)]
    for _ in range(50):
        use, capacity = beside_a_middle(rng, side)
        order = PoolFacts(
            PoolRules(
                capacity={"cpu": capacity}, classes=CLASSES, entitlements=dict.fromkeys(tenants, Fraction(1))
            )
        )
        for name in tenants:
            order.run(f"r-{name}", name, {"cpu": use})
        waiting = [a_waiting_job(f"j-{name}", tenant=name, demand={"cpu": 1}) for name in tenants]
        assert {position.tag for position in side_by_side(order, waiting)} == {use / capacity}


def columns(count: int, rng: np.random.Generator) -> JobColumns:
    """Columns of few distinct values, so that ties are everywhere."""
    none = np.zeros(count, np.int64)
    return JobColumns(
        rank=rng.integers(0, len(CLASSES), count) * 2,
        submitted=NOW - rng.integers(0, 50, count) * HOUR,
        queue=none,
        weight_number=none,
        demand=rng.integers(0, 3, (len(RESOURCES), count)) * 1000,
    )


@pytest.mark.parametrize("count", [3000, pytest.param(60_000, marks=pytest.mark.deep)])
@pytest.mark.parametrize("spread", [1, 2**60], ids=["packed", "too-wide-to-pack"])
def test_thousands_of_ties_are_settled_as_step_by_step(count: int, spread: int) -> None:
    rules = PoolRules(
        capacity=dict.fromkeys(RESOURCES, 3_000_000),
        classes=CLASSES,
        rate=Fraction(1, 1000) / HOUR,
        entitlements={f"t{number}": Fraction(number % 4, 3) for number in range(300)},
    )
    rng = np.random.default_rng(count)
    tenants, found = rng.integers(0, 300, count), columns(count, rng)
    found.submitted[0] -= spread
    names = [f"u{number:06}" for number in random.Random(count).sample(range(count), count)]
    order = PoolFacts(rules)
    order.wait_all(
        a_waiting_job(
            names[number],
            tenant=f"t{tenant}",
            job_class=CLASSES[rank // 2],
            submitted=submitted,
            demand=dict(zip(RESOURCES, demand, strict=True)),
        )
        for number, (tenant, rank, submitted, demand) in enumerate(
            zip(
                tenants.tolist(),
                found.rank.tolist(),
                found.submitted.tolist(),
                found.demand.T.tolist(),
                strict=True,
            )
        )
    )
    waiting = [order.job(name) for name in names]
    nobody = PoolSnapshot.of_nobody(rules)
    told = np.array(waiting, np.object_)
    lines = OwnLines.of_columns(found, tenants, told, list(rules.entitlements), nobody.measure)
    for queue in order.snapshot.tenant_queues():
        queue.scored()
    assert Order(nobody.with_lines(lines), NOW).uids() == order.at(NOW).uids()


def test_sums_over_all_tenants_may_wrap() -> None:
    """Each tenant's sum fits 64 bits; that of all of them together does not."""
    rules = PoolRules(capacity={"memory": 2**60}, classes=CLASSES, unlisted_entitlement=Fraction(1))
    jobs = [
        a_waiting_job(
            f"u{number:03}", tenant=f"t{number % 40}", submitted=NOW + number, demand={"memory": 2**59}
        )
        for number in range(200)
    ]
    order = PoolFacts(rules)
    found = side_by_side(order, jobs)
    step_by_step(order, jobs)
    assert list(found) == order.at(NOW).positions()[:]


def test_each_tenant_keeps_what_was_scored_beside_others() -> None:
    """An event then costs its own tenant: the others' scores are those of the pass before."""
    order = PoolFacts(PoolRules(capacity={"cpu": 9}, classes=CLASSES, unlisted_entitlement=Fraction(1)))
    order.wait_all(
        a_waiting_job(f"u{number:03}", tenant=f"t{number % 7}", demand={"cpu": 1}) for number in range(70)
    )
    order.at(NOW).uids()
    queues = {queue.tenant: queue for queue in order.snapshot.tenant_queues()}
    assert all(queue.is_scored for queue in queues.values())
    order.wait(a_waiting_job("u999", tenant="t3", demand={"cpu": 1}))
    after = {queue.tenant: queue for queue in order.snapshot.tenant_queues()}
    assert [name for name, queue in after.items() if queue is not queues[name]] == ["t3"]
    assert [name for name, queue in after.items() if not queue.is_scored] == ["t3"]
    plain = PoolFacts(order.rules)
    plain.wait_all(job for name in order.at(NOW).uids() if (job := order.job(name)) is not None)
    assert order.at(NOW).positions()[:] == plain.at(NOW).positions()[:]


def test_tenants_below_others_are_scored_in_one_pass_and_as_each_by_itself() -> None:
    names = [f"t{number}" for number in range(7)]
    rules = PoolRules(
        capacity={"cpu": 9, "memory": 7},
        classes=CLASSES,
        rate=Fraction(1, 10) / HOUR,
        entitlements={
            name: Fraction(1 + number, 40) for number, name in enumerate((*names, "org-0", "org-1"))
        },
        parents={name: f"org-{number % 2}" for number, name in enumerate(names[:-1])},
    )

    def pool() -> PoolFacts:
        order = PoolFacts(rules)
        order.run("r", "t2", {"cpu": 3})
        order.wait_all(
            a_waiting_job(
                f"u{number:03}",
                tenant=names[number % 7],
                submitted=NOW - number % 9 * HOUR,
                demand={"cpu": number % 4, "memory": number % 3},
            )
            for number in range(210)
        )
        return order

    together, one_by_one = pool(), pool()
    for queue in one_by_one.snapshot.tenant_queues():
        queue.scored()
    assert together.at(NOW).positions()[:] == one_by_one.at(NOW).positions()[:]
    below = {
        queue.tenant: queue.scored() for queue in together.snapshot.tenant_queues() if queue.tenant != "t6"
    }
    first = below["t0"].use.base
    assert first is not None
    assert all(scores.use.base is first for scores in below.values())
    # An event costs its own tenant: the others keep what they have.
    together.wait(a_waiting_job("u999", tenant="t3", demand={"cpu": 1}))
    assert [queue.tenant for queue in together.snapshot.tenant_queues() if not queue.is_scored] == ["t3"]
