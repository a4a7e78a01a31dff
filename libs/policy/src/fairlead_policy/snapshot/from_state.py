"""Snapshots from what clusters state: facts read through the policy, as a scorer reads them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.frontend.shipped import unless_shipped
from fairlead_contracts.messages.state import JobState, Phase, State
from fairlead_contracts.messages.submissions import MAX_PODS
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.snapshot.types import (
    Snapshot,
    SnapshotClassValue,
    SnapshotGang,
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
    stated = _StatedPools(facts, rulebook, pool)
    used = {name: found for name, found in (past or {}).items() if name in stated.shapes}
    return Snapshot(
        now=now,
        policy=document,
        pools=stated.pools(used),
        tenants=_tenants(stated.jobs, rulebook, used),
        nodes=stated.nodes(),
        queues=stated.queues(),
        class_values=stated.class_values(document.classes),
        running=[stated.running(one) for one in stated.jobs if one.job.phase is Phase.RUNNING],
        jobs=[stated.waiting(one) for one in stated.jobs if one.job.phase is Phase.WAITING],
    )


class _StatedPools:
    """The pools of a snapshot, with what clusters state of them. Clusters are named only where there are several."""

    def __init__(self, facts: StatedFacts, rulebook: Rulebook, pool: str | None) -> None:
        self._facts, self._rulebook = facts, rulebook
        self.shapes = {name: shape for name, shape in facts.shapes.items() if pool in (None, name)}
        self.jobs = _counted(facts, self.shapes)
        self._names = _names(self.jobs)
        clusters = {cluster for name in self.shapes for cluster, _ in rulebook.members_of(name)}
        stated = facts.clusters.values()
        nodes = [node for one in stated for node in one.nodes.values()]
        self._nodes = [node for node in nodes if node.ready and node.cluster in clusters]
        self._queues = [
            (queue, name)
            for one in stated
            for queue in one.queues.values()
            if (name := rulebook.pool_of(queue.cluster, queue.pool)) in self.shapes
        ]
        self._stating = dict.fromkeys(queue.cluster for queue, _ in self._queues)
        self._several = len({*self._stating, *(node.cluster for node in self._nodes)}) > 1

    def pools(self, used: PastUses) -> list[SnapshotPool]:
        capacity = {
            name: {resource: counted_amount(amount) for resource, amount in shape.capacity.items()}
            for name, shape in self.shapes.items()
        }
        _add_missing_resources(capacity, self.jobs, used)
        return [
            SnapshotPool(
                name=name,
                capacity=amounts,
                quota=_quota(self.shapes[name], self._facts.cards.get(name)),
                saturated=_saturated(
                    name, self._rulebook.pool_rules(name, amounts), self.jobs, self.shapes[name].rooms
                ),
            )
            for name, amounts in sorted(capacity.items())
        ]

    def nodes(self) -> list[SnapshotNode]:
        return [
            SnapshotNode(
                name=node.name,
                allocatable=node.allocatable,
                labels=node.labels,
                cluster=self._told(node.cluster),
                cards=list(map(stated_card, node.cards)),
            )
            for node in self._nodes
        ]

    def queues(self) -> list[SnapshotQueue]:
        return [
            SnapshotQueue(
                name=queue.name,
                pool=pool,
                frontend=queue.frontend,
                cluster=self._told(queue.cluster),
                default_level=queue.default_level,
                lowest_level=queue.lowest_level,
                highest_level=queue.highest_level,
                bands_by_class=queue.bands_by_class,
                preemption=queue.preemption,
                capabilities=unless_shipped(queue.frontend, queue.able),
            )
            for queue, pool in self._queues
        ]

    def class_values(self, classes: Collection[str]) -> list[SnapshotClassValue]:
        """The clusters' values of the policy's classes; priority classes that are none of them give no band."""
        return [
            SnapshotClassValue(job_class=one.name, value=one.value, cluster=self._told(one.cluster))
            for cluster in self._stating
            for one in self._facts.cluster(cluster).classes.values()
            if one.name in classes
        ]

    def running(self, one: ChargedJob) -> SnapshotRunning:
        job = one.job
        pods, gang = _gang(job)
        return SnapshotRunning(
            id=self._names[job.uid],
            tenant=one.tenant,
            pool=one.pool,
            job_class=self._rulebook.class_of(job, one.tenant).job_class,
            demand=job.demand,
            started=job.started,
            ends=job.ends_by,
            frontend=one.queue.frontend,
            pods=pods,
            gang=gang,
        )

    def waiting(self, one: ChargedJob) -> SnapshotJob:
        job = one.job
        pods, gang = _gang(job)
        return SnapshotJob(
            id=self._names[job.uid],
            uid=job.uid,
            tenant=one.tenant,
            pool=one.pool,
            job_class=self._rulebook.class_of(job, one.tenant).job_class,
            demand=job.demand,
            submitted=job.submitted,
            queue_time=job.queue_time,
            cluster=self._told(job.cluster),
            frontend=one.queue.frontend,
            queue=job.queue,
            level=job.level,
            runtime_limit=job.run_limit,
            priority_override=self._rulebook.override_of(job, one.tenant),
            flavorless=bool(job.flavorless),
            limited=bool(job.limited),
            pods=pods,
            gang=gang,
        )

    def _told(self, cluster: str) -> str:
        return cluster if self._several else ""


def _gang(job: JobState) -> tuple[int, SnapshotGang | None]:
    """The number of a job's pods, and its word on them. Kinds without a pod are left out, and of too many pods all kinds."""
    kinds = [shape for shape in job.shapes if shape.pods > 0]
    pods = sum(shape.pods for shape in kinds) or job.pods
    return min(max(pods, 1), MAX_PODS), stated_gang(kinds) if pods <= MAX_PODS else None


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
