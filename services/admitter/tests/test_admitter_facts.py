"""Facts of the cluster, kept change by change, against what a look at everything would tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts import subjects
from fairlead_contracts.frontend.capabilities import Capabilities, TieRule
from fairlead_contracts.messages.state import JobState, Phase, QueueState, State, subject_of
from fairlead_testkit.inputs.builders import NOW, a_job, a_mark, a_pool, a_queue, a_tenant_state


def waiting_in(facts: ClusterFacts, queue: str = "main") -> int:
    """Number of jobs that wait in the queue, by its indexes."""
    return sum(len(ties) for queued in facts.queued(queue).values() for ties in queued.waiting.values())


QUEUE = subjects.state("c1", "queue", "main")


def test_a_job_that_starts_is_admitted_and_leaves_the_queue() -> None:
    facts = ClusterFacts("c1")
    waiting = a_job("x")
    facts.apply({subject_of(waiting): waiting})
    assert waiting_in(facts) == 1
    running = a_job("x", phase=Phase.RUNNING, rev=2)
    (change,) = facts.apply({subject_of(running): running})
    assert change.admitted
    assert waiting_in(facts) == 0
    assert facts.job("team-a/x") is running


def test_a_job_of_the_same_name_is_another_job() -> None:
    facts = ClusterFacts("c1")
    first = a_job("x")
    second = a_job("x", uid="other")
    facts.apply({subject_of(first): first})
    changes = facts.apply({subject_of(second): second})
    assert [(change.before, change.after) for change in changes] == [(first, None), (None, second)]
    assert facts.job("team-a/x") is None
    assert waiting_in(facts) == 1


def test_a_scope_goes_through_the_queue_of_its_tenant_state() -> None:
    facts = ClusterFacts("c1")
    assert not facts.entries("team-a")
    facts.apply({"t": a_tenant_state(), "p": a_pool(), "m": a_mark(), QUEUE: a_queue()})
    assert [facts.mark] == [a_mark()]
    assert facts.entries("team-a") == {"team-a": "main"}
    assert facts.pools["gpu"].capacity
    facts.apply({"t": None, "p": None, "m": None, QUEUE: None})
    assert [facts.mark] == [None]
    assert not facts.entries("team-a")
    assert not facts.queues
    assert not facts.pools


def test_jobs_are_sorted_anew_when_the_default_level_of_their_queue_becomes_known() -> None:
    facts = ClusterFacts("c1")
    labelled, plain = a_job("l", level=0), a_job("p", level=50)
    facts.apply({subject_of(labelled): labelled, subject_of(plain): plain})
    facts.apply({QUEUE: a_queue(default_level=50)})
    assert list(facts.moved("main")) == [labelled.uid]
    assert waiting_in(facts) == 2


@pytest.mark.parametrize("tombstone_first", [True, False])
def test_a_job_whose_account_changes_is_still_the_same_job(tombstone_first: bool) -> None:
    facts = ClusterFacts("c1")
    before = a_job("x", uid="u", level=5)
    after = a_job("x", uid="u", scope="team-b", level=5, rev=2)
    facts.apply({subject_of(before): before})
    steps: list[dict[str, State | None]] = [{subject_of(before): None}, {subject_of(after): after}]
    changes = [facts.apply(step) for step in (steps if tombstone_first else reversed(steps))]
    if not tombstone_first:
        assert [(change.before, change.after) for change in changes[0]] == [(before, after)]
        assert changes[1] == []
    assert facts.job("u") is after
    assert waiting_in(facts) == 1
    assert list(facts.moved("main")) == ["u"]
    facts.apply({subject_of(after): None})
    assert facts.job("u") is None
    assert waiting_in(facts) == 0


def test_of_two_subjects_of_one_job_the_newer_word_counts_and_the_older_stands_in_for_it() -> None:
    facts = ClusterFacts("c1")
    newer, older = a_job("x", uid="u", rev=2), a_job("x", uid="u", scope="team-b", rev=1)
    facts.apply({subject_of(newer): newer, subject_of(older): older})
    assert facts.job("u") is newer
    (change,) = facts.apply({subject_of(newer): None})
    assert (change.before, change.after) == (newer, older)
    assert waiting_in(facts) == 1


def test_jobs_stand_in_line_by_their_queues_own_rule_whichever_is_known_first() -> None:
    """Numbers of jobs compare as numbers where the frontend says so."""
    jobs = [a_job(name, uid=f"u{name}", queue_time=NOW) for name in ("10", "9", "9_2")]
    queue = a_queue(frontend="other", capabilities=Capabilities(ties=TieRule.JOB_NUMBER))

    def in_line(facts: ClusterFacts) -> list[str]:
        return [uid for _, uid in facts.queued("main")[""].waiting[0].in_order()]

    before, after = ClusterFacts("c1"), ClusterFacts("c1")
    for facts in (before, after):
        states: list[JobState | QueueState] = [*jobs, queue] if facts is before else [queue, *jobs]
        for state in states:
            facts.apply({subject_of(state): state})
        assert in_line(facts) == ["u9_2", "u9", "u10"]
    before.apply({subject_of(queue): a_queue(frontend="other")})
    assert in_line(before) == ["u10", "u9", "u9_2"]


STATES = st.lists(
    st.tuples(
        st.integers(0, 7),  # which job
        st.sampled_from([None, Phase.WAITING, Phase.HELD, Phase.RUNNING]),
        st.sampled_from([0, 0, 5, 9]),  # level
        st.integers(0, 3),  # queue time
        st.sampled_from(["main", "other"]),
    ),
    max_size=40,
)


@given(
    STATES, st.lists(st.dictionaries(st.integers(0, 7), st.sampled_from(["urgent", "normal"])), max_size=3)
)
def test_the_kept_indexes_equal_a_look_at_everything(
    steps: list[tuple[int, Phase | None, int, int, str]], policies: list[dict[int, str]]
) -> None:
    facts = ClusterFacts("c1")
    truth: dict[str, JobState] = {}
    classes: dict[str, str] = {}

    def class_of(job: JobState) -> str:
        return classes.get(job.id, "normal")

    facts.classify(class_of)
    for turn, (number, phase, level, time, queue) in enumerate(steps):
        if policies and turn % 10 == 9:
            classes = {f"j{number}": job_class for number, job_class in policies.pop().items()}
            facts.classify(class_of)
        subject = subject_of(a_job(f"j{number}"))
        job: State | None = None
        if phase is None:
            truth.pop(subject, None)
        else:
            job = truth[subject] = a_job(
                f"j{number}", phase=phase, level=level, queue_time=NOW + time, queue=queue
            )
        facts.apply({subject: job})
    for queue in ("main", "other"):
        here = [job for job in truth.values() if job.queue == queue and job.phase is not Phase.RUNNING]
        assert set(facts.moved(queue)) == {job.uid for job in here if job.level}
        kept = [
            (job_class, level, tie)
            for job_class, queued in facts.queued(queue).items()
            for level, ties in queued.waiting.items()
            for tie, _ in ties.in_order()
        ]
        waiting = [job for job in here if job.phase is Phase.WAITING]
        assert sorted(kept) == sorted(
            (class_of(job), job.level, (job.queue_time, job.uid)) for job in waiting
        )
        for job_class, queued in facts.queued(queue).items():
            above = [job for job in here if job.level > 5 and class_of(job) == job_class]
            assert sorted(queued.above(5)) == sorted(job.uid for job in above)
            assert all(facts.job_class(job.uid) == job_class for job in above)
