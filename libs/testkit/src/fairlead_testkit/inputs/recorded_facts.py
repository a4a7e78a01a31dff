"""A snapshot as the facts that a cluster's watcher would state of it, under the same policy: for scorers in a test."""

from collections.abc import Iterator

import msgspec

from fairlead_contracts.frontend.cards import CARD_RESOURCES, CardState
from fairlead_contracts.messages.state import (
    ClassState,
    JobShape,
    JobState,
    NodeState,
    Phase,
    PoolState,
    QueueState,
    State,
)
from fairlead_contracts.policyfile.document import Fit, Grant, PolicyDocument, Pool
from fairlead_contracts.snapshot.types import (
    Snapshot,
    SnapshotCard,
    SnapshotJob,
    SnapshotNode,
    SnapshotRunning,
)

CLUSTER = "c1"


def document_of(snapshot: Snapshot, policy: PolicyDocument, *, shards: int) -> PolicyDocument:
    """The policy that scorers go by: all classes are granted to whoever has jobs."""
    listed = {one.name for one in policy.tenants}
    waiting = sorted({job.tenant for job in snapshot.jobs} & listed)
    grants = [Grant(tenant=name, classes=policy.classes, priority_override=True) for name in waiting]
    pools = [Pool(name=pool.name, members=[f"{CLUSTER}/{pool.name}"]) for pool in snapshot.pools]
    return msgspec.structs.replace(
        policy, shards=shards, pools=pools, grants=grants, mode="advise", fit=Fit(strategy="none")
    )


def states_of(snapshot: Snapshot) -> Iterator[State]:
    """States of the snapshot's cluster."""
    for pool in snapshot.pools:
        yield PoolState(cluster=CLUSTER, epoch=1, rev=1, name=pool.name, capacity=pool.capacity)
    frontends = {_queue_of(run): run.frontend or "sim" for run in snapshot.running}
    frontends |= {_queue_of(job): job.frontend or "sim" for job in snapshot.jobs}
    stated = {queue.name: queue for queue in snapshot.queues}
    for (pool_name, queue), frontend in sorted(frontends.items()):
        name = f"{pool_name}-{queue}"
        known = stated.get(queue)
        yield QueueState(
            cluster=CLUSTER,
            epoch=1,
            rev=1,
            name=name,
            pool=pool_name,
            frontend=frontend,
            bands_by_class=known is not None and known.bands_by_class,
            preemption={} if known is None else known.preemption,
        )
    for value in snapshot.class_values:
        yield ClassState(cluster=CLUSTER, epoch=1, rev=1, name=value.job_class, value=value.value)
    yield from map(_node, snapshot.nodes)
    yield from map(_running, snapshot.running)
    yield from map(_waiting, snapshot.jobs)


def _queue_of(job: SnapshotJob | SnapshotRunning) -> tuple[str, str]:
    return job.pool, (job.queue if isinstance(job, SnapshotJob) else "") or "main"


def _node(node: SnapshotNode) -> NodeState:
    return NodeState(
        cluster=CLUSTER,
        epoch=1,
        rev=1,
        name=node.name,
        allocatable=node.allocatable,
        labels=node.labels,
        taints=node.taints,
        cards=[_card(card) for card in node.cards],
    )


def _card(card: SnapshotCard) -> CardState:
    return CardState(
        uuid=card.uuid,
        count=card.count,
        memory=card.memory,
        cores=card.cores,
        model=card.model,
        used_count=card.used.count,
        used_memory=card.used.memory,
        used_cores=card.used.cores,
    )


def _running(job: SnapshotRunning) -> JobState:
    pool, queue = _queue_of(job)
    started = 0 if job.started is None else job.started
    return JobState(
        cluster=CLUSTER,
        epoch=1,
        rev=1,
        id=job.id,
        uid=f"run-{job.id}",
        scope=job.tenant,
        queue=f"{pool}-{queue}",
        demand=job.demand,
        phase=Phase.RUNNING,
        submitted=started,
        queue_time=started,
        started=job.started,
    )


def _waiting(job: SnapshotJob) -> JobState:
    pool, queue = _queue_of(job)
    override = job.priority_override
    return JobState(
        cluster=CLUSTER,
        epoch=1,
        rev=1,
        id=job.id,
        uid=job.uid,
        scope=job.tenant,
        queue=f"{pool}-{queue}",
        demand=job.demand,
        phase=Phase.WAITING,
        submitted=job.submitted,
        queue_time=job.queue_time,
        level=job.level,
        pods=job.pods,
        shapes=tuple(_shapes(job)),
        requested_class=job.job_class,
        priority_override=None if override is None else round(override),
    )


def _shapes(job: SnapshotJob) -> list[JobShape]:
    """Shapes of the job's pods, where a cluster would say them: several kinds, nodes of one sort, or parts of cards."""
    if job.gang is None:
        asks = _card_asks(job.demand)
        if asks and len(asks[0]) > 1:
            return [JobShape(name="pods", pods=job.pods, demand=job.demand, card_asks=asks)]
        return []
    return [
        JobShape(
            name=shape.name,
            pods=shape.pods,
            demand=shape.demand or {},
            selector=shape.selector,
            card_asks=shape.containers or _card_asks(shape.demand or {}),
        )
        for shape in job.gang.shapes
    ]


def _card_asks(demand: dict[str, int]) -> list[dict[str, int]]:
    asked = {name: amount for name, amount in demand.items() if name in CARD_RESOURCES}
    return [asked] if asked else []
