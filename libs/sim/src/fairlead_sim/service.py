"""The service around the cluster: requests and the clock in, commits, replies and statements out.

One loop: observe what was asked and what time it is, decide in the pure cluster, record it in the file, then answer
and announce. Nothing is told to anybody before it is committed; all that comes in during a commit shares the next.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from fairlead_bus import Rejected
from fairlead_bus.facts.announcer import Statements
from fairlead_bus.facts.statement_publisher import OutgoingEvent
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.errors import ContractError
from fairlead_contracts.base.instants import Micros, to_seconds
from fairlead_contracts.base.quantities import MAX_QUANTITY
from fairlead_contracts.frontend.verbs import (
    UNAVAILABLE,
    CreateJob,
    CreateOutcome,
    CreateReply,
    DeleteJob,
    DeleteReply,
    LevelReply,
    SetLevel,
    VerbOutcome,
)
from fairlead_contracts.messages.events import Event, JobEnded, JobStarted
from fairlead_contracts.messages.state import HIGHEST_LEVEL, Phase
from fairlead_sim import statements
from fairlead_sim.changes import ClusterChanges
from fairlead_sim.cluster import SimCluster
from fairlead_sim.instruments import SimInstruments
from fairlead_sim.store import ClusterStore, batch_of

FARTHEST = 2**61
"""Microseconds; sums of two stay within 64 bits."""
LONGEST_SUBJECT = 1024
"""A subject travels in a protocol line, which NATS bounds at 4,096 bytes."""
LONGEST_SLEEP = 60.0
"""Seconds between two looks at the clock: it may have been set right meanwhile."""
type Clock = Callable[[], Micros]
type HearCommit = Callable[[Statements, list[OutgoingEvent]], None]
"""Call that hears what was committed."""


class _Request(msgspec.Struct):
    """A request, and the caller's future, done when it is durable."""

    apply: Callable[[Micros], None]
    done: asyncio.Future[None]


