"""The order of flat pools, of trees and after H-DRF, against picking one job at a time in exact fractions."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_policy.explain.neighbourhood import count_before
from fairlead_policy.order.merging import merge_positions, sort_key
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import JobQueue, WaitingJob
from fairlead_policy.rules.pool_rules import ClassMode, PoolRules
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.oracles.tree_scenes import TreeScene, by_brute_force, order_before_changes, pool
from fairlead_testkit.oracles.waiting import a_waiting_job, judged, uids

CLASSES = ("urgent", "normal")
QUEUES = (JobQueue("c1", "q1"), JobQueue("c1", "q2"), JobQueue("c2", "q1"))
TENANTS = ("ada", "bob", "cyd", "dan")
RESOURCES = ("cpu", "gpu", "memory")
LEAVES = ("a", "b", "c", "d", "e")
TREES: tuple[dict[str, str], ...] = (
    {"a": "A", "b": "A"},
    {"a": "A", "b": "A", "c": "B"},
    {"a": "A", "b": "A", "c": "B", "d": "B"},
    {"a": "A", "b": "A", "A": "O", "c": "O", "d": "P"},
    {"a": "X", "b": "X", "X": "A", "c": "A", "A": "O", "d": "O"},
)
TREES_OF_H_DRF: tuple[dict[str, str], ...] = (
    {"a": "A", "b": "A"},
    {"a": "A", "b": "A", "c": "B", "d": "B"},
    {"a": "X", "b": "X", "X": "A", "c": "A", "d": "B"},
)

type SceneMaker = Callable[[int, int], TreeScene]
"""Small numbers on purpose in each: they tie, and ties are where orders go wrong."""


def drawn(values: Sequence[str]) -> list[Fraction]:
    return [Fraction(text) for text in values]


def demand_of(rng: random.Random, resources: Sequence[str], most: int, often: float) -> dict[str, int]:
    return {name: rng.randint(0, most) for name in resources if rng.random() < often}


def names_of(rng: random.Random, most: int) -> list[str]:
    names = list(range(rng.randint(0, most)))
    rng.shuffle(names)
    return [f"u{name:02d}" for name in names]


def flat(seed: int, most: int) -> TreeScene:
    rng = random.Random(seed)
    names = names_of(rng, most)
    rules = PoolRules(
        capacity={name: rng.choice([0, 1, 2, 3, 4, 6, 10]) for name in RESOURCES if rng.random() < 0.8},
        classes=CLASSES,
        rate=rng.choice(drawn(("0", "1/10", "1/6", "1"))),
        cap=rng.choice([None, 1, 3, 10]),
        resource_weights={
            name: rng.choice(drawn(("0", "1/2", "2"))) for name in RESOURCES if rng.random() < 0.3
        },
        entitlements={
            tenant: rng.choice(drawn(("0", "1", "1", "2", "3", "0.1", "0.3", "1.5")))
            for tenant in TENANTS[:3]
        },
        unlisted_entitlement=rng.choice(drawn(("0", "1"))),
    )
    waiting = tuple(
        judged(
            a_waiting_job(
                name,
                tenant=rng.choice(TENANTS),
                job_class=rng.choice(CLASSES),
                submitted=rng.randint(0, 12),
                demand=demand_of(rng, RESOURCES, 3, 0.6),
                queue=rng.choice(QUEUES),
            ),
            rules.capacity,
        )
        for name in names
    )
    running = tuple(
        (f"r{number}", rng.choice(TENANTS), demand_of(rng, RESOURCES, 3, 0.6))
        for number in range(rng.randint(0, 4))
    )
    return TreeScene(rules, waiting, running, rng.randint(0, 25))


def rules_of_a_tree(rng: random.Random) -> PoolRules:
    parents = rng.choice(TREES)
    mode: ClassMode = rng.choice(("strict", "strict", "additive", "multiplicative"))
    urgent = drawn(("0", "1/2") if mode == "additive" else ("3",))
    return PoolRules(
        capacity={"cpu": rng.choice([4, 6, 10]), "gpu": rng.choice([0, 3, 4, 10, 10])},
        classes=CLASSES,
        rate=rng.choice(drawn(("0", "1/20", "1/6", "1"))),
        cap=rng.choice([None, None, 1, 4]),
        resource_weights=rng.choice([{}, {}, {"cpu": Fraction(1, 2)}]),
        entitlements={
            name: rng.choice(drawn(("1", "1", "1", "2", "3", "0.5", "0")))
            for name in sorted({*LEAVES, *parents.values()})
        },
        parents=parents,
        class_mode=mode,
        class_weights={"urgent": rng.choice(urgent), "normal": rng.choice(drawn(("1", "1/4")))},
    )


def job_in_a_tree(rng: random.Random, uid: str, queue: JobQueue, **changed: Any) -> WaitingJob:  # noqa: ANN401 # by name
    plain = a_waiting_job(
        uid,
        tenant=rng.choice(LEAVES),
        job_class=rng.choice(CLASSES),
        submitted=rng.randint(0, 8),
        demand=demand_of(rng, RESOURCES[:2], 2, 0.7),
        queue=queue,
    )
    return msgspec.structs.replace(plain, **changed)


def tree(seed: int, most: int) -> TreeScene:
    rng = random.Random(seed)
    rules = rules_of_a_tree(rng)
    overrides = [None] if rules.strict else [None, None, None, 0.5, 2.0]
    waiting = tuple(
        judged(
            job_in_a_tree(rng, name, rng.choice(QUEUES[:2]), override=rng.choice(overrides)), rules.capacity
        )
        for name in names_of(rng, most)
    )
    running = tuple(
        (f"r{number}", rng.choice(LEAVES), demand_of(rng, RESOURCES[:2], 2, 0.7))
        for number in range(rng.randint(0, 4))
    )
    everybody = sorted({*LEAVES, *rules.parents.values()})
    past = {rng.choice(everybody): demand_of(rng, RESOURCES[:2], 2, 0.7) for _ in range(rng.randint(0, 2))}
    return TreeScene(rules, waiting, running, rng.randint(0, 12), past)


def after_h_drf(seed: int, most: int) -> TreeScene:
    rng = random.Random(seed)
    parents = rng.choice(TREES_OF_H_DRF)
    rules = PoolRules(
        capacity={"cpu": rng.choice([4, 6, 10]), "gpu": rng.choice([3, 10, 10])},
        classes=("normal",),
        rate=rng.choice(drawn(("0", "1/20", "1/6"))),
        cap=rng.choice([None, 3]),
        entitlements={
            name: rng.choice(drawn(("1", "1", "2", "1/2", "0")))
            for name in sorted({*LEAVES[:4], *parents.values()})
        },
        parents=parents,
        rescaled=True,
        lowest_of_live=rng.random() < 0.5,
        saturated=frozenset(rng.choice([(), (), ("gpu",), ("cpu",)])),
        class_mode=rng.choice(["strict", "strict", "additive", "multiplicative"]),
        class_weights={"normal": Fraction(3)},
    )

    def demand() -> dict[str, int]:
        # Most jobs want one of the two: complementary siblings are what it is about.
        return rng.choice([{"cpu": 1}, {"gpu": 1}, {"cpu": 2}, {"cpu": 1, "gpu": 1}, {}])

    waiting = tuple(
        a_waiting_job(
            name, tenant=rng.choice(LEAVES[:4]), submitted=rng.randint(0, 6), demand=demand(), queue=QUEUES[0]
        )
        for name in names_of(rng, most)
    )
    running = tuple((f"r{number}", rng.choice(LEAVES[:4]), demand()) for number in range(rng.randint(0, 6)))
    return TreeScene(rules, waiting, running, rng.randint(0, 10))


of_each_kind = pytest.mark.parametrize("kind", [flat, tree, after_h_drf])
seeds = st.integers(0, 2**32)
rngs = seeds.map(random.Random)


def to_bytes(positions: object) -> bytes:
    return msgspec.msgpack.encode(positions)


@of_each_kind
@given(seed=seeds)
@settings(max_examples=cases())
def test_the_order_is_that_of_picking_one_job_at_a_time(seed: int, kind: SceneMaker) -> None:
    scene = kind(seed, 14)
    order = pool(scene).at(scene.now)
    assert uids(order.positions()[:]) == order.uids() == by_brute_force(scene)


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("kind", "most"), [(flat, 40), (tree, 24)])
@given(seed=seeds)
@settings(max_examples=cases(0.5))  # the property above on longer scenes: five times as heavy
def test_the_order_is_that_of_picking_one_job_at_a_time_at_length(
    seed: int, kind: SceneMaker, most: int
) -> None:
    scene = kind(seed, most)
    assert pool(scene).at(scene.now).uids() == by_brute_force(scene)


@of_each_kind
@given(seed=seeds)
@settings(max_examples=cases(0.5))
def test_positions_made_from_columns_are_those_made_one_by_one(seed: int, kind: SceneMaker) -> None:
    scene = kind(seed, 80)
    order = pool(scene)
    expected, found = order.at(scene.now).positions()[:], order.at(scene.now).positions()
    assert to_bytes(list(found)) == to_bytes(expected)
    assert len(found) == len(expected)
    assert found[1:4] == expected[1:4]
    assert [found[at] for at in range(len(found))] == expected


@of_each_kind
@given(seed=seeds, rng=rngs)
@settings(max_examples=cases())
def test_the_same_facts_in_any_order_give_the_same_bytes(
    seed: int, rng: random.Random, kind: SceneMaker
) -> None:
    scene = kind(seed, 12)
    waiting, running = list(scene.waiting), list(scene.running)
    rng.shuffle(waiting)
    rng.shuffle(running)
    shuffled = replace(scene, waiting=tuple(waiting), running=tuple(running))
    first, second = pool(scene), pool(shuffled)
    now = scene.now
    assert to_bytes(first.at(now).positions()[:]) == to_bytes(second.at(now).positions()[:])
    assert to_bytes(first.snapshot.standings()) == to_bytes(second.snapshot.standings())
    queue_heads = [sorted(order.at(now).queue_heads(3).items()) for order in (first, second)]
    assert to_bytes(queue_heads[0]) == to_bytes(queue_heads[1])


@of_each_kind
@given(seed=seeds, rng=rngs)
@settings(max_examples=cases())
def test_shards_of_top_level_tenants_merge_into_the_whole_order_to_the_byte(
    seed: int, rng: random.Random, kind: SceneMaker
) -> None:
    scene = kind(seed, 10)
    now, whole = scene.now, pool(scene)
    tops = sorted({scene.rules.top_of(tenant) for tenant in (*TENANTS, *LEAVES)})
    shard_of = [rng.randrange(4) for _ in tops]
    shards = [[top for top, at in zip(tops, shard_of, strict=True) if at == shard] for shard in range(4)]
    parts = [pool(scene, shard) for shard in shards]
    merged = merge_positions([part.at(now).positions()[:] for part in parts], scene.rules, now)
    assert to_bytes(merged) == to_bytes(whole.at(now).positions()[:])
    by_view = [
        whole.at(now).positions([one for one in (*TENANTS, *LEAVES) if scene.rules.top_of(one) in shard])[:]
        for shard in shards
    ]
    assert to_bytes(merge_positions(reversed(by_view), scene.rules, now)) == to_bytes(merged)
    # Each shard decides at its own instant, and the merge is made at one: as good while no sequence moved meanwhile.
    before = now - rng.randrange(6)
    flips = [flip for part in parts if (flip := part.at(before).next_flip()) is not None]
    if not scene.rules.parents or not any(flip <= now for flip in flips):
        late = [part.at(now - (now - before) * bool(at)).positions()[:] for at, part in enumerate(parts)]
        assert to_bytes(merge_positions(late, scene.rules, now)) == to_bytes(merged)


@of_each_kind
@given(seed=seeds, window=st.integers(1, 6))
@settings(max_examples=cases())
def test_heads_positions_and_counts_agree_with_the_order(seed: int, window: int, kind: SceneMaker) -> None:
    scene = kind(seed, 12)
    order, now = pool(scene), scene.now
    heads = order.at(now).queue_heads(window)
    whole = order.at(now).positions()[:]
    queue_of = {job.uid: job.queue for job in scene.waiting}
    assert heads == {
        queue: [position for position in whole if queue_of[position.uid] == queue][:window]
        for queue in set(queue_of.values())
    }
    assert order.snapshot.waiting() == dict(sorted(Counter(queue_of.values()).items()))
    assert whole == sorted(whole, key=lambda position: sort_key(position, scene.rules, now))
    for rank, position in enumerate(whole):
        assert order.position(position.uid, now) == position
        assert count_before(order.at(now), position) == Counter(ahead.tenant for ahead in whole[:rank])
    assert order.position("nobody", now) is None
    some = ["a", "d", "ada", "dan"]
    assert order.at(now).positions(some)[:] == [position for position in whole if position.tenant in some]
    assert order.at(now).queue_heads(window, some) == {
        queue: found[:window]
        for queue in {*queue_of.values()}
        if (found := [p for p in whole if p.tenant in some and queue_of[p.uid] == queue])
    }


@of_each_kind
@given(seed=seeds, rng=rngs)
@settings(max_examples=cases(1 / 4))
def test_an_order_stays_as_it_was_whatever_becomes_of_the_pool(
    seed: int, rng: random.Random, kind: SceneMaker
) -> None:
    scene = kind(seed, 9)
    assert order_before_changes(scene, rng).uids() == by_brute_force(scene)


@given(seeds)
@settings(max_examples=cases())
def test_the_terms_of_a_position_are_those_of_the_formula(seed: int) -> None:
    scene = flat(seed, 14)
    rules = scene.rules
    for position in pool(scene).at(scene.now).positions():
        if position.unbounded:
            assert (position.tag, position.key) == (0.0, 0.0)
            continue
        weight = rules.entitlement_of(position.tenant)
        tag = Fraction(0)
        if position.use:
            counts = rules.resource_weights.get(position.dominant, Fraction(1))
            tag = counts * position.use / rules.capacity[position.dominant] / weight
        aged = position.submitted if rules.cap is None else max(position.submitted, scene.now - rules.cap)
        assert position.tag == float(tag)
        assert position.key == float(tag + rules.rate * aged)
        assert bool(position.dominant) == bool(position.use)


@pytest.mark.parametrize("kind", [tree, after_h_drf])
@given(seed=seeds)
@settings(max_examples=cases())
def test_time_alone_changes_nothing_before_the_instant_foretold(seed: int, kind: SceneMaker) -> None:
    scene = kind(seed, 7)
    order, now = pool(scene), scene.now
    flip = order.at(now).next_flip()
    assert flip is None or flip > now
    before = order.at(now).uids()
    for then in range(now + 1, min(flip or 20, 20)):
        assert order.at(then).uids() == before


@given(rngs)
@settings(max_examples=cases())
def test_heads_are_looked_for_as_deep_as_must_be(rng: random.Random) -> None:
    """A beginning of each tenant's jobs is not enough where a queue's first stand behind hundreds of another's."""
    rules = replace(rules_of_a_tree(rng), capacity={"cpu": 9, "gpu": 7})
    order = PoolFacts(rules)
    rare = rng.choice([0.0, 0.01, 0.5])
    order.wait_all(
        job_in_a_tree(rng, f"u{number:03d}", QUEUES[rng.random() < rare], tenant=rng.choice("aab"))
        for number in range(rng.choice([40, 60, 80, 100, 120, 300]))
    )
    now, window = rng.randint(0, 12), rng.choice([1, 5, 100])
    whole = order.at(now).positions()[:]
    order.set_rules(replace(rules, rate=rules.rate + 1))  # forgets what was made for the whole
    order.set_rules(rules)
    queue_of = {job.uid: job.queue for job in order._waiting.values()}
    for queue, heads in order.at(now).queue_heads(window).items():
        assert heads == [position for position in whole if queue_of[position.uid] == queue][:window]


