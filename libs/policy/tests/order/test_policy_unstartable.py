"""Jobs that cannot start as they are: they keep their positions, and nobody waits as if they had started."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.instants import HOUR
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


@settings(max_examples=cases())
@given(st.integers(0, 2**32))
def test_the_others_stand_as_without_them(seed: int) -> None:
    """Of tenants that stand alone. In a tree a job counts by the last of the jobs before it, whoever that is."""
    dice = random.Random(seed)
    rules = replace(RULES, rate=Fraction(1, 10) / HOUR)
    startable = [
        a_waiting_job(
            f"j{number}",
            tenant=dice.choice("abcd"),
            job_class=dice.choice(rules.classes),
            submitted=dice.randrange(20) * HOUR,
            demand={name: dice.randint(1, 9) for name in CAPACITY if dice.random() < 0.7},
        )
        for number in range(12)
    ]
    others = [
        set_apart(
            a_waiting_job(
                f"x{number}",
                tenant=job.tenant,
                submitted=job.submitted + 1,
                demand={"gpu": dice.randint(1, 99)},
            )
        )
        for number, job in enumerate(dice.sample(startable, 3))
    ]
    with_all, without = PoolFacts(rules), PoolFacts(rules)
    with_all.wait_all([*startable, *others])
    without.wait_all(startable)
    found = uids(with_all.at(0).positions()[:])
    assert [uid for uid in found if uid.startswith("j")] == uids(without.at(0).positions()[:])