class SimService:
    """Owns the cluster and its file."""

    def __init__(
        self,
        cluster: SimCluster,
        store: ClusterStore,
        instruments: SimInstruments,
        *,
        clock: Clock,
        happened: Callable[[Sequence[Event]], None],
    ) -> None:
        """Take over what the file keeps.

        Args:
            cluster: fresh from its configuration.
            clock: now; a clock that is set back stands still here until it is past.
            happened: hears of each event once it is committed.
        """
        self._cluster = cluster
        self._store = store
        self._instruments = instruments
        self._clock = clock
        self._happened = happened
        self._now: Micros = 0
        self._wake = asyncio.Event()
        self._requests: list[_Request] = []
        self._parked: set[asyncio.Future[None]] = set()
        self._counters_changed = True
        """Nodes and pools were numbered anew: a later start must number them higher."""
        self._stopped = False
        self._published: list[int] = []
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        kept = store.load()
        cluster.restore(kept.jobs, kept.counters, self._tick())
        self._untold = kept.outbox
        """Events of an earlier life that are not known to be on the stream; nothing else of what was kept is
        needed again."""
        self._last_event = max((event.seq for event in kept.outbox), default=0)

    # Requests

    async def create(self, jobs: Sequence[CreateJob]) -> Sequence[CreateReply]:
        """See `FrontendVerbs`."""
        wrong = [why_unkeepable(self._cluster.name, one) for one in jobs]
        replies: list[CreateReply] = []

        def create_each(now: Micros) -> None:
            for one, problem in zip(jobs, wrong, strict=True):
                if problem is not None:
                    replies.append(CreateReply(outcome=CreateOutcome.REFUSED, reason=problem))
                    continue
                reply = self._cluster.create(one, now)
                self._instruments.creates.labels(reply.outcome).inc()
                replies.append(reply)

        await self._ask(create_each)
        return replies

    async def set_levels(self, levels: Sequence[SetLevel]) -> Sequence[LevelReply]:
        """See `FrontendVerbs`."""
        replies: list[LevelReply] = []
        await self._ask(lambda _: replies.extend(map(self._set_level, levels)))
        return replies

    async def delete(self, jobs: Sequence[DeleteJob]) -> Sequence[DeleteReply]:
        """See `FrontendVerbs`."""
        replies: list[DeleteReply] = []

        def delete_each(now: Micros) -> None:
            replies.extend(DeleteReply(verdict=self._cluster.delete(one, now)) for one in jobs)

        await self._ask(delete_each)
        return replies

    @property
    def fence(self) -> int:
        """The highest epoch of a leader that was obeyed."""
        return self._cluster.counters.fence

    def obey(self, epoch: int) -> None:
        """Obeys this leader from now on, and none before it."""
        self._cluster.counters.fence = epoch
        self._counters_changed = True

    def published(self, sequences: list[int]) -> None:
        """Notes that these events are on the stream: the next commit lets go of them."""
        self._published += sequences

    # The loop

    async def run(self, hear: HearCommit) -> None:
        """Runs until cancelled.

        Raises:
            StoreError: the file cannot be written. The process must end: what it believes is not recorded.
        """
        hear(statements.everything(self._cluster), self._untold)
        self._untold = []
        # What ended while nobody watched is due at once, and a resumed cluster may have room.
        self._wake.set()
        try:
            while True:
                await self._something_to_do()
                requests, changes = self._decide()
                stated = statements.changed(self._cluster, changes)
                outgoing = await self._record(changes)
                for request in requests:
                    if not request.done.done():
                        request.done.set_result(None)
                if stated or outgoing:
                    hear(stated, outgoing)
                self._happened(changes.events)
                self._count(changes)
        finally:
            self._stop()

    async def _something_to_do(self) -> None:
        due = self._cluster.next_due()
        # By the clock itself: one that was set back stands still in `_tick`, and what is due would be due all the time.
        wait = None if due is None else min(max(to_seconds(due - self._clock()), 0.0), LONGEST_SLEEP)
        try:
            async with asyncio.timeout(wait):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    def _decide(self) -> tuple[list[_Request], ClusterChanges]:
        now = self._tick()
        requests, self._requests = self._requests, []
        for request in requests:
            request.apply(now)
        self._cluster.advance(now)
        return requests, self._cluster.take_changes()

    async def _record(self, changes: ClusterChanges) -> list[OutgoingEvent]:
        """Commit in the writer's thread: the loop goes on meanwhile. A cancelled service still ends its commit."""
        if not changes and not self._published and not self._counters_changed:
            return []
        self._counters_changed = False
        outgoing = [
            OutgoingEvent(
                seq=self._last_event + number,
                subject=subjects.event(event.tenant, event.cluster, event.job),
                msg_id=event.id,
                payload=to_json(event),
            )
            for number, event in enumerate(changes.events, start=1)
        ]
        self._last_event += len(outgoing)
        published, self._published = self._published, []
        batch = batch_of(changes, self._cluster.counters, outgoing, published)
        with self._instruments.commit_seconds.time():
            await asyncio.shield(
                asyncio.get_running_loop().run_in_executor(self._writer, self._store.commit, batch)
            )
        return outgoing

    def _stop(self) -> None:
        """Frees all that wait: requests not committed did not happen, and may be asked of a successor."""
        self._stopped = True
        for replied in self._parked:
            if not replied.done():
                replied.set_exception(_stopping())
        self._writer.shutdown(wait=True)

    # How

    async def _ask(self, apply: Callable[[Micros], None]) -> None:
        if self._stopped:
            raise _stopping()
        request = _Request(apply=apply, done=asyncio.get_running_loop().create_future())
        self._requests.append(request)
        self._parked.add(request.done)
        self._wake.set()
        try:
            await request.done
        finally:
            self._parked.discard(request.done)

    def _set_level(self, wanted: SetLevel) -> LevelReply:
        if wanted.level is not None and abs(wanted.level) > HIGHEST_LEVEL:
            reply = LevelReply(verdict=VerbOutcome.REFUSED, reason=f"level {wanted.level} is out of range")
        else:
            rev = self._cluster.set_level(wanted)
            reply = LevelReply(verdict=VerbOutcome.GONE if rev is None else VerbOutcome.DONE, rev=rev)
        self._instruments.levels.labels(reply.verdict).inc()
        return reply

    def _tick(self) -> Micros:
        self._now = max(self._now, self._clock())
        return self._now

    def _count(self, changes: ClusterChanges) -> None:
        for event in changes.events:
            match event:
                case JobStarted():
                    self._instruments.starts.inc()
                case JobEnded():
                    self._instruments.ends.labels(event.outcome).inc()
                case _:
                    pass
        for phase in Phase:
            self._instruments.jobs.labels(phase).set(self._cluster.count(phase))


def why_unkeepable(cluster: str, wanted: CreateJob) -> str | None:
    """The reason for which such a job cannot be kept without harm to all others; None where it can."""
    try:
        subject = subjects.state(cluster, "job", wanted.id, scope=wanted.scope)
    except ContractError as error:
        return str(error)
    if len(subject) > LONGEST_SUBJECT:
        return f"scope and id are too long: {len(subject)} characters as a subject"
    wrong = [name for name, amount in wanted.demand.items() if not 0 <= amount <= MAX_QUANTITY]
    instants = {"run": wanted.run or 0, "submitted": wanted.submitted}
    wrong += [name for name, value in instants.items() if not 0 <= value <= FARTHEST]
    return f"out of range: {', '.join(wrong)}" if wrong else None


def _stopping() -> Rejected:
    return Rejected(UNAVAILABLE, "the simulated cluster is stopping; ask again")
