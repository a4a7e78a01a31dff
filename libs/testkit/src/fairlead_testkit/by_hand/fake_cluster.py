"""A cluster and a scorer played by hand, for tests of one service against all that surrounds it.

Both speak to a real nats-server as the real ones do: state with revisions, levels and creations by request-reply,
claims by compare-and-swap, leases. But nothing happens by itself: the test says who waits, who starts, and what the
order is.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Self

import msgspec

from fairlead_bus import Asked, Bus, Rejected
from fairlead_bus.connection.endpoints import Endpoint
from fairlead_bus.ownership.membership import Membership
from fairlead_bus.ownership.owned_subject import OwnedSubject
from fairlead_bus.ownership.roster import Roster
from fairlead_bus.server.provision import provision
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json, to_packed
from fairlead_contracts.frontend.verbs import (
    CREATE_JOBS,
    DELETE_JOBS,
    FENCED,
    SET_LEVELS,
    CreateJob,
    CreateOutcome,
    CreateReplies,
    CreateReply,
    DeleteJob,
    DeleteReplies,
    DeleteReply,
    LevelReplies,
    LevelReply,
    SetLevel,
    VerbOutcome,
)
from fairlead_contracts.messages.decisions import Basis, Decision, QueueHeads
from fairlead_contracts.messages.members import Holding, MemberLease
from fairlead_contracts.messages.state import JobState, Outcome, Phase, State
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_testkit.by_hand.people import put_policy
from fairlead_testkit.inputs.builders import (
    NOW,
    a_document,
    a_job,
    a_mark,
    a_pool,
    a_position,
    a_queue,
    a_started_event,
    a_tenant_state,
    an_ended_event,
)
from fairlead_testkit.oracles.starting_order import in_starting_order
from fairlead_testkit.timing.awaiting import eventually
from fairlead_testkit.timing.in_hand import beside

type RunAdmitter = Callable[..., AbstractAsyncContextManager[Lifecycle]]
"""Call that runs an admitter beside a block, with these of its settings."""

CLUSTER = "c1"
POOL = "c1/gpu"
SHARDS = 2
DOCUMENT = a_document(shards=SHARDS, window=10)


class FakeCluster:
    """The cluster `c1` with the pool `gpu` and the queue `main`; answers on the subjects of a frontend behind the bus."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.jobs: dict[str, JobState] = {}
        """Jobs by `<scope>/<id>`, which is the uid too."""
        self.writes: list[tuple[str, int]] = []
        """(uid, level) of each write that landed."""
        self.of_running: list[tuple[str, int]] = []
        """(uid, level) of each write asked for to a job that waits no more: it is answered that none is there."""
        self.creations: list[str] = []
        """The uid of each creation asked for, repeated ones too."""
        self.deletions: list[str] = []
        """The uid of each job that was to be deleted, repeated ones too."""
        self.changed = asyncio.Event()
        self.hold_replies = asyncio.Event()
        """Set: replies are sent. Clear it to let effects happen without their replies."""
        self.hold_replies.set()
        self.deaf_to: dict[str, asyncio.Event] = {}
        """Events by scope: the scope's creations hang until the event is set, and nobody else's do."""
        self.obeyed = 0
        """The highest epoch whose leader it obeyed: levels of earlier ones are refused."""
        self.shows_levels = True
        """Whether a written level is stated at once; otherwise `state` does it."""
        self._digests: dict[str, str] = {}
        self._endpoints: list[Endpoint] = []
        self._rev = 0
        self.seq = 0
        """State-stream sequence of the last statement."""

    async def come_up(self) -> None:
        """Begin to answer."""
        self._endpoints = [
            await self.bus.serve(subjects.frontend(CLUSTER, "create"), self._create),
            await self.bus.serve(subjects.frontend(CLUSTER, "levels"), self._set_levels),
            await self.bus.serve(subjects.frontend(CLUSTER, "delete"), self._delete),
        ]

    async def go_down(self) -> None:
        """Answer nobody."""
        for endpoint in self._endpoints:
            await endpoint.close()
        self._endpoints = []

    async def declare(self) -> None:
        """State the pool, its queue and its two teams."""
        await self._say("pool", "gpu", a_pool())
        await self._say("queue", "main", a_queue())
        for team in ("team-a", "team-b"):
            await self._say("tenant", team, a_tenant_state(name=team, scope=team), scope=team)
        await self._say("mark", "sync", a_mark(incarnation=self.bus.incarnation))

    async def put(self, *ids: str, scope: str = "team-a", **changes: object) -> list[str]:
        """Have jobs wait, in this order by the frontend's own tie; returns their uids."""
        for name in ids:
            time = NOW + len(self.jobs)
            await self.state(a_job(name, scope=scope, submitted=time, queue_time=time), **changes)
        return [f"{scope}/{name}" for name in ids]

    async def state(self, job: JobState, **changes: object) -> JobState:
        """State a job with these changes and a new revision."""
        self._rev += 1
        job = self.jobs[job.uid] = msgspec.structs.replace(job, rev=self._rev, **changes)
        await self._say("job", job.id, job, scope=job.scope)
        self.changed.set()
        return job

    async def contest(self, wanted: Sequence[str], rounds: int) -> None:
        """Overwrite the level of the first of these jobs as often, each time once it was put right."""
        for level in range(1, rounds + 1):
            await eventually(lambda: self.order() == wanted, on=self.changed, what=f"the order {wanted}")
            await self.state(self.jobs[wanted[0]], level=-level)

    async def start(self, uid: str) -> None:
        """The frontend starts the job, and says so as state and event."""
        job = await self.state(self.jobs[uid], phase=Phase.RUNNING, started=NOW)
        event = a_started_event(id=f"start-{uid}", **_named(job))
        await self.bus.publish(subjects.event(job.scope, CLUSTER, job.id), to_json(event))

    async def end(self, uid: str, outcome: Outcome = Outcome.SUCCEEDED) -> None:
        """Have the job end."""
        job = await self.state(self.jobs[uid], phase=Phase.ENDED, ended=NOW, outcome=outcome)
        event = an_ended_event(id=f"end-{uid}", outcome=outcome, **_named(job))
        await self.bus.publish(subjects.event(job.scope, CLUSTER, job.id), to_json(event))

    def order(self) -> list[str]:
        """The waiting jobs as the frontend would start them."""
        return [job.uid for job in in_starting_order(self.jobs.values())]

    def levels(self) -> dict[str, int]:
        """The levels that are not the default."""
        return {job.uid: job.level for job in self.jobs.values() if job.level}

    async def _say(
        self, kind: subjects.StateKind, name: str, value: State, *, scope: str | None = None
    ) -> None:
        self._rev += 1
        stated = value if isinstance(value, JobState) else msgspec.structs.replace(value, rev=self._rev)
        subject = subjects.state(CLUSTER, kind, name, scope=scope)
        self.seq = (await self.bus.publish(subject, to_packed(stated))).seq

    async def _create(self, asked: Asked) -> bytes:
        replies = [await self._created(order) for order in CREATE_JOBS.decode(asked.payload).jobs]
        await self.hold_replies.wait()
        return to_packed(CreateReplies(replies=replies))

    async def _created(self, order: CreateJob) -> CreateReply:
        uid = f"{order.scope}/{order.id}"
        self.creations.append(uid)
        if order.scope in self.deaf_to:
            await self.deaf_to[order.scope].wait()
        reply = await self._made(uid, order)
        self.changed.set()
        return reply

    async def _made(self, uid: str, order: CreateJob) -> CreateReply:
        if order.queue not in (None, "main"):
            return CreateReply(outcome=CreateOutcome.NO_QUEUE)
        if uid in self._digests:
            same = self._digests[uid] == order.digest
            return CreateReply(outcome=CreateOutcome.EXISTS if same else CreateOutcome.CONFLICT, queue="main")
        self._digests[uid] = order.digest
        job = a_job(
            order.id,
            scope=order.scope,
            submitted=order.submitted,
            demand=order.demand,
            requested_class=order.requested_class,
            submission=order.submission,
            traceparent=order.traceparent,
        )
        await self.state(job)
        return CreateReply(outcome=CreateOutcome.CREATED, queue="main")

    async def _delete(self, asked: Asked) -> bytes:
        replies = [await self._deleted(order) for order in DELETE_JOBS.decode(asked.payload).jobs]
        await self.hold_replies.wait()
        return to_packed(DeleteReplies(replies=replies))

    async def _deleted(self, order: DeleteJob) -> DeleteReply:
        if order.submission and order.id:
            raise ValueError("a frontend of an older release would take whichever job has that name")
        uid = f"{order.scope}/{order.submission or order.id}"
        self.deletions.append(uid)
        self.changed.set()
        job = self.jobs.get(uid)
        if job is None or job.phase is Phase.ENDED or job.submission != order.submission:
            return DeleteReply(verdict=VerbOutcome.GONE)
        if order.spares(job.submitted):
            return DeleteReply(verdict=VerbOutcome.LATER)
        await self.end(uid, Outcome.CANCELLED)
        return DeleteReply(verdict=VerbOutcome.DONE)

    async def _set_levels(self, asked: Asked) -> bytes:
        request = SET_LEVELS.decode(asked.payload)
        if request.epoch < self.obeyed:
            raise Rejected(
                FENCED, f"epoch {request.epoch} is over: a leader of epoch {self.obeyed} was obeyed"
            )
        replies = [await self._set_level(order) for order in request.levels]
        await self.hold_replies.wait()
        return to_packed(LevelReplies(replies=replies))

    async def _set_level(self, order: SetLevel) -> LevelReply:
        job, level = self.jobs.get(order.uid), order.level or 0
        if job is None or job.phase is not Phase.WAITING:
            self.of_running.append((order.uid, level))
            self.changed.set()
            return LevelReply(verdict=VerbOutcome.GONE)
        self.writes.append((order.uid, level))
        if self.shows_levels:
            job = await self.state(job, level=level)
        else:
            self._rev += 1
            job = self.jobs[job.uid] = msgspec.structs.replace(job, rev=self._rev, level=level)
        self.changed.set()
        return LevelReply(verdict=VerbOutcome.DONE, rev=job.rev)


