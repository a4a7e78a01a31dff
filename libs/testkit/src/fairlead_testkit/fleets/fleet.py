"""A whole Fairlead as the processes that it is in production, for tests that span services."""

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path

import msgspec

from fairlead_bus import Bus, Publisher, RemoteError, RetryableBusError
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.questions import QUEUE_REPLY, PoolQueue, QueueQuestion
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_testkit.fleets.process_fleet import ProcessFleet
from fairlead_testkit.inputs.builders import a_weighted_policy
from fairlead_testkit.timing.awaiting import eventually

CLUSTER = "sim"


class Fleet(ProcessFleet):
    """A nats-server or several, one simulated cluster, any number of scorers and admitters.

    Args:
        gpus: number of GPUs of each of the simulated cluster's nodes; all tenants of the policy enter by its one queue.
        cluster_config: configuration of another cluster, as it stands in its YAML file.
        sims: number of simulated clusters: one; none where a test starts it itself.
        admitters: number of admitters; one leads.
    """

    def __init__(
        self,
        directory: Path,
        *,
        policy: PolicyDocument,
        gpus: int = 8,
        nodes: int = 1,
        cluster_config: Mapping[str, object] | None = None,
        sims: int = 1,
        scorers: int = 2,
        admitters: int = 1,
        settings: Mapping[str, object] | None = None,
        servers: int = 1,
    ) -> None:
        counts = {"sim": sims, "scorer": scorers, "admitter": admitters}
        super().__init__(
            directory, cluster=CLUSTER, policy=policy, counts=counts, settings=settings, servers=servers
        )
        self.store = directory / "cluster.db"
        self._config = directory / "cluster.json"  # JSON is YAML
        equal = {
            "nodes": [{"name": "node", "count": nodes, "allocatable": {"nvidia.com/gpu": gpus}}],
            "queues": [{"name": "main"}],
            "accounts": dict.fromkeys((tenant.name for tenant in policy.tenants), "main"),
        }
        self._config.write_bytes(msgspec.json.encode(cluster_config or equal))

    def own_settings(self, service: str) -> Mapping[str, object]:
        """Adds to the base's: the simulated cluster has its store and its configuration, too."""
        own = dict(super().own_settings(service))
        return own | ({"store": self.store, "cluster_file": self._config} if service == "sim" else {})


def one_pool(tenants: Iterable[str] | Mapping[str, float], **more: object) -> PolicyDocument:
    """A policy of the cluster's one pool, called `gpu`.

    Args:
        tenants: names of the tenants, of weight 1, or weights by name.
    """
    weights = tenants if isinstance(tenants, Mapping) else dict.fromkeys(tenants, 1.0)
    return a_weighted_policy(weights, "gpu", f"{CLUSTER}/gpu", **more)


async def submit_all(
    bus: Bus, tenant: str, bodies: Iterable[Mapping[str, object]], *, cluster: str = CLUSTER
) -> list[str]:
    """Publish jobs of one tenant and wait until all are stored; gives their ids."""
    publisher = Publisher(bus)
    ids = []
    for body in bodies:
        ids.append(str(body["id"]))
        await publisher.put(subjects.submit(cluster, tenant), msgspec.json.encode(body), msg_id=ids[-1])
    await publisher.flush()
    return ids


async def whole_queue(bus: Bus, pool: str) -> PoolQueue:
    """The pool's whole order, as the scorers answer; asked again where one stood still, reads the state or lacks the pool."""
    question = to_json(QueueQuestion(pool=pool, limit=0))

    async def answered() -> PoolQueue | None:
        try:
            reply = QUEUE_REPLY.decode(await bus.request(subjects.ask("queue"), question, timeout=5.0))
        except RetryableBusError:
            return None
        except RemoteError as error:
            if error.code != HTTPStatus.SERVICE_UNAVAILABLE:
                raise
            return None
        return next((found for found in reply.pools if found.pool == pool), None)

    return await eventually(answered, 30, what=f"the scorers answer for {pool}")


async def all_wait(bus: Bus, pool: str, jobs: int, seconds: float = 60.0, *, or_more: bool = False) -> None:
    """Wait until so many jobs wait in the pool's order, or at least so many: what came before is decided on."""

    async def stand() -> bool:
        waiting = (await whole_queue(bus, pool)).waiting
        return waiting == jobs or (or_more and waiting > jobs)

    await eventually(stand, seconds, what=f"{jobs} jobs wait in pool {pool}")


def equal_jobs(prefix: str, count: int, *, run_seconds: float, gpus: int = 1) -> Sequence[dict[str, object]]:
    """Submissions that differ in nothing but their id."""
    return [
        {"id": f"{prefix}-{number:04d}", "demand": {"nvidia.com/gpu": gpus}, "run_seconds": run_seconds}
        for number in range(count)
    ]
