"""The papers' own numbers, and the examples by which they reject other rules.

Ghodsi et al., "Dominant Resource Fairness", NSDI 2011; Bhattacharya et al., "Hierarchical Scheduling for Diverse
Datacenter Workloads", SoCC 2013 (H-DRF); Wang et al., "Dominant Resource Fairness in Cloud Computing Systems with
Heterogeneous Servers", INFOCOM 2014 (DRFH). Asset fairness and competitive equilibrium from equal incomes (CEEI) are
worked out here in plain code: each fails where its paper says so, and our order does not.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from fairlead_policy.fit.placing import place
from fairlead_policy.fit.results import Placement
from fairlead_policy.fit.shapes import FitNode, Gang, PodShape
from fairlead_policy.hami.annotations import CardStrategy
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit.oracles.filling import Backlog, TaskDemand, fill, order_of
from fairlead_testkit.oracles.saturation import used_up
from fairlead_testkit.oracles.unfair import market
from fairlead_testkit.oracles.waiting import a_waiting_job

FINE = 100
"""Tasks are cut this fine where a paper divides them: a difference of a few tasks is then small."""


def task(cpu: int, memory: int) -> dict[str, int]:
    return {"cpu": cpu, "memory": memory}


def divided(capacity: TaskDemand, demands: Mapping[str, TaskDemand], **weights: int) -> dict[str, float]:
    """The tasks of each tenant, tasks cut fine."""
    fine = {name: amount * FINE for name, amount in capacity.items()}
    exact = {name: Fraction(weights.get(name, 1)) for name in demands}
    return {name: count / FINE for name, count in fill(fine, demands, exact).counts().items()}


def about(*tasks: float) -> object:
    return pytest.approx(list(tasks), abs=3 / FINE)


# --- other rules, in plain code


def asset_fairness(capacity: TaskDemand, demands: Sequence[TaskDemand]) -> list[float]:
    """Equal sums of shares over all resources, as much as there is room for."""
    sums = [sum(amount / capacity[name] for name, amount in demand.items()) for demand in demands]
    level = min(
        capacity[name] / sum(demand[name] / one for demand, one in zip(demands, sums, strict=True))
        for name in capacity
    )
    return [level / one for one in sums]


def equal_incomes(capacity: TaskDemand, demands: Sequence[TaskDemand]) -> list[float]:
    """Each has the same money and buys tasks alone; prices are such that all that has a price is sold."""
    named = dict(zip("abc", demands, strict=False))
    return list(market(capacity, named, dict.fromkeys(named, Fraction(1))).values())


# --- NSDI 2011

CAPACITY = task(9, 18)
A, B = task(1, 4), task(3, 1)


def test_table_1_pick_by_pick() -> None:
    """9 CPUs and 18 GB, A asks <1, 4>, B <3, 1>. B goes first at the tie of nothing, so it is called `0B` here."""
    demands, taken, held = {"A": A, "0B": B}, Counter[str](), Counter[str]()
    seen = []
    ones = dict.fromkeys(demands, Fraction(1))
    for tenant in order_of(Backlog(CAPACITY, demands, ones, dict.fromkeys(demands, 9)))[:5]:
        taken.update(demands[tenant])
        held[tenant] += 1
        share = max(
            Fraction(held[tenant] * amount, CAPACITY[name]) for name, amount in demands[tenant].items()
        )
        seen.append((tenant[-1], str(share), taken["cpu"], taken["memory"]))
    assert seen == [
        ("B", "1/3", 3, 1),
        ("A", "2/9", 4, 5),
        ("A", "4/9", 5, 9),
        ("B", "2/3", 8, 10),
        ("A", "2/3", 9, 14),
    ]
    assert fill(CAPACITY, demands).counts() == {"A": 3, "0B": 2}


def test_the_three_rules_side_by_side() -> None:
    """DRF 3 and 2, asset fairness 2.52 and 2.16, equal incomes 45/11 and 18/11."""
    assert list(divided(CAPACITY, {"a": A, "b": B}).values()) == about(3, 2)
    assert asset_fairness(CAPACITY, [A, B]) == pytest.approx([2.52, 2.16])
    assert equal_incomes(CAPACITY, [A, B]) == pytest.approx([45 / 11, 18 / 11])


@pytest.mark.parametrize(("weight", "tasks"), [(1, (3, 2)), (2, (4.1538, 1.3846)), (3, (4.2632, 0.9474))])
def test_weights(weight: int, tasks: tuple[float, float]) -> None:
    assert list(divided(CAPACITY, {"a": A, "b": B}, a=weight).values()) == about(*tasks)
    assert divided(CAPACITY, {"a": A, "b": B}, a=2 * weight, b=2) == divided(
        CAPACITY, {"a": A, "b": B}, a=weight
    )


def test_asset_fairness_gives_less_than_a_half_and_we_do_not() -> None:
    """30/30, <1, 3> and <1, 1>: by assets user 2 runs 12 tasks, by a half of the pool of its own 15."""
    capacity, demands = task(30, 30), [task(1, 3), task(1, 1)]
    assert asset_fairness(capacity, demands) == pytest.approx([6, 12])
    [_, ours] = divided(capacity, dict(zip("ab", demands, strict=True))).values()
    assert ours >= 15 - 3 / FINE


def test_a_lie_pays_under_equal_incomes_and_not_here() -> None:
    """100/100, <16, 1> and <1, 2>: user 1 says that its tasks take 8 of memory."""
    capacity, true, said, other = task(100, 100), task(16, 1), task(16, 8), task(1, 2)
    honest, lying = equal_incomes(capacity, [true, other]), equal_incomes(capacity, [said, other])
    assert honest == pytest.approx([3.226, 48.39], rel=1e-3)
    assert lying == pytest.approx([4.167, 33.33], rel=1e-3)
    assert lying[0] > honest[0] + 0.9
    ours = [divided(capacity, {"a": one, "b": other})["a"] for one in (true, said)]
    assert ours[1] <= ours[0]


def test_who_leaves_harms_another_under_equal_incomes_and_not_here() -> None:
    """<4, 1>, <1, 16>, <16, 1>: user 2 loses when user 3 leaves."""
    capacity, demands = task(100, 100), [task(4, 1), task(1, 16), task(16, 1)]
    three, two = equal_incomes(capacity, demands), equal_incomes(capacity, demands[:2])
    assert three == pytest.approx([11.28, 5.35, 3.09], abs=0.01)
    assert two == pytest.approx([23.81, 4.76], abs=0.01)
    assert two[1] < three[1] - 0.5
    named = dict(zip("abc", demands, strict=True))
    before = divided(capacity, named)
    after = divided(capacity, {name: named[name] for name in "ab"})
    assert all(after[name] >= before[name] for name in after)


def test_more_of_a_resource_may_take_tasks_from_a_tenant_and_no_rule_like_this_can_help_it() -> None:
    """Resource monotonicity is not promised: sharing incentive and Pareto efficiency rule it out.

    <2, 1> and <1, 2> at 10/10 run 3.33 tasks each. With twice the CPUs memory becomes the dominant resource of both:
    user 1 needs half as much of it for a task, and user 2 is left with 2.5.
    """
    demands = {"a": task(2, 1), "b": task(1, 2)}
    assert list(divided(task(10, 10), demands).values()) == about(10 / 3, 10 / 3)
    assert list(divided(task(20, 10), demands).values()) == about(5, 2.5)


def test_one_resource_is_max_min_fairness_and_one_bottleneck_is_shared_alike() -> None:
    """The paper's single-resource and bottleneck fairness: all are dominant on the same resource."""
    assert fill({"cpu": 60}, {"a": {"cpu": 1}, "b": {"cpu": 2}, "c": {"cpu": 5}}).counts() == {
        "a": 20,
        "b": 10,
        "c": 4,
    }
    found = divided(task(10, 100), {"a": task(2, 3), "b": task(1, 4)})
    assert list(found.values()) == about(2.5, 5)


