"""Answers as programs read them: one notation for each kind of value, whatever the services speak among themselves.

Amounts of resources are Kubernetes quantities ("8", "500m", "64Gi"), instants RFC 3339, a class is `class`. Who writes a
program against them needs neither our base units nor our clock. docs/output.md is the page about it, and
docs/output.schema.json is made from the same types.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeAliasType,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from fairlead_contracts.base.instants import Micros, to_datetime
from fairlead_contracts.base.quantities import Quantities, QuantitySeconds, base_units, format_quantity
from fairlead_contracts.messages.decisions import EffectiveJob, Position, SiblingStanding
from fairlead_contracts.messages.explanations import TenantHolding
from fairlead_contracts.messages.questions import Shortfall

type Schema = dict[str, object]
"""A JSON Schema, draft 2020-12."""

QUANTITY: Schema = {"type": "string", "description": "A Kubernetes quantity."}
_AMOUNT: Schema = {"anyOf": [QUANTITY, {"type": "number"}, {"type": "null"}]}
"""Schema of an amount: of a resource, or in another unit that stands beside it; null where nobody knows
it."""
_INSTANT: Schema = {"type": "string", "format": "date-time"}
_PLAIN: dict[object, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    datetime: _INSTANT,
    object: {},
}
_RENAMED = {"job_class": "class", "urgency": "class", "idle": "idle_unit_seconds"}


class _Writer(NamedTuple):
    """A writer of values of one type, and their schema."""

    write: Callable[[Any], object]
    schema: Schema


class _Field(NamedTuple):
    name: str
    key: str
    writer: _Writer
    default: object
    """Default at which the struct leaves the field out; otherwise nothing equals it."""


class _UnitOf(NamedTuple):
    """A number of a struct whose unit another field names."""

    resource: str
    """The field that names the resource."""
    unit: str | None = None
    """The field that names another unit than base units; empty there where it is those."""


_UNITS: dict[tuple[type, str], _UnitOf] = {
    (Position, "use"): _UnitOf("dominant"),
    (EffectiveJob, "use"): _UnitOf("dominant"),
    (SiblingStanding, "use"): _UnitOf("dominant"),
    (TenantHolding, "amount"): _UnitOf("resource"),
    **{(Shortfall, name): _UnitOf("term", "unit") for name in ("wanted", "most", "total")},
}


def published(answer: msgspec.Struct) -> dict[str, object]:
    """The answer as plain values, for JSON or YAML."""
    found: dict[str, object] = {}
    for field in _fields(type(answer)):
        value: object = getattr(answer, field.name)
        if value is msgspec.UNSET or (field.default is not msgspec.NODEFAULT and value == field.default):
            continue
        amount = _UNITS.get((type(answer), field.name))
        found[field.key] = field.writer.write(value) if amount is None else _amount(answer, value, amount)
    return found


def schema_of(kind: type[msgspec.Struct], definitions: dict[str, Schema]) -> Schema:
    """A reference to the schema of what `published` makes of such answers, which is put among the definitions."""
    reference: Schema = {"$ref": f"#/$defs/{kind.__name__}"}
    if kind.__name__ in definitions:
        return reference
    definitions[kind.__name__] = {}  # it may hold some of its own kind
    properties: dict[str, object] = {}
    required: list[str] = []
    for field in _fields(kind):
        is_amount = (kind, field.name) in _UNITS
        properties[field.key] = _AMOUNT if is_amount else _resolved(field.writer.schema, definitions)
        if field.default is msgspec.NODEFAULT:
            required.append(field.key)
    definitions[kind.__name__] = {
        "type": "object",
        "description": (kind.__doc__ or "").strip().partition("\n")[0],
        "properties": properties,
        "required": sorted(required),
    }
    return reference


def _resolved(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """The schema with the structs that it speaks of among the definitions."""
    struct = schema.get("struct")
    if isinstance(struct, type):
        return schema_of(struct, definitions)
    resolved: Schema = {}
    for key, value in schema.items():
        if isinstance(value, dict):
            resolved[key] = _resolved(value, definitions)
        elif isinstance(value, list):
            resolved[key] = [_resolved(one, definitions) if isinstance(one, dict) else one for one in value]
        else:
            resolved[key] = value
    return resolved


def _amount(answer: msgspec.Struct, value: object, amount: _UnitOf) -> object:
    if not isinstance(value, int) or (amount.unit is not None and getattr(answer, amount.unit)):
        return value
    return format_quantity(getattr(answer, amount.resource), value)


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[_Field, ...]:
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for field in msgspec.structs.fields(kind):
        left_out = kind.__struct_config__.omit_defaults or isinstance(field.default, msgspec.UnsetType)
        made = field.default_factory
        default = field.default if made is msgspec.NODEFAULT else made()
        key = _RENAMED.get(field.encode_name, field.encode_name)
        writer = _writer(hints[field.name])
        found.append(_Field(field.name, key, writer, default if left_out else msgspec.NODEFAULT))
    return tuple(found)


def _writer(hint: object) -> _Writer:
    match hint:
        case TypeAliasType():
            return _units().get(hint) or _writer(hint.__value__)
        case type() if issubclass(hint, msgspec.Struct):
            return _Writer(published, {"struct": hint})
        case _ if get_origin(hint) is not None:
            return _generic_writer(get_origin(hint), get_args(hint))
        case _:
            return _Writer(_as_it_is, _plain_schema(hint))


def _units() -> dict[TypeAliasType, _Writer]:
    """The writers of values whose type says in what unit they are."""
    numbers: Schema = {"type": "object", "additionalProperties": _PLAIN[float]}
    return {
        Micros: _Writer(_instant, _INSTANT),
        Quantities: _Writer(_amounts, {"type": "object", "additionalProperties": QUANTITY}),
        QuantitySeconds: _Writer(_unit_seconds, numbers),
    }


def _generic_writer(origin: object, inner: tuple[object, ...]) -> _Writer:
    if origin is Annotated:
        return _writer(inner[0])
    if origin is Literal:
        return _Writer(_as_it_is, {"enum": list(inner)})
    if origin in (Union, UnionType):
        return _optional([part for part in inner if part not in (type(None), msgspec.UnsetType)], inner)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(inner[1])
    part = _writer(inner[0])
    return _Writer(
        lambda value: [part.write(one) for one in value],
        {"type": "array", "items": part.schema},
    )


def _optional(parts: list[object], inner: tuple[object, ...]) -> _Writer:
    writers = [_writer(part) for part in parts]
    schemas = [writer.schema for writer in writers] + ([{"type": "null"}] if type(None) in inner else [])
    schema: Schema = {"anyOf": schemas} if len(schemas) > 1 else schemas[0]
    if len(writers) > 1:
        return _Writer(_as_it_is, schema)
    return _Writer(lambda value: None if value is None else writers[0].write(value), schema)


def _mapping(values: object) -> _Writer:
    writer = _writer(values)
    return _Writer(
        lambda value: {str(key): writer.write(one) for key, one in value.items()},
        {"type": "object", "additionalProperties": writer.schema},
    )


def _plain_schema(hint: object) -> Schema:
    known = _PLAIN.get(hint)
    if known is not None:
        return known
    [schema], parts = msgspec.json.schema_components([hint], ref_template="{name}")
    # An enumeration is put among the parts; nobody but its one reader knows it there.
    return parts[str(schema["$ref"])] if "$ref" in schema else schema


def _amounts(found: Mapping[str, int]) -> object:
    return {name: format_quantity(name, amount) for name, amount in found.items()}


def _unit_seconds(found: Mapping[str, float]) -> object:
    """Base units times seconds as units times seconds: GPU-seconds, say."""
    return {name: amount / base_units(name) for name, amount in found.items()}


def _instant(since: Micros) -> object:
    return _as_it_is(to_datetime(since))


def _as_it_is(value: object) -> object:
    built: object = msgspec.to_builtins(value)
    return built
