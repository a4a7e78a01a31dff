"""Trees of tenants in examples; what holds of any tree stands with the scenes of the order."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import msgspec

from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import JobQueue, WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit.oracles.waiting import a_waiting_job, uids

QUEUES = (JobQueue("c1", "q1"), JobQueue("c1", "q2"))


def test_heads_wait_for_what_may_come_behind_the_beginning() -> None:
    """a asks for nothing, so its hundred jobs go first, and the last of them before b's in the same queue."""
    rules = PoolRules(
        capacity={"gpu": 10},
        classes=("normal",),
        entitlements={name: Fraction(1) for name in ("a", "b", "A")},
        parents={"a": "A", "b": "A"},
    )
    order = PoolFacts(rules)
    for number in range(101):
        order.wait(job(f"a{number:03d}", "a", 0, demand={}, queue=QUEUES[number == 100]))
    for number in range(61):
        order.wait(job(f"b{number:03d}", "b", 0, queue=QUEUES[number == 60]))
    assert uids(order.at(0).queue_heads(1)[QUEUES[1]]) == ["a100"]


# --- worked examples


def job(uid: str, tenant: str, submitted: int, **changed: object) -> WaitingJob:
    plain = a_waiting_job(uid, tenant=tenant, submitted=submitted, demand={"gpu": 1})
    return msgspec.structs.replace(plain, **changed)


ONES = {name: Fraction(1) for name in ("org", "team-1", "team-2", "rival", "j", "k")}
TWO_TEAMS = PoolRules(
    capacity={"gpu": 10},
    classes=("normal",),
    entitlements=ONES,
    parents={"team-1": "org", "team-2": "org"},
)
"""An organisation of two teams, and whoever else comes."""


def test_a_job_behind_a_siblings_counts_as_that_one() -> None:
    """Keys alone, lifted to 0.75, would put a2 first by the submit tie; the team level says a1, a2."""
    rules = PoolRules(
        capacity={"gpu": 10},
        classes=("normal",),
        rate=Fraction(1, 20),
        entitlements=ONES,
        parents={"team-1": "org", "team-2": "org"},
    )
    order = PoolFacts(rules)
    order.run("r", "team-2", {"gpu": 5})
    order.wait(job("a1", "team-1", 5))
    order.wait(job("a2", "team-2", 0))
    a1, a2 = order.at(5).positions()[:]
    assert uids([a1, a2]) == ["a1", "a2"]
    assert a2.effective is not None
    assert a2.effective.uid == "a1"
    assert (a1.key, a2.key) == (0.75, 0.6)
    assert [(one.tenant, one.tag) for one in a2.within] == [("team-2", 0.5)]


def test_a_sibling_that_comes_later_raises_the_tag_of_the_organisation() -> None:
    """A bound known at one level does not hold in a tree: it is the sum over the levels."""
    rules = PoolRules(
        capacity={"gpu": 10}, classes=("normal",), rate=Fraction(1, 10), entitlements=ONES,
        parents={"team-1": "org", "team-2": "org"},
    )  # fmt: skip
    order = PoolFacts(rules)
    order.run("r", "team-1", {"gpu": 3})
    order.wait(job("j", "team-1", 0))
    before = order.position("j", 0)
    order.wait(job("s", "team-2", 2, demand={"gpu": 2}))
    after = order.position("j", 2)
    assert before is not None
    assert after is not None
    assert (before.tag, after.tag) == (0.3, 0.5)


def test_weights_count_at_each_level() -> None:
    rules = PoolRules(
        capacity={"gpu": 100},
        classes=("normal",),
        entitlements={**ONES, "org": Fraction(2), "team-1": Fraction(3)},
        parents={"team-1": "org", "team-2": "org"},
    )
    order = PoolFacts(rules)
    for number in range(12):
        for tenant in ("team-1", "team-2", "rival"):
            order.wait(job(f"{tenant}-{number:02d}", tenant, 0))
    first = Counter(position.tenant for position in order.at(0).positions()[:18])
    assert first == {"team-1": 9, "team-2": 3, "rival": 6}


def test_the_standing_of_an_organisation_is_that_of_all_below_it() -> None:
    order = PoolFacts(TWO_TEAMS)
    order.run("r1", "team-1", {"gpu": 2})
    order.run("r2", "team-2", {"gpu": 1})
    order.wait(job("w", "team-2", 0))
    order.remember("org", {"gpu": 1})
    found = {standing.tenant: standing for standing in order.snapshot.standings(["team-1", "team-2"])}
    assert list(found) == ["org", "team-1", "team-2"]
    assert (found["org"].share, found["org"].running, found["org"].waiting) == (0.4, 2, 1)
    assert (found["org"].past, found["team-1"].parent) == ({"gpu": 1}, "org")


def test_an_event_makes_the_standings_of_its_own_tenant_and_those_above_it_alone() -> None:
    order = PoolFacts(TWO_TEAMS)
    for tenant in ("team-1", "team-2", "rival"):
        order.run(f"runs-{tenant}", tenant, {"gpu": 1})
        order.wait(job(f"waits-{tenant}", tenant, 0))

    before = order.snapshot.standings(("team-1", "team-2", "rival"))
    order.wait(job("comes", "team-1", 0))
    after = order.snapshot.standings(("team-1", "team-2", "rival"))
    assert [new.tenant for old, new in zip(before, after, strict=True) if new is not old] == ["org", "team-1"]
    order.forget("runs-rival")
    last = order.snapshot.standings(("team-1", "team-2", "rival"))
    assert [new.tenant for old, new in zip(after, last, strict=True) if new is not old] == ["rival"]


def test_a_flat_pool_is_the_same_whether_its_tenants_have_an_empty_tree_beside_them() -> None:
    rules = PoolRules(capacity={"gpu": 10}, classes=("normal",), entitlements=ONES)
    orders = [PoolFacts(rules), PoolFacts(replace(rules, parents={"team-1": "org"}))]
    for order in orders:
        order.run("r", "j", {"gpu": 2})
        order.wait(job("x", "j", 0))
        order.wait(job("y", "k", 1))
    assert orders[0].at(0).positions()[:] == orders[1].at(0).positions()[:]
