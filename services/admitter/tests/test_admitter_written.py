"""The trail of writes: what is overlaid, what is drift, what is a fight."""

import msgspec
import pytest

from fairlead_admitter.observe.expectations import (
    DOUBT_SECONDS,
    FIGHT_ROUNDS,
    FIGHT_SECONDS,
    Landed,
    Sighting,
    Written,
)
from fairlead_admitter.observe.foreign_levels import UNSURE_SECONDS
from fairlead_contracts.messages.state import JobState
from fairlead_testkit.builders import a_job


def seen(level: int, rev: int) -> JobState:
    return a_job("x", level=level, rev=rev)


def write(written: Written, job: JobState, level: int, rev: int | None) -> None:
    written.send(job.uid, level)
    written.land(job, level, None if rev is None else Landed(mark=str(rev), rev=rev), 0.0)


def test_a_confirmed_level_counts_until_the_state_shows_it() -> None:
    written = Written()
    write(written, seen(0, 1), 7, 2)
    assert written.level_of(seen(0, 1)) == 7
    assert written.pending() == ["team-a/x"]
    assert written.see(seen(7, 2), seen(0, 1), 0.0) is Sighting.EXPECTED
    assert written.level_of(seen(7, 2)) == 7
    assert written.pending() == []


def test_a_state_between_two_writes_is_no_drift_and_shows_nothing_old() -> None:
    written = Written()
    write(written, seen(0, 1), 7, 2)
    write(written, seen(0, 1), 9, 3)
    assert written.see(seen(7, 2), seen(0, 1), 0.0) is Sighting.EXPECTED
    assert written.level_of(seen(7, 2)) == 9
    assert written.see(seen(9, 3), seen(7, 2), 0.0) is Sighting.EXPECTED


def test_a_reply_may_come_after_the_state() -> None:
    written = Written()
    written.send("team-a/x", 7)
    assert written.see(seen(7, 2), seen(0, 1), 0.0) is Sighting.EXPECTED
    written.land(seen(7, 2), 7, Landed(mark="2", rev=2), 0.0)
    assert written.pending() == []


def test_a_write_without_a_reply_may_have_landed() -> None:
    written = Written()
    written.send("team-a/x", 7)
    assert written.level_of(seen(0, 1)) == 0
    assert written.see(seen(7, 2), seen(0, 1), 0.0) is Sighting.EXPECTED


def test_another_change_of_the_job_is_no_drift() -> None:
    written = Written()
    write(written, seen(0, 1), 7, 2)
    assert written.see(seen(7, 5), seen(0, 1), 0.0) is Sighting.EXPECTED
    assert written.see(seen(7, 6), seen(7, 5), 0.0) is Sighting.EXPECTED


def test_somebody_elses_level_is_drift_and_marks_the_next_write_as_a_repair() -> None:
    written = Written()
    write(written, seen(0, 1), 7, 2)
    written.see(seen(7, 2), seen(0, 1), 0.0)
    assert written.see(seen(3, 3), seen(7, 2), 0.0) is Sighting.DRIFT
    assert written.drifted("team-a/x")
    assert not written.leaves_alone(seen(3, 3))
    write(written, seen(3, 3), 7, 4)
    assert not written.drifted("team-a/x")


def test_a_level_overwritten_between_our_write_and_its_sighting_is_drift() -> None:
    written = Written()
    write(written, seen(0, 1), 7, 2)
    assert written.see(seen(3, 3), seen(0, 1), 0.0) is Sighting.DRIFT
    assert written.level_of(seen(3, 3)) == 3


def test_levels_that_we_never_wrote_are_nobodys_drift() -> None:
    written = Written()
    assert written.see(seen(3, 3), seen(7, 2), 0.0) is Sighting.EXPECTED


def fight(written: Written, pause: float) -> list[Sighting]:
    sightings, rev = [], 1
    for number in range(FIGHT_ROUNDS + 1):
        write(written, seen(0, rev), 7, rev + 1)
        written.see(seen(7, rev + 1), seen(0, rev), number * pause)
        rev += 2
        sightings.append(written.see(seen(0, rev), seen(7, rev - 1), number * pause))
    return sightings


def test_a_fight_ends_with_the_job_left_alone() -> None:
    written = Written()
    assert fight(written, 1.0) == [Sighting.DRIFT] * FIGHT_ROUNDS + [Sighting.FIGHT]
    assert written.leaves_alone(seen(0, 99))
    assert written.fights == 1
    written.forget("team-a/x")
    assert written.fights == 0


def test_rare_drift_is_repaired_for_ever() -> None:
    written = Written()
    assert fight(written, FIGHT_SECONDS) == [Sighting.DRIFT] * (FIGHT_ROUNDS + 1)
    assert not written.leaves_alone(seen(0, 99))


def test_a_job_said_to_wait_no_more_is_left_alone_until_its_state_says_otherwise() -> None:
    written = Written()
    write(written, seen(0, 1), 7, None)
    assert written.leaves_alone(seen(0, 1))
    assert not written.leaves_alone(seen(0, 2))


