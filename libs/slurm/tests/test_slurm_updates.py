"""Updates of many jobs: the commands sent, and the refusals read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_slurm.updates import (
    HIGHEST_SITE_FACTOR,
    NotAnIdError,
    is_gone,
    refusals,
    site_factor_lines,
)


def test_neighbours_of_one_value_share_a_command_and_the_order_stays() -> None:
    assert site_factor_lines([("1", 5), ("2_7", 5), ("3", 9), ("4", 5)]) == [
        "update jobid=1,2_7 sitefactor=5",
        "update jobid=3 sitefactor=9",
        "update jobid=4 sitefactor=5",
    ]


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(-3, 3))))
def test_each_job_is_in_one_command_with_its_value(wanted: list[tuple[int, int]]) -> None:
    sent = []
    for line in site_factor_lines([(str(job), factor) for job, factor in wanted]):
        ids, factor = line.removeprefix("update jobid=").split(" sitefactor=")
        assert len(ids) < 4000
        sent += [(int(job), int(factor)) for job in ids.split(",")]
    assert sent == wanted


@pytest.mark.parametrize(
    "job", ["", "1;id", "1\nshutdown", "1 sitefactor=9", "$(id)", "1_", "-1", "all", "1_[1-3]"]
)
def test_nothing_but_an_id_reaches_a_command(job: str) -> None:
    with pytest.raises(NotAnIdError):
        site_factor_lines([(job, 1)])


def test_a_factor_beyond_slurms_range_is_refused() -> None:
    with pytest.raises(ValueError, match="out of range"):
        site_factor_lines([("1", HIGHEST_SITE_FACTOR + 1)])


def test_refusals_name_their_jobs() -> None:
    said = "Invalid job id specified for job 999\nJob has already finished for job 6\n3_99: Invalid job id specified\nelse\n"
    found = refusals(said, ["999", "6", "3_99", "2"])
    assert found.keys() == {"999", "6", "3_99"}
    assert all(is_gone(why) for why in found.values())
    assert not is_gone("Access/permission denied")
