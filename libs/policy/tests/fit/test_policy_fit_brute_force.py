"""Fit against every way to start the pods one after the other, HAMi's rules written down a second time and plainly."""

from collections.abc import Iterator
from itertools import combinations
from random import Random

import pytest

from fairlead_contracts.frontend.cards import CardState
from fairlead_contracts.frontend.observed import Taint, Toleration
from fairlead_policy.fit.card_fit import pods_on_cards
from fairlead_policy.fit.card_table import CardTable
from fairlead_policy.fit.packing import Budget
from fairlead_policy.fit.placing import place
from fairlead_policy.fit.results import Placement, Unfit
from fairlead_policy.fit.shapes import FitNode, Gang, PodShape
from fairlead_policy.hami.annotations import CardAnnotations, CardStrategy
from fairlead_policy.hami.requests import VgpuRequest
from fairlead_testkit.inputs.cases import cases

type UsedCard = tuple[int, int, int]
"""(vGPUs, MiB, percent of cores) in use."""
type FreeRoom = tuple[tuple[int, ...], tuple[tuple[int, ...], ...], tuple[tuple[UsedCard, ...], ...]]
"""(pods waiting of each shape, free of each node, use of each node's cards)."""

RESOURCES = ("cpu", "gpu")


def random_card(rng: Random, uuid: str) -> CardState:
    """A card, somewhat used."""
    cores = rng.choice([100, 100, 100, 200])
    used = rng.choice([(0, 0, 0), (0, 0, 0), (1, 4, 0), (1, 6, 50), (1, 2, 100), (2, 8, 30)])
    return CardState(
        uuid=uuid,
        count=rng.choice([1, 2, 3]),
        memory=rng.choice([8, 10]),
        cores=cores,
        model=rng.choice(["A100", "T4"]),
        numa=rng.randrange(2),
        health=rng.random() < 0.9,
        cordoned=rng.random() < 0.05,
        used_count=used[0],
        used_memory=used[1],
        used_cores=used[2],
    )


def random_node(rng: Random, number: int, *, with_cards: bool) -> FitNode:
    free = {name: rng.randrange(1, 8) for name in RESOURCES}
    if rng.random() < 0.2:
        free["pods"] = 1000 * rng.randrange(4)
    labels = {"zone": rng.choice("ab")} if rng.random() < 0.9 else {}
    return FitNode(
        name=f"n{number}",
        free=free,
        labels=labels | ({"kind": "fast"} if rng.random() < 0.6 else {}),
        taints=(Taint(key="reserved", value="x", effect="NoSchedule"),) if rng.random() < 0.2 else (),
        cards=tuple(random_card(rng, f"{number}-{card}") for card in range(rng.randrange(4)))
        if with_cards
        else (),
    )


def random_ask(rng: Random) -> VgpuRequest:
    return VgpuRequest(
        count=rng.choice([1, 1, 1, 2]),
        cores=rng.choice([0, 0, 30, 50, 100]),
        memory=rng.choice([0, 2, 4, 5]),
        memory_percent=rng.choice([40, 50, 100]),
    )


def random_shape(rng: Random, *, with_cards: bool, most: int) -> PodShape:
    card_annotations = CardAnnotations(
        use_models=("a10",) if rng.random() < 0.1 else (),
        one_numa_node=rng.random() < 0.2,
        idle_cards_only=rng.random() < 0.1,
        strategy=rng.choice(list(CardStrategy)),
    )
    return PodShape(
        count=rng.randrange(1, most + 1),
        demand={name: rng.randrange(4) for name in RESOURCES} if not with_cards or rng.random() < 0.4 else {},
        selector={"kind": "fast"} if rng.random() < 0.2 else {},
        tolerations=(Toleration(key="reserved", operator="Exists"),) if rng.random() < 0.7 else (),
        vgpus=tuple(random_ask(rng) for _ in range(rng.choice([0, 1, 1, 1, 1, 2]))) if with_cards else (),
        card_annotations=card_annotations,
    )


def random_case(seed: int) -> tuple[Gang, list[FitNode]]:
    rng = Random(seed)
    with_cards = rng.random() < 0.5
    shapes = rng.choice([1, 2, 2, 3])
    most = {1: 4, 2: 3, 3: 2}[shapes]
    nodes = [random_node(rng, number, with_cards=with_cards) for number in range(rng.randrange(1, 4))]
    if rng.random() < 0.3:
        nodes += [
            FitNode(
                name=f"twin{number}", free=node.free, labels=node.labels, taints=node.taints, cards=node.cards
            )
            for number, node in enumerate(nodes[:1])
        ]
    gang = Gang(
        shapes=tuple(random_shape(rng, with_cards=with_cards, most=most) for _ in range(shapes)),
        zone_key="zone" if rng.random() < 0.3 else None,
    )
    return gang, nodes


