"""Scorer, admitter and paper read the same facts alike: any log of events ends in the same jobs, positions and use for all three."""

import random
from collections.abc import Iterator, Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from fairlead_admitter.decide.merged_order import MergedOrder, take_heads
from fairlead_admitter.observe.decision_gate import PoolHeads
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.state import JobArray, JobState, Phase, State, subject_of
from fairlead_contracts.policyfile.document import Grant, PolicyDocument, Pool, Tenant
from fairlead_contracts.snapshot.types import Snapshot
from fairlead_policy.levels.window import WindowSize
from fairlead_policy.snapshot.from_state import snapshot_of
from fairlead_policy.snapshot.levels import window_of
from fairlead_policy.snapshot.ordering import order_snapshot, orders_of
from fairlead_scorer.decide.decision import decide
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_scorer.state.pool import ScoredPool
from fairlead_testkit.inputs.builders import NOW, a_decision, a_job, a_mark, a_node, a_pool, a_queue
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.timing.in_hand import all_steps

type StateBatch = dict[str, State | None]
"""Changes by subject; None where the object is gone."""

CLUSTERS = ("c1", "c2")
AT_FIRST: StateBatch = {
    subject_of(one): one
    for cluster in CLUSTERS
    for one in (a_pool(cluster=cluster), a_queue(cluster=cluster))
}
TENANTS = [Tenant(name="team-a", weight=2.0), Tenant(name="team-b")]
CAPACITIES = [one.capacity for one in (a_pool(), a_pool(capacity={"cpu": 9000, "nvidia.com/gpu": 3000}))]
OVERRIDE = Grant(tenant="team-a", priority_override=True, by="somebody", why="a test")
DOCUMENTS = [
    PolicyDocument(
        tenants=TENANTS, pools=[Pool(name="all", members=["c1/gpu", "c2/gpu"])], unlisted_weight=1.0, shards=3
    ),
    PolicyDocument(
        tenants=TENANTS,
        pools=[Pool(name="same", members=["c1/gpu", "c2/gpu"], hardware="shared")],
        unlisted_weight=1.0,
        shards=2,
    ),
    PolicyDocument(
        tenants=TENANTS,
        unlisted_weight=1.0,
        class_mode="additive",
        class_weights={"urgent": 0.0, "approved": 100.0, "normal": 1000.0},
        grants=[OVERRIDE],
        shards=1,
    ),
]


def any_job(dice: random.Random) -> JobState:
    """A job of few: it keeps its uid when its account changes, and then stands under two subjects."""
    cluster, number = dice.choice(CLUSTERS), dice.randrange(5)
    return a_job(
        f"j{number}",
        cluster=cluster,
        uid=f"{cluster}-{number}-x",
        scope=dice.choice(["team-a", "team-b", "other"]),
        epoch=dice.randint(1, 2),
        rev=dice.randint(1, 9),
        queue=dice.choice(["main", "main", "side"]),
        phase=dice.choice([*[Phase.WAITING] * 6, *[Phase.RUNNING] * 3, Phase.HELD, Phase.ENDED]),
        gpu=dice.choice([0.5, 1, 4, 99]),
        flavorless=dice.choice([*[UNSET] * 5, True]),
        limited=dice.choice([*[UNSET] * 5, True]),
        level=dice.choice([0, 7]),
        submitted=NOW - dice.randrange(7_200_000_000),
        requested_class=dice.choice([None, "urgent"]),
        priority_override=dice.choice([None, 5]),
        queues=dice.choice([[], [], ["main", "side"]]),
        array=dice.choice([None, None, JobArray(tasks=9, window=[0, 3])]),
        carries=dice.choice([None, None, "c1-1-x", "c2-2-x", "c1-3-x_0000000003"]),
    )


def any_fact(dice: random.Random) -> State:
    cluster, pool = dice.choice(CLUSTERS), dice.choice(["gpu", "gpu", "cpu"])
    match dice.randrange(20):
        case 0:
            return a_queue(cluster=cluster, name=dice.choice(["main", "side"]), pool=pool)
        case 1:
            return a_pool(cluster=cluster, name=pool, capacity=dice.choice(CAPACITIES))
        case 2:
            return a_mark(cluster=cluster)
        case 3:
            return a_node(cluster=cluster)
    return any_job(dice)


def a_log(dice: random.Random) -> Iterator[StateBatch]:
    """A log of both clusters: what they are at first, and what then comes, changes and goes, several things at a time."""
    yield AT_FIRST
    known: list[str] = []
    for _ in range(dice.randint(1, 12)):
        batch = {subject_of(one): one for one in (any_fact(dice) for _ in range(dice.randint(1, 6)))}
        gone = dict.fromkeys(dice.sample(known, min(len(known), dice.choice([0, 0, 1, 3]))))
        known += batch
        yield {**batch, **gone}


