"""A fuzz tells how its inputs ended; of those that break something, the smallest that can be found."""

import random

import pytest

from fairlead_testkit.inputs.fuzzing import fuzz, fuzz_and_shrink


def attempt(rng: random.Random) -> str:
    number = rng.randint(0, 1_000_000)
    if number >= 1_000:
        raise ValueError(number)
    return "small"


def test_the_smallest_input_that_fails_is_told() -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 # its words are looked at below
        fuzz_and_shrink(attempt, 100)
    assert raised.value.args == (1_000,)


def test_every_end_is_counted() -> None:
    assert fuzz_and_shrink(lambda rng: "even" if rng.randrange(1) == 0 else "odd", 10)["even"] > 0
    assert sum(fuzz(lambda rng: str(rng.randrange(3)), 0, 30).values()) == 30


def test_a_seed_that_fails_is_told() -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 # any number of its first ones fails
        fuzz(attempt, 0, 10)
    assert raised.value.__notes__ == ["seed 0"]
