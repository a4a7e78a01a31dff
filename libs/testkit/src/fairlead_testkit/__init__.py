"""Testkit of Fairlead's tests: builders, an exact oracle, a real nats-server, and service processes.

Never shipped: import-linter keeps it out of every other member. Its rooms, from what needs nothing to what needs all:

- `timing`, `processes`: waiting for what has to come, and processes that are watched and ended by their pid;
- `inputs`, `oracles`: messages with defaults, random documents, and what is right by brute force or by a paper;
- `nats_servers`: a real nats-server, a cluster of them, one with accounts, and a bad network before it;
- `labs`, `kubelab`, `slurmlab`: a real Kueue or a real Slurm on this machine, which know nothing of one another;
- `by_hand`: for tests of one service, all that surrounds it: `bus_harness` for scorers, `fake_cluster` for an admitter,
  `one_pod` for the gate of Slurm's bridge;
- `kueue`: namespaces and queues of one test on a lab that many share, and who was admitted in which order;
- `fleets`: a whole Fairlead as the processes of production, alone (`fleet`) or beside labs;
- `chaos`: load under kills, pauses and hostile tenants, and what became of each job;
- `telemetry`: Prometheus, Jaeger and a registry of images, as a deployment has them;
- `source`: the sentences and settings that the code holds, read from its text;
- `pytest_plugin`: labs and servers as fixtures, lanes of workers, second tries, and hypothesis profiles.
"""

from fairlead_testkit.nats_servers.nats_server import NatsServer
from fairlead_testkit.oracles.oracle import OracleJob, OraclePosition, OracleRules, fill
from fairlead_testkit.processes.own_process import OwnProcessError
from fairlead_testkit.processes.process import ServiceProcess, running
from fairlead_testkit.timing.awaiting import NeverHappenedError, eventually

__all__ = [
    "NatsServer",
    "NeverHappenedError",
    "OracleJob",
    "OraclePosition",
    "OracleRules",
    "OwnProcessError",
    "ServiceProcess",
    "eventually",
    "fill",
    "running",
]
