"""The trail of writes: what is overlaid, what is drift, what is a fight."""

from itertools import pairwise

import msgspec
import pytest

from fairlead_admitter.observe.expectations import (
    DOUBT_SECONDS,
    FIGHT_ROUNDS,
    FIGHT_SECONDS,
    Expectations,
    LevelVerdict,
    WriteConfirmation,
)
from fairlead_admitter.observe.foreign_levels import UNSURE_SECONDS
from fairlead_contracts.frontend.marks import LEVEL_WRITER
from fairlead_contracts.messages.members import LeaderLease
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_testkit.inputs.builders import a_job


def seen(level: int, rev: int) -> JobState:
    return a_job("x", level=level, rev=rev)


def write(expectations: Expectations, job: JobState, level: int, rev: int | None) -> None:
    expectations.send(job.uid, level)
    expectations.land(job, level, None if rev is None else WriteConfirmation(mark=str(rev), rev=rev), 0.0)


def test_a_confirmed_level_counts_until_the_state_shows_it() -> None:
    expectations = Expectations()
    write(expectations, seen(0, 1), 7, 2)
    assert expectations.level_of(seen(0, 1)) == 7
    assert expectations.pending() == ["team-a/x"]
    assert expectations.see(seen(7, 2), seen(0, 1), 0.0) is LevelVerdict.EXPECTED
    assert expectations.level_of(seen(7, 2)) == 7
    assert expectations.pending() == []


def test_a_state_between_two_writes_is_no_drift_and_shows_nothing_old() -> None:
    expectations = Expectations()
    write(expectations, seen(0, 1), 7, 2)
    write(expectations, seen(0, 1), 9, 3)
    assert expectations.see(seen(7, 2), seen(0, 1), 0.0) is LevelVerdict.EXPECTED
    assert expectations.level_of(seen(7, 2)) == 9
    assert expectations.see(seen(9, 3), seen(7, 2), 0.0) is LevelVerdict.EXPECTED


def test_a_reply_may_come_after_the_state() -> None:
    expectations = Expectations()
    expectations.send("team-a/x", 7)
    assert expectations.see(seen(7, 2), seen(0, 1), 0.0) is LevelVerdict.EXPECTED
    expectations.land(seen(7, 2), 7, WriteConfirmation(mark="2", rev=2), 0.0)
    assert expectations.pending() == []


def test_a_write_without_a_reply_may_have_landed() -> None:
    expectations = Expectations()
    expectations.send("team-a/x", 7)
    assert expectations.level_of(seen(0, 1)) == 0
    assert expectations.see(seen(7, 2), seen(0, 1), 0.0) is LevelVerdict.EXPECTED


def test_another_change_of_the_job_is_no_drift() -> None:
    expectations = Expectations()
    write(expectations, seen(0, 1), 7, 2)
    assert expectations.see(seen(7, 5), seen(0, 1), 0.0) is LevelVerdict.EXPECTED
    assert expectations.see(seen(7, 6), seen(7, 5), 0.0) is LevelVerdict.EXPECTED


def test_somebody_elses_level_is_drift_and_marks_the_next_write_as_a_repair() -> None:
    expectations = Expectations()
    write(expectations, seen(0, 1), 7, 2)
    expectations.see(seen(7, 2), seen(0, 1), 0.0)
    assert expectations.see(seen(3, 3), seen(7, 2), 0.0) is LevelVerdict.DRIFT
    assert expectations.drifted("team-a/x")
    assert not expectations.leaves_alone(seen(3, 3))
    write(expectations, seen(3, 3), 7, 4)
    assert not expectations.drifted("team-a/x")


def test_a_level_overwritten_between_our_write_and_its_sighting_is_drift() -> None:
    expectations = Expectations()
    write(expectations, seen(0, 1), 7, 2)
    assert expectations.see(seen(3, 3), seen(0, 1), 0.0) is LevelVerdict.DRIFT
    assert expectations.level_of(seen(3, 3)) == 3


