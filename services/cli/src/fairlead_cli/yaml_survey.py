"""A YAML text looked over event by event, before anything is built of it.

libyaml's parser keeps its own stack, PyYAML's composer recurses in C: a text of a few kilobytes, nested deeply enough,
ends the process. Aliases let a few lines stand for billions of values, or for one that holds itself. Our files need
neither: nesting is bounded, aliases may repeat a block but neither hold themselves nor multiply.

Numbers are read by YAML 1.1, where `1:30` is 90 and `010` is 8. Such forms are refused: nobody means them here. So are
tags that make other values than those that JSON has.
"""

import re
from collections.abc import Iterator

import yaml

DEEPEST = 100
"""Lists and mappings inside one another. A snapshot's deepest value lies under ten."""
FREE_REPEATS, MOST_REPEATS = 100_000, 10
"""So many values may a text mean, or so many times as many as it writes; each alias counts with all that it means."""

_ODD_NUMBER = re.compile(
    r"""[-+]?(?:
        0b[01_]+ | 0x[0-9a-fA-F_]+ | 0[0-7_]+       # binary, hexadecimal, octal
      | [0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)? # sexagesimal
    )""",
    re.VERBOSE,
)
"""Those of YAML 1.1's numbers that are not decimal (yaml.org/type/int.html, yaml.org/type/float.html)."""
_SIGNS_AND_DIGITS = frozenset("-+0123456789")
_TAGS = (None, "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


def survey(events: yaml.SafeLoader) -> None:
    """Looks at all events of a text.

    Raises:
        YAMLError: the text is not YAML, or is out of the bounds above; it says where.
    """
    found = _Survey()
    for event in _all_of(events):
        found.look(event)


def _all_of(events: yaml.SafeLoader) -> Iterator[yaml.Event]:
    while events.check_event():
        yield events.get_event()  # type: ignore[no-untyped-call] # of the stubs


class _Collection:
    """A list or mapping that has begun and not ended."""

    def __init__(self, anchor: str | None, before: int, depth: int) -> None:
        self.anchor = anchor
        self.before = before
        """Values meant by the text before this one."""
        self.depth = depth
        self.deepest = depth
        """Of what is in it."""


class _Survey:
    def __init__(self) -> None:
        self._open: list[_Collection] = []
        self._meant: dict[str, tuple[int, int]] = {}
        """By anchor: how many values it stands for, and how deep they nest."""
        self._values = 0
        self._written = 0

    def look(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.AliasEvent(anchor=str(name)):
                self._alias(event, name)
            case yaml.CollectionStartEvent():
                self._begin(event)
            case yaml.CollectionEndEvent():
                self._end()
            case yaml.DocumentStartEvent():
                self._meant.clear()  # anchors hold in their own document only
            case _:
                pass

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._values += 1
        self._written += 1
        if event.anchor is not None:
            self._meant[event.anchor] = 1, 0
        if event.tag is not None:
            _check_tag(event)
        elif (
            event.implicit[0] and event.value[:1] in _SIGNS_AND_DIGITS and _ODD_NUMBER.fullmatch(event.value)
        ):
            raise _refused(event, f"{event.value} is no decimal number: write it as one, or in quotes")

    def _alias(self, event: yaml.AliasEvent, name: str) -> None:
        self._written += 1
        if any(collection.anchor == name for collection in self._open):
            raise _refused(event, f"*{name} stands inside what it stands for, without an end")
        size, height = self._meant.get(name, (1, 0))  # an unknown one is told by the composer
        self._values += size
        self._reach(event, len(self._open) + height)
        if self._values > max(FREE_REPEATS, MOST_REPEATS * self._written):
            raise _refused(event, f"*{name} repeats too much: write it out, or split the file")

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        _check_tag(event)
        self._open.append(_Collection(event.anchor, self._values, len(self._open)))
        self._values += 1
        self._written += 1
        self._reach(event, len(self._open))

    def _reach(self, event: yaml.Event, depth: int) -> None:
        if depth > DEEPEST:
            raise _refused(event, f"lists and mappings nest more than {DEEPEST} deep")
        if self._open:
            self._open[-1].deepest = max(self._open[-1].deepest, depth)

    def _end(self) -> None:
        ended = self._open.pop()
        if self._open:
            self._open[-1].deepest = max(self._open[-1].deepest, ended.deepest)
        if ended.anchor is not None:
            self._meant[ended.anchor] = self._values - ended.before, ended.deepest - ended.depth


def _check_tag(event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
    if event.tag not in _TAGS:
        raise _refused(event, f"the tag {event.tag} means nothing here: leave it out")


def _refused(event: yaml.Event, reason: str) -> yaml.YAMLError:
    mark = event.start_mark
    where = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
    return yaml.YAMLError(where + reason)
