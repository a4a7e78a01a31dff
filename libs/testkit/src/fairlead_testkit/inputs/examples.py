"""Examples of all messages, one each, with every field set: golden files and tests of all codecs are made from them.

The values follow from the names and types of the fields alone, so an example changes when, and only when, its message
does.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
from msgspec import inspect

import fairlead_contracts
from fairlead_contracts.base.codec import Codec, Message

MOMENT = datetime(2026, 11, 21, 12, 34, 56, 789012, tzinfo=UTC)


def codecs() -> Iterator[Codec[Message]]:
    """Every codec that the contracts define, by module and name."""
    for module in pkgutil.walk_packages(fairlead_contracts.__path__, f"{fairlead_contracts.__name__}."):
        members = vars(importlib.import_module(module.name))
        yield from (found for _, found in sorted(members.items()) if isinstance(found, Codec))


def kinds(codec: Codec[Message]) -> list[type[Message]]:
    """The message classes that a codec decodes."""
    info = inspect.type_info(codec.kind)
    members = info.types if isinstance(info, inspect.UnionType) else (info,)
    classes = [member.cls for member in members if isinstance(member, inspect.StructType)]
    return [found for found in classes if issubclass(found, Message)]


def example[T: msgspec.Struct](kind: type[T]) -> T:
    """A struct with every field set, none at its default where the type leaves a choice."""
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)  # noqa: S101 # by the bound of T
    return kind(**{field.name: _value(field.name, field.type) for field in found.fields if field.name != "v"})


def _value(name: str, kind: inspect.Type) -> object:  # noqa: PLR0911 # one line a type
    match kind:
        case inspect.UnionType(types=types):
            return _value(name, next(part for part in types if not isinstance(part, inspect.NoneType)))
        case inspect.StructType(cls=cls):
            return example(cls)
        case inspect.EnumType(cls=cls):
            return list(cls)[-1]
        case inspect.LiteralType(values=values):
            return values[-1]
        case inspect.ListType(item_type=item):
            return [_value(name, item)]
        case inspect.VarTupleType(item_type=item):
            return (_value(name, item),)
        case inspect.DictType(value_type=value):
            return {"cpu": _value(name, value), "nvidia.com/gpu": _value(name, value)}
        case _:
            return _plain(name, kind)


def _plain(name: str, kind: inspect.Type) -> object:  # noqa: PLR0911 # as above
    match kind:
        case inspect.BoolType():
            return name != "ready"
        case inspect.IntType(le=most):
            return 1000 + len(name) if most is None else min(1000 + len(name), most)
        case inspect.FloatType():
            return len(name) / 8
        case inspect.StrType():
            return name
        case inspect.BytesType():
            return name.encode()
        case inspect.DateTimeType():
            return MOMENT
        case inspect.RawType():
            return msgspec.Raw(b'"as it came"')
        case _:
            raise TypeError(f"no example for {kind}")
