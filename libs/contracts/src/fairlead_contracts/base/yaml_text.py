"""YAML as people write it: each file of Fairlead's that is YAML is read here, and what people read as YAML is written.

libyaml parses a text into events, and values are made of them in one pass, without nodes between: PyYAML's own composer
recurses in C, so that a few kilobytes of nesting end the process. Nesting is bounded, aliases may repeat a block but
neither hold themselves nor multiply. What parsers take badly or pass over is a problem with its place, and reading goes
on behind it: a key given twice, of which the last one would win; numbers that YAML 1.1 reads as others than they look
like (`1:30` is 90, `010` is 8); tags, which make values that JSON does not have; dates that no month has.

The other scalars mean what PyYAML's safe loader makes of them.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import yaml
from msgspec import UNSET

from fairlead_contracts.base.errors import ContractError, FieldError
from fairlead_contracts.base.places import DEEPEST, TOO_DEEP, at_places, in_words, not_utf8, place_of, step

FREE_REPEATS, MOST_REPEATS = 100_000, 10
"""The most values that a text may mean: this number, or this multiple of the values it writes, whichever is
more; each alias counts with all the values that it means."""

_ODD_NUMBER = re.compile(
    r"""[-+]?(?:
        0b[01_]+ | 0x[0-9a-fA-F_]+ | 0[0-7_]+       # binary, hexadecimal, octal
      | [0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)? # sexagesimal
    )""",
    re.VERBOSE,
)
"""Numbers of YAML 1.1 that are not decimal (yaml.org/type/int.html, yaml.org/type/float.html)."""
_TAGS = frozenset((None, "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"))
_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WRITER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""Writer of libyaml: a policy takes a quarter of the time that Python's takes."""
_UNREAD = {
    "tag:yaml.org,2002:int": "is a number of more digits than can be read",
    "tag:yaml.org,2002:timestamp": "is a date or time that there is not: correct it, or write text in quotes",
}
"""Reasons for which a plain scalar cannot be read, by what it looks like."""
_KINDS = yaml.SafeLoader.yaml_implicit_resolvers
_VALUES = yaml.SafeLoader.yaml_constructors
_MAKER = yaml.constructor.SafeConstructor()


class YamlError(ContractError):
    """A text is not YAML, or is out of the bounds above; or a value of it is none that we take. It says where."""


class Yaml(NamedTuple):
    """The documents of a text, and its problems."""

    documents: list[object]
    """Values of the documents, in order; None for an empty document."""
    problems: list[FieldError]
    """Problems by path, each with its line and column."""
    second: str = ""
    """Line and column of the second document, where there are several."""

    @property
    def only(self) -> object:
        """The only document; None where the text is empty.

        Raises:
            YamlError: there are several.
        """
        if len(self.documents) > 1:
            raise YamlError(f"{self.second}several documents stand in it, where one is expected")
        return self.documents[0] if self.documents else None


def parse_yaml(text: str | bytes) -> Yaml:
    """Reads all of a text that can be read, and lists what cannot.

    Raises:
        YamlError: it is not YAML at all, or nests or repeats out of bounds.
    """
    builder = _Builder()
    builder.read(text)
    return Yaml(builder.documents, builder.problems, builder.second)


def with_places(problems: Sequence[FieldError], text: str | bytes) -> list[FieldError]:
    """The problems of a document, each with line and column of its field in the text that the document was read from.

    The text is read once more for it: places are wanted only where something is wrong.
    """
    return at_places(problems, places(text)) if problems else []


def places(text: str | bytes) -> dict[str, str]:
    """Line and column of each field of a text by its path, as `line 3, column 7: `; none where it is not YAML."""
    marker = _Marker()
    try:
        marker.read(text)
    except YamlError:
        return {}
    return marker.places


def read_yaml(text: str | bytes) -> object:
    """Reads the only document of a text; None where it is empty.

    Raises:
        YamlError: as `parse_yaml`, and for each problem.
    """
    found = parse_yaml(text)
    if found.problems:
        raise YamlError("; ".join(map(str, found.problems)))
    return found.only


def write_yaml(value: object, *, columns: int = 80) -> str:
    """Plain values as YAML, keys in their order, lines wrapped at so many columns."""
    text: str = yaml.dump(value, Dumper=_WRITER, sort_keys=False, allow_unicode=True, width=columns)
    return text


@dataclass(slots=True, eq=False)
class _Collection:
    """A list or mapping that has begun and not ended."""

    made: object
    anchor: str | None
    before: int
    """Values meant by the text before this one."""
    depth: int
    deepest: int
    entries: list[object] | None = None
    """The entries of a list; None of a mapping."""
    key: object = None
    named: bool = False
    """Whether the key of the next value was read."""
    lines: dict[object, int] = field(default_factory=dict)
    """Line of each key; filled for a mapping only."""
    merged: list[object] = field(default_factory=list)
    """Values of the merge key `<<`."""
    merge_at: str = ""
    """Line and column of the merge key."""


