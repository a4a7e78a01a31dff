"""Durations, demands and numbers of jobs, as people read them."""

import pytest

from fairlead_cli.client.words import ahead_in_words, demand, duration


def test_durations_and_demands_are_in_words() -> None:
    assert [duration(seconds) for seconds in (3.2, 240, 7800, 270_000)] == [
        "3.2 s",
        "4 min",
        "2 h 10 min",
        "3 d 3 h",
    ]
    assert demand({"memory": 2**30, "cpu": 1000, "x.io/fpga": 2000}) == "fpga=2 cpu=1 memory=1Gi"


@pytest.mark.parametrize(
    ("tenants", "told"),
    [
        (1, "9 of t0"),
        (7, "9 of t0, 8 of t1, 7 of t2, 6 of t3, 5 of t4, 4 of t5, 3 of t6"),
        (8, "9 of t0, 8 of t1, 7 of t2, 6 of t3, 5 of t4, 4 of t5, 5 of 2 others"),
    ],
)
def test_of_many_tenants_before_a_job_the_first_are_named(tenants: int, told: str) -> None:
    assert ahead_in_words([(f"t{number}", 9 - number) for number in range(tenants)]) == told
