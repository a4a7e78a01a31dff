"""Workloads of tenants that flood the simulated pool with equal jobs, each from its own moment on."""

from collections.abc import Mapping

from fairlead_contracts.base.instants import from_seconds
from fairlead_contracts.policyfile.document import Aging
from fairlead_sim.config import NodeGroup
from fairlead_sim.workload import SimWorkload, WorkloadJob, one_pool, policy_for

_DEMAND = {"nvidia.com/gpu": 1000, "cpu": 8000}


def equal_floods(
    weights: Mapping[str, float],
    *,
    jobs: int,
    run_seconds: float,
    nodes: NodeGroup,
    starts: Mapping[str, float] | None = None,
    every: float = 0.0,
) -> SimWorkload:
    """The workload, under a policy that does not age: jobs of one card and eight cores each.

    Args:
        starts: second at which a tenant floods; 0 where none is given.
        every: seconds between two submissions of a tenant; all at once by default.
    """
    moments = starts or {}
    flood = [
        WorkloadJob(
            id=f"{tenant}-{number:05d}",
            tenant=tenant,
            offset=from_seconds(moments.get(tenant, 0.0) + number * every),
            demand=_DEMAND,
            run=from_seconds(run_seconds),
        )
        for tenant in weights
        for number in range(jobs)
    ]
    return SimWorkload(
        name="equal floods",
        weights=dict(weights),
        cluster=one_pool(nodes, weights, strategy="best-effort"),
        policy=policy_for(weights, cluster="sim", aging=Aging(entitlement_per_day=0.0)),
        jobs=sorted(flood, key=lambda job: (job.offset, job.id)),
    )
