"""The JSON Schema of the policy document, for editors and for whoever writes policies by a program.

It says what one key may be. What several keys mean together (a grant of an unknown class, a circle of parents) only
reading the document tells; so a file that the schema refuses is refused, and one that it passes is nearly right.
JSON Schema takes 1.0 for a whole number, and reading does not.
"""

import json
from collections.abc import Mapping

import msgspec

from fairlead_contracts.base.field_docs import field_docs
from fairlead_contracts.policyfile import document, validate
from fairlead_contracts.policyfile.document import PRESETS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TITLE = "Fairlead policy"

type _Schema = dict[str, object]

_TEXT: _Schema = {"type": "string"}
_NAME: _Schema = {
    **_TEXT,
    "minLength": 1,
    "maxLength": validate.LONGEST_NAME,
    # To the very end: in Python's regular expressions `$` stands before a last newline, too.
    "pattern": r"^[^\s\u0000-\u001f\u007f]+(?![\s\S])",
}
_MEMBER: _Schema = {**_TEXT, "pattern": r"^[^/]+/[\s\S]"}
_WEIGHT: _Schema = {
    "anyOf": [{"const": 0}, {"minimum": validate.LEAST_WEIGHT, "maximum": validate.LARGEST_WEIGHT}]
}
"""Bounds of a weight, beside its type."""

_BOUNDS: Mapping[tuple[str, str], _Schema] = {
    ("Aging", "entitlement_per_day"): {"minimum": 0, "maximum": validate.LARGEST_RATE},
    ("Aging", "cap_days"): {"exclusiveMinimum": 0, "maximum": validate.LONGEST_CAP_DAYS},
    ("Bands", "width"): {"minimum": validate.NARROWEST_BAND, "maximum": validate.WIDEST_BAND},
    ("Pool", "name"): _NAME,
    ("Pool", "members"): {"minItems": 1, "uniqueItems": True, "items": _MEMBER},
    ("PolicyDocument", "classes"): {"minItems": 1, "uniqueItems": True, "items": _NAME},
    ("PolicyDocument", "resource_weights"): {"additionalProperties": {"type": "number", **_WEIGHT}},
    ("PolicyDocument", "window"): {"minimum": 1, "maximum": validate.LARGEST_WINDOW},
    ("PolicyDocument", "shards"): {"minimum": 1, "maximum": validate.MOST_SHARDS},
    ("PolicyDocument", "half_life_hours"): {
        "minimum": validate.SHORTEST_HALF_LIFE_HOURS,
        "maximum": validate.LONGEST_HALF_LIFE_HOURS,
    },
    ("PolicyDocument", "unlisted_weight"): _WEIGHT,
    ("PolicyDocument", "expected_unlisted"): {"minimum": 1, "maximum": validate.MOST_UNLISTED},
    ("Reserve", "reaction_seconds"): {"minimum": 1, "maximum": validate.LONGEST_REACTION_SECONDS},
    ("Reserve", "grace_seconds"): {"minimum": 0, "maximum": validate.LONGEST_GRACE_SECONDS},
    ("Reserve", "rest_seconds"): {"minimum": 0, "maximum": validate.LONGEST_REST_SECONDS},
    ("Tenant", "name"): _NAME,
    ("Tenant", "weight"): _WEIGHT,
}


def _where_mode_is(names: list[str], then: _Schema) -> _Schema:
    return {"if": {"properties": {"class_mode": {"enum": names}}, "required": ["class_mode"]}, "then": then}


def _class_weights_from(least: float) -> _Schema:
    bounds = {"minimum": least, "maximum": validate.LARGEST_CLASS_WEIGHT}
    return {"properties": {"class_weights": {"additionalProperties": bounds}}}


_SOME_CLASS_WEIGHTS: _Schema = {
    "properties": {"class_weights": {"minProperties": 1}},
    "required": ["class_weights"],
}

_RULES: Mapping[str, _Schema] = {
    "Grant": {
        "anyOf": [
            {"properties": {"classes": {"minItems": 1}}, "required": ["classes"]},
            {"properties": {"priority_override": {"const": True}}, "required": ["priority_override"]},
        ]
    },
    "PolicyDocument": {
        "allOf": [
            _where_mode_is(["additive", "multiplicative"], _SOME_CLASS_WEIGHTS),
            _where_mode_is(["additive", "drf"], _class_weights_from(0)),
            _where_mode_is(["multiplicative", "wdrf"], _class_weights_from(validate.LEAST_WEIGHT)),
        ]
    },
}
"""Rules for several keys of one part together, by part."""


def schema_text() -> str:
    """The schema as JSON, the same bytes at each call; ends with a newline."""
    found = msgspec.convert(msgspec.json.schema(document.PolicyDocument), _Schema)
    types = msgspec.convert(found["$defs"], dict[str, _Schema])
    for name, schema in types.items():
        _complete(name, schema, field_docs(getattr(document, name)))
    whole = {"$schema": DIALECT, "title": _TITLE, **found, "$defs": dict(sorted(types.items()))}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _complete(name: str, schema: _Schema, docs: Mapping[str, str]) -> None:
    """Adds what the types do not say: the docstrings of the keys, their bounds, the presets' names."""
    keys = msgspec.convert(schema["properties"], dict[str, _Schema])
    for key, part in keys.items():
        _numbers_of(part).update(_BOUNDS.get((name, key), {}))
        if key in docs:
            part["description"] = docs[key]
    if name == document.PolicyDocument.__name__:
        modes = msgspec.convert(keys["class_mode"]["enum"], list[str])
        keys["class_mode"]["enum"] = [*modes, *sorted(PRESETS)]
    schema["properties"] = keys
    schema.update(_RULES.get(name, {}))


def _numbers_of(part: _Schema) -> _Schema:
    """The sub-schema that carries a number's bounds: the key's own, or that of the number where the key may be null."""
    choices = part.get("anyOf")
    if not isinstance(choices, list):
        return part
    branch: _Schema = next(choice for choice in choices if choice.get("type") != "null")
    return branch
