"""Places in texts that people write: lines and columns, and the paths of fields that stand there."""

import re
from collections.abc import Mapping, Sequence

from fairlead_contracts.base.errors import FieldError

DEEPEST = 100
"""Lists and mappings inside one another, in YAML and in JSON. A snapshot's deepest value lies under ten."""
TOO_DEEP = f"lists and mappings nest more than {DEEPEST} deep"
_PLACE = re.compile(r"line (\d+), column (\d+): ")


def in_words(line: int, column: int) -> str:
    """The place as problems begin with it; both are counted from 1."""
    return f"line {line}, column {column}: "


def place_of(text: str, at: int) -> str:
    """The place of a text's character by its offset."""
    return in_words(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def not_utf8(error: UnicodeDecodeError) -> str:
    """The reason for which bytes are no text, behind the place of the first that is none."""
    before = error.object[: error.start].decode(error.encoding, "replace")
    return f"{place_of(before, len(before))}its text must be in UTF-8"


def step(key: object) -> str:
    """The key as a path has it: one without a name would leave no trace there, and null is none of Python's."""
    match key:
        case "":
            return '""'
        case None:
            return "null"
        case bool():
            return str(key).lower()
        case _:
            return str(key)


def at_places(problems: Sequence[FieldError], places: Mapping[str, str]) -> list[FieldError]:
    """The problems of a document, each with line and column of its field, by the places of the document's fields.

    From the first line to the last, behind those that have no place. A field that the text lacks is told at what it
    belongs into.
    """
    return sorted((_placed(problem, places) for problem in problems), key=_by_place)


def _by_place(problem: FieldError) -> tuple[int, int]:
    found = _PLACE.match(problem.reason)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _placed(problem: FieldError, places: Mapping[str, str]) -> FieldError:
    if _PLACE.match(problem.reason):
        return problem
    path = problem.field
    while path and path not in places:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return FieldError(problem.field, problem.value, f"{places[path]}{problem.reason}") if path else problem