class Readers:
    """Readers of one log, three of them, one batch after another; paper reads what stands at its end."""

    def __init__(self, document: PolicyDocument) -> None:
        self.document = document
        self.cache = ClusterCache()
        all_steps(self.cache.adopting(document, 1))
        self.admitters = {cluster: ClusterFacts(cluster) for cluster in CLUSTERS}
        self.standing: dict[str, State] = {}

    def hear(self, batch: StateBatch) -> None:
        all_steps(self.cache.learning(batch))
        for cluster, facts in self.admitters.items():
            facts.apply({subject: state for subject, state in batch.items() if f".{cluster}." in subject})
        for subject, state in batch.items():
            if state is None:
                self.standing.pop(subject, None)
            else:
                self.standing[subject] = state

    @property
    def paper(self) -> Snapshot:
        """The snapshot of what stands, told in the opposite order."""
        return snapshot_of(dict(reversed(self.standing.items())), self.document, NOW)


@pytest.mark.parametrize("document", DOCUMENTS, ids=["joined", "shared hardware", "additive"])
@settings(max_examples=cases(0.3), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_all_three_see_the_same_jobs_and_the_same_order(seed: int, document: PolicyDocument) -> None:
    readers = Readers(document)
    for batch in a_log(random.Random(seed)):
        readers.hear(batch)
    paper = readers.paper
    scored = readers.cache.pools
    for pool in order_snapshot(paper):
        assert terms(scored[pool.name].order_at(NOW).positions()) == terms(pool.positions)
    for name, order in orders_of(paper).items():
        for tenant in {*(job.tenant for job in paper.jobs), *(run.tenant for run in paper.running)}:
            assert scored[name].standings([tenant])[0].use == order.snapshot.standings([tenant])[0].use
    on_paper = {job.uid: job for job in paper.jobs}
    waiting = {one.uid: one for facts in readers.admitters.values() for one in queued(facts)}
    assert {uid: (waiting[uid].queue, waiting[uid].level) for uid in on_paper} == {
        uid: (job.queue, job.level) for uid, job in on_paper.items()
    }
    # Whoever carries out a job that runs elsewhere is no job of the pool, and is queued like any other.
    assert all(one.carries is not None for uid, one in waiting.items() if uid not in on_paper)


@pytest.mark.parametrize("document", DOCUMENTS, ids=["joined", "shared hardware", "additive"])
@settings(max_examples=cases(0.3), deadline=None)
@given(seed=st.integers(0, 2**32), window=st.integers(1, 3))
def test_paper_labels_whom_admitters_label_by_what_scorers_decide(
    seed: int, window: int, document: PolicyDocument
) -> None:
    readers = Readers(msgspec.structs.replace(document, window=window))
    for batch in a_log(random.Random(seed)):
        readers.hear(batch)
    paper = readers.paper
    jobs = {job.uid: job for job in paper.jobs}
    several = any(job.cluster for job in paper.jobs)
    for ordered in order_snapshot(paper):
        pool = readers.cache.pools[ordered.name]
        waiting = [jobs[position.uid] for position in ordered.positions]
        for cluster, facts in readers.admitters.items():
            here = [job for job in waiting if job.cluster == cluster or not several]
            if {job.uid for job in here} <= {job.uid for job in facts.queued_jobs()}:
                labelled = [job.uid for job in window_of(here, window, ordered.apart)]
                assert labelled == labelled_by(facts, pool, window)


def labelled_by(facts: ClusterFacts, pool: ScoredPool, window: int) -> list[str]:
    """Whom an admitter labels of what the scorers of a pool's shards decide."""
    contents = [decide(pool, shard, NOW) for shard in range(pool.shards)]
    decisions = [
        a_decision(pool=pool.name, basis=content.basis, queue_heads=content.queue_heads)
        for content in contents
    ]
    heads = PoolHeads(basis=pool.basis_of(0), decisions=tuple(decisions))
    merged = MergedOrder(heads, pool.rules, NOW, window)
    size, waiting = WindowSize.whole(window), heads.waiting(facts.cluster)
    found = take_heads(merged.beginning, waiting, facts, size)
    while not found.closed:
        found = take_heads(merged.deepen(), waiting, facts, size)
    return [one.job.uid for one in found.jobs if not one.job.flavorless]


def terms(positions: Sequence[Position]) -> list[tuple[str, str, str, float]]:
    """Terms of each job: whose it is, and by what it stands where it does."""
    return [(position.uid, position.tenant, position.job_class, position.key) for position in positions]


def queued(facts: ClusterFacts) -> Iterator[JobState]:
    """The jobs that wait in a queue that is stated."""
    return (job for job in facts.queued_jobs() if job.phase is Phase.WAITING and job.queue in facts.queues)


def test_a_job_under_two_accounts_is_the_newer_ones_for_all_three() -> None:
    older, newer = (
        a_job("x", uid="1", scope=scope, queue=queue, rev=rev)
        for rev, (scope, queue) in enumerate((("team-b", "main"), ("team-a", "side")), start=1)
    )
    readers = Readers(DOCUMENTS[0])
    side = a_queue(cluster="c1", name="side")
    batches: list[StateBatch] = [
        {subject_of(newer): newer, subject_of(side): side},
        {subject_of(older): older},
    ]
    for batch in batches:
        readers.hear({**AT_FIRST, **batch})
    [job] = readers.paper.jobs
    assert (job.tenant, job.queue) == ("team-a", "side")
    assert [one.queue for one in queued(readers.admitters["c1"])] == ["side"]
    [position] = readers.cache.pools["all"].order_at(NOW).positions()
    assert position.tenant == "team-a"
