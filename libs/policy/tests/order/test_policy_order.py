"""The order in examples: the arithmetic that floats would get wrong, and what is infinite or nobody's."""

import random
from dataclasses import replace
from fractions import Fraction

import msgspec

from fairlead_contracts.base.instants import HOUR, SECOND
from fairlead_policy.order.merging import merge_positions, sort_key
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import JobQueue, WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit.oracles.waiting import THE_QUEUE, a_waiting_job, uids

TENANTS = ("ada", "bob", "cyd", "dan")
CLASSES = ("urgent", "normal")
QUEUES = (JobQueue("c1", "q1"), JobQueue("c1", "q2"), JobQueue("c2", "q1"))


def to_bytes(positions: object) -> bytes:
    return msgspec.msgpack.encode(positions)


RULES = PoolRules(capacity={"gpu": 10}, classes=CLASSES, entitlements=dict.fromkeys(TENANTS, Fraction(1)))


def job(uid: str, tenant: str, **changed: object) -> WaitingJob:
    plain = a_waiting_job(uid, tenant=tenant, demand={"gpu": 1})
    return msgspec.structs.replace(plain, **changed)


def test_a_tenth_three_times_is_three_tenths() -> None:
    # In floats 0.1 * 3 > 0.3: the older job of the tenant with the tie would lose its position.
    order = PoolFacts(replace(RULES, entitlements={"ada": Fraction("0.1"), "bob": Fraction("0.3")}))
    order.run("r1", "ada", {"gpu": 1})
    order.run("r2", "bob", {"gpu": 3})
    order.wait(job("a", "ada", submitted=5))
    order.wait(job("b", "bob", submitted=4))
    assert uids(order.at(0).positions()[:]) == ["b", "a"]


def test_equal_tags_of_unlike_floats_tie_in_orders_and_heads() -> None:
    unlike = 0
    for use in range(2, 40):
        weights = {"ada": Fraction(use, 10), "bob": Fraction(1, 10)}
        unlike += use * float(Fraction(1, 7) / weights["ada"]) != float(Fraction(1, 7) / weights["bob"])
        for older, newer in (("ada", "bob"), ("bob", "ada")):
            order = PoolFacts(replace(RULES, capacity={"gpu": 7}, entitlements=weights))
            order.run("r1", "ada", {"gpu": use})
            order.run("r2", "bob", {"gpu": 1})
            order.wait(job(newer, newer, submitted=5))
            order.wait(job(older, older, submitted=4))
            assert uids(order.at(0).positions()[:]) == [older, newer]
            assert uids(order.at(0).queue_heads(1)[THE_QUEUE]) == [older]
    assert unlike > 5


def test_keys_that_differ_by_less_than_a_float_can_hold_keep_their_order() -> None:
    rate = Fraction(6, 100) / 3_600_000_000
    now = 1_795_000_000_000_000
    order = PoolFacts(
        PoolRules(capacity={"memory": 2**59}, classes=CLASSES, rate=rate, unlisted_entitlement=Fraction(1))
    )
    for tenant, use in (("ada", 2**58 + 1), ("bob", 2**58), ("cyd", 2**58 + 2)):
        order.run(f"r-{tenant}", tenant, {"memory": use})
        order.wait(job(tenant, tenant, submitted=now, demand={"memory": 1}))
    positions = order.at(now).positions()[:]
    assert len({position.key for position in positions}) == 1
    assert uids(positions) == ["bob", "ada", "cyd"]
    assert uids(merge_positions([positions[::-1]], order.rules, now)) == ["bob", "ada", "cyd"]


def test_of_equally_dominant_resources_the_first_by_name_is_named() -> None:
    unlike = 0
    rules = PoolRules(capacity={"gpu": 3, "cpu": 49}, classes=CLASSES, unlisted_entitlement=Fraction(1))
    for times in range(1, 30):
        order = PoolFacts(rules)
        order.run("r", "ada", {"gpu": 3 * times, "cpu": 49 * times})
        order.wait(job("tie", "ada", demand={"gpu": 1}))
        order.wait(job("more", "ada", submitted=1))
        assert [position.dominant for position in order.at(0).positions()] == ["cpu", "gpu"]
        unlike += 3 * times * (1 / 3) > 49 * times * (1 / 49)
    assert unlike


