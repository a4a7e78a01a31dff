"""Reading documents of people key by key: what can be read is kept, everything else is a problem with its place."""

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Literal, TypeAliasType, Union, get_args, get_origin

import msgspec

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.places import step
from fairlead_contracts.base.quantities import exponent_hint

_WORDS = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    tuple: "a list",
    dict: "a mapping of keys and values",
    Mapping: "a mapping of keys and values",
    NoneType: "null",
}


def choices_of(hint: object) -> tuple[object, ...]:
    """The types of a union; else the type alone. A name that stands for a type is that type."""
    while isinstance(hint, TypeAliasType):
        hint = hint.__value__
    return get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)


def in_words(hint: object) -> str:
    """The type, as a sentence has it after "must be"."""
    return " or ".join(_word(choice) for choice in choices_of(hint))


def _unlimited(hint: object) -> object:
    """The type without the limits of its values."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _within(limit: object) -> str:
    if isinstance(limit, msgspec.Meta) and limit.max_length is not None:
        return f"of up to {limit.max_length:,}"
    ends = (limit.ge, limit.le) if isinstance(limit, msgspec.Meta) else (None, None)
    return " ".join(
        f"{word} {end:,}" for word, end in zip(("from", "to"), ends, strict=True) if end is not None
    )


def _word(hint: object) -> str:
    kind = get_origin(hint) or hint
    if isinstance(kind, TypeAliasType):
        return in_words(kind)
    if kind is Annotated:
        plain, *limits = get_args(hint)
        return " ".join([_word(plain), *map(_within, limits)])
    if kind is Literal:
        values = [str(value) for value in get_args(hint)]
        return values[0] if len(values) == 1 else f"one of {', '.join(values)}"
    if not isinstance(kind, type):
        return str(kind)
    if issubclass(kind, msgspec.Struct):
        return _WORDS[dict]
    return _WORDS.get(kind, kind.__name__)


_NEAR_ENOUGH = 0.8
"""Likeness, of 1, from which on a misspelt key is taken for one that is known."""


def no_mapping(document: str, found: object) -> FieldError:
    """The problem of a document that is empty, or something else than keys and values.

    It is not quoted: a file that was named by mistake may hold a secret.
    """
    if found is None:
        return FieldError(document, msgspec.UNSET, "is empty")
    kind = _WORDS.get(type(found), "another value")
    return FieldError(document, msgspec.UNSET, f"must be {_WORDS[dict]}, and is {kind}")


class Lenient(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of documents that others' programs read, too: keys that we do not know are passed over."""


