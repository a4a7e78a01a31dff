"""JSON as people write it: what it says, and each problem with its place.

Parsers take the last of two equal keys without a word (RFC 8259, 4, leaves it to them): that is a problem here, as is a
number of more digits than can be read. What is no JSON at all is told in our words: Python's tell of its own limits. NaN
and infinities are numbers here, which whoever reads the values refuses by their fields.
"""

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import msgspec

from fairlead_contracts.base.errors import ContractError, FieldError
from fairlead_contracts.base.places import DEEPEST, TOO_DEEP, at_places, in_words, not_utf8, place_of, step

WRITTEN_BY_HAND = 1024 * 1024
"""Bytes. A program wrote what is larger: no program gives a key twice, or nests for its own sake, and places in its
lines help nobody. Those are looked for in smaller texts alone."""
GIVEN_TWICE = "is given twice: only the last one counts"
"""Reason told of a key."""
_WORDS = {
    "Expecting value": "a value must stand here, and this is none",
    "Expecting property name enclosed in double quotes": "a key in double quotes must stand here",
    "Expecting ':' delimiter": "a colon must stand here",
    "Expecting ',' delimiter": "a comma, or the end of the list or mapping, must stand here",
    "Extra data": "the JSON ends before this",
    "Illegal trailing comma before end of object": "no comma may stand behind the last value",
    "Illegal trailing comma before end of array": "no comma may stand behind the last value",
    "Invalid control character at": "a line end, tab or other control character in a text must be written as an escape, as in \\n",
    "Invalid \\escape": "JSON has no such escape; a backslash itself is written \\\\",
    "Invalid \\uXXXX escape": "four hexadecimal digits must stand behind \\u",
    "Unterminated string starting at": "the text that begins here has no end",
}
"""Words for what Python's parser says of a place."""
_STRING = r'"(?:[^"\\]|\\.)*+"?'
"""One without an end goes to the end of the text: a pattern that needs the end would look for it again and again."""
_BRACKETS = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)
_TOKENS = re.compile(rf'{_STRING}|[\[\]{{}},:]|[^\s\[\]{{}},:"]+', re.DOTALL)


class JsonError(ContractError):
    """A text is not JSON, or nests too deeply. It says where."""


class _Twice(dict[str, object]):
    """An object that was written with some keys more than once."""

    names: list[str]


class _Unread(str):
    """An integer as it is written that has more digits than can be read."""

    __slots__ = ()


def parse_json(text: bytes, *, most: int | None = None) -> tuple[object, list[FieldError]]:
    """The values of a JSON text, and the problems by their paths: keys that are given twice, integers that are too long.

    Args:
        text: UTF-8, or UTF-16 or UTF-32 as they can be told from it.
        most: the largest number of problems that are told; by default all are.

    Raises:
        JsonError: it is not JSON.
    """
    parser = _Parser(_decoded(text))
    found = parser.values()
    return found, list(islice(_told(found), most)) if parser.marked else []


def with_json_places(problems: Sequence[FieldError], text: bytes) -> list[FieldError]:
    """The problems of a document, each with line and column of its field in the JSON that the document was read from."""
    return at_places(problems, places(text)) if problems else []