def test_levels_that_we_never_wrote_are_nobodys_drift() -> None:
    expectations = Expectations()
    assert expectations.see(seen(3, 3), seen(7, 2), 0.0) is LevelVerdict.EXPECTED


def fight(expectations: Expectations, pause: float) -> list[LevelVerdict]:
    sightings, rev = [], 1
    for number in range(FIGHT_ROUNDS + 1):
        write(expectations, seen(0, rev), 7, rev + 1)
        expectations.see(seen(7, rev + 1), seen(0, rev), number * pause)
        rev += 2
        sightings.append(expectations.see(seen(0, rev), seen(7, rev - 1), number * pause))
    return sightings


def test_a_fight_ends_with_the_job_left_alone() -> None:
    expectations = Expectations()
    assert fight(expectations, 1.0) == [LevelVerdict.DRIFT] * FIGHT_ROUNDS + [LevelVerdict.FIGHT]
    assert expectations.leaves_alone(seen(0, 99))
    assert expectations.fought == {"team-a/x"}
    expectations.forget("team-a/x")
    assert not expectations.fought


def test_a_job_is_contested_from_its_first_lost_level_until_the_fight_ends_or_nobody_goes_on() -> None:
    expectations = Expectations()
    write(expectations, seen(0, 1), 7, 2)
    expectations.see(seen(7, 2), seen(0, 1), 0.0)
    assert expectations.contested(0.0) == []
    expectations.see(seen(9, 3), seen(7, 2), 1.0)
    assert expectations.contested(DOUBT_SECONDS) == ["team-a/x"]
    assert expectations.contested(DOUBT_SECONDS + 1.0) == []
    fight(expectations, 1.0)
    assert expectations.fought == {"team-a/x"}
    assert expectations.contested(0.0) == []
    expectations.end_fights(["team-a/x"])
    expectations.see(seen(9, 99), seen(7, 98), 9.0)
    assert expectations.contested(9.0) == []
    again = Expectations()
    write(again, seen(0, 1), 7, 2)
    again.see(seen(9, 3), seen(7, 2), 1.0)
    again.forget("team-a/x")
    assert again.contested(1.0) == []


def test_a_level_that_may_stand_on_a_held_job_is_no_fight_however_often_its_bridge_begins_anew() -> None:
    expectations, rev = Expectations(), 1
    taken = a_job("x", phase=Phase.HELD, epoch=1)
    for epoch in range(1, FIGHT_ROUNDS + 4):
        may_stand = msgspec.structs.replace(taken, level=1, rev=rev, epoch=epoch)
        assert expectations.see(may_stand, taken, 0.0) is LevelVerdict.EXPECTED
        write(expectations, may_stand, 0, rev + 1)
        taken = msgspec.structs.replace(may_stand, level=0, rev=rev + 1)
        assert expectations.see(taken, may_stand, 0.0) is LevelVerdict.EXPECTED
        rev += 2
    changed = msgspec.structs.replace(taken, level=5, rev=rev)
    assert expectations.see(changed, taken, 0.0) is LevelVerdict.DRIFT, "of the same writer it is one"


def test_a_fight_that_was_ended_is_over_until_there_were_as_many_rounds_again() -> None:
    expectations = Expectations()
    fight(expectations, 1.0)
    expectations.end_fights(["team-a/y"])
    assert expectations.fought == {"team-a/x"}
    expectations.end_fights(["team-a/x"])
    assert not expectations.fought
    assert not expectations.leaves_alone(seen(0, 99))
    assert fight(expectations, 1.0) == [LevelVerdict.DRIFT] * FIGHT_ROUNDS + [LevelVerdict.FIGHT]
    assert expectations.fought == {"team-a/x"}


