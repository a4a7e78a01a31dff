"""HAMi's test of one card, and many equal pods on the cards of one node against all ways to deal them."""

from itertools import combinations
from random import Random

import pytest

from fairlead_contracts.frontend.cards import CardState
from fairlead_policy.hami.admission import Refusal, refusal_of, room_of
from fairlead_policy.hami.annotations import CardAnnotations, CardStrategy
from fairlead_policy.hami.requests import VgpuRequest
from fairlead_policy.hami.sharing import deal, pods_held
from fairlead_testkit.inputs.builders import a_card
from fairlead_testkit.inputs.cases import cases

ANY = CardAnnotations()
ASK = VgpuRequest(count=1, cores=30, memory=4000)
WHOLE = VgpuRequest(count=1, cores=100)
FREE = VgpuRequest(count=1, cores=0, memory=1)


def card(**changes: int | bool | str) -> CardState:
    return a_card(**{"memory": 10_000, "model": "NVIDIA A100"} | changes)


@pytest.mark.parametrize(
    ("found", "ask", "card_annotations", "refusal"),
    [
        (card(), ASK, ANY, None),
        (card(health=False), ASK, ANY, Refusal.UNHEALTHY),
        (card(cordoned=True), ASK, ANY, Refusal.CORDONED),
        (card(), ASK, CardAnnotations(use_models=("T4",)), Refusal.MODEL),
        (card(), ASK, CardAnnotations(avoid_models=("a100",)), Refusal.MODEL),
        (card(mode="mps"), ASK, CardAnnotations(mode="hami-core"), Refusal.MODEL),
        (card(), ASK, CardAnnotations(avoid_uuids=("GPU-1",)), Refusal.UUID),
        (card(mode="mig"), ASK, ANY, Refusal.MIG),
        (card(used_count=10), ASK, ANY, Refusal.SLOTS),
        (card(count=0), ASK, ANY, Refusal.SLOTS),
        (card(used_memory=6000), ASK, ANY, None),
        (card(used_memory=6001), ASK, ANY, Refusal.MEMORY),
        (card(used_cores=70), ASK, ANY, None),
        (card(used_cores=71), ASK, ANY, Refusal.CORES),
        # All cores of an unscaled card are wanted for oneself; of a scaled one they are just many.
        (card(used_count=1), WHOLE, ANY, Refusal.IN_USE),
        (card(used_count=1), VgpuRequest(count=1, cores=100, memory=1), ANY, Refusal.IN_USE),
        (card(used_count=1, cores=200), VgpuRequest(count=1, cores=100, memory=1), ANY, None),
        (card(used_count=1), FREE, CardAnnotations(idle_cards_only=True), Refusal.IN_USE),
        # No cores are asked for, and still a card whose cores are all given away is refused.
        (card(used_count=1, used_cores=99), FREE, ANY, None),
        (card(used_count=1, used_cores=100), FREE, ANY, Refusal.CORES_FULL),
        (card(cores=0), FREE, ANY, None),
        # Percent of memory, rounded down.
        (card(memory=999), VgpuRequest(count=1, memory_percent=50), ANY, None),
        (card(memory=999, used_memory=500), VgpuRequest(count=1, memory_percent=50), ANY, None),
        (card(memory=999, used_memory=501), VgpuRequest(count=1, memory_percent=50), ANY, Refusal.MEMORY),
    ],
)
def test_a_card_is_judged_as_hami_does(
    found: CardState, ask: VgpuRequest, card_annotations: CardAnnotations, refusal: Refusal | None
) -> None:
    assert refusal_of(found, ask, card_annotations) == refusal


def random_case(seed: int) -> tuple[list[CardState], VgpuRequest, CardAnnotations]:
    rng = Random(seed)
    cards = [
        card(
            uuid=f"GPU-{number}",
            count=rng.randrange(4),
            memory=rng.choice([6, 8]),
            cores=rng.choice([100, 200]),
            numa=rng.randrange(2),
            used_count=rng.choice([0, 0, 1]),
            used_memory=rng.randrange(4),
            used_cores=rng.choice([0, 0, 40, 100]),
        )
        for number in range(rng.randrange(5))
    ]
    ask = VgpuRequest(
        count=rng.choice([1, 2, 3]),
        cores=rng.choice([0, 30, 60, 100]),
        memory=rng.randrange(4),
        memory_percent=40,
    )
    card_annotations = CardAnnotations(
        one_numa_node=rng.random() < 0.4,
        idle_cards_only=rng.random() < 0.2,
        strategy=rng.choice(list(CardStrategy)),
    )
    return cards, ask, card_annotations


def most_pods(cards: tuple[CardState, ...], ask: VgpuRequest, card_annotations: CardAnnotations) -> int:
    """The most pods that fit, by every choice of cards for one pod after the other."""
    best = 0
    for chosen in combinations(range(len(cards)), ask.count):
        if card_annotations.one_numa_node and len({cards[at].numa for at in chosen}) > 1:
            continue
        if all(refusal_of(cards[at], ask, card_annotations) is None for at in chosen):
            best = max(best, 1 + most_pods(after(cards, chosen, ask), ask, card_annotations))
    return best


def after(cards: tuple[CardState, ...], chosen: tuple[int, ...], ask: VgpuRequest) -> tuple[CardState, ...]:
    return tuple(
        one.taken(ask.memory_on(one), ask.cores) if at in chosen else one for at, one in enumerate(cards)
    )


def test_as_many_equal_pods_fit_as_by_every_way_to_deal_the_cards() -> None:
    for seed in range(cases()):
        cards, ask, card_annotations = random_case(seed)
        held = pods_held(cards, ask, card_annotations, 50)
        assert held == most_pods(tuple(cards), ask, card_annotations), seed
        assert pods_held(cards, ask, card_annotations, 1) == min(held, 1), seed


def test_what_is_dealt_starts_pod_by_pod() -> None:
    for seed in range(cases()):
        cards, ask, card_annotations = random_case(seed)
        held = pods_held(cards, ask, card_annotations, 50)
        now = tuple(cards)
        dealt = deal(cards, ask, card_annotations, held + 3)
        assert len(dealt) == held, seed
        for chosen in dealt:
            assert len(set(chosen)) == len(chosen) == ask.count, seed
            assert not card_annotations.one_numa_node or len({cards[at].numa for at in chosen}) == 1, seed
            assert all(refusal_of(now[at], ask, card_annotations) is None for at in chosen), seed
            now = after(now, chosen, ask)


def test_the_room_of_a_card_is_the_pods_that_start_on_it() -> None:
    for seed in range(cases()):
        cards, ask, card_annotations = random_case(seed)
        single = VgpuRequest(count=1, cores=ask.cores, memory=ask.memory, memory_percent=ask.memory_percent)
        for one in cards:
            assert room_of(one, single, card_annotations) == most_pods((one,), single, card_annotations), seed


def test_the_policy_for_cards_packs_or_spreads() -> None:
    cards = [
        card(uuid=f"GPU-{number}", used_count=number == 1, used_memory=100 * (number == 1))
        for number in range(4)
    ]
    ask = VgpuRequest(count=1, cores=10, memory=1000)
    packed = deal(cards, ask, CardAnnotations(strategy=CardStrategy.BINPACK), 4)
    assert packed == [(1,)] * 4
    spread = deal(cards, ask, CardAnnotations(strategy=CardStrategy.SPREAD), 4)
    assert sorted(spread) == [(0,), (1,), (2,), (3,)]
    assert 1 not in {at for chosen in deal(cards, ask, CardAnnotations(), 3) for at in chosen}
