"""The watcher as a process, on a real API server with a real Kueue and a real nats-server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fairlead_bus import Bus, ConnectionSettings, Follower, connect
from fairlead_bus.facts.mirrors import state_mirror
from fairlead_bus.server.provision import provision
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.events import EVENT, AnyEvent, JobEnded, JobEvicted, JobQueued, JobStarted
from fairlead_contracts.messages.state import (
    ClassState,
    JobState,
    NodeState,
    Outcome,
    Phase,
    PoolState,
    QueueState,
    State,
    SyncMark,
    TenantState,
)
from fairlead_testkit import NatsServer, ServiceProcess, eventually, running
from fairlead_testkit.kubelab import ADMIN, WATCHER, WORKLOADS_ALONE, ApiError, KubeLab, things
from fairlead_testkit.kueue.namespace_fixture import QUEUE, NamespaceFixture
from fairlead_testkit.timing.in_hand import beside

if TYPE_CHECKING:
    from fairlead_testkit.pytest_plugin.kubelab_fixtures import LabFactory

pytestmark = [pytest.mark.integration, pytest.mark.kube, pytest.mark.timeout(300)]

CLUSTER = "lab"
KINDS: dict[type, str] = {
    JobQueued: "queued",
    JobStarted: "started",
    JobEvicted: "evicted",
    JobEnded: "ended",
}
WORDS: dict[type, subjects.StateKind] = {
    PoolState: "pool",
    QueueState: "queue",
    JobState: "job",
    TenantState: "tenant",
}
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads/{}"
JOBS = "/apis/batch/v1/namespaces/{}/jobs/{}"


class ClusterReader:
    """A reader of what is stated and told of a cluster."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.changed = asyncio.Event()
        self.mirror = state_mirror(bus, CLUSTER, self.changed)
        self.follower = Follower(bus, stream=topology.EVENT, filter=subjects.event_filter(CLUSTER), since=0)
        self.events: dict[str, AnyEvent] = {}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.mirror.run())
            tasks.create_task(self._listen())

    async def _listen(self) -> None:
        async for delivery in self.follower:
            event = EVENT.decode(delivery.payload)
            self.events.setdefault(event.id, event)

    def all[S: State](self, kind: type[S], chosen: Callable[[S], bool] = lambda _: True) -> list[S]:
        return [state for state in self.mirror.values.values() if isinstance(state, kind) and chosen(state)]

    def one[S: State](self, kind: type[S], name: str, scope: str | None = None) -> S | None:
        found = self.mirror.values.get(subjects.state(CLUSTER, WORDS[kind], name, scope=scope))
        return found if isinstance(found, kind) else None

    async def job(self, scope: str, name: str, phase: Phase, why: str = "") -> JobState:
        def there() -> JobState | None:
            found = self.one(JobState, name, scope)
            told = "" if found is None else f"{found.said}\n{found.held_by}"
            return found if found is not None and found.phase is phase and why in told else None

        return await eventually(there, 60, what=f"{scope}/{name} is {phase} {why}")

    def life(self, scope: str, name: str) -> list[str]:
        """The kinds of the events told of a job, in their order in time."""
        told = [event for event in self.events.values() if (event.scope, event.job) == (scope, name)]
        return [KINDS[type(event)] for event in sorted(told, key=lambda event: event.at)]

    async def lived(self, scope: str, name: str, *kinds: str) -> None:
        await eventually(lambda: self.life(scope, name) == list(kinds), 60, what=f"{scope}/{name}: {kinds}")

    def marks(self) -> list[SyncMark]:
        return self.all(SyncMark)


@asynccontextmanager
async def reading(server: NatsServer) -> AsyncIterator[ClusterReader]:
    settings = ConnectionSettings(url=server.url, ping_interval_seconds=0.5)
    async with connect(settings, name="test") as bus:
        await provision(bus, topology.topology([CLUSTER]))
        reader = ClusterReader(bus)
        async with beside(reader.run()):
            yield reader


def a_watcher(
    lab: KubeLab,
    server: NatsServer,
    folder: Path,
    name: str = "watcher",
    settings: Mapping[str, object] | None = None,
) -> ServiceProcess:
    given: dict[str, object] = {
        "nats_url": server.url,
        "cluster": CLUSTER,
        "kubeconfig": lab.kubeconfig(WATCHER),
    }
    return ServiceProcess("watcher", folder, given | dict(settings or {}), name=name)


