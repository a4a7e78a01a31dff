"""Ties that are kept in order."""

import pytest

from fairlead_contracts.frontend.capabilities import Capabilities, TieRule
from fairlead_contracts.frontend.shipped import shipped_capabilities
from fairlead_contracts.snapshot.read import read_snapshot
from fairlead_policy.levels.plan import Band, LabelledJob, plan_levels
from fairlead_policy.levels.ties import TieIndex, tie_of, tied_within
from fairlead_policy.snapshot.levels import plan_snapshot_levels
from fairlead_policy.snapshot.ordering import order_snapshot


def test_many_ties_at_once_are_sorted_as_few_are() -> None:
    index = TieIndex()
    for number in range(500, 0, -1):
        index.put(f"u{number}", (number, ""))
    for number in range(1, 250):
        index.discard(f"u{number}")
    index.put("u300", (1000, ""))
    numbers = [*range(250, 300), *range(301, 501), 300]
    assert [uid for _, uid in index.in_order()] == [f"u{number}" for number in numbers]
    assert len(index) == 251


def before(frontend: str, front: tuple[str, int], back: tuple[str, int]) -> bool:
    """Whether the one job (its id, also as uid, and its queue time) goes first at equal levels."""
    one, other = (
        tie_of(shipped_capabilities(frontend).ties, at, name=name, uid=name) for name, at in (front, back)
    )
    assert one != other
    return one < other


def test_kueue_compares_whole_seconds_and_then_uids() -> None:
    assert before("kueue", ("x1", 1_900_000), ("x2", 1_100_000))
    assert before("kueue", ("x2", 1_900_000), ("x1", 2_000_000))
    assert before("kueue", ("job-10", 0), ("job-9", 0))
    assert before("sim", ("x2", 1_100_000), ("x1", 1_900_000))


def test_slurm_compares_whole_seconds_and_then_numbers() -> None:
    assert before("slurm", ("9", 1_900_000), ("10", 1_100_000))
    assert before("slurm", ("10", 1_900_000), ("9", 2_000_000))
    assert before("slurm", ("9_9", 0), ("9_10", 0))
    assert before("slurm", ("9_10", 0), ("10_1", 0))
    assert before("slurm", ("9_3", 0), ("9_[4-10]", 0)), "what is left of an array stands behind its tasks"
    assert before("slurm", ("9_[4-10]", 0), ("10", 0))
    assert before("slurm", ("4294967294", 0), ("train", 0)), "no number of Slurm's"
    assert before("slurm", ("run", 0), ("train", 0))


@pytest.mark.parametrize(
    ("frontend", "jobs", "goes"),
    [
        ("slurm", [("10", 0.0), ("9", 0.0)], ["9", "10"]),
        ("kueue", [("x2", 0.1), ("x1", 0.9)], ["x1", "x2"]),
    ],
)
def test_on_paper_a_frontend_that_goes_another_way_takes_a_level(
    frontend: str, jobs: list[tuple[str, float]], goes: list[str]
) -> None:
    at = 1_760_000_000
    stated = [
        {"id": name, "tenant": "t", "frontend": frontend, "submitted": at + after, "demand": {"cpu": 1}}
        for name, after in jobs
    ]
    snapshot = read_snapshot(
        {
            "now": at + 10,
            "pools": [{"name": "g", "capacity": {"cpu": 10}}],
            "tenants": [{"name": "t"}],
            "jobs": stated,
        }
    )
    [pool] = order_snapshot(snapshot)
    assert [position.uid for position in pool.positions] == [name for name, _ in jobs], (
        "other than the frontend goes"
    )
    levels = plan_snapshot_levels(pool, snapshot.jobs, 32).levels
    ties = {
        job.uid: tie_of(shipped_capabilities(frontend).ties, job.queue_time, name=job.id, uid=job.uid)
        for job in snapshot.jobs
    }
    assert sorted(ties, key=lambda uid: ties[uid]) == goes
    ended = sorted(levels, key=lambda uid: (-levels[uid], ties[uid]))
    assert ended == [name for name, _ in jobs]
    assert len(set(levels.values())) == 2, "one level is not enough"


def test_where_ties_are_chance_each_position_gets_a_level_of_its_own() -> None:
    able = Capabilities(ties=TieRule.CHANCE)
    window = [
        LabelledJob(
            uid=f"u{number}",
            level=0,
            tie=tie_of(able.ties, number, name=str(number), uid=f"u{number}"),
            queue=tied_within(able, "q"),
        )
        for number in range(6)
    ]
    plan = plan_levels(window, [], Band(default=0, lowest=1, highest=1000))
    levels = dict(plan.writes)
    placed = [levels.get(job.uid, 0) for job in window]
    assert placed == sorted(set(placed), reverse=True)
    assert not window[0].surely_before(window[1])
