"""Waking while room is free: which jobs, and at which level."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead_admitter.decide.frontend_order import LinePosition
from fairlead_admitter.decide.merged_order import Ranked
from fairlead_admitter.decide.waking import (
    MUCH_AT_ONCE,
    ORDERED_SECONDS,
    WakeInputs,
    WakeStep,
    batch_seconds,
    next_step,
    planning_band,
    wake_level,
)
from fairlead_contracts.frontend.capabilities import Capabilities
from fairlead_contracts.messages.state import JobState
from fairlead_policy.levels.plan import Band
from fairlead_testkit.inputs.builders import a_job

BAND = Band(default=0, lowest=1, highest=1000)
AT = 100.0
ABLE = Capabilities()
BATCH_SECONDS, TRIED_SECONDS = batch_seconds(ABLE), ABLE.try_seconds


def ranked(*uids: str) -> list[Ranked]:
    return [Ranked(number, None, a_job(uid, uid=uid)) for number, uid in enumerate(uids)]


def moment(now: float = AT, **changes: object) -> WakeInputs:
    told = {"now": now, "freed": AT, "ordered": True, "woken": {}, "tried": TRIED_SECONDS, "able": ABLE}
    return WakeInputs(**told | changes)  # type: ignore[arg-type] # changes


def step_of(fitting: Sequence[Ranked], moment: WakeInputs, *, slots: int = 1) -> WakeStep:
    """The step where so many of the jobs have room beside one another."""
    left = iter(range(slots))
    return next_step(fitting, moment, lambda _: next(left, None) is not None)


def woken(step: WakeStep) -> list[str]:
    return [one.job.uid for one in step.wake]


def test_without_room_for_anybody_everything_may_be_written() -> None:
    assert step_of([], moment()).everything


def test_the_first_that_fits_is_woken_alone() -> None:
    step = step_of(ranked("a", "b"), moment())
    assert woken(step) == ["a"]
    assert not step.everything


def test_as_many_are_woken_as_have_room_beside_one_another_and_those_in_hand() -> None:
    fitting = ranked(*"abcdefgh")
    assert woken(step_of(fitting, moment(), slots=3)) == ["a", "b", "c"]
    assert woken(step_of(fitting, moment(), slots=8)) == [*"abcdefgh"[: ABLE.tries_at_once]]
    later = moment(AT + 0.01, woken={"a": AT + 0.005})
    assert woken(step_of(fitting, later, slots=3)) == ["b", "c"]
    assert step_of(fitting, later, slots=1) == WakeStep(until=AT + 0.005 + TRIED_SECONDS)


def by_uid(one: Ranked) -> LinePosition:
    return 0, (0, one.job.uid)


def test_where_much_is_free_those_are_woken_that_the_batch_would_come_to_last() -> None:
    """The frontend starts the first of its own line by itself."""
    names = [f"{number:03}" for number in range(2 * MUCH_AT_ONCE)]
    random.Random(1).shuffle(names)
    room = set(names[: MUCH_AT_ONCE + 9])
    step = next_step(ranked(*names), moment(), lambda job: job.uid in room, by_uid)
    assert woken(step) == sorted(room)[: -MUCH_AT_ONCE - 1 : -1]


def test_where_much_is_free_and_all_that_is_known_has_room_the_order_behind_it_is_waited_for() -> None:
    def step(now: float) -> WakeStep:
        return next_step(ranked("b", "a"), moment(now), lambda _: True, by_uid)

    assert step(AT) == WakeStep(until=AT + ORDERED_SECONDS)
    assert woken(step(AT + ORDERED_SECONDS)) == ["b", "a"]


def test_nobody_goes_before_one_who_has_room_if_another_in_hand_is_refused() -> None:
    sizes = {"a": 2, "b": 2, "c": 1}
    left = [3]

    def takes_room(job: JobState) -> bool:
        fits = sizes[job.uid] <= left[0]
        left[0] -= sizes[job.uid] * fits
        return fits

    assert woken(next_step(ranked("a", "b", "c"), moment(), takes_room)) == ["a"]


def test_the_next_is_woken_when_the_first_was_tried_in_vain_or_not_seen_for_a_tenth_of_a_second() -> None:
    fitting = ranked("a", "b")
    at_once = AT + 0.01
    assert step_of(fitting, moment(at_once, woken={"a": at_once})) == WakeStep(until=at_once + TRIED_SECONDS)
    assert woken(step_of(fitting, moment(at_once, woken={"a": at_once}, refused={"a"}))) == ["b"]
    assert woken(step_of(fitting, moment(AT + 0.01 + TRIED_SECONDS, woken={"a": at_once}))) == ["b"]


def test_who_is_woken_stays_in_hand_for_as_long_as_a_slow_kueue_takes() -> None:
    fitting, at = ranked("a", "b"), AT + 0.01
    slow = {"woken": {"a": at}, "tried": 1.0}
    assert step_of(fitting, moment(at + TRIED_SECONDS, **slow), slots=1) == WakeStep(until=at + 1.0)
    assert woken(step_of(fitting, moment(at + 1.0, **slow), slots=1)) == ["b"]


def test_what_ended_is_ordered_by_first_but_not_for_ever() -> None:
    fitting = ranked("a")
    assert step_of(fitting, moment(ordered=False)) == WakeStep(until=AT + ORDERED_SECONDS)
    assert woken(step_of(fitting, moment(AT + ORDERED_SECONDS, ordered=False))) == ["a"]


def test_who_was_tried_before_something_came_free_is_tried_again() -> None:
    assert woken(step_of(ranked("a", "b"), moment(AT + 0.2, woken={"a": AT - 0.01}))) == ["a"]


def test_when_all_were_tried_in_vain_nothing_is_written_before_the_batch_has_passed() -> None:
    tried = {"a": AT + 0.01, "b": AT + 0.2}
    assert step_of(ranked("a", "b"), moment(AT + 0.5, woken=tried)) == WakeStep(until=AT + BATCH_SECONDS)
    assert step_of(ranked("a", "b"), moment(AT + BATCH_SECONDS, woken=tried)).everything


def test_how_long_its_batch_takes_and_how_many_are_tried_at_once_is_the_frontends_to_say() -> None:
    able = Capabilities(retry_seconds=30.0, tries_at_once=2)
    assert woken(step_of(ranked(*"abcd"), moment(able=able), slots=4)) == ["a", "b"]
    tried = {"a": AT + 0.01, "b": AT + 0.2}
    passed = AT + batch_seconds(able)
    assert passed > AT + 30.0
    assert step_of(ranked("a", "b"), moment(AT + 29.0, woken=tried, able=able)) == WakeStep(until=passed)
    assert step_of(ranked("a", "b"), moment(passed, woken=tried, able=able)).everything


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.floats(0, 0.09))
def test_each_is_woken_once_in_the_order_until_one_starts(starts: list[bool], latency: float) -> None:
    """A frontend that tries whoever is woken, and starts those that it will: nobody is passed over, nobody is woken twice."""
    waiting = ranked(*(str(number) for number in range(len(starts))))
    trail: dict[str, float] = {}
    seen: list[str] = []
    now = AT + 0.001
    while not (step := step_of(waiting, moment(now, woken=trail))).everything:
        if step.wake:
            [uid] = woken(step)
            seen.append(uid)
            trail[uid] = now
            now += latency
            waiting = [one for one in waiting if one.job.uid != uid or not starts[int(uid)]]
        else:
            assert step.until is not None
            assert step.until > now
            now = step.until
    assert seen == [str(number) for number in range(len(starts))]


def test_a_wake_up_leaves_the_order_as_it_is() -> None:
    level = wake_level(500, behind=400, before=700, band=BAND, refused={500}.__contains__)
    assert level is not None
    assert 400 < level < 700


@given(
    st.integers(0, 1001),
    st.integers(0, 1001),
    st.integers(0, 1000),
    st.sets(st.integers(0, 1000)),
)
@example(400, 700, 500, set(range(BAND.lowest, BAND.highest + 1)))
@example(400, 700, 500, set(range(BAND.lowest, BAND.highest)))
def test_a_wake_up_has_another_level_of_the_band_at_which_nobody_was_refused(
    behind: int, before: int, standing: int, used: set[int]
) -> None:
    level = wake_level(standing, behind=behind, before=before, band=BAND, refused=used.__contains__)
    free = set(range(BAND.lowest, BAND.highest + 1)) - used - {standing}
    if level is None:
        assert not free
        return
    assert level in free
    between = {one for one in free if behind < one < before}
    assert level in between or not between


def test_a_band_that_is_used_up_wakes_nobody() -> None:
    assert (
        wake_level(
            3, behind=0, before=4, band=Band(default=0, lowest=1, highest=3), refused={1, 2}.__contains__
        )
        is None
    )


@pytest.mark.parametrize("width", [1000, 1_000_000])
def test_plans_leave_levels_free_for_waking(width: int) -> None:
    band = planning_band(Band(default=0, lowest=1, highest=width))
    assert (band.default, band.lowest) == (0, 1)
    assert width // 8 * 7 <= band.highest < width
