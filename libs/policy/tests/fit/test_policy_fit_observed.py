"""Nodes and pods as Kubernetes describes them: when cards count, and what is proven of them."""

import json
from collections.abc import Mapping

import msgspec
import pytest

from fairlead_contracts.frontend.cards import REGISTER, USE_MODEL
from fairlead_contracts.frontend.observed import ObservedNode, ObservedPods
from fairlead_policy.fit.observed import empty_node, fit_question
from fairlead_policy.fit.results import Placement, Unfit, with_pods
from fairlead_policy.fit.shapes import FitNode

GPU, MEMORY = "nvidia.com/gpu", "nvidia.com/gpumem"


def node(name: str, gpus: int, *mebibytes: int, register: str | None = None) -> FitNode:
    """A node with so many GPUs, and the cards that HAMi registers on it."""
    cards = [
        {"id": f"{name}-{at}", "count": 10, "devmem": size, "devcore": 100, "health": True}
        for at, size in enumerate(mebibytes)
    ]
    noted = {REGISTER: json.dumps(cards) if register is None else register}
    described = ObservedNode(
        name=name,
        ready=True,
        allocatable={GPU: gpus * 1000, "pods": 110_000},
        labels={},
        annotations=noted if cards or register else {},
        taints=(),
        unschedulable=False,
    )
    return empty_node(described)


def pods(count: int, ask: Mapping[str, int]) -> ObservedPods:
    amounts = {name: amount * 1000 for name, amount in ask.items()}
    return ObservedPods(name="pods", count=count, demand=amounts, card_asks=(amounts,) if ask else ())


def test_gpus_are_counted_as_long_as_no_node_registers_cards() -> None:
    question = fit_question([pods(3, {GPU: 1})], [node("a", 2), node("b", 1)])
    assert question.gang.shapes[0].vgpus == ()
    assert isinstance(question.answer(), Placement)


def test_whole_cards_are_taken_of_both_kinds_of_nodes_and_are_gone_then() -> None:
    nodes = [node("a", 2), node("b", 10, 8000)]
    question = fit_question([pods(3, {GPU: 1})], nodes)
    found = question.answer()
    assert isinstance(found, Placement)
    left = with_pods(question.gang, {one.name: one for one in nodes}, found.pods)
    assert left["a"].free[GPU] == 0
    assert [card.used_count for card in left["b"].cards] == [1]
    assert isinstance(fit_question([pods(1, {GPU: 1})], left.values()).answer(), Unfit)


def test_a_part_is_never_looked_for_where_no_card_is_registered() -> None:
    found = fit_question([pods(1, {GPU: 1, MEMORY: 1})], [node("a", 2)]).answer()
    assert isinstance(found, Unfit)
    assert found.exact


@pytest.mark.parametrize("ask", [{GPU: 1}, {GPU: 1, MEMORY: 1}], ids=["whole cards", "parts"])
def test_of_cards_whose_register_cannot_be_read_nothing_is_known(ask: Mapping[str, int]) -> None:
    """The node has ten tokens of HAMi's, of how many cards nobody can say."""
    unread = node("a", 10, register="nonsense")
    for nodes in ([unread], [unread, node("b", 10, 0)]):
        found = fit_question([pods(2, ask)], nodes).answer()
        assert isinstance(found, Unfit)
        assert not found.exact
    assert isinstance(fit_question([pods(2, {GPU: 1})], [unread, node("b", 2)]).answer(), Placement)
    nowhere = fit_question([msgspec.structs.replace(pods(1, {}), selector={"a": "b"})], [unread]).answer()
    assert isinstance(nowhere, Unfit)
    assert nowhere.exact


@pytest.mark.parametrize(
    ("beside", "exact"),
    [({GPU: 1}, False), ({GPU: 1, MEMORY: 9000}, True), ({}, True)],
    ids=["whole cards, which another node may have", "parts", "pods without cards"],
)
def test_whole_cards_beside_parts_are_looked_for_under_hami_alone_and_that_proves_nothing(
    beside: dict[str, int], exact: bool
) -> None:
    gang = [pods(1, {GPU: 1, MEMORY: 9000}), pods(1, beside)]
    found = fit_question(gang, [node("a", 2), node("b", 10, 8000)]).answer()
    assert isinstance(found, Unfit)
    assert found.exact is exact


def test_what_model_a_node_without_a_register_has_is_not_known() -> None:
    wants = msgspec.structs.replace(pods(1, {GPU: 1}), card_annotations={USE_MODEL: "H100"})
    under_hami, plain = node("a", 10, 8000), node("b", 2)
    for nodes, exact in (([under_hami, plain], False), ([under_hami], True)):
        found = fit_question([wants], nodes).answer()
        assert isinstance(found, Unfit)
        assert found.exact is exact
    assert isinstance(fit_question([wants], [plain]).answer(), Placement)


def test_what_was_placed_on_a_card_that_is_gone_is_charged_nowhere() -> None:
    question = fit_question([pods(1, {GPU: 1, MEMORY: 1000})], [node("a", 10, 8000)])
    found = question.answer()
    assert isinstance(found, Placement)
    other = msgspec.structs.replace(node("b", 10, 8000), name="a")
    assert with_pods(question.gang, {"a": other}, found.pods)["a"].cards == other.cards