def test_the_dominant_resource_is_found_where_floats_are_equal() -> None:
    capacity = {"cpu": 2**61, "gpu": 2**61}
    order = PoolFacts(PoolRules(capacity=capacity, classes=CLASSES, unlisted_entitlement=Fraction(1)))
    order.run("r", "ada", {"cpu": 2**60, "gpu": 2**60 + 1})
    order.wait(job("a", "ada"))
    position = order.position("a", 0)
    assert position is not None
    assert (position.dominant, position.use) == ("gpu", 2**60 + 1)
    weighty = replace(order.rules, resource_weights={"cpu": Fraction("1.000000000000000001")})
    order.set_rules(weighty)
    position = order.position("a", 0)
    assert position is not None
    assert position.dominant == "cpu"


def test_demands_beyond_64_bits_stand_last_and_harm_nobody() -> None:
    order = PoolFacts(
        replace(RULES, rate=Fraction(1, 10**6), capacity=dict.fromkeys(("gpu", "other"), 2**65))
    )
    for number in range(6):
        order.wait(job(f"a{number}", "ada", submitted=number, demand={"gpu": 2**62 + 2**60}))
        order.wait(job(f"b{number}", "bob", submitted=number))
    order.wait(job("huge", "cyd", demand={"gpu": 2**64 - 1, "other": 2**64 - 1}))
    order.wait(job("huge-too", "cyd", submitted=1, demand={"gpu": 2**64 - 1}))
    order.wait(job("late", "cyd", submitted=2**63 + 5))
    order.wait(job("early", "dan", submitted=-(2**63) - 5))
    order.run("r", "dan", {"gpu": -5, "fpga": 2**64})
    positions = order.at(10).positions()[:]
    to_bytes(positions)
    to_bytes(order.snapshot.standings())
    # The first jobs of ada and of cyd start from nothing used, whatever they ask for.
    names = uids(positions)
    assert names[:3] == ["a0", "b0", "huge"]
    assert [uid for uid in names if uid.startswith("b")] == [f"b{number}" for number in range(6)]
    assert names.index("b5") < names.index("a2")
    assert [position.unbounded for position in positions if position.uid in {"a2", "late", "early"}] == [
        True
    ] * 3
    assert merge_positions([positions[::2], positions[1::2]], order.rules, 10) == positions


def test_a_tenant_without_weight_stands_behind_its_class_and_before_the_next() -> None:
    order = PoolFacts(replace(RULES, entitlements={"bob": Fraction(1)}))
    order.wait(job("stranger-urgent", "eve", job_class="urgent", submitted=0))
    order.wait(job("b-urgent", "bob", job_class="urgent", submitted=9, demand={"gpu": 1000}))
    order.wait(job("stranger", "eve", submitted=0))
    order.wait(job("b", "bob", submitted=9))
    assert uids(order.at(10).positions()[:]) == ["b-urgent", "stranger-urgent", "b", "stranger"]


def test_a_resource_that_the_pool_lacks_is_named_as_the_cause() -> None:
    order = PoolFacts(RULES)
    order.wait(job("first", "ada"))
    [first] = order.at(0).positions()[:]
    assert not first.unbounded
    order.run("r", "ada", {"tpu": 3})
    assert order.position("first", 0) == msgspec.structs.replace(
        first, unbounded=True, unbounded_by="held", dominant="tpu", use=3
    )


def test_a_class_that_the_policy_does_not_know_stands_behind_all() -> None:
    order = PoolFacts(RULES)
    order.wait(job("odd", "ada", job_class="of another policy"))
    order.wait(job("b", "bob", submitted=1))
    assert uids(order.at(0).positions()[:]) == ["b", "odd"]


def test_no_capacity_and_no_jobs_are_no_errors() -> None:
    empty = PoolFacts(PoolRules(capacity={}, classes=CLASSES, unlisted_entitlement=Fraction(1)))
    assert empty.at(0).positions()[:] == []
    assert empty.at(0).queue_heads(10) == {}
    assert empty.at(0).next_flip() is None
    assert empty.snapshot.standings() == []
    assert merge_positions([], RULES, 0) == []
    empty.wait(job("a", "ada", demand={}))
    empty.wait(job("b", "ada", submitted=1, demand={"gpu": 1}))
    empty.wait(job("c", "ada", submitted=2))
    assert [(position.uid, position.unbounded) for position in empty.at(0).positions()] == [
        ("a", False),
        ("b", False),
        ("c", False),
    ]