def test_a_fight_is_over_where_our_own_level_stands_and_nobody_changes_it_any_more() -> None:
    """The other writer's last changes came so fast that our write to the first of them landed behind them all."""
    expectations = Expectations()
    write(expectations, seen(0, 1), 7, 2)
    expectations.see(seen(7, 2), seen(0, 1), 0.0)
    expectations.see(seen(-1, 3), seen(7, 2), 0.0)
    expectations.send("team-a/x", 9)
    theirs = [seen(-level, level + 2) for level in range(1, FIGHT_ROUNDS + 2)]
    for before, after in pairwise(theirs):
        expectations.see(after, before, 1.0)
    assert expectations.fought == {"team-a/x"}
    expectations.end_given_up({"team-a/x": theirs[-1]}.get, FIGHT_SECONDS + 2.0)
    assert expectations.fought == {"team-a/x"}, "their level stands"
    ours = seen(9, theirs[-1].rev + 1)
    expectations.land(theirs[-1], 9, WriteConfirmation(mark="", rev=ours.rev), 1.0)
    assert expectations.see(ours, theirs[-1], 1.0) is LevelVerdict.EXPECTED
    expectations.end_given_up({"team-a/x": ours}.get, FIGHT_SECONDS)
    assert expectations.fought == {"team-a/x"}, "for too short a time"
    by_another = msgspec.structs.replace(ours, levelled_by="kubectl")
    expectations.end_given_up({"team-a/x": by_another}.get, FIGHT_SECONDS + 2.0)
    assert expectations.fought == {"team-a/x"}, "another wrote the same"
    expectations.end_given_up({"team-a/x": ours}.get, FIGHT_SECONDS + 2.0)
    assert not expectations.fought


def test_a_fight_over_a_priority_is_over_where_the_boost_that_stands_beside_it_is_ours() -> None:
    expectations = Expectations()
    fight(expectations, 1.0)
    above_its_class = msgspec.structs.replace(seen(10**6, 99), levelled_by=LEVEL_WRITER)
    expectations.see(above_its_class, seen(0, 98), 10.0)
    expectations.end_given_up({"team-a/x": above_its_class}.get, FIGHT_SECONDS + 10.0)
    assert expectations.fought == {"team-a/x"}
    expectations.end_given_up({"team-a/x": above_its_class}.get, FIGHT_SECONDS + 11.0)
    assert not expectations.fought


def test_rare_drift_is_repaired_for_ever() -> None:
    expectations = Expectations()
    assert fight(expectations, FIGHT_SECONDS) == [LevelVerdict.DRIFT] * (FIGHT_ROUNDS + 1)
    assert not expectations.leaves_alone(seen(0, 99))


def test_a_job_said_to_wait_no_more_is_left_alone_until_its_state_says_otherwise() -> None:
    expectations = Expectations()
    write(expectations, seen(0, 1), 7, None)
    assert expectations.leaves_alone(seen(0, 1))
    assert not expectations.leaves_alone(seen(0, 2))


@pytest.mark.parametrize("rev", [2, None])
def test_with_a_new_lead_what_stands_is_taken_as_it_is(rev: int | None) -> None:
    expectations = Expectations()
    write(expectations, seen(0, 1), 7, rev)
    expectations.begin_anew()
    assert expectations.level_of(seen(0, 1)) == 0
    assert not expectations.leaves_alone(seen(0, 1))


def blind(
    expectations: Expectations, job: JobState, level: int, now: float = 0.0, *, stood: bool = False
) -> LevelVerdict:
    """A write to a frontend that can't know which revision of the state will show it."""
    expectations.send(job.uid, level)
    return expectations.land(job, level, WriteConfirmation(mark="m", stood=stood), now)


