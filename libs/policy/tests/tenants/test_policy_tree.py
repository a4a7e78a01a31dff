"""Trees of tenants and the modes of classes, against picking one job at a time from the top down in exact fractions."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.messages.decisions import Place
from fairlead_policy.explain.neighbourhood import count_before
from fairlead_policy.order.merging import merge_places, sort_key
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import ClassMode, PoolRules
from fairlead_testkit.cases import cases
from fairlead_testkit.tree_scenes import TreeScene, by_brute_force, order_before_changes, pool
from fairlead_testkit.waiting import a_waiting_job

CLASSES = ("urgent", "normal")
RESOURCES = ("cpu", "gpu")
QUEUES = (("c1", "q1"), ("c1", "q2"))
TREES: tuple[dict[str, str], ...] = (
    {"a": "A", "b": "A"},
    {"a": "A", "b": "A", "c": "B"},
    {"a": "A", "b": "A", "c": "B", "d": "B"},
    {"a": "A", "b": "A", "A": "O", "c": "O", "d": "P"},
    {"a": "X", "b": "X", "X": "A", "c": "A", "A": "O", "d": "O"},
)

LEAVES = ("a", "b", "c", "d", "e")
TOPS = ("A", "B", "O", "P", "X", "c", "d", "e")
MODES: tuple[ClassMode, ...] = ("strict", "strict", "additive", "multiplicative")
SLIGHT = [Fraction(0), Fraction(1, 20), Fraction(1, 6), Fraction(1)]


def rules_of_a_tree(rng: random.Random) -> PoolRules:
    parents = rng.choice(TREES)
    weights = [Fraction(text) for text in ("1", "1", "1", "2", "3", "0.5", "0")]
    mode = rng.choice(MODES)
    urgent = [Fraction(0), Fraction(1, 2)] if mode == "additive" else [Fraction(3)]
    return PoolRules(
        capacity={"cpu": rng.choice([4, 6, 10]), "gpu": rng.choice([0, 3, 4, 10, 10])},
        classes=CLASSES,
        rate=rng.choice(SLIGHT),
        cap=rng.choice([None, None, 1, 4]),
        resource_weights=rng.choice([{}, {}, {"cpu": Fraction(1, 2)}]),
        entitlements={name: rng.choice(weights) for name in sorted({*LEAVES, *parents.values()})},
        parents=parents,
        class_mode=mode,
        class_weights={
            "urgent": rng.choice(urgent),
            "normal": rng.choice([Fraction(1), Fraction(1, 4)]),
        },
    )


def demand_of(rng: random.Random) -> dict[str, int]:
    return {name: rng.randint(0, 2) for name in RESOURCES if rng.random() < 0.7}


def scene_of(seed: int, most: int = 12, **changed: object) -> TreeScene:
    """Small numbers on purpose: they tie, and ties are where orders go wrong."""
    rng = random.Random(seed)
    rules = replace(rules_of_a_tree(rng), **changed)  # type: ignore[arg-type] # fields by name
    overrides = [None] if rules.strict else [None, None, None, 0.5, 2.0]
    names = list(range(rng.randint(0, most)))
    rng.shuffle(names)
    waiting = tuple(
        a_waiting_job(
            f"u{name:02d}",
            tenant=rng.choice(LEAVES),
            job_class=rng.choice(CLASSES),
            submitted=rng.randint(0, 8),
            demand=demand_of(rng),
            queue=rng.choice(QUEUES),
            override=rng.choice(overrides),
        )
        for name in names
    )
    running = tuple((f"r{number}", rng.choice(LEAVES), demand_of(rng)) for number in range(rng.randint(0, 4)))
    everybody = sorted({*LEAVES, *rules.parents.values()})
    past = {rng.choice(everybody): demand_of(rng) for _ in range(rng.randint(0, 2))}
    return TreeScene(rules, waiting, running, rng.randint(0, 12), past)


scenes = st.builds(scene_of, st.integers(0, 2**32))
few_jobs = st.builds(scene_of, st.integers(0, 2**32), st.just(5))
short_scenes = st.builds(scene_of, st.integers(0, 2**32), st.just(7))
long_scenes = st.builds(scene_of, st.integers(0, 2**32), st.just(24))
wide_scenes = st.builds(scene_of, st.integers(0, 2**32), st.just(80))


def uids(places: Sequence[Place]) -> list[str]:
    return [place.uid for place in places]


def to_bytes(places: object) -> bytes:
    return msgspec.msgpack.encode(places)


@given(scenes)
@settings(max_examples=cases())
def test_the_order_of_a_tree_is_that_of_picking_one_job_at_a_time(scene: TreeScene) -> None:
    order = pool(scene)
    assert order.at(scene.now).uids() == by_brute_force(scene)
    assert uids(order.at(scene.now).places()[:]) == order.at(scene.now).uids()


@pytest.mark.deep
@pytest.mark.timeout(1800)
@given(long_scenes)
@settings(max_examples=cases(0.5))  # the property above on longer scenes: five times as heavy
def test_the_order_of_a_tree_is_that_of_picking_one_job_at_a_time_at_length(scene: TreeScene) -> None:
    assert pool(scene).at(scene.now).uids() == by_brute_force(scene)


@given(wide_scenes)
@settings(max_examples=cases(0.5))
def test_places_made_from_columns_are_those_made_one_by_one(scene: TreeScene) -> None:
    order = pool(scene)
    expected, found = order.at(scene.now).places()[:], order.at(scene.now).places()
    assert to_bytes(list(found)) == to_bytes(expected)
    assert len(found) == len(expected)
    assert found[1:4] == expected[1:4]
    assert [found[at] for at in range(len(found))] == expected


@given(short_scenes, st.integers(0, 3))
@settings(max_examples=cases())
def test_shards_of_top_level_tenants_merge_into_the_whole_order(scene: TreeScene, earlier: int) -> None:
    now, whole = scene.now, pool(scene)
    parts = [pool(scene, [top]) for top in TOPS]
    merged = merge_places([part.at(now).places()[:] for part in parts], scene.rules, now)
    assert to_bytes(merged) == to_bytes(whole.at(now).places()[:])
    # Another instant is as good while no sequence moved meanwhile.
    before = now - earlier
    flips = [flip for part in parts if (flip := part.at(before).next_flip()) is not None]
    if not any(flip <= now for flip in flips):
        late = merge_places([part.at(before).places()[:] for part in parts], scene.rules, now)
        assert to_bytes(late) == to_bytes(merged)


@given(scenes, st.integers(1, 5))
@settings(max_examples=cases())
def test_fronts_places_and_counts_agree_with_the_order(scene: TreeScene, window: int) -> None:
    order, now = pool(scene), scene.now
    front = order.at(now).front(window)
    whole = order.at(now).places()[:]
    queue_of = {job.uid: job.queue for job in scene.waiting}
    assert front == {
        queue: [place for place in whole if queue_of[place.uid] == queue][:window]
        for queue in set(queue_of.values())
    }
    assert whole == sorted(whole, key=lambda place: sort_key(place, scene.rules, now))
    for rank, place in enumerate(whole):
        assert order.place(place.uid, now) == place
        assert count_before(order.at(now), place) == Counter(ahead.tenant for ahead in whole[:rank])
    some = ["a", "d"]
    assert order.at(now).places(some)[:] == [place for place in whole if place.tenant in some]
    assert order.at(now).front(window, some) == {
        queue: found[:window]
        for queue in QUEUES
        if (found := [p for p in whole if p.tenant in some and queue_of[p.uid] == queue])
    }


@given(short_scenes, st.integers(0, 2**32))
@settings(max_examples=cases(1 / 4))
def test_an_order_stays_as_it_was_whatever_becomes_of_the_pool(scene: TreeScene, seed: int) -> None:
    assert order_before_changes(scene, random.Random(seed)).uids() == by_brute_force(scene)


@given(short_scenes)
@settings(max_examples=cases())
def test_time_alone_changes_nothing_before_the_instant_foretold(scene: TreeScene) -> None:
    order, now = pool(scene), scene.now
    flip = order.at(now).next_flip()
    assert flip is None or flip > now
    before = order.at(now).uids()
    for then in range(now + 1, min(flip or 20, 20)):
        assert order.at(then).uids() == before


@given(few_jobs, few_jobs)
@settings(max_examples=cases())
def test_step_by_step_is_as_from_scratch(first: TreeScene, second: TreeScene) -> None:
    """From the facts of one scene to those of another, looked at on the way."""
    order = pool(first)
    order.at(first.now).places()[:]
    order.at(first.now).front(2)
    order.set_rules(second.rules)
    for uid, *_ in first.running:
        order.forget(uid)
    for job in first.waiting:
        order.forget(job.uid)
        order.at(second.now).front(1)
    for tenant in first.past:
        order.remember(tenant, {})
    for job in second.waiting:
        order.wait(job)
        order.at(second.now).uids()
        order.snapshot.standings()
    for uid, tenant, demand in second.running:
        order.run(uid, tenant, demand)
        order.at(second.now).next_flip(window=2)
        order.snapshot.standings()
    for tenant, past in second.past.items():
        order.remember(tenant, past)
    fresh = pool(second)
    assert to_bytes(order.at(second.now).places()[:]) == to_bytes(fresh.at(second.now).places()[:])
    assert order.snapshot.standings() == fresh.snapshot.standings()
    assert order.at(second.now).next_flip() == fresh.at(second.now).next_flip()


@given(st.integers(0, 2**32).map(random.Random))
@settings(max_examples=cases())
def test_a_front_looks_as_deep_as_it_must(rng: random.Random) -> None:
    """Where a queue's first jobs stand behind hundreds of another's: a beginning of each tenant's jobs is not enough."""
    rules = replace(rules_of_a_tree(rng), capacity={"cpu": 9, "gpu": 7})
    order = PoolFacts(rules)
    rare = rng.choice([0.0, 0.01, 0.5])
    order.wait_all(
        a_waiting_job(
            f"u{number:03d}",
            tenant=rng.choice("aab"),
            job_class=rng.choice(CLASSES),
            submitted=rng.randint(0, 8),
            demand=demand_of(rng),
            queue=QUEUES[rng.random() < rare],
        )
        for number in range(rng.choice([40, 60, 80, 100, 120, 300]))
    )
    now, window = rng.randint(0, 12), rng.choice([1, 5, 100])
    whole = order.at(now).places()[:]
    order.set_rules(replace(rules, rate=rules.rate + 1))  # forgets what was made for the whole
    order.set_rules(rules)
    queue_of = {job.uid: job.queue for job in order._waiting.values()}
    for queue, front in order.at(now).front(window).items():
        assert front == [place for place in whole if queue_of[place.uid] == queue][:window]


