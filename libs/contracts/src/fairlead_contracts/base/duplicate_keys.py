"""Keys that a JSON object gives twice: parsers take the last without a word (RFC 8259, 4, leaves it to them)."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice

from fairlead_contracts.base.errors import FieldError

_REASON = "is given twice: only the last one counts"


class _Twice(dict[str, object]):
    """An object that was written with some keys more than once."""

    names: list[str]


def parse_json(
    text: bytes, *, constant: Callable[[str], object] | None = None, most: int | None = None
) -> tuple[object, list[FieldError]]:
    """The values of a JSON text, and each key that it gives more than once, by its path.

    Args:
        text: UTF-8.
        constant: makes a value of NaN, Infinity and -Infinity, which are not JSON; floats unless given.
        most: the largest number of keys that are told; by default all are.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    marked: list[_Twice] = []

    def build(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        twice = _Twice(found)
        counts = Counter(name for name, _ in pairs)
        twice.names = [name for name, count in counts.items() if count > 1]
        marked.append(twice)
        return twice

    found: object = json.loads(text, object_pairs_hook=build, parse_constant=constant)
    return found, list(islice(_told(found), most)) if marked else []


def _told(root: object) -> Iterator[FieldError]:
    waiting = [("", root)]
    while waiting:
        where, found = waiting.pop()
        if isinstance(found, _Twice):
            for name in found.names:
                yield FieldError(f"{where}.{name}".lstrip("."), found[name], _REASON)
        if isinstance(found, dict):
            waiting += [(f"{where}.{name}".lstrip("."), part) for name, part in reversed(found.items())]
        elif isinstance(found, list):
            waiting += [(f"{where}[{at}]", part) for at, part in reversed(list(enumerate(found)))]
