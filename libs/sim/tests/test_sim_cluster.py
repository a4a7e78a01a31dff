"""The pure cluster: its verbs, and its starts against a naive list of jobs that is scanned from the top each time."""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from fairlead_contracts.base.instants import HOUR, SECOND
from fairlead_contracts.frontend.verbs import CreateJob, CreateOutcome, DeleteJob, SetLevel, VerbOutcome
from fairlead_contracts.messages.events import JobEnded, JobQueued, JobStarted
from fairlead_contracts.messages.state import Outcome, Phase
from fairlead_sim.changes import FindUsed, JobRetention, UsedName
from fairlead_sim.cluster import SimCluster
from fairlead_sim.config import ClusterConfig, NodeGroup, QueueConfig
from fairlead_sim.jobs import JobName
from fairlead_sim.lines import LevelledLine, QueueStrategy

GPU = "nvidia.com/gpu"


def a_cluster(
    *,
    cards: int = 4,
    strategy: QueueStrategy = "best-effort",
    retention: JobRetention | None = None,
    find_used: FindUsed = lambda _: None,
) -> SimCluster:
    config = ClusterConfig(
        nodes=[NodeGroup(name="node", count=cards, allocatable={GPU: 1, "cpu": 8})],
        queues=[QueueConfig(name="main", strategy=strategy)],
        accounts={"a": "main", "b": "main"},
    )
    return SimCluster("sim", config, uid_prefix="test", retention=retention, find_used=find_used)


def a_request(
    id_: str = "one", *, cards: int = 1, run: int = 10 * SECOND, submitted: int = 0, scope: str = "a"
) -> CreateJob:
    return CreateJob(
        scope=scope,
        id=id_,
        digest="d",
        queue=None,
        demand={GPU: cards * 1000},
        pods=1,
        requested_class=None,
        submission=id_,
        submitted=submitted,
        run=run,
    )


def started(cluster: SimCluster) -> list[str]:
    return [event.job for event in cluster.take_changes().events if isinstance(event, JobStarted)]


def level_of(cluster: SimCluster, id_: str, level: int) -> SetLevel:
    job = cluster.jobs[JobName("a", id_)]
    return SetLevel(scope="a", id=id_, uid=job.uid, level=level)


def test_a_job_is_queued_starts_and_ends_after_its_run_time() -> None:
    cluster = a_cluster()
    cluster.create(a_request(submitted=1), 2)
    cluster.advance(3)
    assert cluster.next_due() == 3 + 10 * SECOND
    cluster.advance(3 + 10 * SECOND + 7)
    changes = cluster.take_changes()
    assert [type(event) for event in changes.events] == [JobQueued, JobStarted, JobEnded]
    ended = changes.events[-1]
    assert isinstance(ended, JobEnded)
    assert ended.run is not None
    assert (ended.run.started, ended.run.ended) == (3, 3 + 10 * SECOND)
    job = changes.jobs[JobName("a", "one")]
    assert (job.phase, job.outcome) == (Phase.ENDED, Outcome.SUCCEEDED)
    assert (job.started, job.ended) == (
        3,
        3 + 10 * SECOND,
    )  # it ends when it should, not when somebody looked
    assert cluster.pools["gpu"].free == cluster.pools["gpu"].capacity


def test_creating_twice_is_creating_once_and_another_body_is_a_conflict() -> None:
    cluster = a_cluster()
    assert cluster.create(a_request(), 0).outcome is CreateOutcome.CREATED
    assert cluster.create(a_request(), 0).outcome is CreateOutcome.EXISTS
    other = msgspec.structs.replace(a_request(), digest="other")
    assert cluster.create(other, 0).outcome is CreateOutcome.CONFLICT
    assert cluster.create(a_request(scope="b"), 0).outcome is CreateOutcome.CREATED
    assert len(cluster.jobs) == 2


@pytest.mark.parametrize(
    ("scope", "queue"), [("stranger", None), ("stranger", "main"), ("a", "no-such-queue")]
)
def test_a_job_without_a_queue_is_refused(scope: str, queue: str | None) -> None:
    cluster = a_cluster()
    request = msgspec.structs.replace(a_request(scope=scope), queue=queue)
    assert cluster.create(request, 0).outcome is CreateOutcome.NO_QUEUE
    assert not cluster.jobs


def test_higher_levels_go_first_then_queue_time_then_uid() -> None:
    cluster = a_cluster(cards=1)
    for id_, submitted in (("late", 9), ("early", 1), ("twin", 9), ("raised", 99)):
        cluster.create(a_request(id_, submitted=submitted), 100)
    cluster.set_level(level_of(cluster, "raised", 5))
    order = []
    for step in range(4):
        cluster.advance(100 + step * 10 * SECOND)
        order += started(cluster)
    assert order == ["raised", "early", "late", "twin"]


