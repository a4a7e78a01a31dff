"""The errors of this library, under one root."""

import json

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
        super().__init__(f"{field}: {reason}{found}")
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


def shown(value: object) -> str:
    """The value as an error message quotes it, shortened: as JSON, since that is what its sender wrote."""
    if isinstance(value, msgspec.Raw):
        return _shortened(bytes(value)[: 4 * SHOWN_CHARACTERS].decode(errors="replace"))
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):  # not of JSON, or an integer of more digits than Python prints
        text = f"a {type(value).__name__}"
    return _shortened(text)


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
