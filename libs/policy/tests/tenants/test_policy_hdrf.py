"""H-DRF against one pick at a time in exact fractions, and the examples that tell it from plain DRF in a tree."""

import random
from collections.abc import Mapping
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_policy.order.merging import merge_places
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit.cases import cases
from fairlead_testkit.saturation import used_up
from fairlead_testkit.tree_scenes import TreeScene, by_brute_force, order_before_changes, pool
from fairlead_testkit.waiting import a_waiting_job

TREES: tuple[dict[str, str], ...] = (
    {"a": "A", "b": "A"},
    {"a": "A", "b": "A", "c": "B", "d": "B"},
    {"a": "X", "b": "X", "X": "A", "c": "A", "d": "B"},
)

LEAVES = ("a", "b", "c", "d")
TOPS = ("A", "B", "c", "d")


def job(uid: str, tenant: str, submitted: int = 0, **demand: int) -> WaitingJob:
    return a_waiting_job(uid, tenant=tenant, submitted=submitted, demand=demand)


def scene_of(seed: int) -> TreeScene:
    rng = random.Random(seed)
    parents = rng.choice(TREES)
    weights = [Fraction(text) for text in ("1", "1", "2", "1/2", "0")]
    rules = PoolRules(
        capacity={"cpu": rng.choice([4, 6, 10]), "gpu": rng.choice([3, 10, 10])},
        classes=("normal",),
        rate=rng.choice([Fraction(0), Fraction(1, 20), Fraction(1, 6)]),
        cap=rng.choice([None, 3]),
        entitlements={name: rng.choice(weights) for name in sorted({*LEAVES, *parents.values()})},
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

    waiting = [
        job(f"u{number:02d}", rng.choice(LEAVES), rng.randint(0, 6), **demand())
        for number in range(rng.randint(0, 11))
    ]
    running = tuple((f"r{number}", rng.choice(LEAVES), demand()) for number in range(rng.randint(0, 6)))
    return TreeScene(rules, tuple(waiting), running, rng.randint(0, 10))


scenes = st.builds(scene_of, st.integers(0, 2**32))


@given(scenes)
@settings(max_examples=cases())
def test_the_order_is_that_of_picking_one_job_at_a_time(scene: TreeScene) -> None:
    assert pool(scene).at(scene.now).uids() == by_brute_force(scene)


@given(scenes)
@settings(max_examples=cases())
def test_shards_that_know_the_saturated_resources_merge_into_the_whole_order(scene: TreeScene) -> None:
    whole = pool(scene).at(scene.now).places()[:]
    parts = [pool(scene, (top,)).at(scene.now).places()[:] for top in TOPS]
    assert merge_places(parts, scene.rules, scene.now) == whole
    front = pool(scene).at(scene.now).front(2)
    assert front.get(("c", "q"), []) == whole[:2]


@given(scenes, st.integers(0, 2**32))
@settings(max_examples=cases(1 / 4))
def test_an_order_stays_as_it_was_whatever_becomes_of_the_pool(scene: TreeScene, seed: int) -> None:
    assert order_before_changes(scene, random.Random(seed)).uids() == by_brute_force(scene)


@given(scenes, st.integers(0, 2**32))
@settings(max_examples=cases(1 / 2))
def test_the_front_is_that_of_all_whatever_was_looked_at_and_changed_before(
    scene: TreeScene, seed: int
) -> None:
    """The tree is kept up leaf by leaf, and served only as far as somebody looks."""
    rng = random.Random(seed)
    kept = PoolFacts(scene.rules)
    waiting, running = list(scene.waiting), list(scene.running)
    while waiting or running:
        if waiting and (not running or rng.random() < 0.6):
            kept.wait(waiting.pop(rng.randrange(len(waiting))))
        else:
            kept.run(*running.pop(rng.randrange(len(running))))
        if rng.random() < 0.5:
            passing = job(
                f"z{rng.randint(0, 9)}", rng.choice(LEAVES), rng.randint(0, 6), cpu=1, gpu=rng.randint(0, 1)
            )
            kept.wait(passing)
            kept.at(rng.randint(0, 10)).front(rng.randint(1, 3))
            if rng.random() < 0.5:
                kept.run(passing.uid, passing.tenant, passing.demand)
                kept.at(scene.now).front(1)
            kept.forget(passing.uid)
    expected = by_brute_force(scene)
    for window in (1, rng.randint(1, 9)):
        found = kept.at(scene.now).front(window).get(("c", "q"), [])
        assert [place.uid for place in found] == expected[:window]
    assert kept.at(scene.now).uids() == expected


# --- examples


def rules(parents: Mapping[str, str], **changed: object) -> PoolRules:
    plain: dict[str, object] = {
        "capacity": {"cpu": 10, "gpu": 10},
        "classes": ("normal",),
        "entitlements": {name: Fraction(1) for name in ("A", "B", "X", "Y", "P", "org", *"cgxyb", *(f"t{n}" for n in range(6)))},
        "parents": parents,
        "rescaled": True,
    }  # fmt: skip
    return PoolRules(**{**plain, **changed})  # type: ignore[arg-type] # fields by name


def test_what_another_organisation_takes_couples_through_the_saturated_resources() -> None:
    """A = {X = {x: 2 CPU, g: 8 of 10 GPU and nothing waiting}, Y: 3 CPU}: B's 2 GPUs turn x and y round."""
    parents = {"x": "X", "g": "X", "X": "A", "Y": "A"}
    expected = {0: ["y", "x"], 2: ["x", "y"]}
    for taken, names in expected.items():
        free = rules(parents)
        saturated = used_up(free, [{"cpu": 5, "gpu": 8 + taken}], [{"cpu": 1}, {"cpu": 1}])
        assert saturated == ({"gpu"} if taken else set())
        order = PoolFacts(rules(parents, saturated=saturated))
        order.run("r1", "x", {"cpu": 2})
        order.run("r2", "g", {"gpu": 8})
        order.run("r3", "Y", {"cpu": 3})
        order.run("r4", "B", {"gpu": taken})
        order.wait(job("x", "x", cpu=1))
        order.wait(job("y", "Y", cpu=1))
        assert order.at(0).uids() == names


def starving(**changed: object) -> list[str]:
    """org = {c: 8 CPU jobs wait, g: all GPUs and 3 GPU jobs wait} against P: 8 CPU jobs wait."""
    order = PoolFacts(rules({"c": "org", "g": "org"}, **changed))
    order.run("held", "g", {"gpu": 10})
    for number in range(8):
        order.wait(job(f"P{number}", "P", cpu=1))
        order.wait(job(f"c{number}", "c", cpu=1))
    for number in range(3):
        order.wait(job(f"g{number}", "g", gpu=1))
    return [uid[0] for uid in order.at(0).uids()]


def test_a_complementary_sibling_does_not_starve() -> None:
    assert starving(rescaled=False) == [*"P" * 8, *"c" * 8, *"ggg"]
    assert starving(saturated=frozenset({"gpu"})) == [*"Pc" * 8, *"ggg"]
    # Until the GPUs are known to be used up, the one sibling that uses something makes the share of all.
    assert starving()[:8] == [*"P" * 8]
    assert starving(lowest_of_live=True)[0] == "P"


def test_empty_teams_go_first_only_by_the_minimum_of_all_that_wait() -> None:
    teams = {f"t{number}": "org" for number in range(6)}
    firsts = {}
    for live in (True, False):
        order = PoolFacts(rules(teams, lowest_of_live=live))
        for number in range(6):
            for turn in range(2):
                order.wait(job(f"a-{turn}-{number}", f"t{number}", cpu=1))
        for turn in range(6):
            order.wait(job(f"z-{turn}", "P", cpu=1))
        firsts[live] = order.at(0).uids().index("z-0")
    assert firsts == {True: 6, False: 1}


def test_a_blocked_job_stands_behind_the_others_of_its_class() -> None:
    order = PoolFacts(rules({}, saturated=frozenset({"gpu"})))
    order.wait(job("g", "g", 0, gpu=1))
    order.wait(job("c", "g", 5, cpu=1))
    order.wait(job("p", "P", 9, cpu=1))
    places = order.at(9).places()[:]
    assert [place.uid for place in places] == ["c", "p", "g"]
    assert [place.blocked for place in places] == [False, False, True]
