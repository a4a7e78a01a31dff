"""Jobs that stand under several subjects: one statement each, whatever was heard first."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.messages.state import JobArray, JobState
from fairlead_policy.snapshot.stated_jobs import StatedJobs
from fairlead_testkit.inputs.builders import a_job

SUBJECTS = st.sampled_from(["a", "b", "c"])
UIDS = st.sampled_from(["u", "v", "u_1"])
JOBS = st.one_of(
    st.none(),
    st.builds(lambda uid, rev: a_job(uid, uid=uid, rev=rev), UIDS, st.integers(1, 3)),
    st.builds(
        lambda uid, rev, window: a_job(uid, uid=uid, rev=rev, array=JobArray(tasks=9, window=window)),
        UIDS,
        st.integers(1, 3),
        st.lists(st.sampled_from([1, 2]), max_size=3),
    ),
)


def looked_at_whole(stated: dict[str, JobState]) -> dict[str, JobState]:
    """The newest statement of each uid; of two of one stamp that of the larger subject."""
    ranked = sorted(stated.items(), key=lambda one: (one[1].stamp, one[0]))
    return {job.uid: job for _, statement in ranked for job in spoken_of(statement)}


def spoken_of(stated: JobState) -> list[JobState]:
    if stated.array is None:
        return [stated]
    return [
        msgspec.structs.replace(stated, uid=f"{stated.uid}_{task:010d}", id=f"{stated.id}_{task}", array=None)
        for task in stated.array.window
    ]


@given(st.lists(st.tuples(SUBJECTS, JOBS), max_size=12))
def test_step_by_step_the_same_statements_hold_as_in_a_look_at_all(
    steps: list[tuple[str, JobState | None]],
) -> None:
    jobs, stated = StatedJobs(), dict[str, JobState]()
    for subject, job in steps:
        before = looked_at_whole(stated)
        stated.pop(subject, None)
        if job is not None:
            stated[subject] = job
        after = looked_at_whole(stated)
        changed = jobs.replace(subject, job)
        assert changed == {
            uid: (before.get(uid), after.get(uid))
            for uid in before.keys() | after.keys()
            if before.get(uid) != after.get(uid)
        }
        assert {one.uid: one for one in jobs} == after
        assert len(jobs) == len(after)
        assert all(jobs.get(uid) == after.get(uid) for uid in ("u", "v", "u_1", "u_1_2"))
        assert all(jobs.stated(one) is stated.get(one) for one in ("a", "b", "c"))