def card_takes(
    card: CardState, used: UsedCard, ask: VgpuRequest, card_annotations: CardAnnotations
) -> UsedCard | None:
    """The card's use with one vGPU more; None where HAMi refuses it. Fit of pkg/device/nvidia/device.go, line by line."""
    slots, memory, cores = used
    wanted = ask.memory if ask.memory > 0 else card.memory * ask.memory_percent // 100
    refused = (
        not card.health
        or card.cordoned
        or (
            card_annotations.use_models
            and not any(model.upper() in card.model.upper() for model in card_annotations.use_models)
        )
        or card.count <= slots
        or (card_annotations.idle_cards_only and slots > 0)
        or card.memory - memory < wanted
        or card.cores - cores < ask.cores
        or (card.cores == 100 and ask.cores == 100 and slots > 0)
        or (card.cores != 0 and cores == card.cores and ask.cores == 0)
    )
    return None if refused else (slots + 1, memory + wanted, cores + ask.cores)


def on_cards(node: FitNode, uses: tuple[UsedCard, ...], shape: PodShape) -> set[tuple[UsedCard, ...]]:
    """The use of the node's cards after one pod more, for each choice of cards of each container."""
    found = {uses}
    for ask in shape.vgpus:
        found = {after for before in found for after in after_ask(node, before, ask, shape.card_annotations)}
    return found


def after_ask(
    node: FitNode, uses: tuple[UsedCard, ...], ask: VgpuRequest, card_annotations: CardAnnotations
) -> Iterator[tuple[UsedCard, ...]]:
    for chosen in combinations(range(len(node.cards)), ask.count):
        if card_annotations.one_numa_node and len({node.cards[at].numa for at in chosen}) > 1:
            continue
        after = {at: card_takes(node.cards[at], uses[at], ask, card_annotations) for at in chosen}
        if None not in after.values():
            yield tuple(after.get(at) or use for at, use in enumerate(uses))


def one_more(gang: Gang, nodes: list[FitNode], state: FreeRoom, shape: int, at: int) -> Iterator[FreeRoom]:
    """Every state after one pod of the shape on that node."""
    waiting, free, uses = state
    asked, node = gang.shapes[shape], nodes[at]
    if any(node.labels.get(key) != value for key, value in asked.selector.items()):
        return
    if node.taints and not asked.tolerations:
        return
    demand = [asked.demand.get(name, 0) for name in RESOURCES] + [1000]
    left = tuple(has - need for has, need in zip(free[at], demand, strict=True))
    if min(left) < 0:
        return
    for cards in on_cards(node, uses[at], asked):
        yield (
            (*waiting[:shape], waiting[shape] - 1, *waiting[shape + 1 :]),
            (*free[:at], left, *free[at + 1 :]),
            (*uses[:at], cards, *uses[at + 1 :]),
        )


def all_start(gang: Gang, nodes: list[FitNode]) -> bool:
    """Whether there is any way at all, by trying each."""
    begun = beginning(gang, nodes)
    seen, stack = {begun}, [begun]
    while stack:
        state = stack.pop()
        if not any(state[0]):
            return True
        for shape, waits in enumerate(state[0]):
            for at in range(len(nodes)) if waits else ():
                fresh = set(one_more(gang, nodes, state, shape, at)) - seen
                seen |= fresh
                stack += fresh
    return False


def fits(gang: Gang, nodes: list[FitNode]) -> bool:
    if gang.zone_key is None:
        return all_start(gang, nodes)
    zones = {node.labels["zone"] for node in nodes if "zone" in node.labels}
    return any(all_start(gang, [node for node in nodes if node.labels.get("zone") == zone]) for zone in zones)


@pytest.mark.parametrize("seeds", [range(400), pytest.param(range(400, 20_400), marks=pytest.mark.deep)])
def test_fit_is_that_of_all_ways_to_start_the_pods(seeds: range) -> None:
    answers = {True: 0, False: 0}
    unproven = 0
    for seed in seeds:
        gang, nodes = random_case(seed)
        packed, spread = (
            place(gang, nodes, strategy) for strategy in (CardStrategy.BINPACK, CardStrategy.SPREAD)
        )
        truth = fits(gang, nodes)
        answers[truth] += 1
        for answer in (packed, spread):
            if isinstance(answer, Placement):
                assert starts_as_told(gang, nodes, answer), (seed, answer)
            else:
                assert answer.reasons, seed
                assert not (answer.exact and truth), (seed, answer)
                assert answer.exact or mixes_turns(gang), seed
                unproven += truth
        assert isinstance(packed, Placement) == isinstance(spread, Placement), seed
        if isinstance(packed, Placement) and isinstance(spread, Placement):
            assert len(packed.nodes) <= len(spread.nodes), seed
    # Cases of one kind alone would show nothing, nor would answers that leave everything open.
    assert min(answers.values()) > len(seeds) // 5
    assert unproven <= len(seeds) // 200


