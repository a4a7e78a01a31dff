"""The page for who writes a frontend: each message on it can be read, and stands where it says."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead_contracts.base.codec import Codec
from fairlead_contracts.frontend import verbs
from fairlead_contracts.messages.events import EVENT
from fairlead_contracts.messages.members import LEADER_LEASE
from fairlead_contracts.messages.state import STATE, subject_of

PAGE = (Path(__file__).parents[3] / "docs" / "frontends.md").read_text("utf-8")
TOLD: Mapping[str, Sequence[Codec[Any]]] = {
    "lease": [LEADER_LEASE],
    "state": [STATE] * 5,
    "asked": [verbs.CREATE_JOBS, verbs.SET_LEVELS, verbs.DELETE_JOBS],
    "replied": [verbs.CREATE_REPLIES, verbs.LEVEL_REPLIES, verbs.DELETE_REPLIES],
    "event": [EVENT] * 3,
}


def messages(kind: str) -> list[dict[str, object]]:
    """The messages in the page's block of this kind, one a line."""
    found = re.search(rf"```json {kind}\n(.*?)```", PAGE, re.DOTALL)
    assert found, kind
    return [json.loads(line) for line in found[1].splitlines()]


@pytest.mark.parametrize("kind", TOLD)
def test_each_message_on_the_page_is_read_whole(kind: str) -> None:
    for codec, message in zip(TOLD[kind], messages(kind), strict=True):
        told = (msgspec.msgpack if codec.packed else msgspec.json).encode(message)
        _is_whole(message, msgspec.to_builtins(codec.decode(told)))


def _is_whole(told: object, read: object) -> None:
    """Fails where a field of the page is none of the message: readers pass over what they do not know."""
    if isinstance(told, dict) and isinstance(read, dict):
        for name, value in told.items():
            assert name in read
            _is_whole(value, read[name])
    elif isinstance(told, list) and isinstance(read, list):
        for one, other in zip(told, read, strict=True):
            _is_whole(one, other)
    else:
        assert told == read


def test_each_object_stands_where_the_page_says() -> None:
    for message in messages("state"):
        subject = subject_of(STATE.decode(msgspec.msgpack.encode(message)))
        assert f"`{subject.removeprefix('fairlead.v1.state.batch.')}`" in PAGE
