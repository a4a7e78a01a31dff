"""Numbers of positions that are labelled, rests of a frontend, and the levels of what runs."""

from collections.abc import Callable

import msgspec
import pytest

from fairlead_admitter.apply.frontend_backoff import FrontendBackoff
from fairlead_admitter.decide.pace import (
    ANSWERS,
    CROWDED_PART,
    LAST_WRITES,
    LATE_LEAST,
    LATE_SECONDS,
    LEAST,
    LEAST_WHERE_WOKEN,
    MANY_STARTS,
    MARGIN,
    REACTIONS_SECONDS,
    STARTS_SECONDS,
    TOGETHER_SECONDS,
    WRITES_SECONDS,
    Pace,
    window_size,
)
from fairlead_admitter.decide.protection import (
    REFUSED_SECONDS,
    STARTED_SECONDS,
    Protection,
    own_level,
    settled_by,
    top_level,
)
from fairlead_admitter.decide.steering import LevelWrite, WriteCause
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_admitter.observe.job_backoff import FIRST_SECONDS, LONGEST_SECONDS
from fairlead_contracts.base.instants import from_seconds
from fairlead_contracts.frontend.capabilities import Capabilities
from fairlead_contracts.messages.state import JobState, Phase, subject_of
from fairlead_policy.levels.bands import class_bands
from fairlead_policy.levels.class_bands import ClassBand, class_bands_of
from fairlead_policy.snapshot.stated_jobs import JobChange
from fairlead_testkit.inputs.builders import a_job, a_queue
from fairlead_testkit.timing.in_hand import ManualClock

QUICK_SECONDS = Capabilities().quick_answer_seconds


@pytest.mark.parametrize(
    ("starts", "reaction", "size"),
    [
        (0, 1.0, LEAST),
        (10, 1.0, LEAST + MARGIN),
        (400, 0.1, LEAST + 20),
        (400, 1.0, 32),
    ],
)
def test_as_many_are_labelled_as_could_start_before_the_next_reaction(
    starts: int, reaction: float, size: int
) -> None:
    assert window_size(starts, reaction, 32) == size


def _no_wait() -> float:
    return 0.0


def test_starts_are_counted_by_pool_and_all_together() -> None:
    clock = ManualClock()
    pace = Pace(clock, _no_wait)
    pace.started("gpu", 2)
    pace.started("cpu", MANY_STARTS)
    assert (pace.starts_in("gpu"), pace.starts_in("cpu"), pace.starts_in("other")) == (2, MANY_STARTS, 0)
    assert pace.starts() == 2 + MANY_STARTS
    clock.now += STARTS_SECONDS
    assert (pace.starts_in("gpu"), pace.starts()) == (0, 0)


def test_turns_rest_for_two_answers_of_a_slow_frontend_where_many_jobs_start() -> None:
    clock = ManualClock()
    pace = Pace(clock, _no_wait)
    pace.started("gpu", MANY_STARTS - 1)
    pace.arrived(in_time=1, late=0, took=[2 * QUICK_SECONDS])
    assert pace.late_by() == 0.0, "few start"
    pace.started("cpu", 1)
    assert pace.late_by() == ANSWERS * 2 * QUICK_SECONDS
    pace.arrived(in_time=0, late=0, took=[10.0, 10.0])
    assert pace.late_by() == LATE_SECONDS, "no longer"
    pace.arrived(in_time=0, late=0, took=[QUICK_SECONDS] * LAST_WRITES)
    assert pace.late_by() == 0.0, "it answers quickly"
    pace.arrived(in_time=0, late=0, took=[1.0] * LAST_WRITES)
    clock.now += STARTS_SECONDS
    assert pace.late_by() == 0.0, "they started long ago"


def test_turns_rest_on_a_machine_without_cpu_to_spare_where_nothing_may_be_written() -> None:
    clock, wait = ManualClock(), [CROWDED_PART]
    pace = Pace(clock, lambda: wait[0])
    pace.started("gpu", MANY_STARTS - 1)
    pace.withhold("gpu", withheld=True)
    assert pace.late_by() == 0.0, "few start"
    pace.started("cpu", 1)
    assert pace.late_by() == 0.0, "the other pool's answers tell"
    pace.withhold("cpu", withheld=True)
    assert pace.late_by() == LATE_SECONDS
    pace.arrived(in_time=LAST_WRITES, late=0, took=[QUICK_SECONDS])
    assert pace.late_by() == LATE_SECONDS, "what was answered before says nothing of now"
    wait[0] -= 0.1
    assert pace.late_by() == 0.0, "it has a CPU when it wants one"
    wait[0] += 0.1
    pace.withhold("cpu", withheld=False)
    assert pace.late_by() == 0.0
    pace.keep(["gpu"])
    pace.started("gpu", 1)
    assert pace.late_by() == LATE_SECONDS, "the pool that is written is gone"