class _Merges:
    """The key `<<`, which merges mappings."""

    def __str__(self) -> str:
        return "<<"


_MERGES = _Merges()
"""The key `<<`: what it brings may be written over."""


class _Builder:
    """Makes values of events."""

    def __init__(self) -> None:
        self.documents: list[object] = []
        self.problems: list[FieldError] = []
        self._open: list[_Collection] = []
        self._known: dict[str, object] = {}
        """Plain scalars that were read before: most texts say the same again and again."""
        self._anchored: dict[str, tuple[object, int, int]] = {}
        """Values by anchor: each with the number of values that it stands for, and how deep they nest."""
        self._values = self._written = 0
        self.second = ""

    def read(self, text: str | bytes) -> None:
        """Reads all parser events of a text.

        Raises:
            YamlError: it is not YAML, or goes out of bounds.
        """
        try:
            parser = _PARSER(text)
            try:
                while (event := parser.get_event()) is not None:
                    self.take(event)
            finally:
                parser.dispose()
        except yaml.YAMLError as error:
            raise YamlError(_syntax(error, text)) from error

    def take(self, event: yaml.Event) -> None:
        """Reads the next parser event.

        Raises:
            YamlError: it goes out of bounds.
        """
        match event:
            case yaml.ScalarEvent():
                self._values += 1
                self._written += 1
                value = self._scalar(event)
                if event.anchor is not None:
                    self._name(event, event.anchor, value, 1, 0)
                self._put(value, event)
            case yaml.CollectionStartEvent():
                self._begin(event)
            case yaml.CollectionEndEvent():
                self._end(event)
            case yaml.AliasEvent(anchor=str(name)):
                self._alias(event, name)
            case yaml.DocumentStartEvent():
                self._anchored.clear()  # anchors hold in their own document only
                if len(self.documents) == 1:
                    self.second = _place(event)
            case _:
                pass

    def _scalar(self, event: yaml.ScalarEvent) -> object:
        text: str = event.value
        if event.tag not in {None, "!"}:
            self._check_tag(event)
            return text
        if not event.implicit[0]:
            return text
        if text in self._known:
            return self._known[text]
        told = len(self.problems)
        value = self._plain(event, text)
        if len(self.problems) == told:
            self._known[text] = value
        return value

    def _plain(self, event: yaml.ScalarEvent, text: str) -> object:
        """A plain scalar's value: the first pattern that it matches says of which kind it is."""
        kind = next((tag for tag, pattern in _KINDS.get(text[:1], ()) if pattern.match(text)), None)
        if kind is None or kind not in _VALUES:
            return text
        if _ODD_NUMBER.fullmatch(text):
            self._tell(event, text, "must be a decimal number, or text in quotes")
            return text
        try:
            return _VALUES[kind](_MAKER, yaml.ScalarNode(kind, text))
        except ValueError:  # such as a day that no month has, or more digits than Python reads
            self._tell(event, text, _UNREAD.get(kind, "cannot be read"))
            return text

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        self._check_tag(event)
        depth, entries = (
            len(self._open),
            None if isinstance(event, yaml.MappingStartEvent) else list[object](),
        )
        made: object = {} if entries is None else entries
        self._open.append(_Collection(made, event.anchor, self._values, depth, depth, entries))
        self._values += 1
        self._written += 1
        self._reach(event, len(self._open))

    def _end(self, event: yaml.Event) -> None:
        ended = self._open.pop()
        if ended.merged:
            self._merge(ended)
        if self._open:
            self._open[-1].deepest = max(self._open[-1].deepest, ended.deepest)
        if ended.anchor is not None:
            size, height = self._values - ended.before, ended.deepest - ended.depth
            self._name(event, ended.anchor, ended.made, size, height)
        self._put(ended.made, event)

    def _merge(self, into: _Collection) -> None:
        """Sets what `<<` brings before what the mapping says itself; of several the first one counts."""
        own = into.made
        brought: dict[object, object] = {}
        for part in reversed(into.merged):
            if isinstance(part, dict):
                brought.update(part)
            else:
                reason = f"{into.merge_at}the merge key << takes a mapping, or a list of them"
                self.problems.append(FieldError(self._path() or "document", part, reason))
        if isinstance(own, dict):
            said = dict(own)
            own.clear()
            own.update(brought | said)

    def _name(self, event: yaml.Event, anchor: str, value: object, size: int, height: int) -> None:
        if anchor in self._anchored:
            raise _refused(event, f"&{anchor} is given to two values")
        self._anchored[anchor] = value, size, height

    def _alias(self, event: yaml.AliasEvent, name: str) -> None:
        self._written += 1
        if any(collection.anchor == name for collection in self._open):
            raise _refused(event, f"*{name} stands inside the very block that it repeats")
        if name not in self._anchored:
            raise _refused(event, f"*{name} stands for nothing: no &{name} comes before it")
        value, size, height = self._anchored[name]
        self._values += size
        self._reach(event, len(self._open) + height)
        if self._values > max(FREE_REPEATS, MOST_REPEATS * self._written):
            raise _refused(event, f"*{name} repeats too much: write it out, or split the file")
        self._put(value, event)

    def _reach(self, event: yaml.Event, depth: int) -> None:
        if depth > DEEPEST:
            raise _refused(event, TOO_DEEP)
        if self._open:
            self._open[-1].deepest = max(self._open[-1].deepest, depth)

    def _put(self, value: object, event: yaml.Event) -> None:
        """Gives a value to what it stands in."""
        if not self._open:
            self.documents.append(value)
            return
        holder = self._open[-1]
        if holder.entries is not None:
            holder.entries.append(value)
        elif holder.named:
            holder.named = False
            self._set(holder, value)
        else:
            holder.key = self._key(value, event)
            holder.named = True
            if first := holder.lines.get(holder.key):  # YAML 1.2, 3.2.1.1, has keys unique
                self._tell(event, UNSET, f"{_key_in_words(holder.key)} is given in line {first} already")
            holder.lines[holder.key] = 0 if event.start_mark is None else event.start_mark.line + 1

    def _set(self, holder: _Collection, value: object) -> None:
        if holder.key is _MERGES:
            holder.merged += value if isinstance(value, list) else [value]
        elif isinstance(holder.made, dict):
            holder.made[holder.key] = value

    def _key(self, key: object, event: yaml.Event) -> object:
        if isinstance(key, (list, dict)):
            self._tell(event, key, "is a list or mapping in the place of a key")
            return str(key)
        if key == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
            self._open[-1].merge_at = _place(event)
            return _MERGES
        return key

    def _check_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        if event.tag not in _TAGS:
            self._tell(event, event.tag, f"the tag {event.tag} means nothing here: leave it out")

    def _tell(self, event: yaml.Event, value: object, reason: str) -> None:
        self.problems.append(FieldError(self._path() or "document", value, f"{_place(event)}{reason}"))

    def _path(self) -> str:
        """The path of the value that is being read."""
        return "".join(_steps(self._open)).removeprefix(".")