@pytest.fixture
async def reader(nats_server: NatsServer) -> AsyncIterator[ClusterReader]:
    async with reading(nats_server) as opened:
        yield opened


@pytest.fixture
async def watcher(
    kube_lab: KubeLab, nats_server: NatsServer, reader: ClusterReader, tmp_path: Path
) -> AsyncIterator[ServiceProcess]:
    del reader  # the streams are there
    with a_watcher(kube_lab, nats_server, tmp_path) as process:
        yield await process.ready()


@pytest.fixture
def fixture(kube_lab: KubeLab) -> Iterator[NamespaceFixture]:
    with NamespaceFixture(kube_lab, ["a", "b"]) as made:
        yield made


async def pool_is(reader: ClusterReader, name: str, enforcement: str, gpus: int | None = None) -> PoolState:
    """Waits for the pool: its queues, cohorts and flavors are heard of one by one, and so stated on the way."""

    def there() -> PoolState | None:
        stated = reader.one(PoolState, name)
        if stated is None or stated.enforcement != enforcement:
            return None
        return stated if gpus is None or stated.capacity == {"nvidia.com/gpu": gpus} else None

    return await eventually(there, 60, what=f"{name} is {enforcement}, of {gpus}")


async def surroundings_are_stated(reader: ClusterReader, fixture: NamespaceFixture, queue: str) -> None:
    """The queue, its pool and tenants, the classes and the nodes."""
    stated = await eventually(lambda: reader.one(QueueState, queue), 60)
    assert (stated.pool, stated.frontend, stated.strategy) == (queue, "kueue", "StrictFIFO")
    assert stated.preemption["withinClusterQueue"] == "Never"
    await pool_is(reader, queue, "standing", 2000)
    await eventually(lambda: len(reader.all(TenantState, lambda one: one.queue == queue)) == 2, 60)
    assert {one.scope for one in reader.all(TenantState, lambda one: one.queue == queue)} == set(
        fixture.namespaces.values()
    )
    classes = await eventually(
        lambda: reader.all(ClassState, lambda one: one.name == fixture.named("high")), 30
    )
    assert [one.value for one in classes] == [70]

    def cards() -> set[int]:
        return {node.allocatable["nvidia.com/gpu"] for node in reader.all(NodeState) if "gpu" in node.name}

    await eventually(lambda: cards() == {8000}, 60, what="nodes are heard of by themselves")


async def a_job_with_wishes_runs(reader: ClusterReader, fixture: NamespaceFixture, queue: str) -> JobState:
    """Runs a job with wishes, which takes all of the queue."""
    a = fixture.namespaces["a"]
    await eventually(lambda: (found := reader.one(QueueState, queue)) is not None and found.active, 60)
    wish = {"wdrf.x-k8s.io/urgent": "true", "wdrf.x-k8s.io/priority-override": "much"}
    labels = {things.PRIORITY_CLASS: fixture.named("high"), "team": "red"}
    pods = {"fairlead.dev/submission": "s-1"}
    fixture.job("a", "train", 1, pods=2, seconds=600, annotations=wish, labels=labels, pod_annotations=pods)
    [ran] = await eventually(
        lambda: reader.all(JobState, lambda job: (job.scope, job.owner) == (a, "Job/train")), 30
    )
    # The Job and its Workload are heard of each by itself.
    await eventually(
        lambda: (job := reader.one(JobState, ran.id, a)) is not None and "team" in job.labels, 30
    )
    ran = await reader.job(a, ran.id, Phase.RUNNING)
    assert (ran.demand["nvidia.com/gpu"], ran.pods, ran.queue, ran.local_queue) == (2000, 2, queue, QUEUE)
    assert (ran.base, ran.level, ran.requested_class, ran.submission) == (70, 70, "urgent", "s-1")
    assert ran.labels["team"] == "red"
    assert [fault.value for fault in ran.faults] == ["much"]
    await reader.lived(a, ran.id, "queued", "started")
    return ran


