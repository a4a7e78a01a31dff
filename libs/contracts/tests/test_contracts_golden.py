"""Golden files: what travels today, byte for byte, and its schema. Any change of a message breaks a test here.

A deliberate change is recorded with one command, and its diff is reviewed:

    FAIRLEAD_GOLDEN=write .venv/bin/python -m pytest libs/contracts/tests/test_contracts_golden.py

Readers of the release before must still read what is written: add fields with defaults; never rename, retype or
remove one without a new major schema version.
"""

import json
import os
from pathlib import Path

import msgspec
import pytest

from fairlead_contracts.base.codec import Codec, Message, to_json, to_packed
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.read import encode_document, read_document
from fairlead_testkit.inputs.examples import codecs, example, kinds

GOLDEN = Path(__file__).parent / "golden"
WRITE = os.environ.get("FAIRLEAD_GOLDEN") == "write"
CODECS = {codec.name.replace(" ", "-"): codec for codec in codecs()}


def without_prose(schema: object) -> object:
    """A schema without the docstrings that msgspec puts into it: rewording one is no change of schema."""
    if isinstance(schema, dict):
        return {
            key: without_prose(value)
            for key, value in schema.items()
            if not (key == "description" and isinstance(value, str))
        }
    return [without_prose(part) for part in schema] if isinstance(schema, list) else schema


def encoded(codec: Codec[Message], kind: type[Message]) -> object:
    message = example(kind)
    if not codec.packed:
        return json.loads(to_json(message))
    return {"bytes": to_packed(message).hex(), "plain": msgspec.to_builtins(message)}


def recorded(name: str, current: object) -> object:
    path = GOLDEN / f"{name}.json"
    if WRITE:
        path.write_text(json.dumps(current, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return json.loads(path.read_text())


@pytest.mark.parametrize("name", CODECS)
def test_what_travels_is_what_is_recorded(name: str) -> None:
    codec = CODECS[name]
    current = {
        "schema": without_prose(msgspec.json.schema(codec.kind)),
        "examples": {kind.__name__: encoded(codec, kind) for kind in kinds(codec)},
    }
    assert json.loads(json.dumps(current)) == recorded(name, current)


@pytest.mark.parametrize("name", CODECS)
def test_recorded_messages_are_still_read(name: str) -> None:
    codec = CODECS[name]
    examples = json.loads((GOLDEN / f"{name}.json").read_text())["examples"]
    for kind in kinds(codec):
        found = examples[kind.__name__]
        payload = bytes.fromhex(found["bytes"]) if codec.packed else json.dumps(found).encode()
        assert codec.decode(payload) == example(kind)


def test_the_policy_document_is_what_is_recorded() -> None:
    current = {
        "schema": without_prose(msgspec.json.schema(PolicyDocument)),
        "default": json.loads(encode_document(PolicyDocument())),
    }
    assert current == recorded("policy-document", current)
    assert read_document(current["default"]) == PolicyDocument()


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == {*CODECS, "policy-document"}


def test_every_message_has_a_codec_so_that_it_has_a_golden_file() -> None:
    def concrete(kind: type[Message]) -> set[type[Message]]:
        below = {leaf for child in kind.__subclasses__() for leaf in concrete(child)}
        return below or {kind}

    # Submission alone has none: its body is read by read_submission, field by field.
    ours = {kind for kind in concrete(Message) if kind.__module__.startswith("fairlead_contracts")}
    covered = {kind for codec in CODECS.values() for kind in kinds(codec)}
    assert {kind.__name__ for kind in ours - covered} == {"Submission"}
