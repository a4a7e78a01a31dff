"""Levels as SiteFactors: Slurm's order is that of the levels, whatever its own factors say, and whatever users do with nice."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_slurm.ladder import Ladder
from fairlead_slurm.updates import HIGHEST_SITE_FACTOR

WEIGHTS = st.integers(0, 2_000_000)
NICE = st.integers(-10_000, 2**31 - 4)


class NicedJob(NamedTuple):
    """A job with a level, its nice when that was written, and its nice now, which its user may have changed since."""

    level: int
    own: float
    nice_then: int
    nice: int

    def priority(self, ladder: Ladder, weights: int) -> int:
        """Its priority as priority_multifactor adds it up; never below 1."""
        factor = ladder.site_factor(min(self.level, ladder.highest), self.nice_then)
        return max(1, factor + round(self.own * weights) - self.nice)


def niced_jobs(nice: st.SearchStrategy[int]) -> st.SearchStrategy[NicedJob]:
    return st.builds(NicedJob, st.integers(0, 1000), st.floats(0, 1), nice, nice)


@given(WEIGHTS, niced_jobs(st.integers(0, 2**31 - 4)), niced_jobs(st.integers(0, 100)))
def test_no_user_passes_a_higher_level_by_a_change_of_nice(
    weights: int, one: NicedJob, other: NicedJob
) -> None:
    ladder = Ladder.over(weights)
    if min(one.level, ladder.highest) < min(other.level, ladder.highest):
        assert one.priority(ladder, weights) < other.priority(ladder, weights)


@given(WEIGHTS, niced_jobs(NICE).map(lambda job: job._replace(nice_then=min(0, job.nice))))
def test_a_level_is_read_as_it_was_written(weights: int, job: NicedJob) -> None:
    ladder = Ladder.over(weights)
    level = min(job.level, ladder.highest)
    assert ladder.level(job.priority(ladder, weights), job.nice, level) == level
    assert ladder.level(0, job.nice, level) == level, "held"


@given(WEIGHTS, niced_jobs(st.integers(0, 2**31 - 4)), st.integers(0, 1000))
def test_nobody_makes_a_level_look_like_another(weights: int, job: NicedJob, written: int) -> None:
    """A level that looks changed is written again, and after a few times left alone: none of that is a user's to bring about."""
    ladder = Ladder.over(weights)
    level = min(job.level, ladder.highest)
    assert ladder.level(job.priority(ladder, weights), job.nice, written) in (level, written)
    if job.priority(ladder, weights) > 1:
        assert ladder.level(job.priority(ladder, weights), job.nice, written) == level


@given(WEIGHTS)
def test_levels_fit_into_what_slurm_takes(weights: int) -> None:
    ladder = Ladder.over(weights)
    assert ladder.step > weights
    assert ladder.room >= 100, "what --nice means without a number leaves a job on its rung"
    assert ladder.site_factor(ladder.highest, 0) <= HIGHEST_SITE_FACTOR
    assert ladder.highest > 0


@pytest.mark.parametrize("nice", [2**31 - 4, -(2**31 - 4)])
def test_a_nice_beyond_all_measure_is_bounded(nice: int) -> None:
    assert abs(Ladder.over(1000).site_factor(100_000, nice)) <= HIGHEST_SITE_FACTOR


def test_weights_that_leave_no_room_have_no_level() -> None:
    assert Ladder.over(2**31).highest == 0