async def what_cannot_run_is_explained(reader: ClusterReader, fixture: NamespaceFixture) -> None:
    """Checks two jobs that cannot run: one for the time being, the other one never."""
    b = fixture.namespaces["b"]
    fixture.workload("b", "behind", 1)
    waits = await reader.job(b, "behind", Phase.WAITING, "quota")
    assert waits.queue_time == waits.submitted
    fixture.lab.api.patch(
        WORKLOADS.format(b, "behind"), {"metadata": {"annotations": {things.PRIORITY_BOOST: "5"}}}
    )
    await eventually(lambda: (job := reader.one(JobState, "behind", b)) is not None and job.level == 5, 60)
    fixture.workload("b", "huge", 3)
    held = await reader.job(b, "huge", Phase.HELD)
    assert [fault.field for fault in held.faults] == ["spec.podSets nvidia.com/gpu"]


async def test_a_life_through_kueue_is_stated_and_told(
    watcher: ServiceProcess, reader: ClusterReader, fixture: NamespaceFixture
) -> None:
    a, b = fixture.namespaces["a"], fixture.namespaces["b"]
    queue = fixture.queue("main", 2, strategy="StrictFIFO")
    fixture.priority_class(fixture.named("high"), 70)
    await surroundings_are_stated(reader, fixture, queue)
    ran = await a_job_with_wishes_runs(reader, fixture, queue)
    await what_cannot_run_is_explained(reader, fixture)
    # Put back: Kueue evicts what is deactivated, and the Job's reconciler gives the quota back.
    fixture.lab.api.patch(WORKLOADS.format(a, ran.id), {"spec": {"active": False}})
    await reader.job(a, ran.id, Phase.HELD)
    await reader.lived(a, ran.id, "queued", "started", "evicted")
    [evicted] = [
        event for event in reader.events.values() if isinstance(event, JobEvicted) and event.scope == a
    ]
    assert "Deactivated" in evicted.reason
    await reader.job(b, "behind", Phase.RUNNING)
    fixture.finish("b", "behind")
    ended = await reader.job(b, "behind", Phase.ENDED)
    assert ended.outcome is Outcome.SUCCEEDED
    await reader.lived(b, "behind", "queued", "started", "ended")
    fixture.lab.api.delete(JOBS.format(a, "train"))
    await reader.lived(a, ran.id, "queued", "started", "evicted", "ended")

    def over() -> bool:  # the event and the state are heard of each by itself
        left = reader.one(JobState, ran.id, a)
        return left is None or left.outcome is Outcome.CANCELLED

    await eventually(over, 60, what="the job is gone, or stated as cancelled")

    async def leads() -> bool:
        return (await watcher.health()).details == {"role": "leader"}

    await eventually(leads, 60, what="it says that it leads")


async def test_what_kueue_deactivated_runs_no_more_and_others_have_its_quota(
    watcher: ServiceProcess, reader: ClusterReader, fixture: NamespaceFixture
) -> None:
    """The reservation of a Workload without a job is cleared by nobody: counted on, a pool would be used more than once."""
    assert watcher.running
    a, b = fixture.namespaces["a"], fixture.namespaces["b"]
    fixture.queue("main", 1)
    fixture.workload("a", "first")
    await reader.job(a, "first", Phase.RUNNING)
    fixture.workload("b", "second")
    await reader.job(b, "second", Phase.WAITING)
    fixture.lab.api.patch(WORKLOADS.format(a, "first"), {"spec": {"active": False}})
    held = await reader.job(a, "first", Phase.HELD)
    assert held.held_by == "it is deactivated (spec.active)"
    await reader.job(b, "second", Phase.RUNNING)
    await reader.lived(a, "first", "queued", "started", "evicted")


async def test_what_a_statefulset_asks_for_is_read_of_it(
    watcher: ServiceProcess, reader: ClusterReader, fixture: NamespaceFixture
) -> None:
    """The shipped rights of the watcher are enough for it. Its Workload is by hand, as Kueue's has neither label nor annotation."""
    assert watcher.running
    namespace = fixture.namespaces["a"]
    fixture.queue("main", 1)
    metadata = {"name": "serve", "namespace": namespace, "labels": {things.QUEUE_NAME: QUEUE, "team": "red"}}
    metadata["annotations"] = {"wdrf.x-k8s.io/urgent": "true"}
    pods = things.job("serve", namespace, QUEUE, {"cpu": 1})["spec"]["template"]
    template = {"metadata": {"labels": {"app": "serve"}}, "spec": pods["spec"] | {"restartPolicy": "Always"}}
    spec = {"selector": {"matchLabels": {"app": "serve"}}, "serviceName": "serve", "template": template}
    made = fixture.lab.api.create(
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}
    )
    item = things.workload("statefulset-serve", namespace, QUEUE, {"cpu": 1})
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "serve", "uid": made["metadata"]["uid"]}
    item["metadata"]["ownerReferences"] = [owner]
    fixture.lab.api.create(item)

    def asks() -> bool:
        job = reader.one(JobState, "statefulset-serve", namespace)
        return job is not None and (job.requested_class, job.labels.get("team")) == ("urgent", "red")

    await eventually(asks, 60, what="its words are the StatefulSet's")
    fixture.lab.api.delete(f"/apis/apps/v1/namespaces/{namespace}/statefulsets/serve")


