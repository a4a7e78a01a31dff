"""Workloads: who submits which jobs when, on what cluster, under which policy."""

import hashlib
from collections.abc import Mapping

import msgspec

from fairlead_contracts.base.instants import Micros, to_seconds
from fairlead_contracts.frontend.verbs import CreateJob
from fairlead_contracts.messages.submissions import Submission
from fairlead_contracts.policyfile.document import Aging, Grant, PolicyDocument, Pool, Tenant
from fairlead_sim.config import ClusterConfig, NodeGroup, QueueConfig
from fairlead_sim.lines import QueueStrategy


class WorkloadJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that a tenant will submit."""

    id: str
    tenant: str
    offset: Micros
    """Time of its submission, from the start of the workload."""
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
    """Weights by tenant, in the order in which tenants are shown."""
    cluster: ClusterConfig
    policy: PolicyDocument
    jobs: list[WorkloadJob]
    """Jobs in the order of their offsets."""
    speed_up: float = 1.0
    """Divisor of the trace's run times, and factor of its aging rate."""
    notes: list[str] = []
    """Notes on how the workload was made, for the report."""

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
        return self.cluster.capacity(POOL)


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
) -> PolicyDocument:
    """The policy document of a workload: its tenants and weights, and who may be urgent."""
    return PolicyDocument(
        aging=aging,
        window=32,
        pools=[Pool(name=POOL, members=[f"{cluster}/{POOL}"])],
        tenants=[Tenant(name=tenant, weight=weight) for tenant, weight in weights.items()],
        grants=[Grant(tenant=tenant, classes=["urgent"], by="demo") for tenant in urgent],
    )