def test_a_front_waits_for_what_may_come_behind_the_beginning() -> None:
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
    assert uids(order.at(0).front(1)[QUEUES[1]]) == ["a100"]


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
    """By keys alone lifted to 0.75 the submit tie would put a2 first; the team level says a1, a2."""
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
    a1, a2 = order.at(5).places()[:]
    assert uids([a1, a2]) == ["a1", "a2"]
    assert a2.effective is not None
    assert a2.effective.uid == "a1"
    assert (a1.key, a2.key) == (0.75, 0.6)
    assert [(one.tenant, one.tag) for one in a2.within] == [("team-2", 0.5)]


def test_a_sibling_that_comes_later_raises_the_tag_of_the_organisation() -> None:
    """So a bound known at one level does not hold in a tree: it is the sum over the levels."""
    rules = PoolRules(
        capacity={"gpu": 10}, classes=("normal",), rate=Fraction(1, 10), entitlements=ONES,
        parents={"team-1": "org", "team-2": "org"},
    )  # fmt: skip
    order = PoolFacts(rules)
    order.run("r", "team-1", {"gpu": 3})
    order.wait(job("j", "team-1", 0))
    before = order.place("j", 0)
    order.wait(job("s", "team-2", 2, demand={"gpu": 2}))
    after = order.place("j", 2)
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
    first = Counter(place.tenant for place in order.at(0).places()[:18])
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
    assert orders[0].at(0).places()[:] == orders[1].at(0).places()[:]
