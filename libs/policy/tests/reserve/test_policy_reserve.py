"""One decision of reserve mode after the other: the head, the promise, what breaks it, and who passes."""

import msgspec
import pytest

from fairlead_contracts.policyfile.document import PolicyDocument, Pool, Reserve
from fairlead_policy.reserve.easy import reserve, reserves, timing_of
from fairlead_policy.reserve.reservation import (
    BreakCause,
    HeadInPlace,
    NoReservation,
    Pass,
    Promise,
    Reservation,
    ReservationState,
    ReserveInputs,
    Timing,
    Waiting,
    Withdrawal,
)
from fairlead_policy.reserve.shadow import CapacityHold, shadow_of

NOW = 1_000
TIMING = Timing(reaction=10, grace=5, rest=100)
CAPACITY = {"gpu": 8, "cpu": 64}


def run(uid: str, gpus: int, ends: int | None) -> CapacityHold:
    return CapacityHold(uid=uid, demand={"gpu": gpus}, ends=ends)


def job(uid: str, gpus: int, limit: int | None = 50, job_class: str = "normal", **demand: int) -> Waiting:
    return Waiting(uid=uid, demand={"gpu": gpus} | demand, job_class=job_class, limit=limit)


def a_scene(
    *order: Waiting, runs: tuple[CapacityHold, ...] = (run("r", 6, 1_500),), **changes: object
) -> ReserveInputs:
    scene = ReserveInputs(
        now=NOW,
        timing=TIMING,
        capacity=CAPACITY,
        running=runs,
        order=order,
        ahead=lambda _: frozenset(),
    )
    return msgspec.structs.replace(scene, **changes)


def a_promise(uid: str = "head", shadow: int = 1_500) -> Promise:
    return Promise(uid=uid, job_class="normal", shadow=shadow, made=900, capacity=CAPACITY)


IN_PLACE = ReservationState(in_place=HeadInPlace("head", NOW - 10))
PROMISED = ReservationState(promise=a_promise())
HEAD = job("head", 8)


def decided(scene: ReserveInputs, before: ReservationState = PROMISED) -> Reservation:
    return reserve(scene, before)


def test_a_promise_takes_a_head_that_was_in_front_for_a_reaction_time() -> None:
    found = decided(a_scene(HEAD), ReservationState())
    assert (found.promise, found.why_none) == (None, NoReservation.NOT_IN_PLACE)
    assert found.standing.in_place == HeadInPlace("head", NOW)
    assert found.wake == NOW + 10
    found = decided(a_scene(HEAD), IN_PLACE)
    assert found.promise is not None
    assert found.promise.shadow == 1_500


@pytest.mark.parametrize("ahead", [None, frozenset({"stale"})])
def test_none_is_made_while_something_may_stand_before_the_head(ahead: frozenset[str] | None) -> None:
    found = decided(a_scene(HEAD, ahead=lambda _: ahead), IN_PLACE)
    assert (found.promise, found.why_none) == (None, NoReservation.NOT_IN_PLACE)


def test_none_is_made_while_jobs_before_it_are_about_to_start() -> None:
    found = decided(a_scene(job("first", 1), HEAD), IN_PLACE)
    assert (found.promise, found.why_none, found.starting) == (None, NoReservation.STARTING, ("first",))


@pytest.mark.parametrize(
    ("ends", "why_none"), [(None, NoReservation.ENDLESS), (NOW - 11, NoReservation.OVERDUE)]
)
def test_none_is_made_where_nobody_knows_when_room_comes(ends: int | None, why_none: NoReservation) -> None:
    found = decided(a_scene(HEAD, runs=(run("r", 6, ends),)), IN_PLACE)
    assert (found.promise, found.why_none) == (None, why_none)


def test_a_pass_has_ended_by_the_shadow_at_the_latest() -> None:
    # now + 2 * reaction + limit + grace = 1000 + 20 + limit + 5
    found = decided(a_scene(HEAD, job("just", 1, 475), job("late", 1, 476), job("unknown", 1, None)))
    assert [one.uid for one in found.given] == ["just"]
    assert found.order == ("just", "head", "late", "unknown")


def test_whoever_leaves_room_for_the_head_may_run_on() -> None:
    small = job("head", 6)
    found = decided(a_scene(small, job("a", 1, None), job("b", 1, None), job("c", 1, None)))
    assert [(one.uid, one.beside) for one in found.given] == [("a", True), ("b", True)]