def test_turns_rest_where_the_last_levels_come_too_late() -> None:
    clock = ManualClock()
    pace = Pace(clock, _no_wait)
    slow = [2 * QUICK_SECONDS] * LAST_WRITES
    assert pace.late_by() == 0.0, "nothing was written"
    pace.arrived(in_time=100, late=LATE_LEAST - 1, took=slow)
    assert pace.late_by() == 0.0, "few came too late"
    pace.arrived(in_time=0, late=1, took=[])
    assert pace.late_by() == LATE_SECONDS, "those before the last few say nothing"
    pace.arrived(in_time=LAST_WRITES - LATE_LEAST + 1, late=0, took=[])
    assert pace.late_by() == 0.0, "nearly all of the last came in time"
    pace.arrived(in_time=0, late=LATE_LEAST, took=[])
    assert pace.late_by() == LATE_SECONDS
    pace.arrived(in_time=0, late=LATE_LEAST, took=[])
    assert pace.late_by() == 2 * LATE_SECONDS, "half of them are late"
    pace.arrived(in_time=0, late=LAST_WRITES, took=[])
    assert pace.late_by() == LAST_WRITES / LATE_LEAST * LATE_SECONDS, "not one came in time"
    pace.arrived(in_time=1, late=0, took=[])
    assert pace.late_by() < LAST_WRITES / LATE_LEAST * LATE_SECONDS
    clock.now = WRITES_SECONDS
    assert pace.late_by() == 0.0, "that is long ago"


def test_a_frontend_that_answers_quickly_is_spared_nothing() -> None:
    pace = Pace(lambda: 0.0, _no_wait)
    pace.reacted(10.0)
    pace.arrived(in_time=0, late=2 * LATE_LEAST, took=[QUICK_SECONDS] * 9 + [5.0] * 7)
    assert pace.late_by() == 0.0, "however long our own reaction takes"
    pace.arrived(in_time=0, late=0, took=[5.0] * 9)
    assert pace.late_by() == 2 * LATE_SECONDS


def test_when_a_frontend_answers_quickly_and_how_short_a_rest_has_to_be_is_its_own_to_say() -> None:
    pace = Pace(lambda: 0.0, _no_wait)
    pace.arrived(in_time=0, late=LATE_LEAST, took=[1.0] * LAST_WRITES)
    assert pace.late_by() == LATE_SECONDS
    pace.learn(Capabilities(retry_seconds=0.2))
    assert pace.late_by() == 0.1, "half of its own batch"
    pace.learn(Capabilities(retry_seconds=60.0))
    assert pace.late_by() == LATE_SECONDS, "no longer"
    pace.learn(Capabilities(quick_answer_seconds=1.0))
    assert pace.late_by() == 0.0


def test_where_jobs_are_woken_as_many_are_labelled_as_start_together_within_a_reaction() -> None:
    clock = ManualClock()
    pace = Pace(clock, _no_wait)
    pace.reacted(0.05)
    assert pace.size("p", 32, woken=True) == LEAST_WHERE_WOKEN
    for at in (0.0, 1.0, 2.0):
        clock.now = at
        pace.started("p", 1)
    assert pace.size("p", 32, woken=True) == 1
    for at in (20.0, 21.0, 22.0):  # two at once
        for later in (0.0, TOGETHER_SECONDS / 2):
            clock.now = at + later
            pace.started("p", 1)
    assert pace.size("p", 32, woken=True) == 2
    assert pace.size("p", 32) == LEAST + 1
    clock.now = 30.0
    pace.started("p", 4)
    clock.now += STARTS_SECONDS - 1
    assert pace.size("p", 32, woken=True) == 4
    clock.now += 1
    assert pace.size("p", 32, woken=True) == LEAST_WHERE_WOKEN
    for _ in range(200):
        clock.now += 0.05
        pace.started("p", 1)
    assert pace.size("p", 32, woken=True) == 7 + 5


def test_a_window_never_shrinks_with_more_starts_or_slower_reactions() -> None:
    sizes = [window_size(starts, 0.2, 500) for starts in range(300)]
    assert sizes == sorted(sizes)
    sizes = [window_size(100, reaction / 10, 500) for reaction in range(100)]
    assert sizes == sorted(sizes)


