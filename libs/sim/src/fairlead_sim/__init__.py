"""A simulated cluster: as a service on the same contracts as the real ones, and as a library in virtual time.

`SimCluster` is the pure core that both share: nodes, pools, queues, accounts, jobs; it admits as Kueue does. `VirtualRun`
drives it through a workload under a discipline. `python -m fairlead_sim` serves it, with its truth in a SQLite file.
`demo_workload` makes the demo's workload from a real trace.

Where to find what. The core: `cluster`, with its `pool`s and their `lines`, `jobs` and their `lifecycle`; `changes` leave
it. The service: `service` is the loop, `store` the file, `statements` are what the bus's announcer tells NATS, `app` wires
it. Virtual time: `workload`, `trace` and `demo` make jobs, `virtual` runs them, `disciplines` and `steered` order them,
`meter` measures.
"""

from fairlead_sim.changes import ClusterChanges, ClusterCounters, JobRetention, UsedName
from fairlead_sim.cluster import SimCluster
from fairlead_sim.config import (
    ClusterConfig,
    NodeGroup,
    QueueConfig,
    load_cluster,
    read_config,
    render_config,
)
from fairlead_sim.demo import demand_of, demo_workload
from fairlead_sim.disciplines import Fifo, StrictPriority
from fairlead_sim.errors import ClusterStoreError, ConfigError, SimError, StuckError, TraceError
from fairlead_sim.jobs import JobName, SimJob
from fairlead_sim.lines import QueueStrategy
from fairlead_sim.meter import PoolSample, ShareMeter, jain, quantile
from fairlead_sim.steered import SteeredPool, steered
from fairlead_sim.trace import TraceJob, by_tenant, read_trace, shipped_trace
from fairlead_sim.virtual import Discipline, JobResult, RunResult, VirtualRun, Waits
from fairlead_sim.workload import SimWorkload, WorkloadJob, equal_floods, one_pool, policy_for

__all__ = [
    "ClusterChanges",
    "ClusterConfig",
    "ClusterCounters",
    "ClusterStoreError",
    "ConfigError",
    "Discipline",
    "Fifo",
    "JobName",
    "JobResult",
    "JobRetention",
    "NodeGroup",
    "PoolSample",
    "QueueConfig",
    "QueueStrategy",
    "RunResult",
    "ShareMeter",
    "SimCluster",
    "SimError",
    "SimJob",
    "SimWorkload",
    "SteeredPool",
    "StrictPriority",
    "StuckError",
    "TraceError",
    "TraceJob",
    "UsedName",
    "VirtualRun",
    "Waits",
    "WorkloadJob",
    "by_tenant",
    "demand_of",
    "demo_workload",
    "equal_floods",
    "jain",
    "load_cluster",
    "one_pool",
    "policy_for",
    "quantile",
    "read_config",
    "read_trace",
    "render_config",
    "shipped_trace",
    "steered",
]