class Strict(Lenient, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parts of our own configuration: a misspelled key is an error, not a silent default."""


def _keys(found: object, fields: Collection[str]) -> str:
    """The known keys; the one that was meant first, where one is near enough."""
    near = get_close_matches(str(found), fields, 1, _NEAR_ENOUGH)
    meant = f": did you mean {near[0]}? Keys are" if near else "; keys are"
    return f"{meant} {', '.join(sorted(fields))}"


class StructReader:
    """Reads what can be read, and collects a problem with its place for everything else.

    Attributes:
        problems: all that were found.
        kept: positions of the entries that could be read, by list: problems of their sense name these.
    """

    def __init__(self) -> None:
        self.problems: list[FieldError] = []
        self.kept: dict[str, list[int]] = {}

    def struct[S: msgspec.Struct](
        self, kind: type[S], found: Mapping[object, object], where: str
    ) -> S | None:
        """The struct, with its default where a field cannot be read; None where that field has no default.

        A key that it does not know is a problem of a `Strict` one.
        """
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        if issubclass(get_origin(kind) or kind, Strict):
            self.problems += [
                FieldError(f"{where}{step(key)}", value, f"is not a key here{_keys(key, fields)}")
                for key, value in found.items()
                if key not in fields
            ]
        values: dict[str, object] = {}
        for key, field in fields.items():
            name = f"{where}{key}"
            if key in found:
                before = len(self.problems)
                value = self._value(field.type, found[key], name)
                if value is not None or len(self.problems) == before:
                    values[field.name] = value
            elif field.required:
                self.problems.append(FieldError(name, msgspec.UNSET, "is missing"))
        whole = all(field.name in values for field in fields.values() if field.required)
        return kind(**values) if whole else None

    def _value(self, hint: object, found: object, where: str) -> object:
        """The value as its type; None, and a problem, where it cannot be read."""
        kinds = [kind for kind in (hint, *get_args(hint)) if isinstance(kind, type)]
        struct = next((kind for kind in kinds if issubclass(kind, Lenient)), None)
        if struct is not None and get_origin(hint) is list and isinstance(found, list):
            return self._entries(struct, found, where)
        if struct is not None and get_origin(hint) is dict and isinstance(found, dict):
            return self._named(struct, found, where)
        if struct is not None and isinstance(found, dict) and get_origin(hint) is not list:
            return self.struct(struct, found, f"{where}.")
        if not _is_text(found):
            self.problems.append(
                FieldError(where, found, "must be printable: half of a surrogate pair is not text")
            )
            return None
        try:
            return msgspec.convert(found, hint)
        except msgspec.ValidationError:
            self._refuse(hint, found, where)
            return None

    def _refuse(self, hint: object, found: object, where: str) -> None:
        """Tells what of a value is not of its type: the value, or those parts of a list or mapping that are wrong."""
        known = len(self.problems)
        for choice in map(_unlimited, choices_of(hint)):
            inner = get_args(choice)
            if get_origin(choice) in (list, tuple) and isinstance(found, list):
                for number, part in enumerate(found):
                    self._value(inner[0], part, f"{where}[{number}]")
            elif get_origin(choice) in (dict, Mapping) and isinstance(found, dict):
                self._refuse_parts(inner, found, where)
        if len(self.problems) == known:
            self.problems.append(FieldError(where, found, _reason(hint, found)))

    def _refuse_parts(self, hints: tuple[object, ...], found: dict[object, object], where: str) -> None:
        for key, part in found.items():
            if isinstance(key, str):
                self._value(hints[1], part, f"{where}.{step(key)}")
            else:
                self.problems.append(
                    FieldError(where, key, "has a name that is not text: write it in quotes")
                )

    def _named(self, struct: type[Lenient], found: Mapping[object, object], where: str) -> dict[str, object]:
        parts = {str(name): self._value(struct, entry, f"{where}.{name}") for name, entry in found.items()}
        return {name: part for name, part in parts.items() if part is not None}

    def _entries(self, struct: type[Lenient], found: list[object], where: str) -> list[object]:
        """The entries that can be read. Most can, and at once: only the others are read key by key."""
        parts: list[object] = []
        kept = self.kept[where] = list[int]()
        for number, entry in enumerate(found):
            part: object
            try:
                part = msgspec.convert(entry, struct) if _is_text(entry) else None
            except msgspec.ValidationError:
                part = None
            if part is None:
                part = self._value(struct, entry, f"{where}[{number}]")
            if part is not None:
                parts.append(part)
                kept.append(number)
        return parts


def with_unread(unread: Collection[FieldError], problems: Iterable[FieldError]) -> list[FieldError]:
    """All problems. A field that a parser could not read is told once, not again for its stand-in."""
    told = {problem.field for problem in unread}
    return [*unread, *(problem for problem in problems if problem.field not in told)]


def _reason(hint: object, found: object) -> str:
    choices = choices_of(hint)
    if type(found) is int and float in choices:
        return "is too large for a number here"
    how = exponent_hint(found, whole=float not in choices) if int in choices or float in choices else ""
    return f"must be {in_words(hint)}{how}"


def _is_text(found: object) -> bool:
    """Whether all strings in it can be written: parsers take escapes of lone surrogates, which UTF-8 cannot hold."""
    left = [found]
    while left:
        match left.pop():
            case str() as text:
                if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
                    return False
            case dict() as entries:
                left += [*entries.keys(), *entries.values()]
            case list() | tuple() | set() as entries:
                left += entries
            case _:
                pass
    return True