def test_the_pace_of_a_pool_is_forgotten_with_time_and_with_the_pool() -> None:
    clock = ManualClock()
    pace = Pace(clock, _no_wait)
    assert pace.size("p", 32) == LEAST
    pace.started("p", 20)
    assert pace.size("p", 32) == LEAST + 10  # no reaction measured yet: one second
    for seconds in (0.1, 0.2, 9.0):  # the median: one slow reaction is nothing to plan by
        pace.reacted(seconds)
    assert pace.size("p", 32) == LEAST + 2
    assert pace.size("q", 32) == LEAST
    clock.now = STARTS_SECONDS
    assert pace.size("p", 32) == LEAST
    clock.now = REACTIONS_SECONDS
    pace.started("p", 20)
    assert pace.size("p", 32) == LEAST + 10
    assert pace.size("p", 32, woken=True) == 20 + 10
    pace.keep(["q"])
    assert pace.size("p", 32) == LEAST
    assert pace.size("p", 32, woken=True) == LEAST_WHERE_WOKEN


def test_failures_in_a_row_are_answered_with_longer_and_longer_rests() -> None:
    clock = ManualClock()
    frontend_backoff = FrontendBackoff(clock, 10.0)
    assert frontend_backoff.seconds_left == 0
    backoff = []
    for _ in range(12):
        frontend_backoff.failed("no answer")
        backoff.append(frontend_backoff.seconds_left)
        clock.now += frontend_backoff.seconds_left
    assert FIRST_SECONDS / 2 <= backoff[0] <= FIRST_SECONDS
    assert LONGEST_SECONDS / 2 <= backoff[-1] <= LONGEST_SECONDS
    assert frontend_backoff.trouble() == "levels can't be written: no answer"
    frontend_backoff.forget()
    assert (frontend_backoff.seconds_left, frontend_backoff.trouble()) == (0, None)


def test_the_frontend_may_name_the_rest_and_a_missing_right_is_said_at_once() -> None:
    clock = ManualClock()
    frontend_backoff = FrontendBackoff(clock, 10.0)
    frontend_backoff.failed("too many requests", retry_after=7.0)
    assert frontend_backoff.seconds_left == 7.0
    assert frontend_backoff.trouble() is None
    frontend_backoff.failed("may not patch workloads", forbidden=True)
    assert frontend_backoff.trouble() == "levels can't be written: may not patch workloads"
    assert (
        frontend_backoff.seconds_left <= 7.0
    )  # a server that has just started refuses everybody for a moment
    for _ in range(4):
        frontend_backoff.failed("may not patch workloads", forbidden=True)
    assert frontend_backoff.seconds_left >= LONGEST_SECONDS / 2


CLASS_BANDS = class_bands_of(
    [a_queue(bands_by_class=True)],
    class_bands(["urgent", "normal"], {"urgent": 2000}, width=1000),
    protect=True,
)


def normal(_: JobState) -> str:
    return "normal"


def lifts(protection: Protection, queue: str = "main") -> list[LevelWrite]:
    """Lifts that are written now; whoever stands at the top is remembered, as the loop does."""
    return due(protection, queue, top_level, WriteCause.PROTECT)


def due(
    protection: Protection, queue: str, target: Callable[[JobState, ClassBand], int], cause: WriteCause
) -> list[LevelWrite]:
    found = protection.due({queue}, CLASS_BANDS, normal, target, cause)
    again = protection.due({queue}, CLASS_BANDS, normal, target, cause)
    assert again == found  # deciding changes nothing
    writes, settled = found
    protection.stand(cause, settled)
    return writes


def test_a_job_gives_its_level_up_once_it_has_run_for_a_while() -> None:
    protection = Protection()
    running = a_job("a", phase=Phase.RUNNING, level=7, started=from_seconds(100))
    protection.note([JobChange(None, running)])

    def writes(started_by: float) -> list[LevelWrite]:
        found, settled = protection.due(
            {"main"}, CLASS_BANDS, normal, own_level, WriteCause.STARTED, started_by=from_seconds(started_by)
        )
        assert not settled, "it is looked at again"
        return found

    assert not writes(99)
    (write,) = writes(100)
    assert write.level == 0


def test_a_job_waits_for_that_only_where_many_start() -> None:
    now = from_seconds(100)
    assert settled_by(now, MANY_STARTS - 1) is None
    assert settled_by(now, MANY_STARTS) == now - from_seconds(STARTED_SECONDS)


def test_what_was_admitted_is_lifted_once_to_the_top_of_its_band() -> None:
    protection = Protection()
    waiting = a_job("a")
    running = a_job("a", phase=Phase.RUNNING, level=7, rev=2)
    protection.note([JobChange(None, waiting), JobChange(waiting, running)])
    (lift,) = lifts(protection)
    assert (lift.level, lift.before, lift.cause) == (1000, 7, WriteCause.PROTECT)
    assert lifts(protection, "other") == []
    protection.written([lift])
    assert lifts(protection) == []
    # Something else of the running job changes.
    protection.note([JobChange(running, a_job("a", phase=Phase.RUNNING, level=7, rev=3))])
    assert lifts(protection) == []