def test_a_level_is_written_only_to_the_very_job_that_waits() -> None:
    cluster = a_cluster(cards=1)
    cluster.create(a_request("one"), 0)
    cluster.create(a_request("two"), 0)
    cluster.advance(0)
    assert cluster.set_level(level_of(cluster, "one", 3)) is None  # runs already
    assert cluster.set_level(SetLevel(scope="a", id="two", uid="of-an-earlier-life", level=3)) is None
    rev = cluster.set_level(level_of(cluster, "two", 3))
    assert rev is not None
    assert cluster.set_level(level_of(cluster, "two", 3)) == rev  # the same level again changes nothing


def test_strict_blocks_behind_its_head_and_best_effort_passes_it() -> None:
    for strategy, expected in (("strict", ["small"]), ("best-effort", ["small", "tiny"])):
        cluster = a_cluster(cards=4, strategy=strategy)  # type: ignore[arg-type] # the two literals above
        cluster.create(a_request("small", cards=3, submitted=1), 10)
        cluster.create(a_request("large", cards=4, submitted=2), 10)
        cluster.create(a_request("tiny", cards=1, submitted=3), 10)
        cluster.advance(10)
        assert started(cluster) == expected


def test_a_withdrawn_head_lets_a_strict_queue_go_on() -> None:
    cluster = a_cluster(cards=4, strategy="strict")
    cluster.create(a_request("running", cards=2), 0)
    cluster.create(a_request("head", cards=4), 0)
    cluster.create(a_request("next", cards=2), 0)
    cluster.advance(0)
    assert cluster.delete(DeleteJob(scope="a", id="head"), 1) is VerbOutcome.DONE
    cluster.advance(1)
    assert started(cluster) == ["running", "next"]


def test_a_deleted_job_is_cancelled_gives_back_what_it_held_and_stays_known() -> None:
    cluster = a_cluster(cards=1)
    cluster.create(a_request("one"), 0)
    cluster.create(a_request("two"), 0)
    cluster.advance(0)
    assert cluster.delete(DeleteJob(scope="a", id="one"), 5) is VerbOutcome.DONE
    assert cluster.delete(DeleteJob(scope="a", id="one"), 5) is VerbOutcome.GONE
    assert cluster.delete(DeleteJob(scope="a", id="never-was"), 5) is VerbOutcome.GONE
    cluster.advance(5)
    changes = cluster.take_changes()
    assert changes.jobs[JobName("a", "one")].outcome is Outcome.CANCELLED
    assert [event.job for event in changes.events if isinstance(event, JobStarted)] == ["one", "two"]
    assert cluster.create(a_request("one"), 6).outcome is CreateOutcome.EXISTS


def test_only_the_job_that_is_meant_is_taken_away() -> None:
    cluster = a_cluster()
    cluster.create(a_request("one"), 0)
    assert cluster.delete(DeleteJob(scope="a", id="one", uid="of-an-earlier-life"), 1) is VerbOutcome.GONE
    uid = cluster.jobs[JobName("a", "one")].uid
    assert cluster.delete(DeleteJob(scope="a", id="one", uid=uid), 1) is VerbOutcome.DONE
    cluster.create(a_request("two", submitted=2), 2)
    outcomes = [cluster.delete(DeleteJob(scope="a", id="", submission="two", before=at), 3) for at in (1, 2)]
    assert outcomes == [VerbOutcome.LATER, VerbOutcome.DONE]


def test_a_job_that_runs_into_its_limit_fails_there() -> None:
    cluster = a_cluster()
    cluster.create(msgspec.structs.replace(a_request(), run_limit=3 * SECOND), 0)
    cluster.advance(0)
    cluster.advance(3 * SECOND)
    assert cluster.jobs[JobName("a", "one")].outcome is Outcome.FAILED


def test_a_restart_with_fewer_nodes_evicts_nobody_and_starts_nobody_until_there_is_room() -> None:
    before, cluster = a_cluster(cards=2), a_cluster(cards=1)
    before.create(a_request("one"), 0)
    before.create(a_request("two"), 0)
    before.advance(0)
    cluster.restore(before.jobs.values(), before.counters, 1)
    cluster.create(a_request("three"), 1)
    cluster.advance(1)
    assert cluster.pools["gpu"].capacity[GPU] == 1000
    assert cluster.pools["gpu"].free[GPU] == -1000
    assert started(cluster) == []
    cluster.create(a_request("four"), 10 * SECOND)
    cluster.advance(10 * SECOND)  # both end, but only one card is left
    assert started(cluster) == ["three"]


