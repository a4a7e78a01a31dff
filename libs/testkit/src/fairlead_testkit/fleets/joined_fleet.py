"""A whole Fairlead beside a real Slurm and a real Kueue at once: one pool over a partition and a ClusterQueue."""

from collections.abc import Mapping
from pathlib import Path

from fairlead_bus import Bus
from fairlead_contracts.policyfile.document import Aging, Match, PolicyDocument, Pool, Tenant
from fairlead_testkit.by_hand.people import give_leave
from fairlead_testkit.fleets.kube_fleet import KUBE_CLUSTER
from fairlead_testkit.fleets.process_fleet import ProcessFleet
from fairlead_testkit.fleets.slurm_fleet import POLL_SECONDS
from fairlead_testkit.kubelab import ADMITTER, WATCHER, KubeLab
from fairlead_testkit.kueue.namespace_fixture import NamespaceFixture
from fairlead_testkit.processes.process import ServiceProcess
from fairlead_testkit.slurmlab import SlurmLab

SLURM_CLUSTER = "hpc"
"""The name that Fairlead has for the Slurm lab here: both labs call themselves `lab`."""
PARTITION = "gpu"
POOL = "gpus"


class JoinedFleet(ProcessFleet):
    """A nats-server, and the services that serve both labs."""

    def __init__(self, directory: Path, slurm: SlurmLab, kube: KubeLab, *, policy: PolicyDocument) -> None:
        super().__init__(
            directory, cluster=KUBE_CLUSTER, policy=policy, counts={"scorer": 1}, beside=[SLURM_CLUSTER]
        )
        self.slurm = slurm
        self.kube = kube

    async def prepare(self, bus: Bus) -> None:
        """Prepares the fleet, with the leave to steer both clusters."""
        await super().prepare(bus)
        await give_leave(bus, "boost", cluster=KUBE_CLUSTER)
        await give_leave(bus, "site-factor", cluster=SLURM_CLUSTER)

    def _plan(self) -> list[ServiceProcess]:
        bridge = {
            "cluster": SLURM_CLUSTER,
            "slurm_conf": self.slurm.conf,
            "store": self.directory / "slurm-bridge.db",
            "poll_seconds": POLL_SECONDS,
        }
        return [
            *super()._plan(),
            self._process("watcher", "watcher", self._kube(WATCHER)),
            self._process("admitter", "admitter-kueue", self._kube(ADMITTER) | {"frontend": "kueue"}),
            self._process("slurm_bridge", "slurm-bridge", bridge),
            self._process("admitter", "admitter-slurm", {"cluster": SLURM_CLUSTER}),
        ]

    def _kube(self, user: str) -> dict[str, object]:
        return {"cluster": KUBE_CLUSTER, "kubeconfig": self.kube.kubeconfig(user)}


def joined_policy(
    fixture: NamespaceFixture, weights: Mapping[str, float], queue: str, **pool: object
) -> PolicyDocument:
    """A policy of one pool over the partition and a ClusterQueue; a tenant is a Slurm account and a namespace."""
    return PolicyDocument(
        aging=Aging(entitlement_per_day=0.0),
        pools=[
            Pool(
                name=POOL,
                members=[f"{SLURM_CLUSTER}/{PARTITION}", f"{KUBE_CLUSTER}/{queue}"],
                **pool,  # type: ignore[arg-type] # passed on
            )
        ],
        tenants=[
            Tenant(name=name, weight=weight, match=Match(scopes=[name, fixture.namespaces[name]]))
            for name, weight in weights.items()
        ],
    )
