"""Entitlements: by the definition, whatever the scale of the weights, and as the old unit converts."""

import random
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.instants import HOUR
from fairlead_contracts.messages.state import State
from fairlead_contracts.policyfile.document import Aging, Hierarchy, PolicyDocument, Pool, Tenant
from fairlead_contracts.policyfile.read import read_document
from fairlead_contracts.snapshot.read import decode_snapshot
from fairlead_contracts.snapshot.write import encode_snapshot
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.from_state import snapshot_of
from fairlead_policy.snapshot.ordering import order_snapshot
from fairlead_testkit.inputs.builders import NOW, a_document, a_job, a_pool, a_queue
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.oracles.oracle import entitlement
from fairlead_testkit.oracles.told_what_if import what_if_in
from fairlead_testkit.oracles.waiting import a_waiting_job

CAPACITY = {"cpu": 24, "gpu": 8}
WEIGHTS = (0, 0.1, 0.5, 1, 1, 2, 3, 1000)
TREES: tuple[Mapping[str, str], ...] = (
    {},
    {"a": "A", "b": "A"},
    {"a": "X", "b": "Y", "X": "A", "Y": "A", "c": "B"},
)


def parts(document: PolicyDocument, pool: str = "p") -> dict[str, Fraction]:
    rules = Rulebook(document, 1).pool_rules(pool, CAPACITY)
    return {name: rules.entitlement_of(name) for name in (*rules.entitlements, "stranger")}


def document(rng: random.Random) -> PolicyDocument:
    parents = rng.choice(TREES)
    names = sorted({"a", "b", "c", "d", *parents, *parents.values()})
    tenants = [
        Tenant(
            name=name,
            weight=rng.choice(WEIGHTS),
            parent=parents.get(name),
            pool=None if parents.get(name) else rng.choice([None, None, None, "p", "q"]),
        )
        for name in names
    ]
    return PolicyDocument(
        tenants=tenants,
        unlisted_weight=rng.choice([None, None, 0, 0.5, 2]),
        expected_unlisted=rng.choice([1, 10, 10, 3]),
        divide_by=rng.choice(["entitlement", "entitlement", "entitlement", "weight"]),
    )


@given(st.randoms(use_true_random=False))
@settings(max_examples=cases(0.3))
def test_every_part_is_that_of_the_definition(rng: random.Random) -> None:
    policy = document(rng)
    assert parts(policy) == {name: entitlement(policy, name, "p") for name in parts(policy)}


def test_a_part_is_the_weight_over_the_siblings_from_the_top() -> None:
    policy = PolicyDocument(
        tenants=[
            Tenant(name="org", weight=3),
            Tenant(name="team-1", parent="org", weight=3),
            Tenant(name="team-2", parent="org"),
            Tenant(name="lone", weight=1),
            Tenant(name="elsewhere", weight=96, pool="q"),
            Tenant(name="last", weight=0),
            Tenant(name="below", parent="last", weight=7),
            Tenant(name="beside", parent="last", weight=1),
        ],
    )
    assert parts(policy) == {
        "org": Fraction(3, 4),
        "team-1": Fraction(9, 16),
        "team-2": Fraction(3, 16),
        "lone": Fraction(1, 4),
        "elsewhere": 0,
        "last": 0,
        "below": Fraction(7, 8),
        "beside": Fraction(1, 8),
        "stranger": 0,
    }
    assert parts(policy, "q")["elsewhere"] == Fraction(96, 100)
    open_to_all = msgspec.structs.replace(policy, unlisted_weight=0.4)
    assert parts(open_to_all)["lone"] == Fraction(1, 8), "ten strangers of 0.4 are expected"
    assert parts(open_to_all)["stranger"] == Fraction(4, 80)
    few = msgspec.structs.replace(open_to_all, expected_unlisted=1)
    assert parts(few)["stranger"] == Fraction(4, 44)
    assert parts(few)["team-2"] == Fraction(30, 44) / 4