@pytest.mark.parametrize("rev", [2, None])
def test_with_a_new_lead_what_stands_is_taken_as_it_is(rev: int | None) -> None:
    written = Written()
    write(written, seen(0, 1), 7, rev)
    written.begin_anew()
    assert written.level_of(seen(0, 1)) == 0
    assert not written.leaves_alone(seen(0, 1))


def blind(written: Written, job: JobState, level: int, now: float = 0.0, *, stood: bool = False) -> Sighting:
    """A write to a frontend that can't know which revision of the state will show it."""
    written.send(job.uid, level)
    return written.land(job, level, Landed(mark="m", stood=stood), now)


def test_without_revisions_the_level_itself_shows_that_a_write_was_seen() -> None:
    written = Written()
    blind(written, seen(0, 1), 7)
    assert written.level_of(seen(0, 1)) == 7
    # Something else of the job changed before: the write is still on its way here.
    assert written.see(seen(0, 2), seen(0, 1), 0.1) is Sighting.EXPECTED
    assert written.level_of(seen(0, 2)) == 7
    assert written.see(seen(7, 3), seen(0, 2), 0.2) is Sighting.EXPECTED
    assert written.pending() == []


def test_without_revisions_levels_are_seen_in_the_order_of_their_writing() -> None:
    written = Written()
    blind(written, seen(7, 1), 9)
    blind(written, seen(7, 1), 7)
    blind(written, seen(7, 1), 8)
    assert written.level_of(seen(7, 1)) == 8
    for rev, (before, level) in enumerate([(7, 7), (7, 9), (9, 7), (7, 8)], start=2):
        assert written.see(seen(level, rev), seen(before, rev - 1), 0.1) is Sighting.EXPECTED
    assert written.pending() == []


def test_without_revisions_a_strangers_level_is_drift_at_once() -> None:
    written = Written()
    blind(written, seen(0, 1), 7)
    assert written.see(seen(3, 2), seen(0, 1), 0.1) is Sighting.DRIFT
    assert written.level_of(seen(3, 2)) == 3
    # It was written before ours and only shown first: ours comes to light now.
    assert written.see(seen(7, 3), seen(3, 2), 0.2) is Sighting.EXPECTED


def test_what_was_overwritten_before_anybody_saw_it_is_found_out_and_fought_over_only_so_often() -> None:
    written, now, sightings = Written(), 0.0, []
    blind(written, seen(0, 1), 7)
    for _ in range(FIGHT_ROUNDS + 1):
        now += DOUBT_SECONDS
        written.doubt(now)
        assert written.level_of(seen(0, 1)) == 0
        sightings.append(blind(written, seen(0, 1), 7, now))
    assert sightings == [Sighting.DRIFT] * FIGHT_ROUNDS + [Sighting.FIGHT]
    assert written.leaves_alone(seen(0, 9))


def test_a_watcher_that_is_late_is_no_fight() -> None:
    written, now = Written(), 0.0
    blind(written, seen(0, 1), 7)
    for _ in range(3 * FIGHT_ROUNDS):
        now += DOUBT_SECONDS
        written.doubt(now)
        assert blind(written, seen(0, 1), 7, now, stood=True) is Sighting.EXPECTED
        assert written.level_of(seen(0, 1)) == 7
    assert written.see(seen(7, 2), seen(0, 1), now) is Sighting.EXPECTED


def test_a_fight_is_noticed_without_revisions_too() -> None:
    written, rev, sightings = Written(), 1, []
    for number in range(FIGHT_ROUNDS + 1):
        blind(written, seen(0, rev), 7, float(number))
        written.see(seen(7, rev + 1), seen(0, rev), float(number))
        rev += 2
        sightings.append(written.see(seen(0, rev), seen(7, rev - 1), float(number)))
    assert sightings[-1] is Sighting.FIGHT


def test_levels_of_others_are_noted_and_our_own_are_not() -> None:
    now = 1000.0
    written = Written(lambda: now)
    job = a_job(level=0)
    lifted: JobState = msgspec.structs.replace(job, rev=2, level=500)
    written.see(lifted, None, now)
    assert written.foreign.found == {}, "before the lead nobody is sure"
    written.begin_anew()
    written.see(lifted, None, now + 1)
    assert written.foreign.found == {}, "the leader before may have written it"
    now += UNSURE_SECONDS
    ours = a_job("ours", level=0)
    written.send(ours.uid, 9)
    written.land(ours, 9, Landed(mark="m", rev=2), now)
    written.see(msgspec.structs.replace(ours, rev=2, level=9), ours, now)
    written.see(lifted, lifted, now)
    assert written.foreign.found == {}, "nothing changed"
    written.see(lifted, job, now)
    written.see(msgspec.structs.replace(ours, rev=3, level=700), ours, now)
    assert written.foreign.found == {job.uid: 500, ours.uid: 700}
    written.forget(job.uid)
    assert written.foreign.found == {ours.uid: 700}
    written.begin_anew()
    assert written.foreign.found == {}
