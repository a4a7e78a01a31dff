"""A container's asks for cards after HAMi's defaults: a table after device.go, and what is refused."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.frontend.cards import CARD_RESOURCES
from fairlead_policy.hami.annotations import (
    CardAnnotations,
    CardStrategy,
    card_annotations_of,
    node_strategy_of,
)
from fairlead_policy.hami.charges import CardPool
from fairlead_policy.hami.requests import VgpuRequest, VgpuRequestError, vgpu_request
from fairlead_testkit.inputs.builders import a_card
from fairlead_testkit.inputs.cases import cases

GPU, MEM, PERCENT, CORES = CARD_RESOURCES


def resources(**stated: int) -> dict[str, int]:
    names = {"gpu": GPU, "mem": MEM, "percent": PERCENT, "cores": CORES}
    return {names[name]: 1000 * amount for name, amount in stated.items()} | {"cpu": 500}


@pytest.mark.parametrize(
    ("stated", "ask"),
    [
        # A count alone is that many whole cards for oneself (since v2.7.0).
        ({"gpu": 2}, VgpuRequest(count=2, cores=100)),
        ({"gpu": 1, "percent": 100}, VgpuRequest(count=1, cores=100)),
        # Memory, even 0, or a part in percent leaves the cores shared.
        ({"gpu": 1, "mem": 3000}, VgpuRequest(count=1, memory=3000)),
        ({"gpu": 1, "mem": 0}, VgpuRequest(count=1)),
        ({"gpu": 1, "percent": 50}, VgpuRequest(count=1, memory_percent=50)),
        ({"gpu": 1, "percent": 0}, VgpuRequest(count=1)),
        # The percentage decides about the cores where both are there, the MiB about the memory.
        ({"gpu": 1, "percent": 100, "mem": 3000}, VgpuRequest(count=1, cores=100, memory=3000)),
        ({"gpu": 1, "percent": 30, "mem": 3000}, VgpuRequest(count=1, memory=3000, memory_percent=30)),
        ({"gpu": 1, "percent": 30, "mem": 0}, VgpuRequest(count=1, memory_percent=30)),
        # Cores that are named stay; more than a card is a card.
        ({"gpu": 1, "cores": 30}, VgpuRequest(count=1, cores=30)),
        ({"gpu": 1, "cores": 0}, VgpuRequest(count=1)),
        ({"gpu": 1, "cores": 250}, VgpuRequest(count=1, cores=100)),
        # Without a count there is one vGPU, where a part of one is asked for.
        ({"mem": 3000}, VgpuRequest(count=1, memory=3000)),
        ({"cores": 30}, VgpuRequest(count=1, cores=30)),
        ({"percent": 100}, VgpuRequest(count=1, cores=100)),
        ({"gpu": 0, "mem": 3000}, None),
        ({}, None),
    ],
)
def test_what_is_left_out_is_filled_in_as_hami_does(stated: dict[str, int], ask: VgpuRequest | None) -> None:
    assert vgpu_request(resources(**stated)) == ask


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({GPU: 500}, GPU),
        ({GPU: -1000}, GPU),
        ({GPU: 1000, MEM: 1500}, MEM),
        ({GPU: 1000, MEM: 2**31 * 1000}, MEM),
        ({GPU: 1000, PERCENT: 101_000}, PERCENT),
        ({GPU: 1000, CORES: -1000}, CORES),
        ({GPU: 2**31 * 1000}, GPU),
    ],
)
def test_what_hami_would_bend_is_refused_by_name(limits: dict[str, int], field: str) -> None:
    with pytest.raises(VgpuRequestError) as refused:
        vgpu_request(limits)
    assert refused.value.field == field
    assert field in str(refused.value)


amounts = st.dictionaries(
    st.sampled_from([GPU, MEM, PERCENT, CORES, "cpu"]),
    st.one_of(st.integers(0, 120).map(lambda amount: amount * 1000), st.integers(-(2**70), 2**70)),
)


@settings(max_examples=cases())
@given(amounts)
def test_any_resources_are_an_ask_that_a_card_can_judge_or_are_refused(asked: dict[str, int]) -> None:
    try:
        ask = vgpu_request(asked)
    except VgpuRequestError as refused:
        assert refused.field in CARD_RESOURCES  # noqa: PT017 # both outcomes are right here
        return
    if ask is not None:
        assert ask.count > 0
        assert 0 <= ask.cores <= 100
        assert 0 <= ask.memory < 2**31
        assert 1 <= ask.memory_percent <= 100


@pytest.mark.parametrize(
    ("text", "strategy"),
    [(None, "spread"), ("spread", "spread"), ("Spread", "binpack"), ("binpack", "binpack")],
)
def test_nodes_are_chosen_by_annotation_or_as_the_scheduler_is_set(text: str | None, strategy: str) -> None:
    annotations = {} if text is None else {"hami.io/node-scheduler-policy": text}
    assert node_strategy_of(annotations, CardStrategy.SPREAD) == strategy


@pytest.mark.parametrize(
    ("text", "strategy", "idle"),
    [
        (None, "spread", False),
        ("binpack", "binpack", False),
        ("mutex", "spread", True),
        ("numa, binpack,spread", "binpack", False),
        ("topology-aware,tight", "spread", False),
    ],
)
def test_cards_are_chosen_by_annotation(text: str | None, strategy: str, idle: bool) -> None:
    found = card_annotations_of({} if text is None else {"hami.io/gpu-scheduler-policy": text})
    assert (found.strategy, found.idle_cards_only) == (strategy, idle)


def test_wishes_by_annotation() -> None:
    card_annotations = card_annotations_of(
        {
            "nvidia.com/use-gputype": " a100, H100 ",
            "nvidia.com/nouse-gputype": "40GB",
            "nvidia.com/nouse-gpuuuid": "GPU-1,GPU-2",
            "nvidia.com/numa-bind": "T",
            "nvidia.com/vgpu-mode": "hami-core",
            "hami.io/gpu-scheduler-policy": "binpack,mutex",
        }
    )
    assert card_annotations.accept_model("NVIDIA A100-SXM4-80GB")
    assert not card_annotations.accept_model("NVIDIA A100-SXM4-40gb")
    assert not card_annotations.accept_model("NVIDIA T4")
    assert card_annotations.accept_uuid("GPU-3")
    assert not card_annotations.accept_uuid("GPU-2")
    assert card_annotations.one_numa_node
    assert card_annotations.idle_cards_only
    assert card_annotations.strategy is CardStrategy.BINPACK
    assert not card_annotations.accept_mode(a_card(uuid="c", count=1, memory=1, mode="mps"))


def test_an_empty_wish_is_none_and_a_list_of_nothing_accepts_nothing() -> None:
    assert card_annotations_of({"nvidia.com/use-gputype": " ", "nvidia.com/use-gpuuuid": ""}).accept_model(
        "T4"
    )
    assert not card_annotations_of({"nvidia.com/use-gputype": ","}).accept_model("T4")
    assert card_annotations_of({"nvidia.com/nouse-gputype": ",T4"}).accept_model("A100")
    assert card_annotations_of({"nvidia.com/use-gpuuuid": "GPU-1"}).accept_uuid("GPU-1")
    assert not card_annotations_of({"nvidia.com/use-gpuuuid": "GPU-1"}).accept_uuid("GPU-2")


@pytest.mark.parametrize(
    ("ask", "cards", "memory", "cores"),
    [
        (VgpuRequest(count=2, cores=100), 2000, 2 * 24576, 200),
        (VgpuRequest(count=1, cores=30, memory=12288), 100, 12288, 30),
        (VgpuRequest(count=3, cores=50, memory=1), 300, 3, 150),
        (VgpuRequest(count=1, memory_percent=30), 100, 7372.8, 0),
        (VgpuRequest(count=1, memory=49152), 100, 49152, 0),
    ],
)
def test_an_ask_weighs_its_part_of_the_cards(ask: VgpuRequest, cards: int, memory: float, cores: int) -> None:
    pool = CardPool([a_card(uuid="c", count=10, memory=24576)])
    assert pool.charge(ask, CardAnnotations()) == {GPU: cards, MEM: memory * 1000, CORES: cores * 1000}


def test_whole_cards_weigh_the_same_share_of_all_that_a_pool_of_cards_has() -> None:
    pool = CardPool(a_card(uuid=str(number), count=10, memory=24576) for number in range(64))
    has = pool.capacity({})
    assert has == {GPU: 64_000, MEM: 64 * 24576 * 1000, CORES: 6_400_000}
    asked = pool.charge(VgpuRequest(count=8, cores=100), CardAnnotations())
    assert {name: Fraction(amount, has[name]) for name, amount in asked.items()} == dict.fromkeys(
        (GPU, MEM, CORES), Fraction(1, 8)
    )


def test_a_pool_of_a_number_of_cards_has_their_average_memory_and_cores() -> None:
    cards = [a_card(uuid="a", count=10, memory=80_000), a_card(uuid="b", count=10, memory=20_000, cores=200)]
    assert CardPool(cards).capacity({GPU: 1000, "cpu": 5}) == {
        GPU: 1000,
        MEM: 50_000_000,
        CORES: 150_000,
        "cpu": 5,
    }
    assert CardPool(cards).capacity({MEM: 7})[MEM] == 7, "what the pool states itself counts first"
    assert CardPool([]).capacity({}) == {GPU: 0, MEM: 0, CORES: 0}


def test_percentages_are_of_the_cards_that_the_pod_accepts() -> None:
    cards = [
        a_card(uuid="a", count=10, memory=80_000, model="A100"),
        a_card(uuid="b", count=4, memory=20_000, model="T4"),
        a_card(uuid="c", count=1, memory=1, model="T4", health=False),
    ]
    pool = CardPool(cards)
    half = VgpuRequest(count=1, memory_percent=50)
    assert pool.charge(half, CardAnnotations()) == {GPU: 175, MEM: 25_000_000, CORES: 0}
    assert pool.charge(half, CardAnnotations(use_models=("a100",))) == {GPU: 100, MEM: 40_000_000, CORES: 0}
    assert pool.charge(half, CardAnnotations(use_models=("H100",))) == pool.charge(half, CardAnnotations()), (
        "none: as any"
    )
    assert CardPool([]).charge(half, CardAnnotations()) == {GPU: 1000, MEM: 0, CORES: 0}


def test_of_scaled_cores_a_hundred_percent_is_no_whole_card() -> None:
    pool = CardPool([a_card(uuid="c", count=10, memory=49152, cores=200)])
    assert pool.charge(VgpuRequest(count=1, cores=100, memory=24576), CardAnnotations())[GPU] == 100
