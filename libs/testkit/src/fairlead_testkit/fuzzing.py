"""Many seeds, an input from each: what became of them, and which seed broke something."""

import random
from collections import Counter
from collections.abc import Callable


def fuzz(attempt: Callable[[random.Random], str], first: int, count: int) -> Counter[str]:
    """How many of so many inputs ended how.

    Args:
        attempt: makes an input of the numbers it is given, tries it, and says how that ended.
        first: seed; `count` follow on each other.
        count: of inputs.

    Raises:
        Exception: of an attempt, with its seed as a note.
    """
    found = Counter[str]()
    for seed in range(first, first + count):
        try:
            found[attempt(random.Random(seed))] += 1  # noqa: S311 # to be had again by its seed
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
    return found
