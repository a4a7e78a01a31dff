"""A rate for each of many, and a burst after a rest."""

from fairlead_bus.pace import LinePace
from fairlead_testkit.timing.in_hand import ManualClock


def test_a_burst_passes_and_then_as_many_as_a_second_allows() -> None:
    clock = ManualClock(100.0)
    pace = LinePace(2.0, 3, clock)
    rests = []
    for _ in range(5):
        rests.append(pace.rest("a"))
        pace.spend("a")
    assert rests == [0.0, 0.0, 0.0, 0.5, 1.0]
    assert pace.rest("a") == 1.5
    assert pace.rest("b") == 0.0, "another line has its own"
    clock.now += 1.5
    assert pace.rest("a") == 0.0
    clock.now += 60.0
    pace.spend("b")
    assert [pace.rest("a"), pace.rest("b")] == [0.0, 0.0], "after a rest all of the burst is there again"


def test_lines_that_have_made_up_for_all_are_forgotten() -> None:
    clock = ManualClock()
    pace = LinePace(1.0, 5, clock)
    for number in range(1000):
        clock.now = number
        pace.spend(f"line-{number}")
    assert len(pace._paid_until) <= 2


def test_what_costs_more_is_made_up_for_longer() -> None:
    clock = ManualClock()
    pace = LinePace(2.0, 10, clock)
    pace.spend("a", 30.0)
    assert pace.rest("a") == 10.5
