"""Kinds of values in words: the messages of a parser speak to programmers."""

from types import NoneType, UnionType
from typing import Annotated, Literal, TypeAliasType, Union, get_args, get_origin

import msgspec

_WORDS = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a mapping of keys and values",
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


def _within(limit: object) -> str:
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