def test_a_new_leader_lifts_what_the_old_one_left_out_and_nothing_that_stands_at_the_top() -> None:
    facts = ClusterFacts("c1")
    jobs = [
        a_job("low", phase=Phase.RUNNING),
        a_job("top", phase=Phase.RUNNING, level=1000),
        a_job("waits"),
        a_job("gone", phase=Phase.RUNNING),
    ]
    facts.apply({subject_of(job): job for job in jobs})
    protection = Protection()
    protection.begin_anew(facts)
    protection.note([JobChange(jobs[3], None)])
    assert [lift.job.id for lift in lifts(protection)] == ["low"]


def test_what_runs_is_lifted_again_when_its_level_falls() -> None:
    protection = Protection()
    running = a_job("a", phase=Phase.RUNNING, level=7)
    lifted = a_job("a", phase=Phase.RUNNING, level=1000, rev=2)
    fallen = a_job("a", phase=Phase.RUNNING, level=0, rev=3)
    protection.note([JobChange(None, running)])
    protection.written(lifts(protection))
    protection.note([JobChange(running, lifted)])
    assert lifts(protection) == []
    protection.note([JobChange(lifted, fallen)])
    (lift,) = lifts(protection)
    assert (lift.before, lift.level) == (0, 1000)


def test_what_started_gives_its_level_up_and_stands_where_its_class_alone_puts_it() -> None:
    protection = Protection()
    jobs = [
        a_job("labelled", phase=Phase.RUNNING, level=700),
        a_job("not", phase=Phase.RUNNING),
        a_job("own", phase=Phase.RUNNING, base=30, level=700),
        a_job("ungranted", phase=Phase.RUNNING, base=2000, level=700),
        a_job("ungranted-unwritten", phase=Phase.RUNNING, base=2000, level=2000),
        a_job("behind", phase=Phase.RUNNING, base=30, level=-70),
        a_job("waits", level=700),
    ]
    protection.note([JobChange(None, job) for job in jobs])
    writes = due(protection, "main", own_level, WriteCause.STARTED)
    assert {write.job.id: write.level for write in writes} == {
        "labelled": 0,
        "own": 30,
        "ungranted": 0,
        "ungranted-unwritten": 0,
        "behind": 30,
    }
    protection.written(writes)
    assert due(protection, "main", own_level, WriteCause.STARTED) == []
    # Another policy, or another setting of a queue, wants them elsewhere: what was settled one way was not the other.
    assert len(lifts(protection)) == 5  # one stands above the top of its class


def test_what_waits_for_its_checks_gives_its_level_up_until_they_let_it_start() -> None:
    """They may put it back: by its level it would take again what it gives back."""
    protection = Protection()
    waits = a_job("a", level=700)
    not_named_yet = a_job("a", phase=Phase.RUNNING, level=700, unchecked="not admitted yet", rev=2)
    checked = msgspec.structs.replace(not_named_yet, open_checks=["nodes"], rev=3)
    protection.note([JobChange(waits, not_named_yet), JobChange(not_named_yet, checked)])
    (write,) = due(protection, "main", own_level, WriteCause.CHECKED)
    assert (write.level, write.of_running) == (0, True)
    admitted = msgspec.structs.replace(checked, unchecked="", open_checks=msgspec.UNSET, rev=4)
    protection.note([JobChange(checked, admitted)])
    assert due(protection, "main", own_level, WriteCause.CHECKED) == []


def test_our_own_check_keeps_whom_it_puts_back_out_of_the_queue_so_no_level_is_taken_away() -> None:
    protection = Protection()
    early = a_job("a", phase=Phase.RUNNING, level=700, unchecked="not admitted yet")
    protection.note(
        [JobChange(None, early), JobChange(early, msgspec.structs.replace(early, open_checks=["gang-fit"]))]
    )
    assert due(protection, "main", own_level, WriteCause.CHECKED) == []


def test_a_granted_job_keeps_its_class_while_it_runs() -> None:
    urgent = a_job("urgent", phase=Phase.RUNNING, level=2500)
    assert own_level(urgent, CLASS_BANDS[0]) == CLASS_BANDS[0].band.default == 2000


def test_a_lift_that_was_refused_is_asked_for_again_but_rarely() -> None:
    clock = ManualClock()
    protection = Protection(clock)
    jobs = [a_job(name, phase=Phase.RUNNING) for name in ("a", "b")]
    protection.note([JobChange(None, job) for job in jobs])
    protection.refused([jobs[0].uid])
    assert [lift.job.id for lift in lifts(protection)] == ["b"]
    clock.now = REFUSED_SECONDS
    assert [lift.job.id for lift in lifts(protection)] == ["a", "b"]
    protection.refused([jobs[0].uid])
    protection.note([JobChange(jobs[0], None), JobChange(None, jobs[0])])
    assert len(lifts(protection)) == 2
