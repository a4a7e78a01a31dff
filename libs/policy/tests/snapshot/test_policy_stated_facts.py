"""Facts that clusters state: step by step they are what a look at everything would tell, and each change is told."""

import random
from collections.abc import Iterator, Mapping

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.messages.state import JobArray, JobState, Phase, State, subject_of
from fairlead_contracts.policyfile.document import Pool
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.stated_facts import ChargedJob, FactsChange, StatedFacts
from fairlead_testkit.inputs.builders import (
    NOW,
    a_class,
    a_document,
    a_job,
    a_mark,
    a_node,
    a_pool,
    a_queue,
    a_tenant_state,
)
from fairlead_testkit.inputs.cases import cases

CLUSTERS = ("c1", "c2")
SHARED = Pool(name="same", members=["c1/gpu", "c2/gpu"], hardware="shared")
RULES = Rulebook(a_document(pools=[SHARED]), 1)
JOINED = Rulebook(a_document(pools=[Pool(name="all", members=["c1/gpu", "c2/gpu"])]), 2)


def any_state(dice: random.Random) -> State:
    cluster, pool = dice.choice(CLUSTERS), dice.choice(["gpu", "cpu"])
    objects: list[State] = [
        a_queue(cluster=cluster, name=dice.choice(["main", "side"]), pool=pool),
        a_pool(cluster=cluster, name=pool),
        a_mark(cluster=cluster, incarnation=dice.choice(["i1", "i2"])),
        a_node(cluster=cluster, name=dice.choice(["n1", "n2"])),
        a_tenant_state(cluster=cluster, scope=dice.choice(["team-a", "team-b"])),
        a_class(cluster=cluster, value=dice.randrange(3)),
    ]
    return dice.choice(objects) if dice.random() < 0.4 else any_job(dice, cluster)


def any_job(dice: random.Random, cluster: str) -> JobState:
    number = dice.randrange(4)
    return a_job(
        f"j{number}",
        cluster=cluster,
        uid=f"{cluster}-{number}",
        scope=dice.choice(["team-a", "team-a", "team-b"]),
        rev=dice.randint(1, 9),
        queue=dice.choice(["main", "main", "side"]),
        phase=dice.choice([Phase.WAITING, Phase.RUNNING, Phase.RUNNING, Phase.HELD, Phase.ENDED]),
        level=dice.choice([0, 7]),
        array=dice.choice([None, None, JobArray(tasks=9, window=[0, 3])]),
        carries=dice.choice([None, "c1-1", "c2-2", "c1-3_0000000003"]),
    )


def batches(dice: random.Random) -> Iterator[dict[str, State | None]]:
    known: dict[str, None] = {}
    for _ in range(dice.randint(1, 12)):
        come = {subject_of(one): one for one in (any_state(dice) for _ in range(dice.randint(1, 6)))}
        gone = dict.fromkeys(dice.sample(list(known), min(len(known), dice.choice([0, 0, 1, 3]))))
        known |= dict.fromkeys(come)
        yield {**come, **gone}


class FactsReader:
    """A reader that keeps up by what it is told of changes alone."""

    def __init__(self) -> None:
        self.facts = StatedFacts(RULES)
        self.charged: dict[str, ChargedJob] = {}
        self.jobs: dict[str, JobState] = {}
        self.stated: dict[str, State] = {}

    def hear(self, batch: Mapping[str, State | None]) -> None:
        for change in self.facts.learning(batch):
            self._follow(change)

    def adopt(self, rulebook: Rulebook | None) -> None:
        self.facts.adopt(rulebook)
        self.charged = charged_of(self.facts)

    def _follow(self, change: FactsChange) -> None:
        for subject, before, after in change.statements:
            assert self.stated.pop(subject, None) == before
            if after is not None:
                self.stated[subject] = after
        for before, after in change.jobs:
            if before is not None:
                assert self.jobs.pop(before.uid) == before
            if after is not None:
                self.jobs[after.uid] = after
        for uid in change.recharged:
            self.charged.pop(uid, None)
            job = self.facts.jobs.get(uid)
            found = None if job is None else self.facts.charged(job)
            if found is not None:
                self.charged[uid] = found


def charged_of(facts: StatedFacts) -> dict[str, ChargedJob]:
    return {one.job.uid: one for one in map(facts.charged, facts.jobs) if one is not None}


def where(charged: Mapping[str, ChargedJob]) -> dict[str, tuple[str, str, str]]:
    """The pool, the part of it, and the tenant that each job counts for; queues say more than is told as a change."""
    return {uid: (one.pool, one.queue.pool, one.tenant) for uid, one in charged.items()}