# --- H-DRF, SoCC 2013


def fill_tree(rules: PoolRules, leaves: Mapping[str, TaskDemand]) -> Counter[str]:
    """Tasks of each leaf, one job at a time; resources count as saturated once they are used up."""
    started: list[TaskDemand] = []
    order = PoolFacts(rules)
    for leaf, demand in leaves.items():
        for number in range(40):
            order.wait(a_waiting_job(f"{leaf}-{number:02d}", tenant=leaf, demand=demand))
    count, use = Counter[str](), Counter[str]()
    while True:
        head = order.at(0).positions()[0]
        if any(use[name] + amount > rules.capacity[name] for name, amount in head.demand.items()):
            return count
        order.run(head.uid, head.tenant, head.demand)
        count[head.tenant] += 1
        use.update(head.demand)
        started.append(head.demand)
        if rules.rescaled:
            waiting = [position.demand for position in order.at(0).positions()]
            order.set_rules(replace(rules, saturated=used_up(rules, started, waiting)))


@pytest.mark.parametrize("lowest_of_live", [True, False], ids=["live", "nonzero"])
def test_the_example_of_h_drf(lowest_of_live: bool) -> None:
    """n1 and n2 want CPUs, n3 has a child for CPUs and one for GPUs, n4 wants GPUs: a third of the CPUs to each of
    three, half of the GPUs to each of two.

    Plain DRF in a tree gives the same here; what tells the two apart stands in the tests of H-DRF.
    """
    leaves = {"n1": {"cpu": 1}, "n2": {"cpu": 1}, "n31": {"cpu": 1}, "n32": {"gpu": 1}, "n4": {"gpu": 1}}
    rules = PoolRules(
        capacity={"cpu": 12, "gpu": 12},
        classes=("normal",),
        unlisted_entitlement=Fraction(1),
        parents={"n31": "n3", "n32": "n3"},
        rescaled=True,
        lowest_of_live=lowest_of_live,
    )
    assert fill_tree(rules, leaves) == {"n1": 4, "n2": 4, "n31": 4, "n32": 6, "n4": 6}


