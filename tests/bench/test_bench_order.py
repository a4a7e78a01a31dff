"""`bench/order.py`: what it prints, and that what it measures is the same order by both ways."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from order_heap import PlainPool, order_by_heap
from order_measuring import EVENTS, measure_events, measure_order
from order_pools import Size, made_pool

BENCH = Path(__file__).parents[2] / "bench" / "order.py"


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(BENCH), *words],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_the_last_line_is_the_order() -> None:
    ended = bench("--jobs", "500", "--tenants", "7", "--resources", "5", "--json")
    assert ended.returncode == 0, ended.stderr
    event, levels, order = map(json.loads, ended.stdout.splitlines())
    assert (order["jobs"], order["tenants"], order["resources"]) == (500, 7, 5)
    assert order["seconds"] > 0  # how much faster that is than a heap is a matter of bench/
    assert order["ratio"] == pytest.approx(order["heap_seconds"] / order["seconds"])
    assert order["agrees"]
    assert event["event_jobs"] == 500
    assert 0 < event["p50_seconds"] <= event["p99_seconds"]
    assert levels["levels_seconds"] > 0


def test_words_say_the_same() -> None:
    ended = bench("--jobs", "50", "--tenants", "3")
    assert "order of 50 jobs of 3 tenants by 3 resources" in ended.stdout
    assert "the same order" in ended.stdout


@pytest.mark.parametrize("flag", ["--jobs", "--tenants", "--resources"])
def test_a_pool_of_nothing_is_refused(flag: str) -> None:
    ended = bench(flag, "0")
    assert ended.returncode == 2
    assert f"{flag} must be at least 1" in ended.stderr


@pytest.mark.parametrize(
    "size",
    [
        Size(jobs=1, tenants=1, resources=1),
        Size(jobs=4000, tenants=150, resources=3),
        Size(jobs=20_000, tenants=9000, resources=5),
    ],
)
def test_the_heap_gives_the_order_that_is_measured(size: Size) -> None:
    pool = made_pool(size)
    assert measure_order(pool).differ == 0
    assert sorted(order_by_heap(PlainPool.of(pool))) == list(range(size.jobs))


def test_events_are_measured_on_a_pool_of_few_jobs() -> None:
    taken = measure_events(made_pool(Size(jobs=20, tenants=40, resources=2)))
    assert (len(taken), min(taken) > 0) == (EVENTS, True)