def test_an_ended_job_is_forgotten_but_its_name_is_not() -> None:
    names: dict[JobName, UsedName] = {}
    cluster = a_cluster(retention=JobRetention(ended=HOUR, names=HOUR), find_used=names.get)
    cluster.create(a_request(run=SECOND), 0)
    cluster.advance(0)
    cluster.advance(SECOND)
    cluster.advance(SECOND + HOUR)
    assert cluster.create(a_request(), HOUR + SECOND).outcome is CreateOutcome.EXISTS, "before anybody looked"
    changes = cluster.take_changes()
    assert list(changes.gone) == [JobName("a", "one")]
    assert not changes.jobs
    names.update(changes.gone)
    assert cluster.create(a_request(), HOUR + SECOND).outcome is CreateOutcome.EXISTS
    cluster.advance(SECOND + 2 * HOUR)
    assert cluster.create(a_request(), SECOND + 2 * HOUR).outcome is CreateOutcome.CREATED


def test_a_resource_that_the_pool_lacks_never_fits() -> None:
    cluster = a_cluster()
    cluster.create(msgspec.structs.replace(a_request(), demand={"tpu": 1}), 0)
    cluster.advance(0)
    assert cluster.count(Phase.WAITING) == 1


def test_revisions_only_grow_and_phases_are_counted() -> None:
    cluster = a_cluster(cards=1)
    seen: dict[str, int] = {}
    for step in range(6):
        cluster.create(a_request(f"job-{step}", run=2 * SECOND), step * SECOND)
        cluster.advance(step * SECOND)
        for job in cluster.take_changes().jobs.values():
            assert job.rev > seen.get(job.uid, 0)
            seen[job.uid] = job.rev
        phases = [job.phase for job in cluster.jobs.values()]
        assert {phase: cluster.count(phase) for phase in Phase} == {p: phases.count(p) for p in Phase}
    assert len(set(seen.values())) == 6


def test_a_restored_cluster_goes_on_as_if_it_had_never_stopped() -> None:
    one, kept = a_cluster(cards=2), a_cluster(cards=2)
    for cluster in (one, kept):
        for number in range(5):
            cluster.create(a_request(f"job-{number}", run=(number + 1) * SECOND, submitted=number), number)
        cluster.advance(10)
        cluster.set_level(level_of(cluster, "job-4", 7))
    again = a_cluster(cards=2)
    packed = [msgspec.msgpack.encode(job) for job in kept.jobs.values()]
    again.restore(
        [
            msgspec.msgpack.decode(body, type=type(job))
            for body, job in zip(packed, kept.jobs.values(), strict=True)
        ],
        kept.counters,
        10,
    )
    for cluster in (one, again):
        cluster.take_changes()
    while (due := one.next_due()) is not None and due < HOUR:
        assert again.next_due() == due
        one.advance(due)
        again.advance(due)
        assert started(one) == started(again)
    assert again.counters.rev > kept.counters.rev


def test_a_job_whose_queue_is_gone_is_cancelled_at_the_restart() -> None:
    before = a_cluster()
    before.create(a_request(), 0)
    config = ClusterConfig(
        nodes=before.config.nodes, queues=[QueueConfig(name="other")], accounts={"a": "other"}
    )
    after = SimCluster("sim", config, uid_prefix="test")
    after.restore(before.jobs.values(), before.counters, 5)
    assert after.jobs[JobName("a", "one")].outcome is Outcome.CANCELLED
    assert after.count(Phase.WAITING) == 0


def test_levels_that_change_often_do_not_pile_up() -> None:
    lane = LevelledLine()
    cluster = a_cluster()
    for number in range(5):
        cluster.create(a_request(f"job-{number}", submitted=number), 0)
    jobs = list(cluster.jobs.values())
    for job in jobs:
        lane.live += 1
        lane.stand(job)
    for change in range(1000):
        jobs[change % 5].level = change % 7
        lane.stand(jobs[change % 5])
        assert lane.head() == min(jobs, key=lambda job: job.place)
    assert len(lane._heap) < 200


