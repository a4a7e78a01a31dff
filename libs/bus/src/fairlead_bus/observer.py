"""Observers of the bus: one that keeps what it hears, and one that a flood of notes does not get past."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from fairlead_contracts.base.observer import LibraryObserver


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

    def __init__(self, observer: LibraryObserver, *, clock: Callable[[], float] = time.monotonic) -> None:
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
