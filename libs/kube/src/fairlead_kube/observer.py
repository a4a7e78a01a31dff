"""The port by which this library tells what it meets, without a metrics or log library of its own."""

from typing import Protocol


class KubeObserver(Protocol):
    """A listener, which hears of everything that is counted, and of what a person should read."""

    def count(self, what: str, amount: int = 1) -> None:
        """Count `amount` more of `what`; the set of names is small and fixed."""

    def note(self, what: str, **facts: object) -> None:
        """Note something that is worth a log line, and count it."""


class _SilentKubeObserver:
    def count(self, what: str, amount: int = 1) -> None:
        pass

    def note(self, what: str, **facts: object) -> None:
        pass


SILENT: KubeObserver = _SilentKubeObserver()
"""Observer for callers that do not listen."""
