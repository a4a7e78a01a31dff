"""Workloads: who submits which jobs when, on what cluster, under which policy."""

import hashlib
from collections.abc import Mapping

import msgspec

from fairlead_contracts.base.instants import Micros, from_seconds, to_seconds
from fairlead_contracts.frontend.verbs import CreateJob
from fairlead_contracts.messages.submissions import Submission
from fairlead_contracts.policyfile.document import Aging, Grant, PolicyDocument, Pool, Tenant
from fairlead_sim.config import ClusterConfig, NodeGroup, QueueConfig
from fairlead_sim.lines import QueueStrategy


class WorkloadJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job that a tenant will submit."""

    id: str
    tenant: str
    offset: Micros
    """When it is submitted, from the start of the workload."""
    demand: dict[str, int]
    run: Micros
    pods: int = 1
    job_class: str | None = None
    labels: dict[str, str] = {}

    def submission(self) -> Submission:
        """The job as its tenant publishes it."""
        return Submission(
            id=self.id,
            tenant=self.tenant,
            demand=self.demand,
            pods=self.pods,
            job_class=self.job_class,
            run_seconds=to_seconds(self.run),
            labels=self.labels,
        )

    def create(self, start: Micros) -> CreateJob:
        """The job as it is made on a cluster when the workload starts at `start`."""
        return CreateJob(
            scope=self.tenant,
            id=self.id,
            digest=hashlib.blake2b(self.id.encode(), digest_size=16).hexdigest(),
            queue=None,
            demand=self.demand,
            pods=self.pods,
            requested_class=self.job_class,
            submission=self.id,
            submitted=start + self.offset,
            run=self.run,
            labels=self.labels,
        )


class SimWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs, and all that is needed to run them."""

    name: str
    weights: dict[str, float]
    """Of each tenant, in the order in which they are shown."""
    cluster: ClusterConfig
    policy: PolicyDocument
    jobs: list[WorkloadJob]
    """By offset."""
    speed_up: float = 1.0
    """Run times of the trace were divided by it, and the aging rate multiplied."""
    notes: list[str] = []
    """How it was made, in words for the report."""

    @property
    def tenants(self) -> list[str]:
        """Names of the tenants."""
        return list(self.weights)

    def entitlements(self) -> dict[str, float]:
        """Each tenant's weight over the sum of the weights."""
        total = sum(self.weights.values())
        return {tenant: weight / total for tenant, weight in self.weights.items()}

    def capacity(self) -> dict[str, int]:
        """The capacity of all nodes together, in base units."""
        capacity: dict[str, int] = {}
        for group in self.cluster.nodes:
            for resource, amount in group.amounts().items():
                capacity[resource] = capacity.get(resource, 0) + amount * group.count
        return capacity


POOL = "gpu"
QUEUE = "main"


def one_pool(nodes: NodeGroup, tenants: Mapping[str, float], *, strategy: QueueStrategy) -> ClusterConfig:
    """A cluster of one pool and one queue, which all tenants enter: Kueue's shape for exact enforcement."""
    return ClusterConfig(
        nodes=[nodes],
        queues=[QueueConfig(name=QUEUE, pool=POOL, strategy=strategy)],
        accounts=dict.fromkeys(tenants, QUEUE),
    )


def policy_for(
    weights: Mapping[str, float],
    *,
    cluster: str,
    aging: Aging,
    urgent: tuple[str, ...] = (),
    window: int = 32,
) -> PolicyDocument:
    """The policy document of a workload: its tenants and weights, and who may be urgent."""
    return PolicyDocument(
        aging=aging,
        window=window,
        pools=[Pool(name=POOL, members=[f"{cluster}/{POOL}"])],
        tenants=[Tenant(name=tenant, weight=weight) for tenant, weight in weights.items()],
        grants=[Grant(tenant=tenant, classes=["urgent"], by="demo") for tenant in urgent],
    )


def equal_floods(
    weights: Mapping[str, float],
    *,
    jobs: int,
    run_seconds: float,
    nodes: NodeGroup,
    starts: Mapping[str, float] | None = None,
    every: float = 0.0,
    demand: Mapping[str, int] | None = None,
    aging: Aging | None = None,
    strategy: QueueStrategy = "best-effort",
    cluster: str = "sim",
) -> SimWorkload:
    """Tenants that flood the pool with equal jobs, each from its own moment on.

    Args:
        weights: of the tenants.
        jobs: how many each tenant submits.
        run_seconds: of each job.
        nodes: of the pool.
        starts: second at which a tenant floods; 0 where none is given.
        every: seconds between two submissions of a tenant; all at once by default.
        demand: of each job; one card and eight cores unless given.
        aging: none unless given.
        strategy: of the queue.
        cluster: its name.
    """
    asked = dict(demand) if demand is not None else {"nvidia.com/gpu": 1000, "cpu": 8000}
    moments = starts or {}
    flood = [
        WorkloadJob(
            id=f"{tenant}-{number:05d}",
            tenant=tenant,
            offset=from_seconds(moments.get(tenant, 0.0) + number * every),
            demand=asked,
            run=from_seconds(run_seconds),
        )
        for tenant in weights
        for number in range(jobs)
    ]
    return SimWorkload(
        name="equal floods",
        weights=dict(weights),
        cluster=one_pool(nodes, weights, strategy=strategy),
        policy=policy_for(weights, cluster=cluster, aging=aging or Aging(entitlement_per_day=0.0)),
        jobs=sorted(flood, key=lambda job: (job.offset, job.id)),
    )
