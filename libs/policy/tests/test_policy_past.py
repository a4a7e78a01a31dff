"""Past use: half after a half-life, the same whoever looks how often, and no larger after years."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.instants import HOUR, SECOND
from fairlead_policy import PastUse, PoolOrder, PoolRules, WaitingJob, tick_of

YEAR = 365 * 24 * HOUR


def test_half_is_left_after_a_half_life() -> None:
    past = PastUse(HOUR, tick_of(HOUR), 0)
    past.restore("a", {"gpu": 64_000})
    seen = []
    for hour in (1, 2, 3):
        past.advance(hour * HOUR)
        seen.append(past.of("a")["gpu"])
    # Ticks are whole seconds: 64 of 56 s are 16 s short of an hour.
    assert seen == pytest.approx([32_000, 16_000, 8_000], rel=0.012)


def test_who_keeps_using_the_same_comes_to_it_and_no_further() -> None:
    past = PastUse(24 * HOUR, tick_of(24 * HOUR), 0)
    past.set_use("a", {"memory": 2**60, "gpu": 1})
    past.advance(24 * HOUR)
    assert past.of("a")["memory"] == pytest.approx(2**59, rel=0.02)
    for year in range(1, 40):
        past.advance(year * YEAR)
    assert past.of("a")["memory"] == pytest.approx(2**60, rel=1e-12)
    past.set_use("a", {})
    past.advance(140 * YEAR)
    assert past.of("a") == {}
    assert past.tenants() == []


@given(st.integers(0, 2**60), st.integers(0, 2**60), st.lists(st.integers(1, 200), max_size=6))
def test_it_does_not_matter_how_often_somebody_looks(start: int, use: int, steps: list[int]) -> None:
    often, once = (PastUse(HOUR, 60 * SECOND, 0) for _ in range(2))
    for past in (often, once):
        past.restore("a", {"gpu": start})
        past.set_use("a", {"gpu": use})
    now = 0
    for minutes in steps:
        now += minutes * 60 * SECOND
        often.advance(now)
        often.advance(now + SECOND)
        often.advance(now - HOUR)  # a clock that was put back
    once.advance(now)
    assert often.of("a") == once.of("a")
    held = often.of("a").get("gpu", 0)
    assert min(start, use) - 1 <= held <= max(start, use)


@pytest.mark.parametrize(("half_life", "tick"), [(0, 1), (-1, 1), (HOUR, 0)])
def test_a_half_life_of_nothing_is_refused(half_life: int, tick: int) -> None:
    with pytest.raises(ValueError, match="above 0"):
        PastUse(half_life, tick, 0)


def test_a_tenant_that_stopped_passes_one_that_runs_when_its_past_has_decayed() -> None:
    """Past use 0.4 against running 0.3, half-life an hour: they change places after 1,495 s."""
    rules = PoolRules(capacity={"gpu": 10**6}, classes=("normal",), unlisted_weight=Fraction(1))
    order = PoolOrder(rules)
    order.run("r", "runs", {"gpu": 300_000})
    for tenant in ("stopped", "runs"):
        order.wait(
            WaitingJob(
                uid=tenant,
                scope="s",
                id=tenant,
                tenant=tenant,
                urgency="normal",
                submitted=0,
                demand={"gpu": 1},
                queue=("c", "q"),
            )
        )
    past = PastUse(HOUR, SECOND, 0)
    past.restore("stopped", {"gpu": 400_000})
    changed = None
    for second in range(1480, 1510):
        past.advance(second * SECOND)
        order.remember("stopped", past.of("stopped"))
        if changed is None and order.uids(0)[0] == "stopped":
            changed = second
    assert changed == 1495 == math.ceil(3600 * math.log2(4 / 3))


def test_past_use_raises_the_tag_of_a_tenant_that_just_keeps_running() -> None:
    order = PoolOrder(PoolRules(capacity={"gpu": 10}, classes=("normal",), unlisted_weight=Fraction(1)))
    order.run("r", "a", {"gpu": 2})
    order.remember("a", {"gpu": 1, "cpu": 0})
    [standing] = order.standings()
    assert (standing.use, standing.past, standing.share) == ({"gpu": 2}, {"gpu": 1}, 0.3)
    order.forget("r")
    assert [one.tenant for one in order.standings()] == ["a"]
    order.remember("a", {})
    assert order.standings() == []