@given(seeds, rngs)
@settings(max_examples=cases(1 / 2))
def test_the_heads_are_those_of_all_whatever_was_looked_at_and_changed_before(
    seed: int, rng: random.Random
) -> None:
    """The tree is kept up leaf by leaf, and served only as far as somebody looks."""
    scene = after_h_drf(seed, 11)
    kept = PoolFacts(scene.rules)
    waiting, running = list(scene.waiting), list(scene.running)
    while waiting or running:
        if waiting and (not running or rng.random() < 0.6):
            kept.wait(waiting.pop(rng.randrange(len(waiting))))
        else:
            kept.run(*running.pop(rng.randrange(len(running))))
        if rng.random() < 0.5:
            uid = f"z{rng.randint(0, 9)}"
            demand = {"cpu": 1, "gpu": rng.randint(0, 1)}
            passing = job_in_a_tree(rng, uid, QUEUES[0], job_class="normal", demand=demand)
            kept.wait(passing)
            kept.at(rng.randint(0, 10)).queue_heads(rng.randint(1, 3))
            if rng.random() < 0.5:
                kept.run(passing.uid, passing.tenant, passing.demand)
                kept.at(scene.now).queue_heads(1)
            kept.forget(passing.uid)
    expected = by_brute_force(scene)
    for window in (1, rng.randint(1, 9)):
        assert uids(kept.at(scene.now).queue_heads(window).get(QUEUES[0], [])) == expected[:window]
    assert kept.at(scene.now).uids() == expected
