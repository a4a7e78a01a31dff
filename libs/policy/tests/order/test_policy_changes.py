"""Any history of changes ends in the order that the same facts give from scratch."""

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_policy.exact.scoring import Scores
from fairlead_policy.order.order import Order
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import JobQueue, WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.oracles.waiting import THE_QUEUE, a_waiting_job

CLASSES = ("urgent", "normal")
TENANTS = ("ada", "bob")


def scores_of(facts: PoolFacts) -> Scores:
    tenant_queue = facts.snapshot.tenant_queue("ada")
    assert tenant_queue is not None
    return tenant_queue.scored()


def test_an_event_leaves_all_other_tenants_and_the_snapshot_before_it_as_they_were() -> None:
    facts = PoolFacts(PoolRules(capacity={"gpu": 4}, classes=CLASSES, unlisted_entitlement=Fraction(1)))
    for number in range(40):
        facts.wait(
            a_waiting_job(f"u{number:02}", tenant=TENANTS[number % 2], submitted=number, demand={"gpu": 1})
        )
    before = facts.snapshot
    order = facts.at(0)
    uids, scores = order.uids(), scores_of(facts)
    facts.forget("u01")
    facts.run("r", TENANTS[1], {"gpu": 1})
    assert scores_of(facts) is scores
    assert facts.snapshot.trees[TENANTS[0]] is before.trees[TENANTS[0]]
    assert "u01" not in facts.at(0).uids()
    assert order.uids() == Order(before, 0).uids() == uids


def test_what_is_told_many_times_before_somebody_looks_is_as_if_told_at_once() -> None:
    facts = PoolFacts(PoolRules(capacity={"gpu": 4}, classes=CLASSES, unlisted_entitlement=Fraction(1)))
    jobs = {
        uid: a_waiting_job(uid, tenant="ada", submitted=number % 7, demand={"gpu": 1})
        for number, uid in enumerate(f"u{number:03}" for number in range(600))
    }
    for uid, job in jobs.items():
        facts.wait(job)
        assert facts.snapshot.tenant_queue("ada") is not None
        if uid.endswith("5"):
            facts.forget(uid)
    waiting = [uid for uid in jobs if not uid.endswith("5")]
    assert facts.snapshot.waiting() == {THE_QUEUE: len(waiting)}
    expected = PoolFacts(facts.rules)
    expected.wait_all(jobs[uid] for uid in waiting)
    assert facts.at(0).uids() == expected.at(0).uids()


