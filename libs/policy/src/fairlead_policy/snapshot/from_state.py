"""Snapshots from what clusters state: facts read through the policy, as a scorer reads them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.frontend.shipped import unless_shipped
from fairlead_contracts.messages.state import (
    ClassState,
    JobState,
    NodeState,
    Phase,
    QueueState,
    State,
)
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.snapshot.types import (
    Snapshot,
    SnapshotClassValue,
    SnapshotJob,
    SnapshotNode,
    SnapshotPool,
    SnapshotQueue,
    SnapshotRunning,
    SnapshotTenant,
)
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.pool_shapes import cards_by_pool, pool_shapes
from fairlead_policy.snapshot.stated_cards import PoolCards, stated_card, stated_gang
from fairlead_policy.snapshot.stated_jobs import ChargedJob, StatedJobs, charged_job
from fairlead_policy.usage.saturation import FlavorRoom, PoolPart, Saturation

type _Queues = Mapping[tuple[str, str], QueueState]
"""Queues by (cluster, queue)."""

type PastUses = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Past use by pool and tenant, base units by resource."""


def snapshot_of(
    states: Mapping[str, State],
    document: PolicyDocument,
    now: Micros,
    *,
    pool: str | None = None,
    past: PastUses | None = None,
) -> Snapshot:
    """The snapshot of all pools, or of one. Held and ended jobs are in no order and are left out.

    Args:
        states: last values by state subject.
        document: the policy that is in force.
        now: the instant of the snapshot.
        pool: the only pool, by its policy name; a name that no cluster states gives an empty snapshot.
        past: past use as it counts now, of tenants that have jobs of their own. A snapshot has room for what a tenant
            used in one pool; of one that is in several, or that the policy has put into another since, it is left out.

    What jobs weigh is what their clusters count, and of cards that nodes register what HAMi gives: as for scorers.
    """
    rulebook = Rulebook(document, revision=0)
    cards = cards_by_pool(states.values(), rulebook)
    shapes = pool_shapes(states.values(), rulebook, cards)
    capacity = {name: dict(shape.capacity) for name, shape in shapes.items() if pool in (None, name)}
    by_name = {
        (state.cluster, state.name): state for state in states.values() if isinstance(state, QueueState)
    }
    jobs = [one for one in _counted(states, by_name, rulebook, cards) if one.pool in capacity]
    clusters = {cluster for name in capacity for cluster, _ in rulebook.members_of(name)}
    used = {name: found for name, found in (past or {}).items() if name in capacity}
    _add_missing_resources(capacity, jobs, used)
    tenants = _tenants(jobs, rulebook, used)
    names = _names(jobs)
    in_order = [state for _, state in sorted(states.items())]
    nodes = [one for one in in_order if isinstance(one, NodeState) and one.ready and one.cluster in clusters]
    queues = list(_queues_of(in_order, rulebook, capacity))
    stated = {queue.cluster for queue, _ in queues}
    several = len(stated | {node.cluster for node in nodes}) > 1
    return Snapshot(
        now=now,
        policy=document,
        pools=[
            SnapshotPool(
                name=name,
                capacity=amounts,
                saturated=_saturated(
                    name, rulebook.pool_rules(name, amounts), jobs, shapes[name].rooms, by_name
                ),
            )
            for name, amounts in sorted(capacity.items())
        ],
        tenants=tenants,
        nodes=[_node(node, several) for node in nodes],
        queues=[_queue(queue, name, several) for queue, name in queues],
        class_values=_class_values(in_order, stated, document.classes, several),
        running=[_running(one, names, by_name, rulebook) for one in jobs if one.job.phase is Phase.RUNNING],
        jobs=[
            _waiting(one, names, by_name, rulebook, several) for one in jobs if one.job.phase is Phase.WAITING
        ],
    )


def _saturated(
    pool: str,
    rules: PoolRules,
    jobs: Iterable[ChargedJob],
    rooms: Mapping[PoolPart, FlavorRoom],
    queues: _Queues,
) -> list[str] | None:
    """The resources that are used up, where the pool's own sums do not say it (H-DRF)."""
    if not rules.rescaled or (len(rooms) <= 1 and all(len(room) == 1 for room in rooms.values())):
        return None
    saturation = Saturation(rules, rooms)
    for one in jobs:
        part = one.job.cluster, queues[one.job.cluster, one.job.queue].pool
        if one.pool != pool:
            continue
        if one.job.phase is Phase.RUNNING:
            saturation.run(part, one.weighs, one.flavors)
        else:
            saturation.wait(part, one.weighs)
    return sorted(saturation.used_up())


def _add_missing_resources(
    capacity: Mapping[str, dict[str, int]], jobs: Iterable[ChargedJob], used: PastUses
) -> None:
    """Adds resources that jobs ask for or have used and that no cluster states: the pool has none of them."""
    for one in jobs:
        capacity[one.pool].update(dict.fromkeys(one.job.demand.keys() - capacity[one.pool].keys(), 0))
    for name, tenants in used.items():
        for amounts in tenants.values():
            capacity[name].update(dict.fromkeys(amounts.keys() - capacity[name].keys(), 0))