class FakeScorer:
    """A scorer that owns shards and decides what it is told."""

    def __init__(
        self, bus: Bus, replica: str, policy: int, shards: Sequence[int] = tuple(range(SHARDS))
    ) -> None:
        self.bus = bus
        self.replica = replica
        self.policy = policy
        self.shards = list(shards)
        self.current = True
        self._turn = 0
        self._owned: dict[int, OwnedSubject] = {}
        roster = Roster(bus, wake=asyncio.Event())
        self.membership = Membership(bus, roster, role="scorer", replica=replica, describe=self._lease)

    @asynccontextmanager
    async def alive(self) -> AsyncIterator[Self]:
        """Keeps a lease as long as the block lasts."""
        async with beside(self.membership.run()):
            yield self

    async def claim(self, *shards: int) -> None:
        """Claim these shards, or all that it holds."""
        for shard in shards or self.shards:
            owned = self._owned[shard] = OwnedSubject(
                self.bus, stream=topology.DECISION, subject=subjects.decision(POOL, shard), owner=self.replica
            )
            claim = self.decision(shard, (), basis=None, epoch=0, queue_heads=[])
            await owned.claim(lambda claim=claim: to_packed(claim))  # type: ignore[misc] # binds the loop's value

    async def decide(self, cluster: FakeCluster, order: Sequence[str]) -> None:
        """Decide on the order, all of it in the first shard; in the others nobody waits."""
        for shard in self.shards:
            positions = order if shard == self.shards[0] else ()
            if shard not in self._owned:
                await self.claim(shard)
            decision = self.decision(shard, positions, revision={CLUSTER: cluster.seq})
            await self._owned[shard].publish(to_packed(decision))

    def decision(self, shard: int, order: Sequence[str], **changes: object) -> Decision:
        """A decision for this order, as this scorer makes it."""
        self._turn += 1
        positions = [
            a_position(uid=uid, scope=uid.partition("/")[0], id=uid.partition("/")[2], use=number * 1000)
            for number, uid in enumerate(order)
        ]
        owned = self._owned.get(shard)
        decision = Decision(
            pool=POOL,
            shard=shard,
            owner=self.replica,
            epoch=(owned.epoch or 0) if owned is not None else 0,
            turn=self._turn,
            at=NOW,
            basis=Basis(policy=self.policy, capacity=a_pool().capacity),
            revision={},
            queue_heads=[
                QueueHeads(
                    cluster=CLUSTER,
                    queue="main",
                    waiting=len(positions),
                    positions=positions[: DOCUMENT.window],
                )
            ],
        )
        return msgspec.structs.replace(decision, **changes)

    def _lease(self) -> MemberLease:
        return MemberLease(
            role="scorer",
            replica=self.replica,
            renewed=NOW,
            holdings=[Holding(pool=POOL, shards=self.shards, current=self.current)],
        )


async def set_up(bus: Bus, document: PolicyDocument = DOCUMENT) -> int:
    """Make the streams and put the policy; returns its revision."""
    await provision(bus, topology.topology([CLUSTER]))
    return await put_policy(bus, document)


def _named(job: JobState) -> dict[str, object]:
    return {
        "cluster": CLUSTER,
        "scope": job.scope,
        "tenant": job.scope,
        "job": job.id,
        "uid": job.uid,
        "submission": job.submission,
    }