def test_a_set_of_zeros_alone_shares_alike() -> None:
    zeros = PolicyDocument(tenants=[Tenant(name=name, weight=0) for name in ("a", "b")])
    assert parts(zeros) == {"a": Fraction(1, 2), "b": Fraction(1, 2), "stranger": 0}
    below = PolicyDocument(
        tenants=[Tenant(name="org"), *(Tenant(name=n, weight=0, parent="org") for n in ("a", "b", "c"))]
    )
    assert parts(below) == {"org": 1, **dict.fromkeys(("a", "b", "c"), Fraction(1, 3)), "stranger": 0}


@given(st.randoms(use_true_random=False))
@settings(max_examples=cases(0.2))
def test_weights_times_a_constant_change_no_byte_of_the_order(rng: random.Random) -> None:
    policy = msgspec.structs.replace(
        document(rng),
        divide_by="entitlement",
        class_mode=rng.choice(["strict", "additive", "multiplicative"]),
        class_weights={"urgent": 1, "approved": 1, "normal": 1},
        hierarchy=Hierarchy(mode=rng.choice(["drf", "hdrf"])),
    )
    policy = read_document(msgspec.to_builtins(policy) | {"pools": POOLS})
    parents = {tenant.parent for tenant in policy.tenants}
    factors = {parent: rng.choice([2, 10, 0.5, 64]) for parent in sorted(parents, key=str)}
    times = msgspec.structs.replace(
        policy,
        unlisted_weight=None if policy.unlisted_weight is None else policy.unlisted_weight * factors[None],
        tenants=[
            msgspec.structs.replace(one, weight=one.weight * factors[one.parent]) for one in policy.tenants
        ],
    )
    leaves = [tenant.name for tenant in policy.tenants if tenant.name not in parents]
    jobs = [
        a_waiting_job(
            f"u{number:02d}",
            tenant=rng.choice([*leaves, "stranger"]),
            submitted=rng.randrange(5) * HOUR,
            demand={"cpu": rng.randrange(4), "gpu": rng.randrange(3)},
        )
        for number in range(12)
    ]
    assert told(policy, jobs) == told(times, jobs)


POOLS = [{"name": "p", "members": ["c/p"]}, {"name": "q", "members": ["c/q"]}]


def told(policy: PolicyDocument, jobs: list[WaitingJob]) -> bytes:
    order = PoolFacts(replace(Rulebook(policy, 1).pool_rules("p", CAPACITY), saturated=frozenset({"gpu"})))
    order.run("runs", "a", {"gpu": 2})
    order.wait_all(jobs)
    return msgspec.json.encode(order.at(9 * HOUR).positions()[:])


@given(st.randoms(use_true_random=False))
@settings(max_examples=cases(0.1))
def test_share_an_hour_times_24_times_the_sum_of_the_weights_keeps_the_order_of_a_flat_pool(
    rng: random.Random,
) -> None:
    rate, cap = rng.choice([0.06, 0.001, 0.3, 6]), rng.choice([None, 1, 48, 336])
    weights, unlisted = [rng.choice([0.1, 1, 2, 3]) for _ in "abcd"], rng.choice([None, 0.5])
    total = sum(map(Decimal, map(str, weights))) + 10 * Decimal(str(unlisted or 0))
    new = PolicyDocument(
        aging=Aging(
            entitlement_per_day=float(Decimal(str(rate)) * 24 * total),
            cap_days=None if cap is None else cap / 24,
        ),
        unlisted_weight=unlisted,
        tenants=[Tenant(name=name, weight=weight) for name, weight in zip("abcd", weights, strict=True)],
    )
    rules = Rulebook(new, 1).pool_rules("p", CAPACITY)
    was = replace(
        rules,
        entitlements={one.name: Fraction(repr(one.weight)) for one in new.tenants},
        unlisted_entitlement=Fraction(repr(new.unlisted_weight or 0)),
        rate=Fraction(repr(rate)) / HOUR,
        cap=None if cap is None else cap * HOUR,
    )
    jobs = [
        a_waiting_job(
            f"u{number:02d}",
            tenant=rng.choice("abcde"),
            submitted=rng.randrange(400) * HOUR,
            demand={"cpu": rng.randrange(4), "gpu": rng.randrange(3)},
        )
        for number in range(12)
    ]
    assert uids(rules, jobs) == uids(was, jobs)