@pytest.mark.parametrize("sparse", [False, True], ids=["one queue", "and a sparse one"])
@pytest.mark.parametrize("strict", [True, False], ids=["strict", "numbers"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=cases(0.02), deadline=None)
def test_the_head_of_a_long_line_is_that_of_all_its_jobs(seed: int, *, strict: bool, sparse: bool) -> None:
    """The jobs of thousands that somebody looks at are made without the rest: they must be the same."""
    dice = random.Random(seed)
    weights = {} if strict else {"urgent": Fraction(5), "normal": Fraction(1)}
    pool = PoolRules(
        capacity={"gpu": 4},
        classes=CLASSES,
        unlisted_entitlement=Fraction(1),
        class_mode="strict" if strict else "additive",
        class_weights=weights,
        rate=Fraction(1, 4),
    )
    facts = PoolFacts(pool)
    jobs = {uid: _any_job(uid, dice, sparse=sparse) for uid in map("u{:04}".format, range(4_500))}
    facts.wait_all(jobs.values())
    facts.at(0).queue_heads(3)
    for turn in range(12):
        for uid in dice.sample(sorted(jobs), 3):
            facts.forget(uid)
            del jobs[uid]
            # Some come again as something else, most for the first time.
            again = uid if dice.random() < 0.3 else f"v{turn:04}{uid}"
            jobs[again] = _any_job(again, dice, sparse=sparse)
            facts.wait(jobs[again])
        first = min(jobs.values(), key=lambda job: (job.job_class != "urgent", job.submitted))
        if dice.random() < 0.7:
            facts.forget(first.uid)
            del jobs[first.uid]
        fresh = PoolFacts(pool)
        fresh.wait_all(jobs.values())
        window = dice.choice((1, 5, 40))
        assert facts.at(0).queue_heads(window) == fresh.at(0).queue_heads(window)
        assert facts.snapshot.waiting() == fresh.snapshot.waiting()
        assert turn < 11 or facts.at(0).uids() == fresh.at(0).uids()


def _any_job(uid: str, dice: random.Random, *, sparse: bool) -> WaitingJob:
    return a_waiting_job(
        uid,
        tenant="ada",
        job_class="urgent" if dice.random() < 0.01 else "normal",
        submitted=dice.randrange(5_000),
        demand={"gpu": dice.randint(1, 4)},
        queue=JobQueue("c", "seldom" if sparse and dice.random() < 0.002 else "q"),
    )


def test_telling_a_fact_again_changes_nothing_and_costs_no_scores() -> None:
    order = PoolFacts(PoolRules(capacity={"gpu": 4}, classes=CLASSES, unlisted_entitlement=Fraction(1)))
    job = a_waiting_job("u", tenant="ada", submitted=1, demand={"gpu": 1})
    order.wait(job)
    order.run("r", "ada", {"gpu": 1})
    before = order.at(0).positions()[:]
    scores = scores_of(order)
    order.wait(msgspec.structs.replace(job))
    order.run("r", "ada", {"gpu": 1, "cpu": 0})
    order.set_rules(PoolRules(capacity={"gpu": 4}, classes=CLASSES, unlisted_entitlement=Fraction(1)))
    order.forget("never seen")
    assert scores_of(order) is scores
    assert order.at(0).positions()[:] == before


@pytest.mark.parametrize("rescaled", [False, True], ids=["plain", "H-DRF"])
def test_a_tree_that_nothing_changed_in_is_that_of_each_instant(*, rescaled: bool) -> None:
    """By waiting, ada's first job goes before bob's; once both have waited as long as counts, bob's share does."""
    family = PoolRules(
        capacity={"gpu": 4},
        classes=CLASSES,
        entitlements={"org": Fraction(1), "ada": Fraction(1), "bob": Fraction(1)},
        parents={"ada": "org", "bob": "org"},
        rate=Fraction(1, 4),
        cap=5,
        rescaled=rescaled,
    )

    def told() -> PoolFacts:
        facts = PoolFacts(family)
        for uid, tenant, submitted in (("a", "ada", 0), ("b", "bob", 10)):
            facts.wait(a_waiting_job(uid, tenant=tenant, submitted=submitted, demand={"gpu": 1}))
        facts.run("r", "ada", {"gpu": 1})
        return facts

    kept, first = told(), []
    for now in (10, 30, 10):
        heads = kept.at(now).queue_heads(1)
        assert heads == told().at(now).queue_heads(1)
        assert kept.at(now).positions()[:] == told().at(now).positions()[:]
        first.append(heads[THE_QUEUE][0].uid)
    assert first == ["a", "b", "a"]


FLAT = PoolRules(
    capacity={"cpu": 4},
    classes=CLASSES,
    unlisted_entitlement=Fraction(1),
    class_weights={"urgent": Fraction(5), "normal": Fraction(1)},
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"capacity": {"gpu": 8}}),
        ({}, {"classes": CLASSES[::-1]}),
        ({}, {"class_mode": "additive"}),
        ({"class_mode": "additive"}, {}),
        ({}, {"rescaled": True, "saturated": frozenset({"cpu"})}),
        ({}, {"resource_weights": {"cpu": Fraction(1, 2)}}),
        ({}, {"resource_weights": {"gpu": Fraction(0)}}),
    ],
    ids=lambda changed: " ".join(changed) or "plain",
)
def test_under_other_rules_the_order_is_that_of_the_same_facts(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    def told(rules: PoolRules) -> PoolFacts:
        facts = PoolFacts(rules)
        for number, job_class in enumerate(("normal", "urgent", "normal")):
            demand = {("cpu", "gpu")[number % 2]: number + 1}
            facts.wait(
                a_waiting_job(
                    f"u{number}", tenant="ada", job_class=job_class, submitted=number, demand=demand
                )
            )
        return facts

    facts, other = told(replace(FLAT, **before)), replace(FLAT, **after)
    facts.at(0).positions()
    facts.set_rules(other)
    assert facts.at(0).positions()[:] == told(other).at(0).positions()[:]


@pytest.mark.parametrize("tenant", ["ada", "org"])
def test_past_use_that_is_gone_leaves_nothing_behind(tenant: str) -> None:
    facts = PoolFacts(replace(FLAT, parents={"bob": "org"}))
    facts.remember(tenant, {"cpu": 1})
    assert [one.tenant for one in facts.snapshot.standings()] == [tenant]
    facts.remember(tenant, {})
    assert (facts.snapshot.standings(), facts.snapshot.trees) == ([], {})
