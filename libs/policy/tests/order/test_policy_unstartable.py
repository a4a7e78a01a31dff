"""Jobs that cannot start as they are: they keep their positions, and nobody waits as if they had started."""

import random
from dataclasses import replace
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.instants import HOUR
from fairlead_contracts.messages.decisions import Position
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.oracles.waiting import a_waiting_job, set_apart, uids

CAPACITY = {"gpu": 32, "cpu": 64}
TREE = {"a": "o", "b": "o"}
RULES = PoolRules(
    capacity=CAPACITY,
    classes=("urgent", "normal"),
    entitlements={name: Fraction(1, 4) for name in "abcd"} | {"o": Fraction(1, 2)},
)


def backlog(tenant: str, count: int) -> list[WaitingJob]:
    return [
        a_waiting_job(f"{tenant}{number}", tenant=tenant, submitted=number + 1, demand={"gpu": 1})
        for number in range(count)
    ]


@pytest.mark.parametrize("parents", [{}, TREE], ids=["flat", "tree"])
def test_a_job_that_cannot_start_takes_no_share_from_its_tenants_others(parents: dict[str, str]) -> None:
    """One job of 100 GPUs, in a pool of 32, put all others of its tenant behind whatever another one submits."""
    facts = PoolFacts(replace(RULES, parents=parents))
    facts.wait_all([*backlog("a", 4), *backlog("b", 4)])
    others = uids(facts.at(0).positions()[:])
    large = a_waiting_job("stuck", tenant="a", demand={"gpu": 100, "tpu": 1})
    facts.wait(set_apart(large))
    assert uids(facts.at(0).positions()[:]) == ["stuck", *others]
    facts.wait(large)
    assert uids(facts.at(0).positions()[:]) == [
        "stuck",
        *(f"b{number}" for number in range(4)),
        *(f"a{number}" for number in range(4)),
    ]


FLAT: dict[str, str] = {}
DEEP = {"a": "o", "b": "o", "c": "p", "p": "o"}


def a_pool(dice: random.Random) -> tuple[list[WaitingJob], list[WaitingJob]]:
    """Jobs that can start, and a few that cannot, of the same tenants and of any class."""
    startable = [
        a_waiting_job(
            f"j{number}",
            tenant=dice.choice("abcd"),
            job_class=dice.choice(RULES.classes),
            submitted=dice.randrange(20) * HOUR,
            demand={name: dice.randint(1, 9) for name in CAPACITY if dice.random() < 0.7},
        )
        for number in range(12)
    ]
    stuck = [
        set_apart(
            a_waiting_job(
                f"x{number}",
                tenant=job.tenant,
                job_class=dice.choice(RULES.classes),
                submitted=job.submitted + 1,
                demand={"gpu": dice.randint(1, 99)},
            )
        )
        for number, job in enumerate(dice.sample(startable, 3))
    ]
    return startable, stuck


def orders(
    parents: dict[str, str], startable: list[WaitingJob], stuck: list[WaitingJob]
) -> tuple[list[Position], list[Position]]:
    """The positions of the jobs that can start, among all and by themselves."""
    rules = replace(RULES, parents=parents, rate=Fraction(1, 10) / HOUR)
    among, alone = PoolFacts(rules), PoolFacts(rules)
    among.wait_all([*startable, *stuck])
    alone.wait_all(startable)
    found = [position for position in among.at(0).positions() if position.uid.startswith("j")]
    return found, alone.at(0).positions()[:]


@pytest.mark.parametrize("parents", [FLAT, TREE, DEEP], ids=["flat", "tree", "deep"])
@settings(max_examples=cases())
@given(seed=st.integers(0, 2**32))
def test_the_others_stand_as_without_them(seed: int, parents: dict[str, str]) -> None:
    """Below others a job counts by the last of the jobs before it: there those that cannot start are the older ones."""
    startable, stuck = a_pool(random.Random(seed))
    if parents:
        stuck = [msgspec.structs.replace(job, submitted=-job.submitted) for job in stuck]
    among, alone = orders(parents, startable, stuck)
    assert uids(among) == uids(alone)


@settings(max_examples=cases())
@given(seed=st.integers(0, 2**32))
def test_in_a_tree_they_cost_no_share_nor_a_turn_among_siblings_however_young_they_are(seed: int) -> None:
    startable, stuck = a_pool(random.Random(seed))
    among, alone = orders(TREE, startable, stuck)
    assert {one.uid: (one.tag, one.use) for one in among} == {one.uid: (one.tag, one.use) for one in alone}
    for tenants in ("ab", "c", "d"):
        [found, wanted] = (uids(one for one in some if one.tenant in tenants) for some in (among, alone))
        assert found == wanted


def test_in_a_tree_one_that_is_younger_costs_its_siblings_no_more_than_the_waiting_that_they_have_on_it() -> (
    None
):
    """A job of `b` counts by the one of `a` that its organisation serves first, which came five hours later."""
    rules = replace(RULES, parents=TREE, rate=Fraction(1, 10) / HOUR)
    facts = PoolFacts(rules)
    facts.run("runs", "b", {"gpu": 8})
    facts.wait(a_waiting_job("b", tenant="b", submitted=0, demand={"gpu": 1}))
    facts.wait(a_waiting_job("c", tenant="c", submitted=6 * HOUR, demand={"gpu": 1}))
    alone = facts.at(0).positions()[:]
    facts.wait(set_apart(a_waiting_job("x", tenant="a", submitted=5 * HOUR, demand={"gpu": 99})))
    among = facts.at(0).positions()[:]
    assert (uids(alone), uids(among)) == (["b", "c"], ["c", "x", "b"])
    held, effective = among[2], among[2].effective
    assert effective is not None
    assert (effective.uid, effective.submitted, held.tag) == ("x", 5 * HOUR, alone[0].tag)
