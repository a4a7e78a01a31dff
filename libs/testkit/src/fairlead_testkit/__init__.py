"""Testkit of Fairlead's tests: builders, an exact oracle, a real nats-server, and service processes.

Never shipped: import-linter keeps it out of every other member. What a test needs, by how much of Fairlead it runs:

- values alone: `builders` (one for each message), `waiting` (a job to be ordered), `examples` (every field set),
  `oracle` (fairness by brute force, in trees too) and `tree_scenes` (told to it and to the policy core alike), `filling`
  (the papers' backlogged tenants), `fuzz_inputs` (documents nearly right), `cases` (how many random ones), `manual_clock`;
- a client of an API server or of any other, whose answers the test gives: `http_server`, `kube_observer_log`;
- one scorer or several, with clusters stated by hand: `bus_harness`; the answers of one, in no service: `scorer_ports`;
- one admitter, with the cluster and the scorers played by hand: `fake_cluster`;
- the gate of Slurm's bridge, with slurmctld and Kubernetes played by hand: `one_pod`;
- everything, as the processes of production: `fleet`; under kills, pauses and a bad network: `chaos_load`, `proxy`; what became
  of each job after that: `audit`;
- a real Kueue or a real Slurm on this machine: `kubelab` and `slurmlab`, which know nothing of one another and share
  `labs`; the fleet beside them: `kube_fleet`, `slurm_fleet`, `joined_fleet`, and `pod_fleet` for Slurm's pods.

All of them stand on `nats_server` (or `nats_cluster`, `container`), run services by `bus_harness.serving` (in this process) or
`process`, and `fairlead up` by `local_instance`; each process is an `own_process`. They act as `people` do, look at
`streams`, run tasks `beside` a block, and wait by `awaiting`. `plugin` gives pytest the server as a fixture, and
hypothesis its profiles.
"""

from fairlead_testkit.awaiting import NeverHappenedError, eventually
from fairlead_testkit.nats_server import NatsServer
from fairlead_testkit.oracle import OracleJob, OraclePosition, OracleRules, fill
from fairlead_testkit.own_process import OwnProcessError
from fairlead_testkit.process import ServiceProcess, running

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