def test_jobs_that_want_something_else_than_the_head_pass_without_limits() -> None:
    found = decided(a_scene(HEAD, job("cpu", 0, None, cpu=60), job("more", 0, None, cpu=60)))
    assert [one.uid for one in found.given] == ["cpu"]


def test_a_pass_must_be_able_to_be_taken_back_before_the_shadow() -> None:
    near = ReservationState(promise=a_promise(shadow=1_019))
    assert decided(a_scene(job("head", 6), job("a", 1, None), runs=(run("r", 6, 1_019),)), near).given == ()


def test_passes_stay_in_the_class_of_the_head() -> None:
    found = decided(a_scene(HEAD, job("low", 1, 50, job_class="low")))
    assert found.given == ()


def test_a_pass_counts_until_it_is_used_or_surely_cannot_be() -> None:
    first = decided(a_scene(HEAD, job("a", 2), job("b", 1)))
    assert [one.uid for one in first.given] == ["a"]
    second = decided(a_scene(HEAD, job("a", 2), job("b", 1)), first.standing)
    assert second.given == ()
    unused = decided(a_scene(HEAD, job("a", 2), job("b", 1), now=NOW + 10), second.standing)
    assert [(one.uid, one.withdrawn) for one in unused.withdrawn] == [("a", Withdrawal.UNUSED)]
    assert (unused.given, unused.order[0]) == ((), "head")
    sure = decided(a_scene(HEAD, job("a", 2), job("b", 1), now=NOW + 31), unused.standing)
    assert (sure.given, sure.standing.passes) == ((), {})
    after = decided(a_scene(HEAD, job("a", 2), job("b", 1), now=NOW + 32), sure.standing)
    assert [one.uid for one in after.given] == ["b"]
    assert "a" in after.standing.resting


def test_the_passes_of_a_head_that_started_are_taken_back() -> None:
    before = ReservationState(
        promise=a_promise("gone"),
        passes={"a": Pass(uid="a", demand={"gpu": 1}, limit=85, given=990, begins=1_010, ends=1_100)},
    )
    found = decided(a_scene(HEAD, job("a", 1)), before)
    assert [one.withdrawn for one in found.withdrawn] == [Withdrawal.HEAD_GONE]
    assert found.promise is None


@pytest.mark.parametrize(
    "after",
    [job("a", 2, 400), job("a", 2, None), job("a", 3), job("a", 2, cpu=1)],
    ids=["longer", "for ever", "larger", "another resource"],
)
def test_a_pass_of_a_job_that_wants_more_afterwards_is_taken_back(after: Waiting) -> None:
    first = decided(a_scene(HEAD, job("a", 2)))
    found = decided(a_scene(HEAD, after, job("b", 1)), first.standing)
    assert [(one.uid, one.withdrawn) for one in found.withdrawn] == [("a", Withdrawal.CHANGED)]
    assert (found.order[0], found.promise) == ("head", first.promise)
    assert "a" in found.standing.resting


def test_nobody_passes_while_a_pass_that_became_too_long_may_still_begin() -> None:
    first = decided(a_scene(HEAD, job("a", 1)))
    found = decided(a_scene(HEAD, job("a", 1, 5_000), job("b", 1)), first.standing)
    assert found.given == ()
    again = decided(a_scene(HEAD, job("a", 1, 5_000), job("b", 1), now=NOW + 1), found.standing)
    assert again.given == ()


def test_a_pass_of_a_held_job_is_taken_back_and_counts_until_it_surely_stands_behind() -> None:
    first = decided(a_scene(HEAD, job("a", 2)))
    held = a_scene(HEAD, job("b", 1), held=[job("a", 2)], ahead=lambda _: frozenset({"a"}))
    found = decided(held, first.standing)
    assert [(one.uid, one.withdrawn) for one in found.withdrawn] == [("a", Withdrawal.HELD)]
    late = decided(msgspec.structs.replace(held, now=NOW + 100), found.standing)
    assert (late.given, set(late.standing.passes)) == ((), {"a"})
    behind = msgspec.structs.replace(held, now=NOW + 100, ahead=lambda _: frozenset())
    assert decided(behind, late.standing).standing.passes == {}


def test_a_pass_survives_a_change_that_cannot_harm_the_head() -> None:
    first = decided(a_scene(HEAD, job("a", 2)))
    for harmless in (job("a", 2, 40), job("a", 1)):
        assert decided(a_scene(HEAD, harmless), first.standing).withdrawn == ()
    beside = decided(a_scene(job("head", 6), job("a", 2, None)))
    assert decided(a_scene(job("head", 6), job("a", 2, 9_000)), beside.standing).withdrawn == ()


