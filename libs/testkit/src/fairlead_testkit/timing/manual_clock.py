"""A clock that stands still until the test moves it."""


class ManualClock:
    """A clock of seconds; the test sets `now`.

    Args:
        now: instant that it shows first.
    """

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """The seconds that it shows."""
        return self.now