def _counted(
    states: Mapping[str, State], queues: _Queues, rulebook: Rulebook, cards: Mapping[str, PoolCards]
) -> list[ChargedJob]:
    """The jobs that wait or run in a queue that is stated, in an order of their own.

    A job that stands under two subjects counts once, as `StatedJobs` says, and so does one that another carries out.
    """
    stated = StatedJobs({subject: state for subject, state in states.items() if isinstance(state, JobState)})

    def pool_of(cluster: str, name: str) -> str | None:
        queue = queues.get((cluster, name))
        return None if queue is None else rulebook.pool_of(cluster, queue.pool)

    found = (charged_job(job, stated, pool_of, rulebook, cards) for job in stated)
    return sorted((one for one in found if one is not None), key=lambda one: (one.job.submitted, one.job.uid))


def _tenants(jobs: Iterable[ChargedJob], rulebook: Rulebook, past: PastUses) -> list[SnapshotTenant]:
    """Each tenant that waits or runs, or did of late. Weights are the policy's: they are changed in one place."""
    pools: dict[str, set[str]] = {}
    for one in jobs:
        pools.setdefault(one.tenant, set()).add(one.pool)
    for pool, tenants in past.items():
        for name in tenants:
            pools.setdefault(name, set()).add(pool)
    listed = {tenant.name: tenant.pool for tenant in rulebook.document.tenants}
    return [
        SnapshotTenant(
            name=name,
            unlisted=name not in listed,
            pool=next(iter(found)) if len(found) == 1 and listed.get(name) is None else None,
            past_use=dict(past.get(next(iter(found)), {}).get(name, {}))
            if len(found) == 1 and listed.get(name) in (None, *found)
            else {},
        )
        for name, found in sorted(pools.items())
    ]


def _names(jobs: Sequence[ChargedJob]) -> dict[str, str]:
    """The shortest of name, `<scope>/<name>` and uid that no other job has, by uid.

    A snapshot says whose a job is and not its scope: where that has another name, the job's has it, too.
    """
    taken = Counter(name for job, _ in _called(jobs) for name in {job.name, job.full_name, job.uid})
    return {
        job.uid: next((name for name in names if taken[name] == 1), job.uid) for job, names in _called(jobs)
    }


def _called(jobs: Sequence[ChargedJob]) -> Iterator[tuple[JobState, list[str]]]:
    for one in jobs:
        alone = [one.job.name] if one.tenant == one.job.scope else []
        yield one.job, [*alone, one.job.full_name]


def _queues_of(
    states: Iterable[State], rulebook: Rulebook, pools: Collection[str]
) -> Iterator[tuple[QueueState, str]]:
    """The queues of these pools, each with its pool."""
    for state in states:
        if isinstance(state, QueueState):
            pool = rulebook.pool_of(state.cluster, state.pool)
            if pool in pools:
                yield state, pool


def _queue(queue: QueueState, pool: str, several: bool) -> SnapshotQueue:  # noqa: FBT001 # said by its name
    return SnapshotQueue(
        name=queue.name,
        pool=pool,
        frontend=queue.frontend,
        cluster=queue.cluster if several else "",
        default_level=queue.default_level,
        lowest_level=queue.lowest_level,
        highest_level=queue.highest_level,
        bands_by_class=queue.bands_by_class,
        preemption=queue.preemption,
        capabilities=unless_shipped(queue.frontend, queue.able),
    )


def _class_values(
    states: Iterable[State],
    clusters: Collection[str],
    classes: Collection[str],
    several: bool,  # noqa: FBT001 # said by its name
) -> list[SnapshotClassValue]:
    """The clusters' values of the policy's classes; priority classes that are none of them give no band."""
    return [
        SnapshotClassValue(job_class=one.name, value=one.value, cluster=one.cluster if several else "")
        for one in states
        if isinstance(one, ClassState) and one.cluster in clusters and one.name in classes
    ]


def _node(node: NodeState, several: bool) -> SnapshotNode:  # noqa: FBT001 # said by its name
    return SnapshotNode(
        name=node.name,
        allocatable=node.allocatable,
        labels=node.labels,
        cluster=node.cluster if several else "",
        cards=list(map(stated_card, node.cards)),
    )


def _running(
    one: ChargedJob, names: Mapping[str, str], queues: _Queues, rulebook: Rulebook
) -> SnapshotRunning:
    job = one.job
    return SnapshotRunning(
        id=names[job.uid],
        tenant=one.tenant,
        pool=one.pool,
        job_class=rulebook.class_of(job, one.tenant).job_class,
        demand=job.demand,
        started=job.started,
        ends=job.ends_by,
        frontend=queues[job.cluster, job.queue].frontend,
        pods=sum(shape.pods for shape in job.shapes) or job.pods,
        gang=stated_gang(job.shapes),
    )


def _waiting(
    one: ChargedJob,
    names: Mapping[str, str],
    queues: _Queues,
    rulebook: Rulebook,
    several: bool,  # noqa: FBT001 # said by its name
) -> SnapshotJob:
    job = one.job
    return SnapshotJob(
        id=names[job.uid],
        uid=job.uid,
        tenant=one.tenant,
        pool=one.pool,
        job_class=rulebook.class_of(job, one.tenant).job_class,
        demand=job.demand,
        submitted=job.submitted,
        queue_time=job.queue_time,
        cluster=job.cluster if several else "",
        frontend=queues[job.cluster, job.queue].frontend,
        queue=job.queue,
        level=job.level,
        runtime_limit=job.run_limit,
        priority_override=rulebook.override_of(job, job.priority_override, one.tenant),
        pods=sum(shape.pods for shape in job.shapes) or job.pods,
        gang=stated_gang(job.shapes),
    )
