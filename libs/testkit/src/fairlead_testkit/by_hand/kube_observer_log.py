"""A log of what a Kubernetes client tells its observer."""

from collections import Counter


class KubeObserverLog:
    """An observer that keeps the counts and the notes that it is told; a test that fails shows the notes."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.notes: list[str] = []

    def count(self, what: str, amount: int = 1) -> None:
        """Adds the amount to the count of this name."""
        self.counts[what] += amount

    def note(self, what: str, **facts: object) -> None:
        """Keep a note's name, and count it; its facts are printed."""
        self.counts[what] += 1
        print(what, facts)  # noqa: T201 # pytest shows it of a test that fails
        self.notes.append(what)
