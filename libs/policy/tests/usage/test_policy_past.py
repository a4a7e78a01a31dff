"""Past use: what a tenant used fades by half a half-life, to the last unit as defined, whoever counts from wherever."""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.instants import HOUR, SECOND, Micros
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.usage.past import PARTS, Decay, PastUse, tick_of
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.oracles.waiting import a_waiting_job

DAY, YEAR = 24 * HOUR, 365 * 24 * HOUR
MINUTE = 60 * SECOND


class PastRun(NamedTuple):
    """One run as the tests know it."""

    uid: str
    tenant: str
    started: Micros
    ended: Micros | None
    demand: Mapping[str, int]


def told(
    decay: Decay, runs: Iterable[PastRun], *, at: int = 0, kept: Mapping[str, Mapping[str, int]] | None = None
) -> PastUse:
    """All runs told, from a settled tick on."""
    past = PastUse(decay)
    past.begin(at, kept or {})
    for run in runs:
        tell(past, run)
    return past


def tell(past: PastUse, run: PastRun) -> None:
    if run.ended is None:
        past.run((run.uid, run.started), run.tenant, run.demand)
    else:
        past.end((run.uid, run.started), run.tenant, run.ended, run.demand)


def by_definition(decay: Decay, runs: Iterable[PastRun], tenant: str, resource: str, tick: int) -> int:
    """Tick by tick, each run's time in it measured with a ruler: exact fractions, floored where the definition floors."""
    left = Fraction(decay.left, 2**64)
    parts = 0
    own = [run for run in runs if run.tenant == tenant]
    for number in range(1, tick + 1):
        begin, end = (number - 1) * decay.tick, number * decay.tick
        used = Fraction(0)
        for run in own:
            until = end if run.ended is None else min(run.ended, end)
            used += run.demand.get(resource, 0) * max(Fraction(0), Fraction(until - max(run.started, begin)))
        mean = used / decay.tick
        parts = math.floor(parts * left + mean * PARTS * (1 - left))
    return parts // PARTS


half_lives = st.sampled_from([MINUTE, HOUR, 9 * HOUR, 30 * DAY, 7 * MINUTE + 1])
amounts = st.dictionaries(
    st.sampled_from(["gpu", "memory"]), st.sampled_from([0, 1, 999, 8 * 2**40, 2**60]), max_size=2
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Decay, list[PastRun], int]:
    half_life = draw(half_lives)
    decay = Decay(half_life, tick_of(half_life))
    last = draw(st.integers(1, 20))
    instants = st.one_of(
        st.integers(0, last * decay.tick), st.integers(0, last).map(lambda number: number * decay.tick)
    )
    runs = []
    for number in range(draw(st.integers(0, 7))):
        started, ended = draw(instants), draw(st.none() | instants)
        runs.append(PastRun(f"u{number}", draw(st.sampled_from("ab")), started, ended, draw(amounts)))
    return decay, runs, last


@given(histories())
@settings(max_examples=cases())
def test_it_is_what_the_definition_says_by_brute_force(history: tuple[Decay, list[PastRun], int]) -> None:
    decay, runs, last = history
    past = told(decay, runs)
    past.advance(last)
    for tenant in "ab":
        for resource in ("gpu", "memory"):
            assert past.of(tenant).get(resource, 0) == by_definition(decay, runs, tenant, resource, last)


@given(histories(), st.data())
@settings(max_examples=cases())
def test_where_it_is_settled_who_counts_and_how_often_somebody_looks_change_nothing(
    history: tuple[Decay, list[PastRun], int], data: st.DataObject
) -> None:
    """Owners come and go at any tick, each from what the one before had kept, and hear everything again."""
    decay, runs, last = history
    never = told(decay, runs)
    never.advance(last)
    past = told(decay, ())
    for tick in range(1, last + 1):
        now = tick * decay.tick
        for run in runs:  # as it is known at that moment, told again and again
            if run.started <= now:
                over = run.ended is not None and run.ended <= now
                tell(past, run if over else run._replace(ended=None))
        past.advance(tick)
        if data.draw(st.booleans()):
            past.settle(data.draw(st.integers(0, tick)))
        if data.draw(st.integers(0, 4)) == 0:
            past = told(decay, (), at=past.settled or 0, kept=past.kept())
    for run in runs:
        tell(past, run)
    past.advance(last)
    assert {tenant: past.of(tenant) for tenant in "ab"} == {tenant: never.of(tenant) for tenant in "ab"}