def uids(rules: PoolRules, jobs: list[WaitingJob]) -> list[str]:
    order = PoolFacts(rules)
    order.wait_all(jobs)
    return order.at(400 * HOUR).uids()


@given(st.randoms(use_true_random=False))
@settings(max_examples=cases(0.2))
def test_above_the_weight_that_is_told_a_job_stands_where_it_says(rng: random.Random) -> None:
    """Though more weight for one tenant makes the parts of all others smaller, and so moves these, too."""
    policy = PolicyDocument(
        aging=Aging(entitlement_per_day=rng.choice([0.1, 24.0])),
        unlisted_weight=rng.choice([None, 2.0]),
        tenants=[
            Tenant(name=name, weight=rng.choice([0.5, 1, 2, 30]), parent=parent)
            for name, parent in (("a", None), ("b", None), ("O", None), ("c", "O"), ("d", "O"))
        ],
    )
    tenants = ["a", "b", "c", "d"] if policy.unlisted_weight is None else ["a", "b", "c", "d", "stranger"]
    jobs = [
        a_waiting_job(
            f"u{number:02d}",
            tenant=rng.choice(tenants),
            submitted=rng.randrange(9) * HOUR,
            demand={"gpu": rng.randrange(3)},
        )
        for number in range(8)
    ]
    runs = [(tenant, rng.randrange(4)) for tenant in tenants]
    whose = rng.choice([job for job in jobs if job.tenant in {"a", "b", "stranger"}] or jobs)
    order = pool_of(policy, jobs, runs).at(9 * HOUR)
    position = order.position(whose)
    assert position is not None
    found = what_if_in(order, position)
    for move in found.counterfactuals:
        if move.cause == "weight":
            others = [tenant for tenant in policy.tenants if tenant.name != whose.tenant]
            raised = Tenant(name=whose.tenant, weight=move.weight * (1 + 1e-9))
            moved = pool_of(msgspec.structs.replace(policy, tenants=[*others, raised]), jobs, runs)
            assert moved.at(9 * HOUR).uids().index(whose.uid) == move.rank


def pool_of(policy: PolicyDocument, jobs: list[WaitingJob], runs: list[tuple[str, int]]) -> PoolFacts:
    order = PoolFacts(Rulebook(policy, 1).pool_rules("p", CAPACITY))
    for tenant, gpus in runs:
        order.run(f"runs-{tenant}", tenant, {"gpu": gpus})
    order.wait_all(jobs)
    return order


def test_a_stated_snapshot_divides_by_what_scorers_divide_by() -> None:
    """Strangers and tenants that stand in one pool just now change no sum."""
    policy = a_document(
        unlisted_weight=0.5,
        pools=[Pool(name="gpu", members=["c1/gpu"])],
        tenants=[Tenant(name="team-a", weight=3), Tenant(name="team-b", weight=2), Tenant(name="idle")],
    )
    facts: list[State] = [
        a_pool(),
        a_pool(name="cpu"),
        a_queue(),
        a_queue(name="batch", pool="cpu"),
        a_job("one"),
        a_job("two", scope="team-b", queue="batch"),
        a_job("three", scope="stranger", queue="batch"),
    ]
    states = {f"s{number}": state for number, state in enumerate(facts)}
    snapshot = decode_snapshot(encode_snapshot(snapshot_of(states, policy, NOW)))
    for pool in order_snapshot(snapshot):
        live = Rulebook(policy, 1).pool_rules(pool.name, pool.rules.capacity)
        assert pool.rules.entitlements == live.entitlements
        assert pool.rules.unlisted_entitlement == live.unlisted_entitlement == Fraction(5, 110)
