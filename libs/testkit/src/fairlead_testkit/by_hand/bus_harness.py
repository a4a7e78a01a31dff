"""A bus harness for services that decide: a real server with its topology, and clusters that are stated by hand.

Readers' view of the order stands beside the one that is computed from scratch.

`serving` runs a replica of a service within the test's own process: quick to start, and open to a debugger. For the service
as the process that it is in production, see `process`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol, Self

import msgspec

from fairlead_bus import Bus, ConnectionSettings, Delivery, Mirror, Publisher, bucket_stream, connect
from fairlead_bus.facts.mirrors import decision_mirror
from fairlead_bus.server.provision import provision
from fairlead_bus.work.worker import Worker
from fairlead_contracts import subjects
from fairlead_contracts.messages.decisions import DECISION, Basis, Decision, Position
from fairlead_contracts.messages.members import MEMBER_LEASE, MemberLease
from fairlead_contracts.messages.state import (
    JobState,
    Phase,
    QueueState,
    State,
    encode_state,
    subject_of,
)
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.topology import MEMBERS, SUBMIT, submit_durable, topology
from fairlead_policy.order.merging import merge_positions
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import JobQueue
from fairlead_policy.rules.pool_rules import ORDER_RULES
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.stated_facts import StatedFacts
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_runtime.settings import ServiceSettings
from fairlead_testkit.by_hand.people import put_policy
from fairlead_testkit.inputs.builders import NOW, a_document, a_mark
from fairlead_testkit.processes.process import ServiceProcess
from fairlead_testkit.timing.awaiting import eventually
from fairlead_testkit.timing.in_hand import beside

_SECONDS = 60.0
"""Time for what readers see to come right; only spent on failure."""

type DeliveryHandler = Callable[[Delivery], Awaitable[None]]
type ServiceMain[S: ServiceSettings] = Callable[[S, Lifecycle], Awaitable[None]]


@asynccontextmanager
async def serving[S: ServiceSettings](
    main: ServiceMain[S], settings: S, replica: str
) -> AsyncIterator[Lifecycle]:
    """Runs the service until the block ends; it is then asked to stop as by a signal."""
    lifecycle = Lifecycle(main.__module__.removeprefix("fairlead_").partition(".")[0], replica)

    async def live() -> None:
        await main(settings, lifecycle)

    async with asyncio.TaskGroup() as group:
        group.create_task(live(), name=replica)
        try:
            yield lifecycle
        finally:
            lifecycle.ask_stop("the test is over")


def sample(service: Lifecycle, name: str, **labels: str) -> float:
    """The value of one of the service's own metrics; 0 before there is one."""
    return service.metrics.registry.get_sample_value(f"fairlead_{service.service}_{name}", labels) or 0.0


@asynccontextmanager
async def working(bus: Bus, handle: DeliveryHandler, **more: object) -> AsyncIterator[Worker]:
    """A worker on submissions to the cluster `c1`, with `more` of a worker's arguments, for the time of the block."""
    worker = Worker(bus, stream=SUBMIT, durable=submit_durable("c1"), handle=handle, **more)  # type: ignore[arg-type] # passed on
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()


class Server(Protocol):
    """A server, by where it listens."""

    @property
    def url(self) -> str:
        """The server's address."""


