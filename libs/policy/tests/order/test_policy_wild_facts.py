"""Facts as they come, not as they should be: nothing is refused in a running cluster, all of it has a defined position."""

import random
from fractions import Fraction
from itertools import pairwise
from math import isfinite

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.instants import HOUR, SECOND
from fairlead_policy.order.merging import merge_positions, sort_key
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import JobQueue, WaitingJob
from fairlead_policy.rules.pool_rules import ClassMode, PoolRules
from fairlead_testkit.inputs.cases import cases

rngs = st.integers(0, 2**32).map(random.Random)
RESOURCES = ("cpu", "gpu", "memory")
AMOUNTS = (
    0,
    1,
    999,
    2**31,
    2**53 + 1,
    2**60,
    2**61 - 1,
    2**62,
    2**63 - 1,
    2**63,
    2**64,
    10**30,
    -1,
    -(2**70),
)
INSTANTS = (0, -1, 1_795_000_000 * SECOND, 2**53 + 1, 2**61, 2**63, -(2**63), 10**25)
WEIGHTS = tuple(Fraction(text) for text in ("0", "1", "1e-6", "1e9", "0.333333333333", "7"))
RATES = tuple(Fraction(text) / HOUR for text in ("0", "0.06", "1e9", "1e-12", "0.1"))
TREES: tuple[dict[str, str], ...] = (
    {},
    {"a": "A", "b": "A"},
    {"a": "X", "X": "A", "b": "A", "c": "B"},
)
TENANTS = ("a", "b", "c", "", "nobody's")


def wild_rules(rng: random.Random) -> PoolRules:
    mode: ClassMode = rng.choice(("strict", "strict", "additive", "multiplicative"))
    capacity = {name: max(0, min(rng.choice(AMOUNTS), 2**62)) for name in RESOURCES if rng.random() < 0.9}
    rescaled = rng.random() < 0.3
    return PoolRules(
        capacity=capacity,
        classes=("urgent", "normal"),
        rate=rng.choice(RATES),
        cap=rng.choice([None, 1, 336 * HOUR, round(1e7) * HOUR]),
        resource_weights={name: rng.choice(WEIGHTS) for name in RESOURCES if rng.random() < 0.4},
        entitlements={name: rng.choice(WEIGHTS) for name in ("a", "b", "A", "X")},
        unlisted_entitlement=rng.choice([Fraction(0), Fraction(1)]),
        parents=rng.choice(TREES),
        class_mode=mode,
        class_weights={"urgent": Fraction(rng.choice(["1000", "1e-6"])), "normal": Fraction(1)},
        rescaled=rescaled,
        saturated=frozenset(
            rng.sample(sorted(capacity), min(len(capacity), rng.randrange(2))) if rescaled else ()
        ),
    )


def wild_amounts(rng: random.Random) -> dict[str, int]:
    return {name: rng.choice(AMOUNTS) for name in (*RESOURCES, "unheard-of") if rng.random() < 0.4}


def wild_job(rng: random.Random, uid: str) -> WaitingJob:
    return WaitingJob(
        uid=uid,
        scope=rng.choice(["", "s"]),
        id=rng.choice(["", "j"]),
        tenant=rng.choice(TENANTS),
        job_class=rng.choice(["urgent", "normal", "", "of another policy"]),
        submitted=rng.choice(INSTANTS) + rng.randrange(3),
        # A position repeats it, so it is bounded where facts are read: see `Rulebook.waiting_job`.
        demand={name: max(min(amount, 2**64 - 1), -(2**63)) for name, amount in wild_amounts(rng).items()},
        queue=rng.choice([JobQueue("c", "q"), JobQueue("", "")]),
        override=rng.choice([None, None, 1e-6, 1e9, 0.1]),
    )


@given(rngs)
@settings(max_examples=cases())
def test_whatever_is_told_has_an_exact_position_that_can_be_sent(rng: random.Random) -> None:
    rules, now = wild_rules(rng), rng.choice(INSTANTS[:5])
    jobs = [
        wild_job(rng, uid)
        for uid in rng.sample(["", "u", "v", "ü", "\N{BEER MUG}", "x" * 300, "u1", "u2"], 5)
    ]
    running = [(f"r{number}", rng.choice(TENANTS), wild_amounts(rng)) for number in range(rng.randrange(4))]
    past = {rng.choice((*TENANTS, "A")): wild_amounts(rng) for _ in range(rng.randrange(3))}
    at_once, one_by_one = PoolFacts(rules), PoolFacts(wild_rules(rng))
    for order in (at_once, one_by_one):
        for uid, tenant, demand in running:
            order.run(uid, tenant, demand)
        for name, amounts in past.items():
            order.remember(name, amounts)
    at_once.wait_all(jobs)
    for job in reversed(jobs):
        one_by_one.wait(job)
        one_by_one.at(now).queue_heads(1)
    one_by_one.set_rules(rules)
    positions = list(at_once.at(now).positions())
    assert sorted(position.uid for position in positions) == sorted(job.uid for job in jobs)
    keys = [sort_key(position, rules, now) for position in positions]
    assert all(one < other for one, other in pairwise(keys))
    assert all(isfinite(position.tag) and isfinite(position.key) for position in positions)
    sent = msgspec.msgpack.encode((positions, at_once.snapshot.standings()))
    assert sent == msgspec.msgpack.encode(
        (list(one_by_one.at(now).positions()), one_by_one.snapshot.standings())
    )
    assert merge_positions([positions[::2], positions[1::2]], rules, now) == positions
    flip = at_once.at(now).next_flip()
    assert flip is None or flip > now
