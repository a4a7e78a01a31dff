"""Work that is done in steps, with a loop's other work between two of them; a test does all at once."""

from collections import deque
from collections.abc import Iterator


def all_steps(steps: Iterator[None]) -> None:
    """Do all steps of some work."""
    deque(steps, maxlen=0)