class _Parser:
    """Reads one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.marked = False
        """Whether something was marked that a problem is told of."""

    def values(self) -> object:
        """The values.

        Raises:
            JsonError: it is not JSON.
        """
        if len(self._text) <= WRITTEN_BY_HAND:
            _check_depth(self._text)
        try:
            return self._parsed()
        except json.JSONDecodeError as error:
            raise JsonError(_syntax(error)) from error
        except RecursionError as error:
            _check_depth(self._text)
            raise JsonError(TOO_DEEP) from error

    def _parsed(self) -> object:
        try:
            return self._loaded(int)
        except json.JSONDecodeError:
            raise
        except (
            ValueError
        ):  # a number has more digits than Python reads, and what follows may be broken as well
            return self._loaded(self._integer)

    def _loaded(self, integer: Callable[[str], object]) -> object:
        found: object = json.loads(self._text, object_pairs_hook=self._object, parse_int=integer)
        return found

    def _object(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        twice = _Twice(found)
        counts = Counter(name for name, _ in pairs)
        twice.names = [name for name, count in counts.items() if count > 1]
        self.marked = True
        return twice

    def _integer(self, written: str) -> int | _Unread:
        try:
            return int(written)
        except ValueError:
            self.marked = True
            return _Unread(written)


def _decoded(text: bytes) -> str:
    """The text; halves of surrogate pairs stay what they are, since whoever reads the values refuses them by name."""
    encoding = json.detect_encoding(text)
    try:
        return text.decode(encoding, "surrogatepass")
    except UnicodeDecodeError as error:
        raise JsonError(not_utf8(error)) from error


def _check_depth(text: str) -> None:
    """Raises a JsonError where a text nests too deeply: at the first bracket that does."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        if bracket[0] in "[{":
            depth += 1
            if depth > DEEPEST:
                raise JsonError(f"{place_of(text, bracket.start())}{TOO_DEEP}")
        elif bracket[0] in "]}":
            depth -= 1


def _syntax(error: json.JSONDecodeError) -> str:
    end = len(error.doc.rstrip())
    if error.pos >= end:
        return f"{place_of(error.doc, end)}the text ends here, before its last value does"
    return f"{in_words(error.lineno, error.colno)}{_WORDS.get(error.msg, error.msg)}"


def _told(root: object) -> Iterator[FieldError]:
    waiting = [("", root)]
    while waiting:
        where, found = waiting.pop()
        if isinstance(found, _Unread):
            yield FieldError(
                where or "document",
                msgspec.Raw(found.encode()),
                f"has {len(found.lstrip('-'))} digits, more than can be read",
            )
        if isinstance(found, _Twice):
            for name in found.names:
                yield FieldError(f"{where}.{step(name)}".lstrip("."), found[name], GIVEN_TWICE)
        if isinstance(found, dict):
            waiting += [(f"{where}.{step(name)}".lstrip("."), part) for name, part in reversed(found.items())]
        elif isinstance(found, list):
            waiting += [(f"{where}[{at}]", part) for at, part in reversed(list(enumerate(found)))]


def places(text: bytes) -> dict[str, str]:
    """Line and column of each field of a JSON text by its path: of lists and mappings at their key.

    None beyond the size that people write, nor of what is no text or nests too deeply.
    """
    if len(text) > WRITTEN_BY_HAND:
        return {}
    try:
        written = _decoded(text)
        _check_depth(written)
    except JsonError:
        return {}
    marker = _FieldMarker(written)
    marker.read()
    return marker.places


class _Holder:
    """A list or mapping that has begun and not ended."""

    __slots__ = ("entry", "key_at", "path")

    def __init__(self, path: str, entry: int | None) -> None:
        self.path = path
        self.entry = entry
        """Number of the next entry; None of a mapping."""
        self.key_at: int | None = None
        """Offset of the key whose value comes next; None where a key comes."""


class _FieldMarker:
    """Notes where each field of a text stands that is JSON."""

    def __init__(self, text: str) -> None:
        self.places: dict[str, str] = {}
        self._text = text
        self._ends = [found.start() for found in re.finditer("\n", text)]
        self._open: list[_Holder] = []
        self._path = ""

    def read(self) -> None:
        """Goes through the text."""
        for sign in _TOKENS.finditer(self._text):
            self._take(sign[0], sign.start())

    def _take(self, sign: str, at: int) -> None:
        holder = self._open[-1] if self._open else None
        if sign in {"]", "}"}:
            if self._open:
                self._open.pop()
        elif sign == ",":
            if holder is not None and holder.entry is not None:
                holder.entry += 1
            elif holder is not None:
                holder.key_at = None
        elif sign == ":":
            pass
        elif holder is not None and holder.entry is None and holder.key_at is None:
            holder.key_at = at
            self._path = f"{holder.path}.{step(_key(sign))}".lstrip(".")
        else:
            self._value(sign, at, holder)

    def _value(self, sign: str, at: int, holder: _Holder | None) -> None:
        if holder is not None and holder.entry is not None:
            self._path = f"{holder.path}[{holder.entry}]"
        begins = sign in {"[", "{"}
        if holder is not None:
            key_at = holder.key_at if begins else None
            self.places[self._path] = self._place(at if key_at is None else key_at)
        if begins:
            self._open.append(_Holder(self._path, 0 if sign == "[" else None))

    def _place(self, at: int) -> str:
        line = bisect_left(self._ends, at)
        return in_words(line + 1, at - (self._ends[line - 1] if line else -1))


def _key(sign: str) -> str:
    try:
        return str(json.loads(sign))
    except ValueError:
        return sign