class BusHarness:
    """A nats-server, the clusters on it, and what its readers see."""

    def __init__(self, server: Server, bus: Bus, directory: Path, stack: AsyncExitStack) -> None:
        self.server = server
        self.bus = bus
        self.directory = directory
        self.known: dict[str, State] = {}
        self.document: PolicyDocument = a_document()
        self.revision = 0
        self.changed = asyncio.Event()
        """Set whenever a decision or a lease has changed."""
        self._stack = stack
        self.decisions = decision_mirror(bus, DECISION, self.changed)
        self.members: Mirror[MemberLease] = Mirror(
            bus,
            stream=bucket_stream(MEMBERS),
            filter=subjects.kv_subject(MEMBERS, "member.>"),
            codec=MEMBER_LEASE,
            wake=self.changed,
        )

    @classmethod
    @asynccontextmanager
    async def open(cls, server: Server, directory: Path) -> AsyncIterator[Self]:
        """A harness on a server that is provisioned for clusters `c1` and `c2`; ends every process of it."""
        async with AsyncExitStack() as stack:
            bus = await stack.enter_async_context(connect(ConnectionSettings(url=server.url), name="test"))
            await provision(bus, topology(["c1", "c2"]))
            harness = cls(server, bus, directory, stack)
            async with beside(harness.decisions.run(), harness.members.run()):
                yield harness

    # What clusters and operators do -------------------------------------------------------------------------------

    async def state(self, *states: State) -> None:
        """State these objects."""
        publisher = Publisher(self.bus)
        for state in states:
            await publisher.put(subject_of(state), encode_state(state))
            self.known[subject_of(state)] = state
        await publisher.flush()

    async def delete(self, state: State) -> None:
        """Take an object away."""
        await self.bus.delete(subject_of(state))
        self.known.pop(subject_of(state), None)

    async def mark(self, *clusters: str) -> None:
        """Confirm the state of `c1`, or of these clusters, to the server as it runs now."""
        marks = [a_mark(cluster=name, incarnation=self.bus.incarnation) for name in clusters or ("c1",)]
        await self.state(*marks)

    async def policy(self, document: PolicyDocument) -> None:
        """Put a policy document in force."""
        self.document = document
        self.revision = await put_policy(self.bus, document)

    # Services -----------------------------------------------------------------------------------------------------

    def serving[S: ServiceSettings](
        self, main: ServiceMain[S], kind: type[S], name: str, **settings: object
    ) -> AbstractAsyncContextManager[Lifecycle]:
        """A replica of a service within this process, until the block ends."""
        given = {"nats_url": self.server.url, "health_port": -1, **settings}
        return serving(main, msgspec.convert(given, kind), name)

    def process(self, service: str, name: str, **settings: object) -> ServiceProcess:
        """A replica as a process of its own, not started yet; killed at the end of the harness."""
        process = ServiceProcess(
            service, self.directory, {"nats_url": self.server.url, "replica": name, **settings}, name=name
        )
        self._stack.callback(process.kill)
        return process

    # What readers see ---------------------------------------------------------------------------------------------

    def owners(self, pool: str = "c1/gpu") -> dict[int, str]:
        """The owner of each shard, as the leases say."""
        return {
            shard: lease.replica
            for lease in self.members.values.values()
            for holding in lease.holdings
            if holding.pool == pool
            for shard in holding.shards
        }

    def shards(self, pool: str = "c1/gpu") -> list[Decision]:
        """The last decision of each shard, by shard."""
        found = [decision for decision in self.decisions.values.values() if decision.pool == pool]
        return sorted(found, key=lambda decision: decision.shard)

    def order(self, pool: str = "c1/gpu") -> bytes | None:
        """The merged heads of all shards at one fixed instant; None while they cannot be merged."""
        return self.merged(self.shards(pool), pool)

    def merged(self, shards: Sequence[Decision], pool: str = "c1/gpu") -> bytes | None:
        """The order that these decisions, one of each shard, merge into."""
        expected = self._from_scratch(pool)
        capacity = dict(expected.rules.capacity)
        basis = Basis(policy=self.revision, capacity=capacity, rules=ORDER_RULES)
        if len(shards) != self.document.shards or any(decision.basis != basis for decision in shards):
            return None
        parts: dict[JobQueue, list[list[Position]]] = {}
        for heads in (heads for decision in shards for heads in decision.queue_heads):
            queue = JobQueue(heads.cluster, heads.queue, bool(heads.flavorless))
            parts.setdefault(queue, []).append(heads.positions)
        return self._encoded(
            {key: merge_positions(found, expected.rules, NOW) for key, found in parts.items()}
        )

    def expected(self, pool: str = "c1/gpu") -> bytes:
        """The merged order computed from scratch: one order, no shards, no history."""
        return self._encoded(self._from_scratch(pool).at(NOW).queue_heads(self.document.window))

    async def settled(self, pool: str = "c1/gpu") -> None:
        """Wait until the merged order is the one computed from scratch."""
        expected = self.expected(pool)
        await eventually(
            lambda: self.order(pool) == expected, _SECONDS, on=self.changed, what="the order is right"
        )

    async def owned_by(self, *names: str) -> None:
        """Wait until these replicas, and all of them, share the shards."""

        def shared() -> bool:
            owners = self.owners()
            return len(owners) == self.document.shards and set(owners.values()) == set(names)

        await eventually(shared, _SECONDS, on=self.changed, what=f"{names} share the shards")

    def _from_scratch(self, pool: str) -> PoolFacts:
        """The order of the pool, straight from the facts: queue, stated pool, policy pool; tenant, class; cards."""
        book = Rulebook(self.document, self.revision)
        states = self.known.values()
        facts = StatedFacts(book)
        facts.learn(self.known)
        shape, cards = facts.shapes.get(pool), facts.cards.get(pool)
        leads = {
            (queue.cluster, queue.name): book.pool_of(queue.cluster, queue.pool)
            for queue in states
            if isinstance(queue, QueueState)
        }
        order = PoolFacts(book.pool_rules(pool, {} if shape is None else shape.capacity))
        for job in states:
            if isinstance(job, JobState) and leads.get((job.cluster, job.queue)) == pool:
                weighs = job.demand if cards is None else cards.demand_of(job.demand, job.pods, job.shapes)
                quota = {} if shape is None else shape.quota
                beyond = any(amount > quota.get(name, 0) for name, amount in job.demand.items())
                apart = job.passed_by or beyond
                _count(order, book, msgspec.structs.replace(job, demand=weighs), apart=apart)
        return order

    def _encoded(self, queue_heads: Mapping[JobQueue, Iterable[Position]]) -> bytes:
        window = self.document.window
        return msgspec.msgpack.encode(
            [(key, list(positions)[:window]) for key, positions in sorted(queue_heads.items())]
        )


def _count(order: PoolFacts, book: Rulebook, job: JobState, *, apart: bool) -> None:
    if job.phase is Phase.RUNNING:
        order.run(job.uid, book.tenant_of(job), job.demand)
    elif job.phase is Phase.WAITING:
        order.wait(book.waiting_job(job, apart=apart))
