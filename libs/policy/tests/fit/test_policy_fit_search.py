"""Gangs that fill their nodes to the brim, where greed fails and only the search finds the way or proves that none is."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from random import Random

import pytest

from fairlead_contracts.frontend.cards import CardState
from fairlead_contracts.frontend.observed import LabelRequirement
from fairlead_policy.fit.card_fit import pods_on_cards
from fairlead_policy.fit.filling import fillings
from fairlead_policy.fit.node_table import ZoneNodes
from fairlead_policy.fit.packing import Budget, CardRequest, pack, packing_rank, take
from fairlead_policy.fit.placing import place
from fairlead_policy.fit.results import PlacedPod, Placement, Unfit
from fairlead_policy.fit.shapes import FitNode, Gang, PodShape
from fairlead_policy.fit.verify import holds
from fairlead_policy.hami.admission import refusal_of
from fairlead_policy.hami.annotations import CardAnnotations, CardStrategy
from fairlead_policy.hami.requests import VgpuRequest
from fairlead_testkit.inputs.builders import a_card
from fairlead_testkit.inputs.cases import cases

RESOURCES = ("cpu", "gpu")


def brimful(seed: int) -> tuple[Gang, list[FitNode]]:
    """Nodes as large as a random placement needs, in half of the cases one of them a bit smaller."""
    rng = Random(seed)
    demands = [(rng.randrange(6), rng.randrange(6)) for _ in range(rng.choice([2, 3, 4]))]
    counts = Counter[int]()
    nodes = []
    for number in range(rng.choice([2, 3])):
        chosen = [rng.randrange(len(demands)) for _ in range(rng.randrange(1, 5))]
        counts.update(chosen)
        free = {name: sum(demands[shape][at] for shape in chosen) for at, name in enumerate(RESOURCES)}
        nodes.append(FitNode(name=f"n{number}", free=free))
    if rng.random() < 0.5:
        short = rng.randrange(len(nodes))
        name = rng.choice(RESOURCES)
        other = rng.randrange(len(nodes))
        # Moved from one node to another: the sums stay as they are, so that they prove nothing.
        frees = [dict(node.free) for node in nodes]
        frees[short][name] = max(frees[short][name] - 1, 0)
        frees[other][name] += 1
        nodes = [FitNode(name=node.name, free=free) for node, free in zip(nodes, frees, strict=True)]
    shapes = [
        PodShape(count=counts[number], name=f"s{number}", demand=dict(zip(RESOURCES, demand, strict=True)))
        for number, demand in enumerate(demands)
    ]
    return Gang(shapes=tuple(shapes)), nodes


def can_be_placed(
    demands: Sequence[tuple[int, ...]], free: tuple[tuple[int, ...], ...], dead: set[object]
) -> bool:
    """One pod after the other on every node that takes it."""
    if not demands:
        return True
    state = (len(demands), tuple(sorted(free)))
    if state in dead:
        return False
    for at, has in enumerate(free):
        left = tuple(one - need for one, need in zip(has, demands[0], strict=True))
        if min(left) >= 0 and can_be_placed(demands[1:], (*free[:at], left, *free[at + 1 :]), dead):
            return True
    dead.add(state)
    return False


def truth_of(gang: Gang, nodes: list[FitNode]) -> bool:
    demands = [
        tuple(shape.demand[name] for name in RESOURCES) for shape in gang.shapes for _ in range(shape.count)
    ]
    return can_be_placed(
        demands, tuple(tuple(node.free[name] for name in RESOURCES) for node in nodes), set()
    )


@pytest.mark.parametrize("seeds", [range(400), pytest.param(range(400, 20_400), marks=pytest.mark.deep)])
def test_the_search_finds_what_there_is_and_proves_the_rest(seeds: range) -> None:
    kinds = Counter[tuple[bool, bool]]()
    for seed in seeds:
        gang, nodes = brimful(seed)
        truth = truth_of(gang, nodes)
        answer = place(gang, nodes)
        assert isinstance(answer, Placement) == truth, seed
        assert isinstance(answer, Placement) or answer.exact, seed
        ways = fillings(ZoneNodes(gang, nodes, Budget(1000)), CardStrategy.BINPACK)
        greedy = any(len(pods) == gang.pods for group in ways for pods in group)
        kinds[greedy, truth] += 1
    # The search must have had something to find and something to disprove.
    assert kinds[False, True] > len(seeds) // 50
    assert kinds[False, False] > len(seeds) // 10


def test_a_search_cut_short_is_never_a_proof() -> None:
    open_answers = 0
    for seed in range(cases(2)):
        gang, nodes = brimful(seed)
        for steps in (0, 1, 4, 12):
            answer = place(gang, nodes, steps=steps)
            proven = isinstance(answer, Placement) or answer.exact
            open_answers += not proven
            assert not proven or isinstance(answer, Placement) == truth_of(gang, nodes), (seed, steps)
    assert open_answers > cases()


def test_many_nodes_are_not_searched_and_that_is_said() -> None:
    nodes = [FitNode(name=f"n{number}", free={"gpu": 9}) for number in range(80)]
    # Each node is filled by 5 + 4 or 3 + 3 + 3; a gang with a pod too much for that has enough in all.
    shapes = (
        PodShape(count=80, demand={"gpu": 5}),
        PodShape(count=79, demand={"gpu": 3}),
        PodShape(count=1, demand={"gpu": 8}),
    )
    answer = place(Gang(shapes=shapes), nodes)
    assert isinstance(answer, Unfit)
    assert not answer.exact


# Cards of one node ----------------------------------------------------------------------------------------------------


def brimful_cards(seed: int) -> tuple[list[CardState], list[CardRequest]]:
    """Cards as large as a random sharing needs, in half of the cases something less."""
    rng = Random(seed)
    card_annotations = [
        CardAnnotations(),
        CardAnnotations(idle_cards_only=True),
        CardAnnotations(one_numa_node=True),
    ]
    if rng.random() < 0.2:
        card_annotations.append(CardAnnotations(use_uuids=("GPU-1", "GPU-2")))
    kinds = [
        CardRequest(
            VgpuRequest(
                count=rng.choice([1, 1, 2]), cores=rng.choice([0, 20, 50, 100]), memory=rng.randrange(1, 6)
            ),
            rng.choice(card_annotations),
        )
        for _ in range(rng.choice([2, 3]))
    ]
    wanted = [rng.choice(kinds) for _ in range(rng.randrange(2, 6))]
    cards = [
        a_card(uuid=f"GPU-{number}", count=0, memory=0, cores=0, numa=rng.randrange(2)) for number in range(3)
    ]
    for want in wanted:
        for at in rng.sample(range(3), want.ask.count):
            one = cards[at]
            cores = rng.choice([100, one.cores + want.ask.cores])
            cards[at] = a_card(
                uuid=one.uuid,
                count=one.count + 1,
                memory=one.memory + want.ask.memory,
                cores=cores,
                numa=one.numa,
            )
    return cards, sorted(wanted, key=packing_rank)


def any_order(cards: tuple[CardState, ...], wanted: tuple[CardRequest, ...]) -> bool:
    """Every order of the wants, every choice of cards."""
    if not wanted:
        return True
    for at in {wanted.index(want) for want in wanted}:
        want = wanted[at]
        for chosen in combinations(range(len(cards)), want.ask.count):
            if want.card_annotations.one_numa_node and len({cards[card].numa for card in chosen}) > 1:
                continue
            if any(refusal_of(cards[card], want.ask, want.card_annotations) is not None for card in chosen):
                continue
            after = list(cards)
            take(after, want, chosen)
            if any_order(tuple(after), wanted[:at] + wanted[at + 1 :]):
                return True
    return False


def test_unlike_asks_share_cards_wherever_any_order_of_starting_lets_them() -> None:
    answers = Counter[bool]()
    for seed in range(cases()):
        cards, wanted = brimful_cards(seed)
        budget = Budget(10_000)
        packed = pack(cards, wanted, budget)
        truth = any_order(tuple(cards), tuple(wanted))
        answers[truth] += 1
        assert (packed is not None) == truth, seed
        assert not budget.spent, seed
        if packed is not None:
            now = list(cards)
            for want, chosen in zip(wanted, packed, strict=True):
                assert len(set(chosen)) == len(chosen) == want.ask.count, seed
                assert all(refusal_of(now[at], want.ask, want.card_annotations) is None for at in chosen), (
                    seed
                )
                assert (
                    not want.card_annotations.one_numa_node or len({cards[at].numa for at in chosen}) == 1
                ), seed
                take(now, want, chosen)
    assert min(answers.values()) > cases() / 5


def test_gangs_share_cards_wherever_any_order_of_starting_lets_them() -> None:
    for seed in range(cases()):
        cards, wanted = brimful_cards(seed)
        counts = Counter((want.ask, want.card_annotations) for want in wanted)
        shapes = tuple(
            PodShape(count=count, vgpus=(ask,), card_annotations=wish)
            for (ask, wish), count in counts.items()
        )
        answer = place(Gang(shapes=shapes), [FitNode(name="a", free={}, cards=tuple(cards))])
        assert isinstance(answer, Placement) == any_order(tuple(cards), tuple(wanted)), seed
        assert isinstance(answer, Placement) or answer.exact, seed


def test_cards_that_are_alike_differ_for_who_names_one() -> None:
    cards = [a_card(uuid="GPU-0", count=1, memory=8), a_card(uuid="GPU-1", count=1, memory=8)]
    anyone, named = (
        CardRequest(VgpuRequest(count=1), CardAnnotations()),
        CardRequest(VgpuRequest(count=1), CardAnnotations(use_uuids=("GPU-0",))),
    )
    assert pack(cards, [anyone, named], Budget(100)) == [(1,), (0,)]


def test_pods_of_several_containers_on_many_nodes() -> None:
    cards = tuple(a_card(uuid=f"GPU-{number}", count=9, memory=10) for number in range(2))
    nodes = [FitNode(name=f"n{number:03}", free={}, cards=cards) for number in range(200)]
    pair = (VgpuRequest(count=1, memory=4), VgpuRequest(count=1, memory=6))
    for count, fits in ((100, True), (400, True), (401, False)):
        answer = place(Gang(shapes=(PodShape(count=count, vgpus=pair),)), nodes)
        assert isinstance(answer, Placement) == fits
        assert isinstance(answer, Placement) or answer.exact


def test_every_node_is_looked_at_where_another_shape_may_need_the_first() -> None:
    cards = (a_card(uuid="GPU-0", count=9, memory=10),)
    nodes = [
        FitNode(name=f"n{number:03}", free={}, labels={"old": str(number < 66)}, cards=cards)
        for number in range(70)
    ]
    pair = (VgpuRequest(count=1, memory=4), VgpuRequest(count=1, memory=6))
    whole = PodShape(count=3, selector={"old": "True"}, vgpus=(VgpuRequest(count=1, memory=10),))
    assert isinstance(place(Gang(shapes=(PodShape(count=67, vgpus=pair), whole)), nodes), Placement)
    assert isinstance(place(Gang(shapes=(PodShape(count=68, vgpus=pair), whole)), nodes), Unfit)


def test_too_many_asks_for_a_search_are_left_open() -> None:
    budget = Budget(10_000)
    assert (
        pack(
            [a_card(uuid="a", count=999, memory=999)],
            [CardRequest(VgpuRequest(count=1), CardAnnotations())] * 201,
            budget,
        )
        is None
    )
    assert budget.spent


def test_as_many_pods_of_two_containers_fit_as_by_every_way_to_start_them() -> None:
    for seed in range(cases()):
        rng = Random(seed)
        asks = tuple(
            VgpuRequest(count=rng.choice([1, 1, 2]), memory=rng.randrange(2, 6), cores=20) for _ in range(2)
        )
        shape = PodShape(count=3, vgpus=asks)
        cards = tuple(
            a_card(uuid=f"GPU-{at}", count=4, memory=rng.randrange(4, 13)) for at in range(rng.choice([2, 3]))
        )
        wants = tuple(CardRequest(ask, shape.card_annotations) for ask in asks)
        truth = max(pods for pods in range(4) if any_order(cards, wants * pods))
        budget = Budget(100_000)
        assert pods_on_cards(cards, shape, 3, budget) == truth, seed
        assert not budget.spent, seed


def test_between_what_greed_finds_and_what_the_sums_allow() -> None:
    # One after the other a single pod starts, the sums allow three, and two is the truth.
    shape = PodShape(count=4, vgpus=(VgpuRequest(count=1, memory=4), VgpuRequest(count=2, memory=2)))
    cards = (a_card(uuid="GPU-0", count=9, memory=7), a_card(uuid="GPU-1", count=9, memory=17))
    assert pods_on_cards(cards, shape, 1, Budget(0)) == 1
    cut_short = Budget(0)
    assert pods_on_cards(cards, shape, 4, cut_short) == 1
    assert cut_short.spent
    assert pods_on_cards(cards, shape, 4, Budget(1000)) == 2


def test_two_shapes_of_fractions_on_many_nodes() -> None:
    cards = tuple(a_card(uuid=f"GPU-{number}", count=4, memory=16) for number in range(2))
    nodes = [FitNode(name=f"n{number}", free={}, cards=cards) for number in range(100)]
    shapes = (
        PodShape(count=200, vgpus=(VgpuRequest(count=1, memory=10),)),
        PodShape(count=200, vgpus=(VgpuRequest(count=1, memory=6),)),
    )
    answer = place(Gang(shapes=shapes), nodes)
    assert isinstance(answer, Placement)
    assert set(answer.nodes.values()) == {4}
    one_more = Gang(shapes=(*shapes, PodShape(count=1, vgpus=(VgpuRequest(count=1, memory=1),))))
    assert isinstance(place(one_more, nodes), Unfit)


# What a placement must hold -------------------------------------------------------------------------------------------


def test_a_placement_that_does_not_hold_is_seen() -> None:
    cards = (a_card(uuid="c0", count=2, memory=10), a_card(uuid="c1", count=2, memory=10, numa=1))
    nodes = {
        "a": FitNode(name="a", free={"cpu": 4, "pods": 3000}, labels={"zone": "1"}, cards=cards),
        "b": FitNode(name="b", free={"cpu": 4}, labels={"zone": "2"}, cards=cards),
        "c": FitNode(name="c", free={"cpu": 4}),
    }
    plain = Gang(shapes=(PodShape(count=2, demand={"cpu": 3}),))
    assert holds(plain, nodes, [PlacedPod(0, "a"), PlacedPod(0, "b")])
    assert not holds(plain, nodes, [PlacedPod(0, "a"), PlacedPod(0, "a")])
    assert not holds(plain, nodes, [PlacedPod(0, "a")])
    assert not holds(plain, nodes, [PlacedPod(0, "a"), PlacedPod(0, "b"), PlacedPod(0, "c")])
    zoned = Gang(shapes=plain.shapes, zone_key="zone")
    assert not holds(zoned, nodes, [PlacedPod(0, "a"), PlacedPod(0, "b")])
    assert not holds(zoned, nodes, [PlacedPod(0, "c"), PlacedPod(0, "c")])
    assert not holds(Gang(shapes=(PodShape(count=4),)), nodes, [PlacedPod(0, "a")] * 4)
    fast = Gang(shapes=(PodShape(count=1, selector={"zone": "2"}),))
    assert holds(fast, nodes, [PlacedPod(0, "b")])
    assert not holds(fast, nodes, [PlacedPod(0, "a")])


def test_cards_that_do_not_hold_are_seen() -> None:
    cards = (a_card(uuid="c0", count=2, memory=10), a_card(uuid="c1", count=2, memory=10, numa=1))
    nodes = {"a": FitNode(name="a", free={}, cards=cards)}

    def held(shape: PodShape, *pods: tuple[tuple[str, ...], ...]) -> bool:
        return holds(Gang(shapes=(shape,)), nodes, [PlacedPod(0, "a", uuids) for uuids in pods])

    pair = VgpuRequest(count=2, memory=6)
    assert held(PodShape(count=1, vgpus=(pair,)), (("c0", "c1"),))
    assert not held(PodShape(count=1, vgpus=(pair,)), (("c0", "c0"),))
    assert not held(PodShape(count=1, vgpus=(pair,)), (("c0",),))
    assert not held(PodShape(count=1, vgpus=(pair,)), ())
    assert not held(PodShape(count=2, vgpus=(pair,)), (("c0", "c1"),), (("c0", "c1"),))
    assert not held(
        PodShape(count=1, vgpus=(pair,), card_annotations=CardAnnotations(one_numa_node=True)),
        (("c0", "c1"),),
    )


def test_an_affinity_group_without_a_requirement_matches_nothing() -> None:
    node = FitNode(name="a", free={}, labels={"k": "v"})
    assert isinstance(place(Gang(shapes=(PodShape(count=1, affinity=((),)),)), [node]), Unfit)
    either = ((), (LabelRequirement(key="k", operator="Exists"),))
    assert isinstance(place(Gang(shapes=(PodShape(count=1, affinity=either),)), [node]), Placement)
