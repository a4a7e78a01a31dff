"""The errors of this library, under one root."""

import json
from datetime import date

import msgspec
from msgspec import UNSET


class ContractError(Exception):
    """A message, name or document does not keep the contract. Never worth a retry: the bytes will not change."""


class MalformedError(ContractError):
    """The payload is not of the expected encoding or shape."""


class UnsupportedVersionError(ContractError):
    """The payload's major schema version is not one that this release reads."""

    def __init__(self, kind: str, found: object, supported: int) -> None:
        super().__init__(f"{kind} has schema version {found!r}; this release reads version {supported}")
        self.kind = kind
        self.found = found
        self.supported = supported


class FieldError(ContractError):
    """A fault in one field of a message or document: the field, its value, and why that cannot be taken.

    The value `UNSET` means that nothing was found, and then none is quoted.
    """

    def __init__(self, field: str, value: object, reason: str) -> None:
        found = "" if value is UNSET else f" (found {shown(value)})"
        super().__init__(f"{_shortened(printable(field), _FIELD_CHARACTERS)}: {printable(reason)}{found}")
        self.field = field
        self.value = value
        self.reason = reason

    def unquoted(self) -> "FieldError":
        """The fault without the value, which may be secret."""
        return FieldError(self.field, UNSET, self.reason)


class DocumentError(ContractError):
    """A policy document or a snapshot does not validate; carries every problem found, not only the first."""

    def __init__(self, problems: list[FieldError]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems


SHOWN_CHARACTERS = 120
"""A refused value is quoted back to its sender; a long one only in part."""
_FIELD_CHARACTERS = 240
"""Longest path of a field that is told whole: a file may have keys of any length."""


_KINDS: dict[type, str] = {dict: "a mapping", list: "a list"}


def shown(value: object) -> str:
    """The value as an error message quotes it, shortened: as JSON, since that is what its sender wrote."""
    if isinstance(value, msgspec.Raw):
        return _shortened(bytes(value)[: 4 * SHOWN_CHARACTERS].decode(errors="replace"))
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        text = "a value that nests too deeply"
    except (TypeError, ValueError):  # not of JSON, or an integer of more digits than Python prints
        text = str(value) if isinstance(value, date) else _KINDS.get(type(value), f"a {type(value).__name__}")
    return _shortened(printable(text[: 4 * SHOWN_CHARACTERS]))


def why_unread(error: Exception) -> str:
    """The reason for which a decoder cannot read a payload, without the words that it has for its own limits."""
    match error:
        case RecursionError():
            return "lists and mappings nest too deeply"
        case UnicodeDecodeError():
            return "its text must be in UTF-8"
        case _:
            return str(error).removeprefix("JSON is malformed: ")


def _shortened(text: str, most: int = SHOWN_CHARACTERS) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def printable(text: str) -> str:
    """The text as one line that hides nothing: what a terminal would obey, or cannot show, as escapes.

    That is every character but the space that Unicode calls a control, a format, a separator or nothing at all: those
    that move a cursor, turn the direction of the words behind them, or stand between letters without being seen.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text
    )
