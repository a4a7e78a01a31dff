"""The port by which a library tells what it meets, without a metrics or log library of its own."""

from typing import Protocol


class LibraryObserver(Protocol):
    """Hears of everything that is counted, and of what a person should read: each occurrence by one of the two."""

    def count(self, what: str, amount: int = 1) -> None:
        """`amount` more of `what`; the set of names is small and fixed."""

    def note(self, what: str, **facts: object) -> None:
        """Notes an occurrence that is worth a log line, and counts it."""


class _SilentObserver:
    def count(self, what: str, amount: int = 1) -> None:
        pass

    def note(self, what: str, **facts: object) -> None:
        pass


SILENT: LibraryObserver = _SilentObserver()
"""The observer of callers that do not listen."""
