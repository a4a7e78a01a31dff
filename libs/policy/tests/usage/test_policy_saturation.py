"""Used-up resources: judged by what really waits, in the cluster and flavor that it could have it of."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.entitlements import in_relation
from fairlead_policy.rules.pool_rules import FULL, PoolRules
from fairlead_policy.usage.saturation import FlavorRoom, PoolPart, Saturation
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.oracles.saturation import used_up
from fairlead_testkit.oracles.waiting import THE_QUEUE, a_waiting_job

RULES = PoolRules(capacity={"cpu": 40_000, "gpu": 10_000}, classes=("normal",), rescaled=True)
CARD = 1000
EAST, WEST = ("east", "main"), ("west", "main")


def of_cards(running: int, *waiting: int) -> frozenset[str]:
    """Base units of cards, thousandths, that run and that each job asks for."""
    return used_up(RULES, [{"gpu": running}], [{"gpu": asked} for asked in waiting])


def test_a_resource_is_used_up_when_less_is_free_than_what_waits_needs() -> None:
    two = (2 * CARD,) * 50
    assert of_cards(10 * CARD, *two) == {"gpu"}
    assert of_cards(9 * CARD, *two) == {"gpu"}
    assert of_cards(8 * CARD, *two) == frozenset()
    assert of_cards(9 * CARD) == frozenset(), "nobody waits for it"
    assert of_cards(10 * CARD) == {"gpu"}, "nothing is left of it"


def test_a_parked_ask_for_a_thousandth_of_a_card_does_not_make_room() -> None:
    two = (2 * CARD,) * 50
    assert of_cards(9 * CARD, *two, 1) == {"gpu"}
    assert of_cards(9 * CARD, *two, CARD) == {"gpu"}, "nor does one that asks for all that is free"
    assert of_cards(9 * CARD, *two, *(1,) * 1000) == {"gpu"}, "nor a thousand of them"


def test_small_jobs_that_come_to_a_tenth_of_what_is_asked_for_count() -> None:
    two = (2 * CARD,) * 45
    assert of_cards(9 * CARD, *two, *(CARD,) * 9) == {"gpu"}
    assert of_cards(9 * CARD, *two, *(CARD,) * 10) == frozenset()


def test_a_job_larger_than_the_pool_says_nothing() -> None:
    assert of_cards(9 * CARD, CARD, *(11 * CARD,) * 99) == frozenset()
    never_for_its_cpus = {"gpu": 5 * CARD, "cpu": 41_000}
    assert used_up(RULES, [{"gpu": 9 * CARD}], [{"gpu": CARD}, *[never_for_its_cpus] * 99]) == frozenset()


def test_what_is_free_in_another_cluster_or_of_another_flavor_is_no_use() -> None:
    split = {EAST: {"": {"gpu": 6000}}, WEST: {"": {"gpu": 4000}}}
    found = Saturation(RULES, split)
    found.run(EAST, {"gpu": 6000}, {})
    found.wait(EAST, {"gpu": 1000})
    assert found.used_up() == {"gpu"}, "four cards are free, all in the west"
    found.wait(WEST, {"gpu": 1000})
    assert found.used_up() == frozenset()

    flavors = {EAST: {"a100": {"gpu": 5000}, "h100": {"gpu": 5000}}}
    found = Saturation(RULES, flavors)
    found.wait(EAST, {"gpu": 2000})
    found.run(EAST, {"gpu": 4000}, {"gpu": "a100"})
    assert found.used_up() == frozenset()
    found.run(EAST, {"gpu": 4000}, {"gpu": "h100"})
    assert found.used_up() == {"gpu"}, "two cards are free, one of each flavor"
    found.run(EAST, {"gpu": 4000}, {"gpu": "h100"}, -1)
    found.run(EAST, {"gpu": 4000}, {})
    assert found.used_up() == frozenset(), "nobody tells which flavor was taken: two may be free of one"


# --- against the rule as it is written


def scene_of(
    seed: int,
) -> tuple[PoolRules, dict[PoolPart, FlavorRoom], list[tuple[PoolPart, dict[str, int], dict[str, str]]]]:
    rng = random.Random(seed)
    rooms: dict[PoolPart, FlavorRoom] = {
        part: {
            flavor: {"cpu": rng.randint(0, 9), "gpu": rng.randint(0, 9)}
            for flavor in rng.choice([("",), ("a", "b")])
        }
        for part in rng.choice([(EAST,), (EAST, WEST)])
    }
    capacity = Counter[str]()
    for room in rooms.values():
        for amounts in room.values():
            capacity.update(amounts)
    events = [
        (
            rng.choice([EAST, WEST]),
            {name: rng.randint(0, 5) for name in rng.choice([("gpu",), ("cpu",), ("cpu", "gpu")])},
            rng.choice([{}, {}, {"gpu": "a"}, {"gpu": "b", "cpu": "a"}]),
        )
        for _ in range(rng.randint(0, 14))
    ]
    return replace(RULES, capacity=dict(capacity)), rooms, events


@given(st.integers(0, 2**32))
@settings(max_examples=cases())
def test_any_history_ends_in_what_the_rule_says_of_the_last_facts(seed: int) -> None:
    rules, rooms, events = scene_of(seed)
    rng = random.Random(seed)
    found = Saturation(rules, rooms)
    running, waiting = [], []
    for part, demand, flavors in events:
        if rng.random() < 0.4:
            found.run(part, demand, flavors)
            running.append((part, demand, flavors))
        else:
            found.wait(part, demand)
            waiting.append((part, demand))
        if waiting and rng.random() < 0.3:
            gone, asked = waiting.pop(rng.randrange(len(waiting)))
            found.wait(gone, asked, -1)
        if running and rng.random() < 0.3:
            over = running.pop(rng.randrange(len(running)))
            found.run(*over, -1)
        assert found.used_up() == as_written(rules, rooms, running, waiting)


def as_written(
    rules: PoolRules,
    rooms: Mapping[PoolPart, FlavorRoom],
    running: list[tuple[PoolPart, dict[str, int], dict[str, str]]],
    waiting: list[tuple[PoolPart, dict[str, int]]],
) -> set[str]:
    found = set()
    for resource in rules.resources:
        used = sum(demand.get(resource, 0) for _, demand, _ in running)
        total = met = 0
        for part, asked in waiting:
            room = rooms.get(part, {})
            has = Counter[str]()
            for amounts in room.values():
                has.update(amounts)
            if any(amount > has[name] for name, amount in asked.items()):
                continue
            there = [(demand, flavors) for where, demand, flavors in running if where == part]
            left = has[resource] - sum(demand.get(resource, 0) for demand, _ in there)
            free = [
                amounts.get(resource, 0)
                - sum(demand.get(resource, 0) for demand, flavors in there if flavors.get(resource) == flavor)
                for flavor, amounts in room.items()
            ]
            most = max(free, default=0)
            total += asked.get(resource, 0)
            met += asked.get(resource, 0) if asked.get(resource, 0) <= min(left, most) else 0
        if used >= rules.capacity[resource] or 10 * met < total:
            found.add(resource)
    return found


# --- what it is for


STARTS = 60


def starts_of_the_sibling(held: int, *, decoy: bool = False) -> int:
    """The number of 60 starts that a team for CPUs gets, whose sibling holds cards and waits for two at a time.

    Two rivals outside hold all CPUs and want them again. One of the jobs for CPUs ends, and the first one of the order that
    asks for CPUs starts.
    """
    parents = {"cpus": "org", "cards": "org"}
    weights = dict.fromkeys(("org", "cpus", "cards", "ann", "ben"), FULL)
    rules = replace(RULES, entitlements=in_relation(weights, parents).listed, parents=parents)
    order, running = PoolFacts(rules), dict[str, dict[str, int]]()

    def start(uid: str, tenant: str) -> None:
        order.run(uid, tenant, {"cpu": 1000})
        running[uid] = {"cpu": 1000}

    order.run("cards", "cards", {"gpu": held * CARD})
    for number in range(40):
        start(f"r{number:03d}", "ann" if number % 2 else "ben")
    for number in range(STARTS):
        for tenant in ("ann", "ben", "cpus"):
            order.wait(a_waiting_job(f"{tenant}-{number:03d}", tenant=tenant, demand={"cpu": 1000}))
    waiting = [*[{"gpu": 2 * CARD}] * 50, *[{"gpu": 1}] * decoy]
    for number, demand in enumerate(waiting):
        order.wait(a_waiting_job(f"cards-{number:03d}", tenant="cards", demand=demand))
    found = Counter[str]()
    for _ in range(STARTS):
        over = next(iter(running))
        del running[over]
        order.forget(over)
        takes = [{"gpu": held * CARD}, *running.values()]
        order.set_rules(replace(rules, saturated=used_up(rules, takes, waiting)))
        heads = order.at(0).queue_heads(STARTS)[THE_QUEUE]
        head = next(position for position in heads if "cpu" in position.demand)
        start(head.uid, head.tenant)
        found[head.tenant] += 1
    return found["cpus"]


def test_a_sibling_for_cpus_gets_its_part_while_one_card_of_ten_is_nobodys() -> None:
    full = starts_of_the_sibling(10)
    assert full >= STARTS // 3
    assert starts_of_the_sibling(9) == full
    assert starts_of_the_sibling(9, decoy=True) == full
    assert starts_of_the_sibling(8) == 0, "two cards are free, and somebody waits for two"
