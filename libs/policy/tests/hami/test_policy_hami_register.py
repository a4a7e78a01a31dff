"""HAMi's annotations decoded: vectors of both encodings, what is refused and how it is said, and any text at all."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.frontend.card_annotations import (
    AllocatedError,
    RegisterError,
    cards_of,
    decode_allocated,
    decode_register,
)
from fairlead_contracts.frontend.cards import ALLOCATED, CORDON, REGISTER, Allocation, CardState, with_use
from fairlead_testkit.inputs.builders import a_card
from fairlead_testkit.inputs.cases import cases

A30 = a_card(
    uuid="GPU-ab",
    count=10,
    memory=24576,
    cores=100,
    model="NVIDIA-NVIDIA A30",
    numa=1,
    index=3,
    mode="hami-core",
)


def test_the_words_of_nine_fields() -> None:
    assert decode_register("n", "GPU-ab,10,24576,100,NVIDIA-NVIDIA A30,1,true,3,hami-core:") == (A30,)


def test_the_words_of_seven_fields_know_no_index_and_no_mode() -> None:
    one, other = decode_register("n", "GPU-a,10,32768,100,NVIDIA-Tesla V100,0,true:GPU-b,5,7,90,T4,-1,F:")
    assert one == a_card(uuid="GPU-a", count=10, memory=32768, model="NVIDIA-Tesla V100")
    assert other == a_card(uuid="GPU-b", count=5, memory=7, cores=90, model="T4", numa=-1, health=False)


def test_json_as_hami_marshals_it() -> None:
    text = json.dumps(
        [
            {
                "id": "GPU-ab",
                "index": 3,
                "count": 10,
                "devmem": 24576,
                "devcore": 100,
                "type": "NVIDIA-NVIDIA A30",
                "numa": 1,
                "mode": "hami-core",
                "health": True,
            },
            {"id": "GPU-m", "count": 7, "devmem": 81920, "mode": "mig", "migProfiles": [{"name": "1g.10gb"}]},
        ]
    )
    one, other = decode_register("n", "  " + text)
    assert one == A30
    # What HAMi leaves out is zero: a card that does not say that it is healthy is not.
    assert other == a_card(uuid="GPU-m", count=7, memory=81920, cores=0, mode="mig", health=False)


def test_no_cards_and_no_annotation_are_no_error() -> None:
    assert decode_register("n", "[]") == ()
    assert cards_of("n", {}) == ()


def test_cards_under_the_cordon_are_marked() -> None:
    text = "GPU-a,1,1,100,T4,0,1:GPU-b,1,1,100,T4,0,1:"
    cards = cards_of("n", {REGISTER: text, CORDON: "GPU-x, GPU-b ,"})
    assert [card.cordoned for card in cards] == [False, True]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("", ""),
        ("GPU-a", "GPU-a"),
        ("GPU-a,1,2,3,T4,0:", "6"),
        ("GPU-a,1,2,3,T4,0,true,1:", "8"),
        ("GPU-a,ten,2,3,T4,0,true:", "ten"),
        ("GPU-a,1,2_0,3,T4,0,true:", "2_0"),
        ("GPU-a,1,2,-3,T4,0,true:", "-3"),
        ("GPU-a,1,4294967296,3,T4,0,true:", "4294967296"),
        ("GPU-a,1,2,3,T4,x,true:", "NUMA"),
        ("GPU-a,1,2,3,T4,0,yes:", "yes"),
        ("GPU-a,1,2,3,T4,0,true,-1,mig:", "-1"),
        (",1,2,3,T4,0,true:", "name"),
        ("GPU-a,1,2,3,T4,0,true:GPU-a,1,2,3,T4,0,true:", "GPU-a"),
        ('[{"id": "GPU-a", "devmem": "24576"}]', "devmem"),
        ('[{"id": "GPU-a", "count": 1.5}]', "count"),
        ('[{"id": "GPU-a", "count": -1}]', "count"),
        ('[{"id": "GPU-a", "devmem": 2147483648}]', "devmem"),
        ('[{"count": 1}]', "name"),
        ('[{"id": "GPU-a"}, {"id": "GPU-a"}]', "GPU-a"),
        ("[null]", "null"),
        ("[[]]", "array"),
        ('[{"id": "GPU-a"}', "truncated"),
        ("[" * 100_000, "["),
        ('[{"x": ' + "[" * 100_000, "recursion"),
        ("x" * 300_000, "longer"),
    ],
)
def test_a_bad_register_is_refused_with_the_node_and_the_value(value: str, found: str) -> None:
    with pytest.raises(RegisterError) as refused:
        decode_register("gpu-node-7", value)
    assert refused.value.node == "gpu-node-7"
    assert refused.value.field == REGISTER
    assert "gpu-node-7" in str(refused.value)
    assert REGISTER in str(refused.value)
    assert found in str(refused.value)
    assert len(str(refused.value)) < 1000
    assert isinstance(refused.value, FieldError)


def test_bytes_that_are_no_text_are_refused() -> None:
    for value in (b"\xff:", "\ud800:"):
        with pytest.raises(RegisterError, match="UTF-8"):
            decode_register("n", value)


def never_but_typed(decode: Callable[[], object], error: type[FieldError]) -> None:
    try:
        decode()
    except error as refused:
        assert str(refused)  # noqa: PT017 # both outcomes are right here


words = st.lists(
    st.lists(st.one_of(st.text(max_size=4), st.integers(-9, 2**33).map(str), st.just("true")), max_size=10),
    max_size=4,
).map(lambda cards: "".join(",".join(card) + ":" for card in cards))
objects = st.dictionaries(
    st.sampled_from(["id", "count", "devmem", "devcore", "type", "numa", "mode", "health", "index", "x"]),
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=3),
        st.lists(st.integers(), max_size=2),
    ),
)
documents = st.lists(st.one_of(objects, st.none(), st.integers()), max_size=3).map(json.dumps)


@given(st.one_of(st.text(), st.binary(), words, documents, words.map(lambda text: "[" + text)))
@settings(max_examples=cases())
def test_any_register_is_decoded_or_refused(value: str | bytes) -> None:
    never_but_typed(lambda: decode_register("n", value), RegisterError)


@given(st.one_of(st.text(), words, words.map(lambda text: text.replace("9", ";"))))
@settings(max_examples=cases())
def test_any_allocation_is_decoded_or_refused(value: str) -> None:
    never_but_typed(lambda: decode_allocated("p", value), AllocatedError)


cards = st.builds(
    CardState,
    uuid=st.text("GPU-0123abc", min_size=1, max_size=6),
    count=st.integers(0, 2**31 - 1),
    memory=st.integers(0, 2**31 - 1),
    cores=st.integers(0, 2**31 - 1),
    model=st.text("NVIDIA A10", max_size=8),
    index=st.integers(0, 99),
    numa=st.integers(-1, 7),
    mode=st.sampled_from(["hami-core", "mig", "mps"]),
    health=st.booleans(),
)


@settings(max_examples=cases())
@given(st.lists(cards, max_size=4, unique_by=lambda card: card.uuid))
def test_what_hami_encodes_is_read_back(found: list[CardState]) -> None:
    in_words = "".join(
        f"{c.uuid},{c.count},{c.memory},{c.cores},{c.model},{c.numa},{str(c.health).lower()},{c.index},{c.mode}:"
        for c in found
    )
    fields = [
        {
            "id": c.uuid,
            "index": c.index,
            "count": c.count,
            "devmem": c.memory,
            "devcore": c.cores,
            "type": c.model,
            "numa": c.numa,
            "mode": c.mode,
            "health": c.health,
        }
        for c in found
    ]
    as_json = json.dumps([{key: value for key, value in one.items() if value} for one in fields])
    assert decode_register("n", as_json) == tuple(found)
    assert not found or decode_register("n", in_words) == tuple(found)


def test_what_pods_hold_counts_on_their_cards() -> None:
    held = decode_allocated("p", "GPU-a,NVIDIA,3000,0:GPU-b,NVIDIA,5000,30:;;GPU-a,NVIDIA,100,10,extra:;")
    assert held == (
        (Allocation(uuid="GPU-a", memory=3000, cores=0), Allocation(uuid="GPU-b", memory=5000, cores=30)),
        (),
        (Allocation(uuid="GPU-a", memory=100, cores=10),),
    )
    bare = (a_card(uuid="GPU-a", count=10, memory=8000), a_card(uuid="GPU-c", count=10, memory=8000))
    used = with_use(bare, [one for container in held for one in container])
    assert (used[0].used_count, used[0].used_memory, used[0].used_cores) == (2, 3100, 10)
    assert (used[0].free_memory, used[0].free_cores) == (4900, 90)
    assert used[1] == bare[1]
    assert used[0].emptied() == bare[0]


@pytest.mark.parametrize(
    "value",
    [
        "GPU-a,NVIDIA,3000:;",
        "GPU-a,NVIDIA,x,0:",
        "GPU-a,NVIDIA,1,-1:",
        "GPU-a,NVIDIA,4294967296,1:",
        ",NVIDIA,1,1:",
    ],
)
def test_a_bad_allocation_is_refused_with_the_pod(value: str) -> None:
    with pytest.raises(AllocatedError) as refused:
        decode_allocated("team/job-1", value)
    assert refused.value.pod == "team/job-1"
    assert refused.value.field == ALLOCATED
    assert "team/job-1" in str(refused.value)