def test_without_revisions_the_level_itself_shows_that_a_write_was_seen() -> None:
    expectations = Expectations()
    blind(expectations, seen(0, 1), 7)
    assert expectations.level_of(seen(0, 1)) == 7
    # Something else of the job changed before: the write is still on its way here.
    assert expectations.see(seen(0, 2), seen(0, 1), 0.1) is LevelVerdict.EXPECTED
    assert expectations.level_of(seen(0, 2)) == 7
    assert expectations.see(seen(7, 3), seen(0, 2), 0.2) is LevelVerdict.EXPECTED
    assert expectations.pending() == []


def test_without_revisions_levels_are_seen_in_the_order_of_their_writing() -> None:
    expectations = Expectations()
    blind(expectations, seen(7, 1), 9)
    blind(expectations, seen(7, 1), 7)
    blind(expectations, seen(7, 1), 8)
    assert expectations.level_of(seen(7, 1)) == 8
    for rev, (before, level) in enumerate([(7, 7), (7, 9), (9, 7), (7, 8)], start=2):
        assert expectations.see(seen(level, rev), seen(before, rev - 1), 0.1) is LevelVerdict.EXPECTED
    assert expectations.pending() == []


def test_without_revisions_a_strangers_level_is_drift_at_once() -> None:
    expectations = Expectations()
    blind(expectations, seen(0, 1), 7)
    assert expectations.see(seen(3, 2), seen(0, 1), 0.1) is LevelVerdict.DRIFT
    assert expectations.level_of(seen(3, 2)) == 3
    # It was written before ours and only shown first: ours comes to light now.
    assert expectations.see(seen(7, 3), seen(3, 2), 0.2) is LevelVerdict.EXPECTED


def test_what_was_overwritten_before_anybody_saw_it_is_found_out_and_fought_over_only_so_often() -> None:
    expectations, now, sightings = Expectations(), 0.0, []
    blind(expectations, seen(0, 1), 7)
    for _ in range(FIGHT_ROUNDS + 1):
        now += DOUBT_SECONDS
        expectations.doubt(now)
        assert expectations.level_of(seen(0, 1)) == 0
        sightings.append(blind(expectations, seen(0, 1), 7, now))
    assert sightings == [LevelVerdict.DRIFT] * FIGHT_ROUNDS + [LevelVerdict.FIGHT]
    assert expectations.leaves_alone(seen(0, 9))


def test_a_watcher_that_is_late_is_no_fight() -> None:
    expectations, now = Expectations(), 0.0
    blind(expectations, seen(0, 1), 7)
    for _ in range(3 * FIGHT_ROUNDS):
        now += DOUBT_SECONDS
        expectations.doubt(now)
        assert blind(expectations, seen(0, 1), 7, now, stood=True) is LevelVerdict.EXPECTED
        assert expectations.level_of(seen(0, 1)) == 7
    assert expectations.see(seen(7, 2), seen(0, 1), now) is LevelVerdict.EXPECTED


def test_a_fight_is_noticed_without_revisions_too() -> None:
    expectations, rev, sightings = Expectations(), 1, []
    for number in range(FIGHT_ROUNDS + 1):
        blind(expectations, seen(0, rev), 7, float(number))
        expectations.see(seen(7, rev + 1), seen(0, rev), float(number))
        rev += 2
        sightings.append(expectations.see(seen(0, rev), seen(7, rev - 1), float(number)))
    assert sightings[-1] is LevelVerdict.FIGHT


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        ({"levelled_by": LEVEL_WRITER, "level": 700}, True),
        ({"levelled_by": "kubectl-annotate", "level": 700}, False),  # somebody else, and no Fairlead
        (
            {"levelled_by": LEVEL_WRITER, "level": 14, "base": 5},
            False,
        ),  # its class got another value: the boost is ours
        ({"levelled_by": LEVEL_WRITER, "level": 0}, False),  # the frontend reads no levels any more
    ],
)
def test_who_writes_levels_by_our_name_again_and_again_is_another_fairlead(
    theirs: dict[str, object], *, told: bool
) -> None:
    expectations, now = Expectations(lambda: 1000.0), 1000.0
    for number in range(FIGHT_ROUNDS):
        assert not expectations.has_rival(now), "a leader before may have one on its way"
        now += 1.0
        job = a_job(f"job-{number}", level=0)
        expectations.send(job.uid, 9)
        expectations.land(job, 9, WriteConfirmation(mark="m", rev=2), now)
        ours = msgspec.structs.replace(job, rev=2, level=9, levelled_by=LEVEL_WRITER)
        expectations.see(ours, job, now)
        expectations.see(msgspec.structs.replace(ours, rev=3, **theirs), ours, now)
    first = now - FIGHT_ROUNDS + 1
    assert expectations.has_rival(first + FIGHT_SECONDS) is told
    assert not expectations.has_rival(first + FIGHT_SECONDS + 0.5), "the first is too old to be one of many"
    expectations.begin_anew()
    assert not expectations.has_rival(now), "the leader since may have ended it"