@settings(max_examples=cases(), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_any_sequence_of_changes_equals_facts_learned_from_what_stands(seed: int) -> None:
    dice, reader = random.Random(seed), FactsReader()
    standing: dict[str, State] = {}
    for batch in batches(dice):
        if dice.random() < 0.1:
            reader.adopt(dice.choice([RULES, JOINED, None]))
        reader.hear(batch)
        for subject, state in batch.items():
            standing.pop(subject, None)
            if state is not None:
                standing[subject] = state
    facts, scratch = reader.facts, StatedFacts(reader.facts.rulebook)
    scratch.learn(dict(reversed(standing.items())))
    assert reader.stated == standing
    assert reader.jobs == {job.uid: job for job in facts.jobs} == {job.uid: job for job in scratch.jobs}
    assert where(reader.charged) == where(charged_of(facts)) == where(charged_of(scratch))
    assert facts.shapes == scratch.shapes
    assert facts.scopes() == scratch.scopes()
    for incarnation in ("i1", "i2"):
        assert facts.confirmed(incarnation) == scratch.confirmed(incarnation)
    for cluster in CLUSTERS:
        assert vars(facts.cluster(cluster)) == vars(scratch.cluster(cluster))
        for queue in facts.cluster(cluster).queues.values():
            here = [job.uid for job in facts.jobs if (job.cluster, job.queue) == (cluster, queue.name)]
            assert sorted(job.uid for job in facts.jobs_in(queue)) == sorted(here)


def shared_hardware(*jobs: JobState) -> StatedFacts:
    """Two clusters with the same machines, and these jobs."""
    objects: list[State] = [a_pool(cluster=name) for name in CLUSTERS]
    objects += [a_queue(cluster=name) for name in CLUSTERS]
    objects.append(a_queue(cluster="c2", name="side", pool="cpu"))
    facts = StatedFacts(RULES)
    facts.learn({subject_of(one): one for one in [*objects, *jobs]})
    return facts


def test_machines_of_two_pools_of_one_cluster_count_once_where_the_pools_are_joined() -> None:
    rules = Rulebook(a_document(pools=[Pool(name="all", members=["c1/gpu", "c1/rush"])]), 1)
    facts, common = StatedFacts(rules), {"gpu+rush": {"gpu": 6}}
    pools = [
        a_pool(name="gpu", capacity={"gpu": 10, "cpu": 4}, common=common),
        a_pool(name="rush", capacity={"gpu": 8}, common=common),
    ]
    facts.learn({subject_of(one): one for one in pools})
    assert facts.shapes["all"].capacity == {"cpu": 4, "gpu": 12}


CARRIED = a_job("run", uid="run", phase=Phase.RUNNING)


def a_pod(uid: str = "pod", **changes: object) -> JobState:
    """A job of the other cluster that says it carries that one out."""
    pod = a_job(uid, uid=uid, cluster="c2", phase=Phase.RUNNING, carries="run")
    return msgspec.structs.replace(pod, **changes)


def test_a_carrier_counts_by_itself_again_once_the_job_that_it_carries_out_is_over() -> None:
    facts = shared_hardware(CARRIED, a_pod())
    assert charged_of(facts).keys() == {"run"}
    [change] = facts.learning({subject_of(CARRIED): None})
    assert set(change.recharged) == {"run", "pod"}
    assert where(charged_of(facts)) == {"pod": ("same", "gpu", "team-a")}


def test_of_two_that_say_they_carry_one_job_out_the_first_by_uid_counts_as_it() -> None:
    facts, first = shared_hardware(CARRIED, a_pod("b")), a_pod("a")
    assert charged_of(facts).keys() == {"run"}
    [change] = facts.learning({subject_of(first): first})
    assert charged_of(facts).keys() == {"run", "b"}
    assert "b" in change.recharged


@pytest.mark.parametrize(
    ("carrier", "phase"),
    [
        (a_pod(scope="team-b"), Phase.RUNNING),
        (a_pod(cluster="c1"), Phase.RUNNING),
        (a_pod(), Phase.WAITING),
        (a_pod(), Phase.ENDED),
        (a_pod(carries="somebody"), Phase.RUNNING),
        (a_pod(queue="side"), Phase.RUNNING),
    ],
    ids=["another-tenant", "the-same-cluster", "it-waits", "it-ended", "unknown", "another-pool"],
)
def test_who_only_says_that_it_carries_a_job_out_counts_by_itself(carrier: JobState, phase: Phase) -> None:
    facts = shared_hardware(msgspec.structs.replace(CARRIED, phase=phase), carrier)
    assert "pod" in charged_of(facts)


def test_where_machines_are_not_shared_a_carrier_counts_beside_the_job() -> None:
    facts = shared_hardware(CARRIED, a_pod())
    facts.adopt(JOINED)
    assert charged_of(facts).keys() == {"run", "pod"}


def test_a_queue_that_leads_elsewhere_has_its_jobs_and_their_carriers_charged_anew() -> None:
    facts = shared_hardware(CARRIED, a_pod(), a_job("other", cluster="c2", uid="other"))
    moved = a_queue(pool="cpu")
    shaped, *rest = facts.learning({subject_of(moved): moved})
    assert shaped.pools is not None
    assert not shaped.pools.new_queues
    assert [uid for change in rest for uid in change.recharged] == ["run", "pod"]
    assert where(charged_of(facts))["pod"] == ("same", "gpu", "team-a")


def test_what_is_told_again_changes_nothing() -> None:
    job = a_job("one", submitted=NOW)
    facts = shared_hardware(job)
    assert list(facts.learning({subject_of(job): job})) == [FactsChange()]


def test_jobs_find_a_queue_that_is_told_after_them() -> None:
    job, queue = a_job("one"), a_queue()
    facts = StatedFacts(RULES)
    *_, last = facts.learning({subject_of(job): job, subject_of(queue): queue})
    assert last.recharged
    assert where(charged_of(facts)) == {job.uid: ("same", "gpu", "team-a")}


@pytest.mark.parametrize("phase", [Phase.HELD, Phase.ENDED])
def test_who_neither_waits_nor_runs_counts_nowhere(phase: Phase) -> None:
    assert charged_of(shared_hardware(a_job("one", phase=phase))) == {}


def test_without_a_policy_no_job_counts_and_there_are_no_pools() -> None:
    facts = shared_hardware(a_job("one"))
    facts.adopt(None)
    assert (charged_of(facts), dict(facts.shapes), facts.leads_to("c1", "main")) == ({}, {}, None)