def mixes_turns(gang: Gang) -> bool:
    """Whether a pod has containers of which one had better start early and the other late: the search is no proof then."""
    return any(len({ask.cores > 0 for ask in shape.vgpus}) > 1 for shape in gang.shapes)


def starts_as_told(gang: Gang, nodes: list[FitNode], answer: Placement) -> bool:
    """Whether the pods start in the order and on the nodes and cards of the answer."""
    states = {beginning(gang, nodes)}
    where = {node.name: at for at, node in enumerate(nodes)}
    for pod in answer.pods:
        at = where[pod.node]
        node = nodes[at]
        names = [card.uuid for card in node.cards]
        taken = [sum(uuids.count(name) for uuids in pod.cards) for name in names]
        states = {
            after
            for before in states
            for after in one_more(gang, nodes, before, pod.shape, at)
            if [new[0] - old[0] for new, old in zip(after[2][at], before[2][at], strict=True)] == taken
        }
    zones = {nodes[where[pod.node]].labels.get("zone") for pod in answer.pods}
    ended = any(not any(state[0]) for state in states)
    return ended and (gang.zone_key is None or zones == {answer.zone})


def beginning(gang: Gang, nodes: list[FitNode]) -> FreeRoom:
    return (
        tuple(shape.count for shape in gang.shapes),
        tuple((*(node.free[name] for name in RESOURCES), node.free.get("pods", 10**9)) for node in nodes),
        tuple(
            tuple((card.used_count, card.used_memory, card.used_cores) for card in node.cards)
            for node in nodes
        ),
    )


def test_a_free_node_more_never_makes_a_fit_unfit() -> None:
    for seed in range(cases()):
        gang, nodes = random_case(seed)
        if isinstance(place(gang, nodes), Placement):
            more = random_node(Random(-seed - 1), 9, with_cards=True)
            assert isinstance(place(gang, [*nodes, more]), Placement), seed


def test_the_answer_does_not_depend_on_the_order_of_the_nodes() -> None:
    for seed in range(cases()):
        gang, nodes = random_case(seed)
        for strategy in CardStrategy:
            assert place(gang, nodes, strategy) == place(gang, nodes[::-1], strategy), seed


def test_a_search_that_ends_early_never_claims_a_proof_or_a_fit_that_is_none() -> None:
    unproven = 0
    for seed in range(cases()):
        gang, nodes = random_case(seed)
        answer, truth = place(gang, nodes, steps=3), fits(gang, nodes)
        if isinstance(answer, Unfit) and not answer.exact:
            unproven += not mixes_turns(gang)
        else:
            assert isinstance(answer, Placement) == truth, seed
    assert unproven


def test_an_empty_cluster_is_the_cluster_with_nothing_in_use() -> None:
    for seed in range(cases()):
        gang, nodes = random_case(seed)
        emptied = [
            FitNode(
                name=node.name,
                free={name: amount + 1 for name, amount in node.free.items()},
                labels=node.labels,
                taints=node.taints,
                cards=tuple(card.emptied() for card in node.cards),
            )
            for node in nodes
        ]
        used = [
            FitNode(
                name=node.name,
                free=node.free,
                allocatable=empty.free,
                labels=node.labels,
                taints=node.taints,
                cards=node.cards,
            )
            for node, empty in zip(nodes, emptied, strict=True)
        ]
        assert place(gang, used, empty=True) == place(gang, emptied), seed
        assert place(gang, used) == place(gang, nodes) or not fits(gang, nodes), seed


def test_cards_as_columns_hold_as_many_pods_as_cards_one_by_one() -> None:
    table = CardTable()
    for seed in range(cases()):
        rng = Random(seed)
        nodes = [random_node(rng, number, with_cards=True) for number in range(3)]
        shape = PodShape(
            count=rng.randrange(1, 6),
            vgpus=(random_ask(rng),),
            card_annotations=CardAnnotations(
                use_models=("a10",) if rng.random() < 0.3 else (), idle_cards_only=rng.random() < 0.2
            ),
        )
        plain = [pods_on_cards(node.cards, shape, shape.count, Budget(1)) for node in nodes]
        # One table for all: nodes of one name have other cards each time.
        assert table.pods(nodes, shape).tolist() == plain, seed
        assert table.pods(nodes, shape).tolist() == plain, seed
    asking = PodShape(count=1, vgpus=(VgpuRequest(count=1),))
    assert CardTable().pods([FitNode(name="n", free={})], asking).tolist() == [0]