@given(histories())
@settings(max_examples=cases())
def test_only_those_are_told_whose_past_use_is_another(history: tuple[Decay, list[PastRun], int]) -> None:
    decay, runs, last = history
    past, heard = told(decay, ()), dict[str, dict[str, int]]()
    for tick in range(1, last + 1):
        for run in runs[tick % 3 :: 3]:
            tell(past, run)
        changed = past.advance(tick)
        assert all(heard.get(tenant, {}) != now for tenant, now in changed.items())
        heard |= changed
        assert {tenant: now for tenant, now in heard.items() if now} == {
            tenant: past.of(tenant) for tenant in past.tenants()
        }
        assert past.advance(tick) == {}


def test_half_is_left_after_a_half_life() -> None:
    decay = Decay(HOUR, tick_of(HOUR))
    past = told(decay, (), kept={"a": {"gpu": 64_000 * PARTS}})
    seen = []
    for hour in (1, 2, 3):
        past.advance(hour * HOUR // decay.tick)
        seen.append(past.of("a")["gpu"])
    # Ticks are whole seconds: 64 of 56 s are 16 s short of an hour.
    assert seen == pytest.approx([32_000, 16_000, 8_000], rel=0.012)


@pytest.mark.parametrize("half_life", [HOUR, DAY, 7 * DAY])
def test_it_is_the_integral_of_use_as_slurm_and_the_papers_have_it_but_for_the_tick(
    half_life: Micros,
) -> None:
    """A run from s to e comes to d * (2^(-(T-e)/h) - 2^(-(T-s)/h)), in real numbers."""
    decay = Decay(half_life, tick_of(half_life))
    runs = [PastRun("r", "a", half_life // 3, half_life, {"gpu": 10**9})]
    past = told(decay, runs)
    at = 3 * half_life // decay.tick
    past.advance(at)
    age = [(at * decay.tick - instant) / half_life for instant in (half_life, half_life // 3)]
    assert past.of("a")["gpu"] == pytest.approx(10**9 * (2 ** -age[0] - 2 ** -age[1]), rel=0.02)


def test_who_keeps_using_the_same_comes_to_it_and_no_further_in_years() -> None:
    decay = Decay(DAY, tick_of(DAY))
    past = told(decay, [PastRun("r", "a", 0, None, {"memory": 2**60, "gpu": 1})])
    past.advance(DAY // decay.tick)
    assert past.of("a")["memory"] == pytest.approx(2**59, rel=0.001)
    for year in range(1, 40):
        past.advance(year * YEAR // decay.tick)
        past.settle(year * YEAR // decay.tick - 1)
    assert past.of("a")["memory"] == pytest.approx(2**60, rel=1e-9)
    assert past.of("a")["memory"] <= 2**60
    past.end(("r", 0), "a", 40 * YEAR, {"memory": 2**60, "gpu": 1})
    past.advance(140 * YEAR // decay.tick)
    assert past.of("a") == {}
    past.settle(140 * YEAR // decay.tick)
    assert past.kept() == {}


@given(st.integers(1, 2**62 - 1), half_lives, st.integers(1, 10**7))
@settings(max_examples=cases())
def test_it_never_passes_what_was_used(amount: int, half_life: Micros, ticks: int) -> None:
    past = told(Decay(half_life, tick_of(half_life)), [PastRun("r", "a", 0, None, {"gpu": amount})])
    past.advance(ticks)
    assert 0 <= past.of("a").get("gpu", 0) <= amount


def test_an_end_that_is_told_twice_or_brought_back_by_a_crash_is_charged_once() -> None:
    decay = Decay(HOUR, MINUTE)
    run = PastRun("r", "a", 0, 10 * MINUTE, {"gpu": 8000})
    once, often = told(decay, [run]), told(decay, [run])
    often.settle(20)
    tell(often, run)  # an old event, read again by a new owner
    often.settle(30)
    tell(
        often, run._replace(ended=11 * MINUTE)
    )  # who watches the cluster says it again, and noticed it later
    once.advance(40)
    often.advance(40)
    assert often.of("a") == once.of("a") == {"gpu": by_definition(decay, [run], "a", "gpu", 40)}


def test_a_run_that_is_over_does_not_go_on_because_an_older_word_comes_later() -> None:
    decay = Decay(HOUR, MINUTE)
    run = PastRun("r", "a", 0, 10 * MINUTE, {"gpu": 8000})
    past = told(decay, [run, run._replace(ended=None), run._replace(ended=12 * MINUTE)])
    past.leave(("r", 0))
    past.advance(40)
    assert past.of("a")["gpu"] == by_definition(decay, [run], "a", "gpu", 40)


def test_an_end_that_is_heard_late_costs_the_delay_at_most() -> None:
    decay = Decay(HOUR, MINUTE)
    run = PastRun("r", "a", 0, 10 * MINUTE, {"gpu": 8000})
    late = told(decay, [run._replace(ended=None)])
    late.settle(15)
    tell(late, run)
    late.advance(60)
    assert late.of("a")["gpu"] == by_definition(decay, [run._replace(ended=15 * MINUTE)], "a", "gpu", 60)


def test_before_anything_is_known_nobody_has_any() -> None:
    past = PastUse(Decay(HOUR, MINUTE))
    past.run(("r", 0), "a", {"gpu": 1000})
    past.settle(3)
    assert (past.advance(5), past.settled, past.kept()) == ({}, None, {})
    past.begin(5, {})
    past.advance(65)
    assert past.of("a")["gpu"] == pytest.approx(500, rel=0.01), "only what ran since then counts"


@pytest.mark.parametrize(("half_life", "tick"), [(0, 1), (-1, 1), (HOUR, 0)])
def test_a_half_life_of_nothing_is_refused(half_life: int, tick: int) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Decay(half_life, tick)


@pytest.mark.parametrize(
    ("half_life", "tick"),
    [(MINUTE, SECOND), (HOUR, 56 * SECOND), (DAY, 600 * SECOND), (10**6 * HOUR, 600 * SECOND)],
)
def test_a_tick_is_whole_seconds_and_ten_minutes_at_most(half_life: Micros, tick: Micros) -> None:
    assert tick_of(half_life) == tick


def test_a_tenant_that_stopped_passes_one_that_runs_when_its_past_has_decayed() -> None:
    """Past use 0.4 against running 0.3, half-life an hour: they change places after 1,495 s."""
    rules = PoolRules(capacity={"gpu": 10**6}, classes=("normal",), unlisted_entitlement=Fraction(1))
    order = PoolFacts(rules)
    order.run("r", "runs", {"gpu": 300_000})
    for tenant in ("stopped", "runs"):
        order.wait(a_waiting_job(tenant, tenant=tenant, demand={"gpu": 1}))
    past = told(Decay(HOUR, SECOND), (), kept={"stopped": {"gpu": 400_000 * PARTS}})
    changed = None
    for second in range(1480, 1510):
        for tenant, use in past.advance(second).items():
            order.remember(tenant, use)
        if changed is None and order.at(0).uids()[0] == "stopped":
            changed = second
    assert changed == 1495 == math.ceil(3600 * math.log2(4 / 3))


def test_past_use_raises_the_tag_of_a_tenant_that_just_keeps_running() -> None:
    order = PoolFacts(PoolRules(capacity={"gpu": 10}, classes=("normal",), unlisted_entitlement=Fraction(1)))
    order.run("r", "a", {"gpu": 2})
    order.remember("a", {"gpu": 1, "cpu": 0})
    [standing] = order.snapshot.standings()
    assert (standing.use, standing.past, standing.share) == ({"gpu": 2}, {"gpu": 1}, 0.3)
    order.forget("r")
    assert [one.tenant for one in order.snapshot.standings()] == ["a"]
    order.remember("a", {})
    assert order.snapshot.standings() == []


def test_past_use_of_what_the_pool_has_no_more_of_puts_nobody_behind_all_others() -> None:
    """A pool that lost its last card, and gets one again."""
    with_cards = PoolRules(
        capacity={"cpu": 10, "gpu": 4}, classes=("normal",), unlisted_entitlement=Fraction(1)
    )
    without = PoolRules(capacity={"cpu": 10, "gpu": 0}, classes=("normal",), unlisted_entitlement=Fraction(1))
    order = PoolFacts(without)
    order.remember("a", {"gpu": 2})
    order.run("r", "b", {"cpu": 1})
    for tenant in "ab":
        order.wait(a_waiting_job(tenant, tenant=tenant, demand={"cpu": 1}))
    assert [(position.uid, position.unbounded) for position in order.at(0).positions()] == [
        ("a", False),
        ("b", False),
    ]
    order.set_rules(with_cards)
    assert order.at(0).uids() == ["b", "a"]
    assert [one.past for one in order.snapshot.standings(["a"])] == [{"gpu": 2}]
    order.set_rules(without)
    assert order.at(0).uids() == ["a", "b"]


def test_a_run_that_left_without_an_end_counts_no_longer_than_it_is_settled() -> None:
    past = told(Decay(HOUR, MINUTE), [PastRun("r", "a", 0, None, {"gpu": 8000})])
    past.advance(10)
    assert past.of("a")["gpu"] > 0
    past.leave(("r", 0))
    assert past.advance(10) == {"a": {}}
