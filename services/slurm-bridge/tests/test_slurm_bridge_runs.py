"""The memory of programs' ends and of their nodes, where slurmctld has forgotten them."""

from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.pods.runs import LONG_AGO, Runs
from fairlead_slurm_bridge.pods.state_timer import StateTimer
from fairlead_slurm_bridge.store import SubmissionStore
from fairlead_testkit.inputs.slurm_builders import NOON, SECOND

FIRST, SECOND_ONE = Attempt(7, 0), Attempt(7, 1)
SAME = "digest"


def runs_of(store: SubmissionStore) -> Runs:
    """The runs as a bridge has them that has just started."""
    return Runs(store, lambda: 0.0)


def test_a_program_that_has_ended_is_told_to_the_same_attempt_also_after_a_restart(
    store: SubmissionStore,
) -> None:
    runs_of(store).ended(FIRST, NOON, SAME, 3)
    runs = runs_of(store)
    assert runs.code_again(FIRST) is None, "before its prolog came again it is another question"
    assert runs.replay(FIRST, NOON, SAME)
    assert runs_of(store).code_again(FIRST) == 3


def test_a_later_attempt_is_another_run(store: SubmissionStore) -> None:
    runs = runs_of(store)
    runs.ended(FIRST, NOON, SAME, 0)
    assert not runs.replay(SECOND_ONE, NOON + SECOND, SAME), "somebody put it back into the queue"
    assert not runs.replay(FIRST, NOON + SECOND, SAME), "it was submitted later: another job got its number"
    assert not runs.replay(FIRST, NOON, "another"), "it is made from something else"


def test_an_attempt_that_slurmctld_has_gone_back_to_is_not_run(store: SubmissionStore) -> None:
    runs = runs_of(store)
    runs.ended(SECOND_ONE, NOON + SECOND, SAME, 5)
    assert runs.replay(FIRST, NOON, SAME), "it was requeued and ran, and slurmctld knows neither"
    assert runs.code_again(FIRST) == 5
    assert runs.code_again(SECOND_ONE) is None


def test_the_end_of_an_attempt_that_was_sent_back_by_mistake_is_its_own_again(store: SubmissionStore) -> None:
    runs = runs_of(store)
    runs.ended(FIRST, NOON, SAME, 5)
    runs.hand_on(FIRST, LONG_AGO)
    runs.take_back(FIRST, NOON)
    assert runs_of(store).replay(FIRST, NOON, SAME)
    assert not runs.replay(SECOND_ONE, NOON + SECOND, SAME), "somebody put it back into the queue afterwards"


def test_the_end_of_an_attempt_that_is_sent_back_is_the_next_ones(store: SubmissionStore) -> None:
    runs = runs_of(store)
    runs.ended(FIRST, NOON, SAME, 5)
    runs.hand_on(FIRST, NOON)
    assert runs_of(store).replay(Attempt(7, 4), NOON + 90 * SECOND, SAME), "whichever begins next"
    runs.hand_on(FIRST, NOON)
    assert runs.replay(SECOND_ONE, NOON + 60 * SECOND, SAME)
    assert runs.code_again(SECOND_ONE) == 5
    assert not runs.replay(Attempt(7, 2), NOON + 90 * SECOND, SAME), "once: then it is to run"


def test_a_job_that_runs_anew_has_no_end(store: SubmissionStore) -> None:
    runs = runs_of(store)
    runs.ended(FIRST, NOON, SAME, 0)
    runs.begins(7)
    assert not runs_of(store).knows(7)


def test_how_the_program_of_an_attempt_without_a_pod_has_ended(store: SubmissionStore) -> None:
    runs = runs_of(store)
    runs.ended(FIRST, NOON, SAME, 3)
    assert runs.code_of(FIRST, NOON) == 3
    assert runs.code_of(SECOND_ONE, NOON + SECOND) is None, "it was requeued: another run"
    assert runs.code_of(FIRST, NOON + SECOND) is None, "another job has got its number"
    assert runs.code_of(Attempt(8, 0), NOON) is None


def test_a_node_holds_a_job_until_slurmd_there_was_told_its_end(store: SubmissionStore) -> None:
    runs = runs_of(store)
    assert runs.held_node(FIRST, "n1") is None
    runs.starts(FIRST, "n1")
    runs.reported_in(FIRST, "n1")
    again = runs_of(store)
    found = again.held_node(FIRST, "n1")
    assert found is not None
    assert found.reported_in
    assert again.held_node(FIRST, "n2") is None
    assert again.held_node(SECOND_ONE, "n1") is None, "slurmctld ends an attempt before it begins the next"
    again.slurmd_told(7, "n1")
    assert runs_of(store).held_node(FIRST, "n1") is None


def test_a_later_attempt_waits_until_slurmd_was_told_the_end_of_one_that_was_refused(
    store: SubmissionStore,
) -> None:
    runs = runs_of(store)
    runs.starts(FIRST, "n1")
    assert not runs.slurmd_untold(FIRST, "n1"), "it is its own"
    runs.refused(FIRST, "n1")
    again = runs_of(store)
    assert again.slurmd_untold(SECOND_ONE, "n1")
    assert not again.slurmd_untold(SECOND_ONE, "n2")
    again.slurmd_told(7, "n1")
    again.refused(FIRST, "n1")
    assert not runs_of(store).slurmd_untold(SECOND_ONE, "n1"), "it was told while the program was handed on"


def test_a_job_rests_until_the_second_in_which_slurmd_was_told_its_end_is_over(
    store: SubmissionStore,
) -> None:
    now = [100.0]
    runs = Runs(store, lambda: now[0])
    assert runs.rest_seconds(7) == 0.0
    runs.slurmd_told(7, "n1")
    assert (runs.rest_seconds(7), runs.rest_seconds(8)) == (1.5, 0.0)
    now[0] = 40.0
    assert runs.rest_seconds(7) == 1.5, "a clock that was set back stops no job"
    now[0] = 101.25
    assert runs.rest_seconds(7) == 0.25
    now[0] = 102.0
    assert runs.rest_seconds(7) == 0.0


def test_an_attempt_that_was_refused_lets_the_next_one_start(store: SubmissionStore) -> None:
    runs = runs_of(store)
    later = Attempt(7, 3)
    runs.starts(later, "n1")
    assert runs.held_node(SECOND_ONE, "n1") is not None
    runs.refused(SECOND_ONE, "n1")
    assert runs.held_node(SECOND_ONE, "n1") is not None, "slurmctld may be killed once more"
    assert runs.held_node(Attempt(7, 2), "n1") is None


def test_what_a_process_says_of_its_node_does_not_pile_up(store: SubmissionStore) -> None:
    runs = runs_of(store)
    for number in range(5):
        runs.reported_in(FIRST, f"made-up-{number}")
    assert [held.node for held in store.held_nodes()] == ["made-up-0"]


def test_silence_counts_only_while_it_is_looked() -> None:
    now = 0.0
    silence = StateTimer(10, lambda: now)
    assert silence.elapsed([FIRST, SECOND_ONE]) == []
    now = 11.0
    assert silence.elapsed([FIRST]) == [FIRST]
    silence.reset()  # another bridge led, and knows who asked there
    now = 30.0
    assert silence.elapsed([FIRST, SECOND_ONE]) == []
    now = 39.0
    assert silence.elapsed([SECOND_ONE]) == []
    now = 41.0
    assert silence.elapsed([FIRST, SECOND_ONE]) == [SECOND_ONE], "one of them has asked in between"