def test_thousands_of_equal_jobs_of_equal_tenants_stay_quick_and_exact() -> None:
    """Every key ties: 20,000 jobs of 2,000 tenants of two weights, no aging. Quadratic code would not end."""
    rules = PoolRules(
        capacity={"gpu": 1000, "cpu": 4000},
        classes=CLASSES,
        entitlements={f"t{number}": Fraction(1 + number % 2) for number in range(2000)},
    )
    order = PoolFacts(rules)
    jobs = [
        job(f"u{number:05d}", f"t{number % 2000}", submitted=number % 7, demand={"gpu": 1, "cpu": 4})
        for number in range(20_000)
    ]
    for one in jobs:
        order.wait(one)
    positions = order.at(0).positions()[:]
    assert positions == sorted(positions, key=lambda position: sort_key(position, rules, 0))
    assert uids(order.at(0).queue_heads(100)[THE_QUEUE]) == uids(positions[:100])


def test_a_large_pool_of_true_sizes_is_in_exact_order_and_merges_from_16_shards() -> None:
    rng = random.Random(8)
    rules = PoolRules(
        capacity={"cpu": 96_000 * 40, "gpu": 8000 * 40, "memory": 40 * 2**40},
        classes=CLASSES,
        rate=Fraction("0.06") / HOUR,
        cap=336 * HOUR,
        entitlements={f"t{number}": Fraction(str(rng.choice([0.1, 0.3, 1, 2, 3]))) for number in range(60)},
    )
    order = PoolFacts(rules)
    now = 1_795_000_000 * SECOND
    for number in range(4000):
        # Proportional demands tie the resources, whole seconds the instants, equal weights the tenants.
        cards = rng.choice([1, 1, 2, 4, 8])
        order.wait(
            job(
                f"u{rng.randrange(10**9)}-{number}",
                f"t{rng.randrange(60)}",
                job_class=rng.choice(CLASSES),
                submitted=now - rng.randrange(500) * HOUR,
                demand={"cpu": cards * 12_000, "gpu": cards * 1000, "memory": cards * 2**37},
                queue=rng.choice(QUEUES),
            )
        )
    whole = order.at(now).positions()[:]
    assert whole == sorted(whole, key=lambda position: sort_key(position, rules, now))
    shards = [[f"t{number}" for number in range(60) if number % 16 == shard] for shard in range(16)]
    assert merge_positions([order.at(now).positions(shard)[:] for shard in shards], rules, now) == whole
    for window in (1, 100, 5000):
        queue_heads = [order.at(now).queue_heads(window, shard) for shard in shards]
        for queue, heads in order.at(now).queue_heads(window).items():
            parts = [part[queue] for part in queue_heads if queue in part]
            assert merge_positions(parts, rules, now)[:window] == heads
            assert (
                heads
                == [position for position in whole if order._waiting[position.uid].queue == queue][:window]
            )


def test_weights_without_a_small_common_denominator_are_compared_exactly() -> None:
    """Primes: their common denominator would have thousands of bits, and each key ties with all others."""
    primes = [
        number for number in range(3, 3000) if all(number % part for part in range(2, 55) if part < number)
    ]
    rules = PoolRules(
        capacity={"gpu": 1},
        classes=CLASSES,
        entitlements={f"t{prime}": Fraction(prime, 10**40) for prime in primes},
    )
    order = PoolFacts(rules)
    for number, prime in enumerate(primes):
        order.run(f"r{prime}", f"t{prime}", {"gpu": prime})
        order.wait(job(f"u{prime}", f"t{prime}", submitted=(number * 7) % 11))
    positions = order.at(0).positions()[:]
    assert {position.tag for position in positions} == {1e40}
    assert uids(positions) == [
        position.uid
        for position in sorted(positions, key=lambda position: (position.submitted, position.uid))
    ]


def test_standings_say_what_a_tenant_has_of_what_it_may_have() -> None:
    order = PoolFacts(
        replace(
            RULES,
            capacity={"cpu": 8, "gpu": 4},
            entitlements={"ada": Fraction("0.75")},
            weights={"ada": Fraction("1.5")},
        )
    )
    order.run("r1", "ada", {"cpu": 2, "gpu": 1})
    order.run("r2", "ada", {"cpu": 2})
    order.wait(job("a", "ada"))
    order.wait(job("e", "eve"))
    ada, eve = order.snapshot.standings()
    assert (ada.tenant, ada.weight, ada.entitled, ada.use, ada.share, ada.dominant) == (
        "ada",
        1.5,
        0.75,
        {"cpu": 4, "gpu": 1},
        0.5,
        "cpu",
    )
    assert (ada.waiting, ada.running) == (1, 2)
    assert (eve.tenant, eve.weight, eve.entitled, eve.share, eve.waiting) == ("eve", 0.0, 0.0, 0.0, 1)
    assert [standing.tenant for standing in order.snapshot.standings(["nobody", "eve"])] == ["eve", "nobody"]