async def test_the_enforcement_of_real_cohorts_is_found(
    watcher: ServiceProcess, reader: ClusterReader, fixture: NamespaceFixture
) -> None:
    del watcher
    shared = fixture.cohort("shared", 4)
    for short in ("x", "y"):
        fixture.queue(short, 0, cohort="shared", tenants=["a"] if short == "x" else ["b"])
    own = fixture.named("own")
    for short in ("v", "w"):
        fixture.queue(short, 1, cohort="own", tenants=[])

    await pool_is(reader, shared, "exact", 4000)
    assert "own" in (await pool_is(reader, own, "tie-break")).enforcement_why
    # The quota moves to the cohort's queues: from then on they look first at who borrows.
    queue = fixture.lab.api.get(f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{fixture.named('x')}")
    queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = "1"
    path = f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{fixture.named('x')}"
    fixture.lab.api.patch(path, {"spec": {"resourceGroups": queue["spec"]["resourceGroups"]}})
    await pool_is(reader, shared, "tie-break", 5000)


async def test_a_dry_run_says_what_it_would_state_and_states_nothing(
    kube_lab: KubeLab, nats_server: NatsServer, reader: ClusterReader, tmp_path: Path
) -> None:
    with a_watcher(kube_lab, nats_server, tmp_path, settings={"dry_run": True}) as process:
        await process.ready()
        await process.logged("would_state")

        async def says_so() -> bool:
            return (await process.health()).details == {"role": "dry run"}

        await eventually(says_so, 60)
        await reader.mirror.wait_complete()
        assert not reader.mirror.values


def phases(reader: ClusterReader, fixture: NamespaceFixture) -> dict[str, Phase]:
    mine = set(fixture.namespaces.values())
    return {job.id: job.phase for job in reader.all(JobState, lambda job: job.scope in mine)}


async def test_what_happened_while_no_watcher_ran_is_told_by_the_next(
    kube_lab: KubeLab,
    nats_server: NatsServer,
    reader: ClusterReader,
    fixture: NamespaceFixture,
    tmp_path: Path,
) -> None:
    a = fixture.namespaces["a"]
    fixture.queue("main", 2)
    first = a_watcher(kube_lab, nats_server, tmp_path, "first")
    with first:
        await first.ready()
        for name in ("one", "two", "three", "four"):
            fixture.workload("a", name, 1)
        await eventually(
            lambda: sorted(phases(reader, fixture).values()) == ["running"] * 2 + ["waiting"] * 2, 30
        )
        ran = sorted(name for name, phase in phases(reader, fixture).items() if phase is Phase.RUNNING)
        waited = sorted(phases(reader, fixture).keys() - ran)
        first.kill()
    kube_lab.api.delete(WORKLOADS.format(a, waited[0]))
    fixture.finish("a", ran[0])
    kube_lab.until(lambda: waited[1] in fixture.admitted(), 60, "the quota that came free is used")
    fixture.workload("a", "late", 1)
    with a_watcher(kube_lab, nats_server, tmp_path, "second") as second:
        await second.ready()
        expected = {ran[0]: "ended", ran[1]: "running", waited[1]: "running", "late": "waiting"}
        await eventually(lambda: phases(reader, fixture) == expected, 60)
        await reader.lived(a, ran[0], "queued", "started", "ended")
        await reader.lived(a, ran[1], "queued", "started")
        await reader.lived(a, waited[0], "queued", "ended")
        await reader.lived(a, waited[1], "queued", "started")
        await reader.lived(a, "late", "queued")


async def test_a_standby_takes_over_and_a_restart_of_nats_is_survived(
    kube_lab: KubeLab,
    nats_server: NatsServer,
    reader: ClusterReader,
    fixture: NamespaceFixture,
    tmp_path: Path,
) -> None:
    fixture.queue("main", 1)
    replicas = [a_watcher(kube_lab, nats_server, tmp_path, name) for name in ("one", "two")]
    with running(*replicas):
        for replica in replicas:
            await replica.ready()
        fixture.workload("a", "w1", 1)
        await eventually(lambda: phases(reader, fixture) == {"w1": "running"}, 60)
        [mark] = await eventually(reader.marks, 30)  # before the roles: they may change until the kill

        async def roles() -> list[ServiceProcess]:
            """The leader and the standby; nobody leads for a moment where a renewal came late."""
            found = {(await replica.health()).details.get("role"): replica for replica in replicas}
            return [found["leader"], found["standby"]] if found.keys() == {"leader", "standby"} else []

        leader, standby = await eventually(roles, 60, what="one leads, and one stands by")
        leader.kill()
        fixture.workload("a", "w2", 1)
        # The lease of 3 seconds ends, and the standby knows everything already.
        await eventually(lambda: phases(reader, fixture).get("w2") == "waiting", 60)
        await eventually(lambda: reader.marks()[0].epoch > mark.epoch, 60)

        nats_server.kill()
        fixture.finish("a", "w1")
        nats_server.start()
        expected = {"w1": "ended", "w2": "running"}
        await eventually(lambda: phases(reader, fixture) == expected, 60)
        await eventually(lambda: [one.incarnation for one in reader.marks()] == [reader.bus.incarnation], 60)
        await standby.ready()
        a = fixture.namespaces["a"]
        await reader.lived(a, "w1", "queued", "started", "ended")
        await reader.lived(a, "w2", "queued", "started")


async def test_an_api_server_that_is_away_leaves_the_last_state_and_is_caught_up_with(
    kube_labs: "LabFactory", nats_server: NatsServer, reader: ClusterReader, tmp_path: Path
) -> None:
    lab = await asyncio.to_thread(kube_labs, WORKLOADS_ALONE)
    settings = {"stale_after_seconds": 0.5, "probe_seconds": 0.5, "kubeconfig": lab.kubeconfig(ADMIN)}
    with (
        NamespaceFixture(lab, ["a"]) as fixture,
        a_watcher(lab, nats_server, tmp_path, settings=settings) as process,
    ):
        await process.ready()
        fixture.queue("main", 1)
        fixture.workload("a", "w1", 1)
        await eventually(lambda: phases(reader, fixture) == {"w1": "running"}, 60)
        lab.process("kube-apiserver").kill()

        async def says_so() -> bool:
            return "the API server has said nothing" in (await process.health()).reasons.get("cluster", "")

        await eventually(says_so, 60)
        assert phases(reader, fixture) == {"w1": "running"}
        await asyncio.to_thread(lab.restart_apiserver)
        fixture.workload("a", "w2", 1)
        await asyncio.to_thread(fixture.finish, "a", "w1")
        expected: dict[str, str] = {"w1": "ended", "w2": "running"}
        await eventually(lambda: phases(reader, fixture) == expected, 60)
        await process.ready()
        await a_kind_that_comes_later_is_read(lab, reader, fixture)


async def a_kind_that_comes_later_is_read(
    lab: KubeLab, reader: ClusterReader, fixture: NamespaceFixture
) -> None:
    """PyTorchJob is not served in this lab until now."""
    await asyncio.to_thread(lab.apply_files, *lab.kit.manifests("pytorchjobs"))
    namespace = fixture.namespaces["a"]
    train = things.pytorch_job("train", namespace, QUEUE, {"cpu": 1})
    del train["metadata"]["labels"]  # it is not Kueue's: this Workload is made by hand
    train["metadata"]["annotations"] = {"wdrf.x-k8s.io/urgent": "true"}

    def created() -> str | None:
        try:
            uid: str = lab.api.create(train)["metadata"]["uid"]
        except ApiError:
            return None  # the kind is not served yet
        return uid

    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "train", "controller": True}
    owner["uid"] = await eventually(created, 60)
    item = things.workload("of-train", namespace, QUEUE, {"cpu": 1})
    item["metadata"]["ownerReferences"] = [owner]
    lab.api.create(item)

    def asks() -> bool:
        job = reader.one(JobState, "of-train", namespace)
        return job is not None and job.requested_class == "urgent" and job.owner == "PyTorchJob/train"

    await eventually(asks, 60)