class Naive:
    """The rules in their plainest form: all waiting jobs in one list, sorted and scanned before each start."""

    def __init__(self, capacity: Mapping[str, dict[str, int]], queues: Mapping[str, QueueConfig]) -> None:
        self.capacity = {pool: dict(amounts) for pool, amounts in capacity.items()}
        self.queues = queues
        self.waiting: dict[str, tuple[CreateJob, str, int]] = {}
        self.running: dict[str, tuple[int, CreateJob, str]] = {}

    def free(self, pool: str, resource: str) -> int:
        used = sum(
            job.demand.get(resource, 0)
            for _, job, queue in self.running.values()
            if self.queues[queue].pool == pool
        )
        return self.capacity[pool].get(resource, 0) - used

    def fits(self, job: CreateJob, queue: str) -> bool:
        pool = self.queues[queue].pool
        return all(self.free(pool, name) >= amount for name, amount in job.demand.items() if amount)

    def advance(self, now: int) -> list[str]:
        self.running = {id_: found for id_, found in self.running.items() if found[0] > now}
        order = []
        while (chosen := self.choose()) is not None:
            job, queue, _ = self.waiting.pop(chosen)
            self.running[chosen] = (now + (job.run or 0), job, queue)
            order.append(chosen)
        return order

    def choose(self) -> str | None:
        line = sorted(
            self.waiting, key=lambda id_: (-self.waiting[id_][2], self.waiting[id_][0].submitted, id_)
        )
        blocked: set[str] = set()
        for id_ in line:
            job, queue, _ = self.waiting[id_]
            if queue not in blocked and self.fits(job, queue):
                return id_
            if self.queues[queue].strategy == "strict":
                blocked.add(queue)
        return None


QUEUES = [
    QueueConfig(name="strict", pool="p", strategy="strict"),
    QueueConfig(name="loose", pool="p"),
    QueueConfig(name="alone", pool="q", strategy="strict"),
]
CONFIG = ClusterConfig(
    nodes=[
        NodeGroup(name="p", count=3, allocatable={GPU: 2, "cpu": 6}, pool="p"),
        NodeGroup(name="q", count=1, allocatable={GPU: 2}, pool="q"),
    ],
    queues=QUEUES,
    accounts={"a": "loose"},
)
# A tick of a second at most, so that several things happen at the same instant.
STEPS = some.lists(
    some.one_of(
        some.tuples(
            some.just("create"),
            some.sampled_from([queue.name for queue in QUEUES]),
            some.fixed_dictionaries({GPU: some.integers(0, 5), "cpu": some.integers(0, 9)}),
            some.integers(0, 4),
            some.integers(1, 5),
        ),
        some.tuples(some.just("level"), some.integers(0, 30), some.integers(-2, 4)),
        some.tuples(some.just("delete"), some.integers(0, 30)),
        some.tuples(some.just("pass"), some.integers(0, 3)),
    ),
    max_size=60,
)


def apply(step: tuple[object, ...], number: int, cluster: SimCluster, naive: Naive, now: int) -> None:
    ids = sorted(naive.waiting | naive.running)
    match step:
        case ("create", str(queue), dict(amounts), int(submitted), int(run)):
            request = msgspec.structs.replace(
                a_request(f"{number:03d}", run=run, submitted=submitted),
                queue=queue,
                demand={name: amount * 1000 for name, amount in amounts.items()},
            )
            cluster.create(request, now)
            naive.waiting[request.id] = (request, queue, 0)
        case ("level", int(which), int(level)) if ids:
            id_ = ids[which % len(ids)]
            written = cluster.set_level(level_of(cluster, id_, level))
            assert (written is not None) == (id_ in naive.waiting)
            if id_ in naive.waiting:
                naive.waiting[id_] = (*naive.waiting[id_][:2], level)
        case ("delete", int(which)) if ids:
            id_ = ids[which % len(ids)]
            assert cluster.delete(DeleteJob(scope="a", id=id_), now) is VerbOutcome.DONE
            naive.waiting.pop(id_, None)
            naive.running.pop(id_, None)
        case _:
            pass


@settings(max_examples=150, deadline=None)
@given(steps=STEPS)
def test_starts_are_those_of_the_naive_list_and_capacity_is_never_exceeded(
    steps: list[tuple[object, ...]],
) -> None:
    cluster = SimCluster("sim", CONFIG, uid_prefix="test")
    naive = Naive(
        {name: pool.capacity for name, pool in cluster.pools.items()}, {queue.name: queue for queue in QUEUES}
    )
    now = 0
    ever: set[str] = set()
    for number, step in enumerate(steps):
        if step[0] == "pass":
            now += int(str(step[1]))
        apply(step, number, cluster, naive, now)
        cluster.advance(now)
        order = started(cluster)
        assert order == naive.advance(now)
        assert not ever & set(order)
        ever |= set(order)
        for name, pool in cluster.pools.items():
            assert all(pool.free[resource] == naive.free(name, resource) for resource in pool.capacity)
            assert min(pool.free.values()) >= 0
