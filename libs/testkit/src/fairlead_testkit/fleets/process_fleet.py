"""Several of Fairlead's services as the processes that they are in production, with nats-servers of their own.

The servers have the shipped accounts: each service connects as its own user and may do what that user may.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from fairlead_bus import Bus, ConnectionSettings, connect
from fairlead_bus.server.accounts import AccountLayout
from fairlead_bus.server.provision import provision
from fairlead_contracts import topology
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_testkit.by_hand.people import put_policy
from fairlead_testkit.nats_servers.guarded import ROOT, issue_keys
from fairlead_testkit.nats_servers.nats_cluster import NatsCluster
from fairlead_testkit.nats_servers.nats_server import NatsServer
from fairlead_testkit.processes.process import ServiceProcess

OPERATOR = "ann"
_USERS = {"sim": "watcher", "slurm_bridge": "watcher"}
"""Users as whom services connect, where that is not the service's name."""
_START_SECONDS = 90.0
"""Seconds for all to start: they do so at once, half a second of work each; a busy machine takes its time for that."""


class ProcessFleet:
    """A nats-server and services; which ones, a subclass says.

    Args:
        cluster: the one that is served; of several the first.
        policy: stored before the services start.
        counts: number of replicas, by service.
        servers: number of nats-servers; of several each has a copy of each stream, and `servers` are they.
        beside: the other clusters, where a subclass serves several.
    """

    def __init__(
        self,
        directory: Path,
        *,
        cluster: str,
        policy: PolicyDocument,
        counts: Mapping[str, int],
        settings: Mapping[str, object] | None = None,
        servers: int = 1,
        beside: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.cluster = cluster
        self._clusters = [cluster, *beside]
        self.policy = policy
        tenants = [tenant.name for tenant in policy.tenants]
        layout = AccountLayout(
            clusters=self._clusters, groups={name: [name] for name in tenants}, operators=[OPERATOR]
        )
        self._keys = issue_keys(directory, layout.accounts)
        self._replicas = servers
        self.server = NatsServer(directory / "nats", config=self._keys.config)
        """The one nats-server; never started where there are several."""
        self.servers = NatsCluster(directory / "nats-cluster", size=servers, config=self._keys.config)
        """The several nats-servers; never started where there is one."""
        self._nats = self.server if servers == 1 else self.servers
        self.services: dict[str, ServiceProcess] = {}
        self._counts = dict(counts)
        self._settings = dict(settings or {})
        self._ending = contextlib.ExitStack()
        self._url = ""

    @contextlib.asynccontextmanager
    async def running(self, *, through: str | None = None) -> AsyncIterator[Bus]:
        """Starts everything and waits until it is ready, for the time of the block; gives a connection of its own.

        Args:
            through: the address that services connect to, where it is not the server's own (a proxy's).
        """
        with self._ending as ending:
            if not self._nats.running:
                ending.enter_context(self._nats)
            self._url = through or self._nats.url
            root = ConnectionSettings(url=self._nats.url, nkey_seed=str(self._keys.seeds[ROOT]))
            async with connect(root, name="test") as bus:
                await self.prepare(bus)
                for service in self._plan():
                    # Beside the loop: a proxy of the test's serves there, and services give up where nobody answers them.
                    await asyncio.to_thread(ending.enter_context, service)
                await self.all_ready()
                yield bus

    async def all_ready(self) -> None:
        """Wait until every service is ready."""
        for service in self.services.values():
            await service.ready(_START_SECONDS)

    async def prepare(self, bus: Bus) -> None:
        """Make streams and buckets and put the policy, before the first service looks for them."""
        if self._replicas > 1:
            await self.servers.quorum()
        await provision(bus, topology.topology(self._clusters), replicas=self._replicas)
        await self.apply(bus, self.policy)

    async def apply(self, bus: Bus, policy: PolicyDocument) -> int:
        """Store a policy; gives its revision."""
        self.policy = policy
        return await put_policy(bus, policy)

    def person(self, user: str = f"operator.{OPERATOR}") -> dict[str, str]:
        """The environment of somebody with the `fairlead` command, an operator or `tenant.<name>`."""
        return {
            "FAIRLEAD_NATS_URL": self._nats.url,
            "FAIRLEAD_NATS_NKEY_SEED": str(self._keys.seeds[user]),
        }

    def named(self, service: str) -> list[ServiceProcess]:
        """The processes of one service."""
        return [process for process in self.services.values() if process.service == service]

    async def health_ports(self, *services: str) -> dict[str, list[int]]:
        """The ports of these services' metrics, as Prometheus is told them: by `fairlead-<service>`."""
        return {
            f"fairlead-{service.replace('_', '-')}": [
                await process.health_port() for process in self.named(service)
            ]
            for service in services
        }

    async def another(self, service: str, *, sources: Sequence[Path] = ()) -> ServiceProcess:
        """Starts a further process of a service, to be ready; of another release, where its sources are given."""
        name = f"{service}-{len(self.named(service)) + 1}"
        process = self._process(service, name, self.own_settings(service), sources)
        return await self._ending.enter_context(process).ready(_START_SECONDS)

    def own_settings(self, service: str) -> Mapping[str, object]:
        """Settings of a service beside those of all: its cluster, unless it serves every one."""
        return {} if service == "scorer" else {"cluster": self.cluster}

    def _plan(self) -> list[ServiceProcess]:
        return [
            self._process(service, f"{service}-{number}", self.own_settings(service))
            for service, count in self._counts.items()
            for number in range(1, count + 1)
        ]

    def _process(
        self, service: str, name: str, own: Mapping[str, object], sources: Sequence[Path] = ()
    ) -> ServiceProcess:
        user = _USERS.get(service, service)
        cluster = own.get("cluster", self.cluster)
        seed = self._keys.seeds[user if service == "scorer" else f"{user}.{cluster}"]
        settings = {"nats_url": self._url, "nats_nkey_seed": seed, "replica": name, **self._settings, **own}
        self.services[name] = ServiceProcess(service, self.directory, settings, name=name, sources=sources)
        return self.services[name]
