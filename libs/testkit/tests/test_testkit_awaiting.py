"""Waiting in tests: how often a condition is asked."""

import pytest

from fairlead_testkit.awaiting import POLL_SECONDS, pause_after


@pytest.mark.parametrize(
    ("cost", "pause"), [(0.0, POLL_SECONDS), (0.001, POLL_SECONDS), (0.03, 0.18), (0.2, 0.25), (2.0, 2.0)]
)
def test_who_asks_leaves_the_processors_to_others_for_longer_than_asking_took(
    cost: float, pause: float
) -> None:
    assert pause_after(cost) == pytest.approx(pause)