@pytest.mark.parametrize(("ends", "recalled"), [(None, ""), (NOW - 11, "head")], ids=["endless", "overdue"])
def test_who_was_found_in_front_and_had_no_promise_goes_back_to_its_place(
    ends: int | None, recalled: str
) -> None:
    scene = a_scene(job("fair", 3), HEAD, runs=(run("r", 6, ends),))
    first = decided(scene, ReservationState(recalled="head"))
    assert (first.order[0], first.wake) == ("head", NOW + 10)
    sure = decided(msgspec.structs.replace(scene, now=NOW + 10), first.standing)
    assert sure.standing.recalled == recalled


def test_a_promise_only_gets_earlier() -> None:
    assert decided(a_scene(HEAD, runs=(run("r", 6, 1_200),))).standing.promise == msgspec.structs.replace(
        a_promise(), shadow=1_200
    )
    later = decided(a_scene(HEAD, job("a", 1, 50), runs=(run("r", 6, 1_900),)))
    assert later.standing.promise == a_promise()
    assert later.given == ()  # it is in danger


def test_the_head_keeps_its_place_before_its_class() -> None:
    found = decided(a_scene(job("better", 8), job("also", 1, 5_000), HEAD))
    assert found.order == ("head", "better", "also")


@pytest.mark.parametrize(
    ("scene", "cause"),
    [
        (a_scene(job("up", 8, job_class="urgent"), HEAD), BreakCause.HIGHER_CLASS),
        (a_scene(HEAD, capacity={"gpu": 4, "cpu": 64}), BreakCause.CAPACITY),
        (
            a_scene(HEAD, now=1_511, capacity={"gpu": 8, "cpu": 60}, runs=(run("r", 6, 1_600),)),
            BreakCause.CAPACITY,
        ),
        (a_scene(HEAD, now=1_511), BreakCause.OVERDUE),
        (a_scene(HEAD, now=1_511, runs=()), BreakCause.NOT_STARTED),
        (a_scene(HEAD, now=1_511, runs=(run("other", 6, 1_600),)), BreakCause.OVERTAKEN),
    ],
)
def test_what_breaks_a_promise_is_named(scene: ReserveInputs, cause: BreakCause) -> None:
    found = decided(scene)
    assert found.breach is not None
    assert (found.breach.promise.uid, found.breach.cause) == ("head", cause)


def test_what_is_seen_late_breaks_nothing() -> None:
    assert decided(a_scene(HEAD, now=1_510)).breach is None


def test_a_higher_class_that_fits_goes_first_and_breaks_nothing_by_itself() -> None:
    found = decided(a_scene(job("up", 1, 50, job_class="urgent"), HEAD))
    assert (found.breach, found.order) == (None, ("up", "head"))


def test_a_job_that_can_never_start_is_set_aside() -> None:
    found = decided(a_scene(job("huge", 9), HEAD), ReservationState())
    assert (found.head, found.aside, found.order) == (HEAD, ("huge",), ("head",))


def test_a_shadow_counts_what_ends_in_time_and_no_more() -> None:
    runs = [run("a", 3, 1_100), run("b", 3, 1_200), run("c", 2, None)]
    assert shadow_of({"gpu": 3}, CAPACITY, runs, NOW).at == 1_100
    assert shadow_of({"gpu": 6}, CAPACITY, runs, NOW).at == 1_200
    nobody_knows = shadow_of({"gpu": 7}, CAPACITY, runs, NOW)
    assert (nobody_knows.at, nobody_knows.endless) == (None, ("c",))
    assert shadow_of({"gpu": 3}, CAPACITY, runs, NOW).spare["gpu"] == 0


def test_the_policy_says_where_and_how_fast() -> None:
    pools = [Pool(name="a", members=["c/a"], mode="reserve"), Pool(name="b", members=["c/b"], mode="advise")]
    document = PolicyDocument(pools=pools)
    assert [reserves(document, name) for name in ("a", "b", "c/other")] == [True, False, False]
    everywhere = msgspec.structs.replace(document, mode="reserve")
    assert [reserves(everywhere, name) for name in ("a", "b", "c/other")] == [True, False, True]
    document = PolicyDocument(reserve=Reserve(reaction_seconds=2, grace_seconds=0.5, rest_seconds=3))
    assert timing_of(document) == Timing(reaction=2_000_000, grace=500_000, rest=3_000_000)
