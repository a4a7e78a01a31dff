"""Attempts on many inputs made of random numbers: how each ended, and which input broke something."""

import random
from collections import Counter
from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def fuzz_and_shrink(attempt: Callable[[random.Random], str], count: int) -> Counter[str]:
    """Tries so many inputs, made of numbers that hypothesis draws; returns how many ended how.

    Args:
        count: number of inputs, besides those that look for a smaller one that fails.

    Raises:
        Exception: the attempt failed; told of the smallest input that was found to fail.
    """
    found = Counter[str]()

    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.randoms(use_true_random=False))
    def each(rng: random.Random) -> None:
        found[attempt(rng)] += 1

    each()
    return found


def fuzz(attempt: Callable[[random.Random], str], first: int, count: int) -> Counter[str]:
    """Tries so many inputs; returns how many ended how.

    Args:
        attempt: makes an input of the numbers it is given, tries it, and says how that ended.
        first: seed; `count` follow on each other.

    Raises:
        Exception: the attempt failed; a note tells its seed.
    """
    found = Counter[str]()
    for seed in range(first, first + count):
        try:
            found[attempt(random.Random(seed))] += 1  # noqa: S311 # to be had again by its seed
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
    return found
