"""Keys that a JSON object gives twice: parsers take the last without a word (RFC 8259, 4, leaves it to them).

A key is followed by a colon, and nothing else in JSON is, outside of strings. So as many colons as keys that are known
to be different prove that none is given twice; that is how a large text is looked over at little cost.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator

from fairlead_contracts.base.errors import FieldError

_REASON = "is given twice: only the last one would count"


class _Twice(dict[str, object]):
    """An object that was written with some keys more than once."""

    names: list[str]


def parse_json(
    text: bytes, *, constant: Callable[[str], object] | None = None
) -> tuple[object, list[FieldError]]:
    """The values of a JSON text, and each key that it gives more than once, by its path.

    Args:
        text: UTF-8.
        constant: makes a value of NaN, Infinity and -Infinity, which are not JSON; floats unless given.

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
    return found, list(_told(found)) if marked else []


def gives_twice(text: bytes) -> bool:
    """Whether some object of the JSON text gives a key more than once.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    return bool(parse_json(text)[1])


def surely_gives_once(text: bytes, found: object) -> bool:
    """Whether the text has no more colons than its values have keys: the quick proof that no key is given twice.

    Args:
        text: JSON.
        found: the values in it.
    """
    return text.count(b":") == _count_keys(found)


def _count_keys(found: object) -> int:
    if isinstance(found, dict):
        return len(found) + sum(_count_keys(part) for part in found.values() if isinstance(part, dict | list))
    if isinstance(found, list):
        return sum(_count_keys(part) for part in found if isinstance(part, dict | list))
    return 0


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
