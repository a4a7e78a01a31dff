"""Several of Fairlead's services as the processes that they are in production, with a nats-server of their own.

The server has the shipped accounts: each service connects as its own user and may do what that user may.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from fairlead_bus import Bus, connect, provision
from fairlead_bus.accounts import Layout
from fairlead_contracts import topology
from fairlead_contracts.document import PolicyDocument
from fairlead_testkit.guarded import guarded
from fairlead_testkit.people import put_policy
from fairlead_testkit.process import ServiceProcess

OPERATOR = "ann"
_USERS = {"sim": "watcher"}
"""As whom a service connects, where that is not its name."""


class ProcessFleet:
    """A nats-server and services; which ones, a subclass says.

    Args:
        directory: of logs, stores and configuration.
        cluster: the one that is served.
        policy: stored before the services start.
        counts: of replicas, by service.
        settings: of all services, by field name.
    """

    def __init__(
        self,
        directory: Path,
        *,
        cluster: str,
        policy: PolicyDocument,
        counts: Mapping[str, int],
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.directory = directory
        self.cluster = cluster
        self.policy = policy
        tenants = [tenant.name for tenant in policy.tenants]
        layout = Layout(clusters=[cluster], groups={name: [name] for name in tenants}, operators=[OPERATOR])
        self._guarded = guarded(directory, layout)
        self.server = self._guarded.server
        self.services: dict[str, ServiceProcess] = {}
        self._counts = dict(counts)
        self._settings = dict(settings or {})
        self._ending = contextlib.ExitStack()
        self._url = ""

    @contextlib.asynccontextmanager
    async def running(self, *, through: str | None = None) -> AsyncIterator[Bus]:
        """Everything started and ready, for the time of the block; gives a connection of its own.

        Args:
            through: the address that services connect to, where it is not the server's own (a proxy's).
        """
        with self._ending as ending:
            if not self.server.running:
                ending.enter_context(self.server)
            self._url = through or self.server.url
            async with connect(self._guarded.root, name="test") as bus:
                await self.prepare(bus)
                for service in self._plan():
                    ending.enter_context(service)
                for service in self.services.values():
                    await service.ready()
                yield bus

    async def prepare(self, bus: Bus) -> None:
        """Streams, buckets and the policy, before the first service looks for them."""
        await provision(bus, topology.topology([self.cluster]))
        await self.apply(bus, self.policy)

    async def apply(self, bus: Bus, policy: PolicyDocument) -> int:
        """Store a policy; gives its revision."""
        self.policy = policy
        return await put_policy(bus, policy)

    def person(self, user: str = f"operator.{OPERATOR}") -> dict[str, str]:
        """The environment of somebody with the `fairlead` command, an operator or `tenant.<name>`."""
        return {
            "FAIRLEAD_NATS_URL": self.server.url,
            "FAIRLEAD_NATS_NKEY_SEED": str(self._guarded.seeds[user]),
        }

    def named(self, service: str) -> list[ServiceProcess]:
        """The processes of one service."""
        return [process for process in self.services.values() if process.service == service]

    async def another_scorer(self) -> ServiceProcess:
        """One more scorer, ready."""
        scorer = self._process("scorer", f"scorer-{len(self.named('scorer')) + 1}", {})
        return await self._ending.enter_context(scorer).ready()

    def own_settings(self, service: str) -> Mapping[str, object]:
        """What a service is told beside the settings of all: its cluster, unless it serves every one."""
        return {} if service == "scorer" else {"cluster": self.cluster}

    def _plan(self) -> list[ServiceProcess]:
        return [
            self._process(service, f"{service}-{number}", self.own_settings(service))
            for service, count in self._counts.items()
            for number in range(1, count + 1)
        ]

    def _process(self, service: str, name: str, own: Mapping[str, object]) -> ServiceProcess:
        user = _USERS.get(service, service)
        seed = self._guarded.seeds[user if service == "scorer" else f"{user}.{self.cluster}"]
        settings = {"nats_url": self._url, "nats_nkey_seed": seed, "replica": name, **self._settings, **own}
        self.services[name] = ServiceProcess(service, self.directory, settings, name=name)
        return self.services[name]
