"""The judge of fairness itself: it tells an unfair start, and forgives what nobody could have known."""

import pytest

from fairlead_testkit.oracles.fairness import FairReplay


def flooded(reaction: float) -> FairReplay:
    """Four places, held by the first tenant, which has two more jobs waiting; the second comes at 10 seconds."""
    replay = FairReplay({"first": 1.0, "second": 1.0}, 4, reaction=reaction)
    for number in range(6):
        replay.queued("first", f"f{number}")
    for number in range(4):
        replay.started_one("first", f"f{number}", at=1.0)
    for number in range(2):
        replay.queued("second", f"s{number}", at=10.0)
    return replay


@pytest.mark.parametrize(
    ("reaction", "ends", "breach"),
    [(0.0, 10.1, True), (1.0, 10.1, False), (1.0, 12.0, True)],
    ids=["at once", "as soon after the other came as the reaction takes", "once the reaction is over"],
)
def test_a_start_before_a_tenant_that_runs_nothing_is_a_breach(
    *, reaction: float, ends: float, breach: bool
) -> None:
    replay = flooded(reaction)
    replay.ended_one("first", at=ends)
    replay.started_one("first", "f4", at=ends + 0.1)
    assert replay.breaches == (["f4 before second, running {'first': 3}"] if breach else [])


def test_an_end_that_could_not_be_known_is_taken_as_running() -> None:
    replay = flooded(1.0)
    replay.ended_one("first", at=12.0)
    replay.started_one("second", "s0", at=12.1)
    for _ in range(2):
        replay.ended_one("first", at=14.0)
    replay.started_one("second", "s1", at=14.1)
    replay.started_one("first", "f4", at=14.2)
    assert replay.breaches == []
