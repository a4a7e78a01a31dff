"""Jobs are found by their names without a look at every job, and none that a look would find is missed."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.messages.state import JobState, subject_of
from fairlead_scorer.state import name_index
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_testkit.inputs.builders import a_job
from fairlead_testkit.timing.in_hand import all_steps

_WORDS = st.sampled_from(["a", "ab", "abc", "b", "a/b", "b/a", "team", "é"])
_SCOPES = st.sampled_from(["team-a", "team-b", "a"])
_KINDS = st.sampled_from(["Job", "job.batch", "team-a/job", "RayJob"])


@st.composite
def jobs(draw: st.DrawFn) -> JobState:
    return a_job(
        draw(_WORDS),
        uid=draw(st.sampled_from(["1", "2", "3", "a", "ab"])),
        scope=draw(_SCOPES),
        owner=draw(st.none() | st.builds("Job/{}".format, _WORDS)),
        submission=draw(st.none() | _WORDS),
        rev=draw(st.integers(1, 5)),
    )


def _is_called(job: JobState, name: str) -> bool:
    of = {f"{kind}/{job.name}" for kind in ("Job", "job", "job.batch") if job.owner is not None}
    names = {job.name, job.id, job.uid, job.submission, *of} - {None}
    return name in {*names, *(f"{job.scope}/{one}" for one in names)}


def _begins(job: JobState, name: str) -> bool:
    scope, slash, rest = name.partition("/")
    return job.name.startswith(name) or bool(slash and job.scope == scope and job.name.startswith(rest))


@given(
    st.lists(st.tuples(jobs(), st.booleans()), max_size=12),
    st.lists(
        st.one_of(_WORDS, *(st.builds("{}/{}".format, first, _WORDS) for first in (_SCOPES, _KINDS))),
        max_size=6,
    ),
)
def test_what_is_found_by_a_name_is_what_a_look_at_every_job_finds(
    told: list[tuple[JobState, bool]], asked: list[str]
) -> None:
    cache = ClusterCache()
    standing: dict[str, JobState] = {}
    for job, gone in told:
        subject = subject_of(job)
        all_steps(cache.learning({subject: None if gone else job}))
        if gone:
            standing.pop(subject, None)
        else:
            standing[subject] = job
        known = [cache.facts.jobs.get(one.uid) for one in standing.values()]
        every = {one.uid: one for one in known if one is not None}
        for name in (*asked, *every):
            found = {one.uid: one for one in cache.find(name)}
            assert found == {uid: one for uid, one in every.items() if _is_called(one, name)}
            begun = {one.uid: one for one in cache.beginning(name)}
            assert begun == {uid: one for uid, one in every.items() if _begins(one, name)}


def test_names_that_came_and_went_since_the_last_look_count_as_they_are_now() -> None:
    cache = ClusterCache()
    many = [a_job(f"job-{number:04}", uid=f"u{number}", rev=number + 1) for number in range(2000)]
    for number, job in enumerate(many):
        all_steps(cache.learning({subject_of(job): job}))
        if number % 400 == 0:
            assert [one.id for one in cache.beginning(job.id)] == [job.id]
    assert len(cache.beginning("job-")) == 1000, "a hint needs no more"
    for job in many[:1990]:
        all_steps(cache.learning({subject_of(job): None}))
    assert sorted(one.id for one in cache.beginning("job-")) == [job.id for job in many[1990:]]
    assert cache.find("job-0003") == []


def test_a_name_of_slashes_is_read_a_few_times() -> None:
    assert len(name_index.readings_of("/" * 100_000)) == 5


def test_names_that_came_and_went_are_not_kept_though_nobody_asked() -> None:
    index = name_index.NameIndex()
    for number in range(3000):
        job = a_job(f"job-{number}", uid=f"u{number}")
        index.replace(None, job)
        index.replace(job, None)
    assert not index._uids.keys() | index._new.keys() | set(index._sorted)
