"""How this library tells what it meets, without a metrics or log library of its own."""

from typing import Protocol


class KubeObserver(Protocol):
    """Hears of everything that is counted, and of what a person should read."""

    def count(self, what: str, amount: int = 1) -> None:
        """`amount` more of `what`; the set of names is small and fixed."""

    def note(self, what: str, **facts: object) -> None:
        """Something worth a log line."""


class _SilentKubeObserver:
    def count(self, what: str, amount: int = 1) -> None:
        pass

    def note(self, what: str, **facts: object) -> None:
        pass


SILENT: KubeObserver = _SilentKubeObserver()
"""For callers that do not listen."""
