"""The published JSON Schema: up to date, valid, and of one mind with the reading of a document."""

import math
import random
from collections import Counter
from copy import deepcopy
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.read import read_document
from fairlead_contracts.policyfile.schema import schema_text
from fairlead_testkit.inputs.fuzz_inputs import mangle

PUBLISHED = Path(__file__).parents[3] / "docs" / "policy.schema.json"
SCHEMA = msgspec.json.decode(schema_text(), type=dict[str, object])
VALIDATOR = Draft202012Validator(SCHEMA)

FULL: dict[str, object] = {
    "version": 1,
    "classes": ["urgent", "normal"],
    "class_mode": "additive",
    "class_weights": {"urgent": 0, "normal": 1},
    "aging": {"entitlement_per_day": 0.1, "cap_days": None},
    "resource_weights": {"cpu": 0.5},
    "half_life_hours": 24,
    "hierarchy": {"mode": "hdrf", "minimum": "live"},
    "window": 8,
    "shards": 4,
    "bands": {"width": 5000},
    "unlisted_weight": None,
    "pools": [{"name": "gpu", "members": ["c1/gpu"]}],
    "tenants": [{"name": "a", "weight": 2, "match": {"scopes": ["a", "b"]}}, {"name": "b", "pool": "gpu"}],
    "grants": [{"tenant": "a", "classes": ["urgent"], "by": "me", "why": "on-call"}],
}


RARE: dict[str, object] = {
    "class_mode": "multiplicative",
    "class_weights": {"urgent": 2, "normal": 1},
    "fit": {"strategy": "spread"},
    "mode": "reserve",
    "reserve": {"reaction_seconds": 5, "grace_seconds": 0, "rest_seconds": 60},
    "preemption": "accept",
    "unlisted_weight": 3,
    "grants": [{"tenant": "a", "priority_override": True, "job": "j1"}],
}


class Part(msgspec.Struct):
    """One of the schema's types."""

    properties: dict[str, dict[str, object]]


plain = (
    st.none() | st.booleans() | st.integers(-3, 20_000_000) | st.floats(allow_nan=False) | st.text(max_size=3)
)
values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


def test_the_published_schema_is_that_of_this_release() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == schema_text(), (
        "fairlead policy schema > docs/policy.schema.json"
    )


def test_it_is_a_schema_and_every_key_of_it_is_explained() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    for name, part in msgspec.convert(SCHEMA["$defs"], dict[str, Part]).items():
        # A key that refers to another part is explained there.
        bare = [key for key, schema in part.properties.items() if not {"description", "$ref"} & schema.keys()]
        assert bare == [], name


def test_a_full_document_and_a_default_one_pass() -> None:
    assert list(VALIDATOR.iter_errors(FULL)) == []
    assert list(VALIDATOR.iter_errors(msgspec.to_builtins(PolicyDocument()))) == []
    assert list(VALIDATOR.iter_errors({"class_mode": "wdrf"})) == []
    read_document(FULL)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("window", 0),
        ("half_life_hours", 0),
        ("aging", {"entitlement_per_day": -1}),
        ("aging", {"share_per_hour": 0.06}),
        ("expected_unlisted", 0),
        ("aging", {"share": 1}),
        ("classes", "urgent"),
        ("classes", []),
        ("classes", ["urgent", "normal", "urgent"]),
        ("classes", ["urgent", "normal\n"]),
        ("classes", ["a b", "urgent", "normal"]),
        ("class_weights", {}),
        ("class_weights", {"urgent": -1, "normal": 1}),
        ("resource_weights", {"cpu": -1}),
        ("resource_weights", {"cpu": 1e-9}),
        ("unlisted_weight", 1e-9),
        ("pools", [{"name": "gpu", "members": []}]),
        ("pools", [{"name": "gpu", "members": ["a"]}]),
        ("pools", [{"name": "gpu", "members": ["a/b", "a/b"]}]),
        ("grants", [{"tenant": "a", "classes": []}]),
        ("grants", [{"tenant": "a", "priority_override": False}]),
        ("tenants", [{"name": "a b"}]),
        ("tenants", [{"name": "x" * 254}]),
        ("tenants", [{"name": "a", "weight": 1e-9}]),
        ("tenants", [{"weight": 1}]),
        ("tenants", [{"name": "a", "weight": -1}]),
        ("nonsense", 1),
    ],
)
def test_what_it_refuses_is_refused(key: str, value: object) -> None:
    assert not VALIDATOR.is_valid(FULL | {key: value})
    with pytest.raises(DocumentError):
        read_document(FULL | {key: value})


SAID_BY_READING_ALONE = (
    *("is named twice", "is not in", "a member", "takes a weight of each class", "puts it before"),
    *("makes a cycle", "deep", "no jobs of its own", "is not the pool of"),
)
"""Parts of the problems that only reading tells: several parts of a document make them together."""


def is_json_alone(found: object) -> bool:
    """Whether it is JSON, and no number in it of 1.0's kind, which JSON Schema takes for whole."""
    parts = [*found.keys(), *found.values()] if isinstance(found, dict) else found
    if isinstance(parts, list):
        return all(map(is_json_alone, parts))
    if isinstance(found, str):
        return found != "\ud800"
    return not isinstance(found, float) or (math.isfinite(found) and not found.is_integer())


@pytest.mark.parametrize("first", range(0, 2000, 500))
def test_what_one_key_may_be_the_schema_says_as_the_reader_does(first: int) -> None:
    """Documents that are nearly right, in which a few values were replaced, moved, doubled or left out."""
    both = Counter[bool]()
    for seed in range(first, first + 500):
        rng = random.Random(seed)
        document = deepcopy(FULL | RARE if rng.random() < 0.5 else FULL)
        mangle(rng, document)
        if not is_json_alone(document):
            continue
        reasons = reasons_against(document)
        refused = list(VALIDATOR.iter_errors(document))
        if reasons and all(any(part in reason for part in SAID_BY_READING_ALONE) for reason in reasons):
            continue
        assert bool(reasons) == bool(refused), (seed, document, reasons, refused)
        both[bool(reasons)] += 1
    assert both[True] > 100
    assert both[False] > 20


def reasons_against(document: dict[str, object]) -> list[str]:
    try:
        read_document(document)
    except DocumentError as error:
        return [problem.reason for problem in error.problems]
    return []


@given(key=st.sampled_from(sorted(FULL)), value=values)
def test_what_reading_accepts_the_schema_accepts(key: str, value: object) -> None:
    """The schema refuses no good file: an editor would call it wrong."""
    document = FULL | {key: value}
    try:
        read_document(document)
    except DocumentError:
        return
    if isinstance(value, float) and math.isinf(value):
        return
    assert list(VALIDATOR.iter_errors(document)) == []
