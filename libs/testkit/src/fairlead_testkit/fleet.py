"""A whole Fairlead as the processes that it is in production, for tests that span services."""

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from fairlead_bus import Bus, ConnectionSettings, Publisher, connect, provision
from fairlead_contracts import subjects, topology
from fairlead_contracts.codec import to_json
from fairlead_contracts.document import PolicyDocument
from fairlead_contracts.questions import QUEUE_REPLY, PoolQueue, QueueQuestion
from fairlead_testkit.nats_server import NatsServer
from fairlead_testkit.people import put_policy
from fairlead_testkit.process import ServiceProcess

CLUSTER = "sim"


class Fleet:
    """One nats-server, one simulated cluster, any number of scorers and admitters.

    Args:
        directory: of logs, stores and configuration.
        policy: stored before the services start.
        cluster_config: of the simulated cluster, as it stands in its YAML file.
        scorers: how many.
        admitters: how many; one leads.
        settings: of all services, by field name.
    """

    def __init__(
        self,
        directory: Path,
        *,
        policy: PolicyDocument,
        cluster_config: Mapping[str, object],
        scorers: int = 2,
        admitters: int = 1,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.directory = directory
        self.policy = policy
        self.server = NatsServer(directory / "nats")
        self.store = directory / "cluster.db"
        self._config = directory / "cluster.json"  # JSON is YAML
        self._config.write_bytes(msgspec.json.encode(cluster_config))
        self._settings = dict(settings or {})
        self._counts = {"scorer": scorers, "admitter": admitters}
        self.services: dict[str, ServiceProcess] = {}
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
            async with connect(ConnectionSettings(url=self.server.url), name="test") as bus:
                await provision(bus, topology.topology([CLUSTER]))
                await self.apply(bus, self.policy)
                for service in self._plan():
                    ending.enter_context(service)
                for service in self.services.values():
                    await service.ready()
                yield bus

    async def apply(self, bus: Bus, policy: PolicyDocument) -> int:
        """Store a policy; gives its revision."""
        self.policy = policy
        return await put_policy(bus, policy)

    def named(self, service: str) -> list[ServiceProcess]:
        """The processes of one service."""
        return [process for process in self.services.values() if process.service == service]

    async def another_scorer(self) -> ServiceProcess:
        """One more scorer, ready."""
        scorer = self._process("scorer", f"scorer-{len(self.named('scorer')) + 1}", {})
        return await self._ending.enter_context(scorer).ready()

    def _plan(self) -> list[ServiceProcess]:
        sim = {"cluster": CLUSTER, "store": self.store, "cluster_file": self._config}
        planned = [self._process("sim", "sim", sim)]
        for service, count in self._counts.items():
            own = {"cluster": CLUSTER} if service == "admitter" else {}
            planned += [self._process(service, f"{service}-{n}", own) for n in range(1, count + 1)]
        return planned

    def _process(self, service: str, name: str, own: Mapping[str, object]) -> ServiceProcess:
        settings = {"nats_url": self._url, "replica": name, **self._settings, **own}
        self.services[name] = ServiceProcess(service, self.directory, settings, name=name)
        return self.services[name]


async def submit_all(bus: Bus, tenant: str, bodies: Iterable[Mapping[str, object]]) -> list[str]:
    """Publish jobs of one tenant and wait until all are stored; gives their ids."""
    publisher = Publisher(bus)
    ids = []
    for body in bodies:
        ids.append(str(body["id"]))
        await publisher.put(subjects.submit(CLUSTER, tenant), msgspec.json.encode(body), msg_id=ids[-1])
    await publisher.flush()
    return ids


async def whole_queue(bus: Bus, pool: str) -> PoolQueue:
    """The pool's whole order, as the scorers answer."""
    question = to_json(QueueQuestion(pool=pool, limit=0))
    reply = QUEUE_REPLY.decode(await bus.request(subjects.ask("queue"), question, timeout=5.0))
    return next(found for found in reply.pools if found.pool == pool)


def equal_jobs(prefix: str, count: int, *, run_seconds: float, gpus: int = 1) -> Sequence[dict[str, object]]:
    """Submissions that differ in nothing but their id."""
    return [
        {"id": f"{prefix}-{number:04d}", "demand": {"nvidia.com/gpu": gpus}, "run_seconds": run_seconds}
        for number in range(count)
    ]
