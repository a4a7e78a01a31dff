"""Levels as SiteFactors: Slurm's order is that of the levels, whatever its own factors and the users' nice say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_slurm.ladder import Ladder
from fairlead_slurm.updates import HIGHEST_SITE_FACTOR

WEIGHTS = st.integers(0, 2_000_000)
NICE = st.integers(-10_000, 10_000)


def priority(site_factor: int, own: int, nice: int) -> int:
    """A job's priority as priority_multifactor adds it up; never below 1."""
    return max(1, site_factor + own - nice)


@given(WEIGHTS, st.lists(st.tuples(st.integers(0, 1000), st.floats(0, 1), NICE), min_size=2))
def test_the_order_of_levels_is_slurms(weights: int, jobs: list[tuple[int, float, int]]) -> None:
    ladder = Ladder.over(weights)
    stands = []
    for level, part, nice in jobs:
        held = min(level, ladder.highest)
        stands.append((held, priority(ladder.site_factor(held, nice), round(part * weights), nice)))
    for level, found in stands:
        assert ladder.level(found) == level
        assert all(found > other for lower, other in stands if lower < level)


@given(WEIGHTS)
def test_levels_fit_into_what_slurm_takes(weights: int) -> None:
    ladder = Ladder.over(weights)
    assert ladder.step > weights
    assert ladder.site_factor(ladder.highest, 0) <= HIGHEST_SITE_FACTOR
    assert ladder.highest > 0


@pytest.mark.parametrize("nice", [2**31 - 4, -(2**31 - 4)])
def test_a_nice_beyond_all_measure_is_bounded(nice: int) -> None:
    assert abs(Ladder.over(1000).site_factor(100_000, nice)) <= HIGHEST_SITE_FACTOR


def test_weights_that_leave_no_room_have_no_level() -> None:
    assert Ladder.over(2**31).highest == 0
