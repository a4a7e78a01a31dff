"""Every codec: newer minor versions are read, other major ones refused, and garbage does no more than raise."""

import gc

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.base.codec import Codec, Message, to_packed
from fairlead_contracts.base.errors import ContractError, MalformedError, UnsupportedVersionError
from fairlead_contracts.messages.state import STATE, encode_state
from fairlead_testkit.inputs.builders import a_decision, a_job
from fairlead_testkit.inputs.examples import codecs, example, kinds

CODECS = list(codecs())
CASES = [
    pytest.param(codec, kind, id=f"{codec.name}: {kind.__name__}")
    for codec in CODECS
    for kind in kinds(codec)
]


def as_dict(kind: type[Message]) -> dict[str, object]:
    found = msgspec.to_builtins(example(kind), enc_hook=msgspec.json.decode)  # what travels as it came
    assert isinstance(found, dict)
    return found


def payload(codec: Codec[Message], content: object) -> bytes:
    return msgspec.msgpack.encode(content) if codec.packed else msgspec.json.encode(content)


@pytest.mark.parametrize(("codec", "kind"), CASES)
def test_unknown_fields_of_a_newer_minor_version_are_accepted(
    codec: Codec[Message], kind: type[Message]
) -> None:
    newer = as_dict(kind) | {"a_field_of_tomorrow": {"deep": [1, None]}}
    assert codec.decode(payload(codec, newer)) == example(kind)


@pytest.mark.parametrize(("codec", "kind"), CASES)
def test_an_unknown_major_version_is_refused_by_name(codec: Codec[Message], kind: type[Message]) -> None:
    with pytest.raises(UnsupportedVersionError, match="schema version 2"):
        codec.decode(payload(codec, as_dict(kind) | {"v": 2}))


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
@pytest.mark.parametrize(
    "content", [{"v": 2}, {"v": 2, "kind": "something new", "at": []}, {"v": 0}, {"v": -1}], ids=str
)
def test_the_version_is_the_reason_even_where_the_shape_is_unknown(
    codec: Codec[Message], content: dict[str, object]
) -> None:
    with pytest.raises(UnsupportedVersionError):
        codec.decode(payload(codec, content))


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
@pytest.mark.parametrize("content", [{"v": "1"}, {"v": None}, {"v": 1.5}, [], None, "text", 7], ids=str)
def test_what_is_no_message_is_malformed(codec: Codec[Message], content: object) -> None:
    if isinstance(content, dict):
        content = as_dict(kinds(codec)[0]) | content
    with pytest.raises(MalformedError, match=codec.name):
        codec.decode(payload(codec, content))


@given(st.binary(max_size=64))
def test_garbage_raises_errors_of_this_library_alone(garbage: bytes) -> None:
    for codec in CODECS:
        try:
            codec.decode(garbage)
        except ContractError:
            continue


@given(st.data())
def test_a_cut_or_flipped_message_is_read_or_refused_but_never_crashes(data: st.DataObject) -> None:
    whole = to_packed(a_decision())
    at = data.draw(st.integers(0, len(whole) - 1))
    flipped = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    codec = next(codec for codec in CODECS if codec.name == "decision")
    for broken in (whole[:at], flipped):
        try:
            codec.decode(broken)
        except ContractError:
            continue


def test_the_same_message_gives_the_same_bytes() -> None:
    assert to_packed(a_job()) == to_packed(a_job())


def test_instants_without_an_offset_are_refused() -> None:
    codec = next(codec for codec in CODECS if codec.name == "control")
    with pytest.raises(MalformedError, match="timezone"):
        codec.decode(b'{"mode":"paused","at":"2026-11-21T12:00:00"}')


def test_a_codec_refuses_classes_of_several_schema_versions() -> None:
    class Old(Message, frozen=True, kw_only=True, tag="old"):
        pass

    class New(Message, frozen=True, kw_only=True, tag="new"):
        VERSION = 2
        v: int = 2

    class Torn(Message, frozen=True, kw_only=True):
        VERSION = 2

    assert Codec[New](New, "new", packed=False).decode(b'{"type":"new","v":2}') == New()
    for kind in (Old | New, Torn):
        with pytest.raises(TypeError, match="schema version"):
            Codec[Message](kind, "mixed", packed=False)


def test_a_job_that_waits_is_nothing_that_garbage_is_looked_for_in() -> None:
    job = STATE.decode(encode_state(a_job()))
    own = [getattr(job, name) for name in job.__struct_fields__ if name != "phase"]  # which all jobs share
    assert [value for value in (job, *own) if gc.is_tracked(value)] == []