# --- DRFH, INFOCOM 2014


SERVERS = {"memory": task(20, 120), "cores": task(120, 20)}
UNLIKE = {"a": task(2, 10), "b": task(10, 2)}
"""Servers of 2 CPUs with 12 GB and of 12 CPUs with 2 GB, tasks of <0.2, 1> and <1, 0.2>; in tenths."""


def test_a_share_of_each_server_gives_six_tasks() -> None:
    found = [divided(server, UNLIKE) for server in SERVERS.values()]
    assert [sum(one[name] for one in found) for name in UNLIKE] == about(6, 6)


@pytest.mark.parametrize(("strategy", "tasks"), [(CardStrategy.SPREAD, 10), (CardStrategy.BINPACK, 2)])
def test_a_share_of_the_pool_gives_ten_where_tasks_go_to_servers_of_their_shape(
    strategy: CardStrategy, tasks: int
) -> None:
    """Shares are of the pool, as in DRFH: fairness looks at no server, and where tasks go is the placement's.

    DRFH places each task on the server whose shape is nearest. Spread does here: it takes the server with most room for
    such tasks. Binpack takes the one with least room, the wrong one each time, and both are blocked after two.
    """
    pool = {name: sum(server[name] for server in SERVERS.values()) for name in ("cpu", "memory")}
    ones = dict.fromkeys(UNLIKE, Fraction(1))
    free = {name: dict(server) for name, server in SERVERS.items()}
    placed = Counter[str]()
    for tenant in order_of(Backlog(pool, UNLIKE, ones, dict.fromkeys(UNLIKE, 11))):
        server = where(UNLIKE[tenant], free, strategy)
        if server is not None:
            placed[tenant] += 1
            for resource, amount in UNLIKE[tenant].items():
                free[server][resource] -= amount
    assert placed == {"a": tasks, "b": tasks}


def where(demand: TaskDemand, free: Mapping[str, TaskDemand], strategy: CardStrategy) -> str | None:
    nodes = [FitNode(name=name, free=dict(amounts)) for name, amounts in free.items()]
    found = place(Gang(shapes=(PodShape(count=1, name="task", demand=demand),)), nodes, strategy)
    return next(iter(found.nodes)) if isinstance(found, Placement) else None
