"""Reports of the bus on what it meets, without a metrics or log library of its own."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol


class BusObserver(Protocol):
    """Hears of everything that the bus counts, and of what a person should read: each occurrence by one of the two."""

    def count(self, what: str, amount: int = 1) -> None:
        """`amount` more of `what`; the set of names is small and fixed."""

    def note(self, what: str, **facts: object) -> None:
        """Notes an occurrence that is worth a log line, and counts it."""


class _SilentBusObserver:
    def count(self, what: str, amount: int = 1) -> None:
        pass

    def note(self, what: str, **facts: object) -> None:
        pass


SILENT: BusObserver = _SilentBusObserver()
"""The observer of callers that do not listen."""


class BusTally:
    """Keeps what it hears, for commands that report at their end and for whoever waits for something to happen."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.notes: list[tuple[str, dict[str, object]]] = []
        self.heard = asyncio.Event()

    def count(self, what: str, amount: int = 1) -> None:
        """Adds the amount to the count of this name."""
        self.counts[what] += amount
        self.heard.set()

    def note(self, what: str, **facts: object) -> None:
        """Keeps the note, and counts it."""
        self.counts[what] += 1
        self.notes.append((what, facts))
        self.heard.set()

    def said(self, what: str) -> list[dict[str, object]]:
        """The facts of each note of this name."""
        return [facts for name, facts in self.notes if name == what]


NOTES_A_MINUTE = 10
_MINUTE = 60.0


class RateLimitedNotes:
    """Passes a few notes a minute on to an observer, which counts the rest: whoever can cause a note can cause a flood.

    What is held back is told as `held_back` with the first note of the next minute.
    """

    def __init__(self, observer: BusObserver, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._observer = observer
        self._clock = clock
        self._since = -_MINUTE
        self._passed = 0
        self._held_back = 0

    def note(self, what: str, **facts: object) -> None:
        """Passes the note on, or holds it back and has it counted alone."""
        now = self._clock()
        if now - self._since >= _MINUTE:
            self._since, self._passed = now, 0
        if self._passed >= NOTES_A_MINUTE:
            self._held_back += 1
            self._observer.count(what)
            return
        if self._held_back:
            facts["held_back"], self._held_back = self._held_back, 0
        self._passed += 1
        self._observer.note(what, **facts)
