"""Snapshots from what clusters state: facts read through the policy, as a scorer reads them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.frontend.shipped import unless_shipped
from fairlead_contracts.messages.state import (
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
from fairlead_policy.rules.pool_rules import LARGEST, PoolRules, counted_amount
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.pool_shapes import PoolShape
from fairlead_policy.snapshot.stated_cards import PoolCards, stated_card, stated_gang
from fairlead_policy.snapshot.stated_facts import ChargedJob, StatedFacts
from fairlead_policy.usage.saturation import FlavorRoom, PoolPart, Saturation

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
        pool: the only pool, by its policy name; a name that no cluster states gives an empty snapshot.
        past: past use as it counts now, of tenants that have jobs of their own. A snapshot has room for what a tenant
            used in one pool; of one that is in several, or that the policy has put into another since, it is left out.

    What jobs weigh is what their clusters count, and of cards that nodes register what HAMi gives: as for scorers.
    """
    rulebook = Rulebook(document, revision=0)
    facts = StatedFacts(rulebook)
    facts.learn(dict(sorted(states.items())))
    shapes = {name: shape for name, shape in facts.shapes.items() if pool in (None, name)}
    capacity = {
        name: {resource: counted_amount(amount) for resource, amount in shape.capacity.items()}
        for name, shape in shapes.items()
    }
    jobs = _counted(facts, shapes)
    clusters = {cluster for name in shapes for cluster, _ in rulebook.members_of(name)}
    used = {name: found for name, found in (past or {}).items() if name in shapes}
    _add_missing_resources(capacity, jobs, used)
    names = _names(jobs)
    stated = facts.clusters.values()
    nodes = [node for one in stated for node in one.nodes.values() if node.ready and node.cluster in clusters]
    queues = [
        (queue, name)
        for one in stated
        for queue in one.queues.values()
        if (name := rulebook.pool_of(queue.cluster, queue.pool)) in shapes
    ]
    stating = dict.fromkeys(queue.cluster for queue, _ in queues)
    several = len({*stating, *(node.cluster for node in nodes)}) > 1
    return Snapshot(
        now=now,
        policy=document,
        pools=[
            SnapshotPool(
                name=name,
                capacity=amounts,
                quota=_quota(shapes[name], facts.cards.get(name)),
                saturated=_saturated(name, rulebook.pool_rules(name, amounts), jobs, shapes[name].rooms),
            )
            for name, amounts in sorted(capacity.items())
        ],
        tenants=_tenants(jobs, rulebook, used),
        nodes=[_node(node, several) for node in nodes],
        queues=[_queue(queue, name, several) for queue, name in queues],
        class_values=_class_values(facts, stating, document.classes, several),
        running=[_running(one, names, rulebook) for one in jobs if one.job.phase is Phase.RUNNING],
        jobs=[_waiting(one, names, rulebook, several) for one in jobs if one.job.phase is Phase.WAITING],
    )


def _quota(shape: PoolShape, cards: PoolCards | None) -> dict[str, int] | None:
    """The quota of a pool, where its cards make its capacity another."""
    if cards is None:
        return None
    return {name: amount for name, amount in shape.quota.items() if amount < LARGEST}


def _saturated(
    pool: str,
    rules: PoolRules,
    jobs: Iterable[ChargedJob],
    rooms: Mapping[PoolPart, FlavorRoom],
) -> list[str] | None:
    """The resources that are used up, where the pool's own sums do not say it (H-DRF)."""
    if not rules.rescaled or (len(rooms) <= 1 and all(len(room) == 1 for room in rooms.values())):
        return None
    saturation = Saturation(rules, rooms)
    for one in jobs:
        part = one.job.cluster, one.queue.pool
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


def _counted(facts: StatedFacts, pools: Collection[str]) -> list[ChargedJob]:
    """The jobs that wait or run in these pools, in an order of their own."""
    found = (one for one in map(facts.charged, facts.jobs) if one is not None and one.pool in pools)
    return sorted(found, key=lambda one: (one.job.submitted, one.job.uid))


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
    facts: StatedFacts,
    clusters: Iterable[str],
    classes: Collection[str],
    several: bool,  # noqa: FBT001 # said by its name
) -> list[SnapshotClassValue]:
    """The clusters' values of the policy's classes; priority classes that are none of them give no band."""
    return [
        SnapshotClassValue(job_class=one.name, value=one.value, cluster=one.cluster if several else "")
        for cluster in clusters
        for one in facts.cluster(cluster).classes.values()
        if one.name in classes
    ]


def _node(node: NodeState, several: bool) -> SnapshotNode:  # noqa: FBT001 # said by its name
    return SnapshotNode(
        name=node.name,
        allocatable=node.allocatable,
        labels=node.labels,
        cluster=node.cluster if several else "",
        cards=list(map(stated_card, node.cards)),
    )


def _running(one: ChargedJob, names: Mapping[str, str], rulebook: Rulebook) -> SnapshotRunning:
    job = one.job
    return SnapshotRunning(
        id=names[job.uid],
        tenant=one.tenant,
        pool=one.pool,
        job_class=rulebook.class_of(job, one.tenant).job_class,
        demand=job.demand,
        started=job.started,
        ends=job.ends_by,
        frontend=one.queue.frontend,
        pods=sum(shape.pods for shape in job.shapes) or job.pods,
        gang=stated_gang(job.shapes),
    )


def _waiting(
    one: ChargedJob,
    names: Mapping[str, str],
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
        frontend=one.queue.frontend,
        queue=job.queue,
        level=job.level,
        runtime_limit=job.run_limit,
        priority_override=rulebook.override_of(job, one.tenant),
        flavorless=bool(job.flavorless),
        limited=bool(job.limited),
        pods=sum(shape.pods for shape in job.shapes) or job.pods,
        gang=stated_gang(job.shapes),
    )