class _Marker(_Builder):
    """Notes where each field stands: scalars where they are written, lists and mappings at their key."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[str, str] = {}
        """Line and column by path."""

    def take(self, event: yaml.Event) -> None:
        """Reads the next parser event, and notes its place."""
        if isinstance(event, yaml.NodeEvent) and self._open:
            is_key = self._open[-1].entries is None and not self._open[-1].named
            if not is_key and isinstance(event, yaml.ScalarEvent):
                self.places[self._path()] = _place(event)
            elif not is_key:
                self.places.setdefault(self._path(), _place(event))
            super().take(event)
            if is_key and self._open[-1].named:
                self.places[self._path()] = _place(event)
        else:
            super().take(event)

    def _merge(self, into: _Collection) -> None:
        """Merges, and notes the merge key as the place of what it brings."""
        super()._merge(into)
        if isinstance(into.made, dict):
            for key in into.made:
                self.places.setdefault(f"{self._path()}.{step(key)}".lstrip("."), into.merge_at)


def _steps(collections: list[_Collection]) -> Iterator[str]:
    for collection in collections:
        if collection.entries is not None:
            yield f"[{len(collection.entries)}]"
        elif collection.named:
            yield f".{step(collection.key)}"


def _place(event: yaml.Event) -> str:
    mark = event.start_mark
    return "" if mark is None else in_words(mark.line + 1, mark.column + 1)


def _refused(event: yaml.Event, reason: str) -> YamlError:
    return YamlError(_place(event) + reason)


def _key_in_words(key: object) -> str:
    return "the merge key <<" if key is _MERGES else f"key {repr(key) if isinstance(key, str) else step(key)}"


def _syntax(error: yaml.YAMLError, text: str | bytes) -> str:
    """The parser's reason, behind the place, which it names last; of letters that may not stand there it knows no line."""
    if isinstance(error, yaml.reader.ReaderError):
        return _unread_letter(error, text.encode() if isinstance(text, str) else text)
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    mark, begun = error.problem_mark or error.context_mark, error.context_mark
    place = "" if mark is None else in_words(mark.line + 1, mark.column + 1)
    if mark is not None and _stands_at(mark, text) == "\t":
        return f"{place}a tab stands where YAML takes spaces alone"
    context = f" {error.context}" if error.context else ""
    where = f" of line {begun.line + 1}, column {begun.column + 1}" if context and begun else ""
    return f"{place}{error.problem or 'is not YAML'}{context}{where}"


def _stands_at(mark: yaml.Mark, text: str | bytes) -> str:
    """The letter there; empty behind the end."""
    lines = (text if isinstance(text, str) else text.decode(errors="replace")).split("\n")
    return "".join(lines[mark.line : mark.line + 1])[mark.column : mark.column + 1]


def _unread_letter(error: yaml.reader.ReaderError, text: bytes) -> str:
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return str(error.reason)
    try:
        before = text.decode()[: len(text[: error.position].decode())]
    except UnicodeDecodeError as unread:
        return not_utf8(unread)
    return f"{place_of(before, len(before))}{error.reason}"