def a_lease(*, rival: bool) -> LeaderLease:
    return LeaderLease(role="admitter", cluster="c1", replica="r1", epoch=1, renewed=0, rival=rival)


def test_who_takes_over_from_a_leader_with_a_rival_says_so_until_it_would_know_by_itself() -> None:
    expectations = Expectations(lambda: 1000.0)
    expectations.stand_by(a_lease(rival=True), 1000.0)
    expectations.stand_by(None, 1001.0)  # its lease expires
    expectations.begin_anew()
    assert expectations.has_rival(1002.0)
    assert not expectations.has_rival(1000.0 + FIGHT_SECONDS)
    expectations.stand_by(a_lease(rival=True), 2000.0)
    expectations.stand_by(a_lease(rival=False), 2001.0)
    assert not expectations.has_rival(2002.0), "the leader has none any more"


def test_levels_of_others_are_noted_and_our_own_are_not() -> None:
    now = 1000.0
    expectations = Expectations(lambda: now)
    job = a_job(level=0)
    lifted: JobState = msgspec.structs.replace(job, rev=2, level=500)
    expectations.see(lifted, None, now)
    assert expectations.foreign.found == {}, "before the lead nobody is sure"
    expectations.begin_anew()
    expectations.see(lifted, None, now + 1)
    assert expectations.foreign.found == {}, "the leader before may have written it"
    now += UNSURE_SECONDS
    ours = a_job("ours", level=0)
    expectations.send(ours.uid, 9)
    expectations.land(ours, 9, WriteConfirmation(mark="m", rev=2), now)
    expectations.see(msgspec.structs.replace(ours, rev=2, level=9), ours, now)
    expectations.see(lifted, lifted, now)
    assert expectations.foreign.found == {}, "nothing changed"
    expectations.see(lifted, job, now)
    theirs = msgspec.structs.replace(ours, rev=3, level=700)
    expectations.see(theirs, ours, now)
    assert expectations.foreign.found == {job.uid: lifted, ours.uid: theirs}
    theirs, before = msgspec.structs.replace(theirs, rev=4, level=800), theirs
    expectations.see(theirs, before, now)
    assert expectations.foreign.found == {job.uid: lifted, ours.uid: theirs}
    expectations.forget(job.uid)
    assert expectations.foreign.found == {ours.uid: theirs}
    expectations.begin_anew()
    assert expectations.foreign.found == {}


def test_where_the_frontend_says_who_wrote_a_level_it_is_known_from_the_first_moment_of_a_lead() -> None:
    expectations = Expectations(lambda: 1000.0)
    expectations.begin_anew()
    theirs = a_job("theirs", level=500, levelled_by="kubectl-annotate")
    ours = a_job("ours", level=7, levelled_by=LEVEL_WRITER)
    unsaid = a_job("unsaid", level=9)
    for job in (theirs, ours, unsaid):
        expectations.see(job, None, 1001.0)
    assert expectations.foreign.found == {theirs.uid: theirs}
