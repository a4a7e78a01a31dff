"""The scorer's loop: observe, arrange, decide, record; applying is each owned shard's own, side by side.

Observe: take in what changed. Arrange: see which shards are ours now. Decide: every owned shard that is behind is
decided from what is known then and published by its ownership. Record: say how things stand.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, InitVar, dataclass
from functools import partial

from fairlead_bus import Asked, Bus, Rejected
from fairlead_bus.ownership.membership import Membership
from fairlead_bus.ownership.owned_subject import OwnedSubject
from fairlead_bus.ownership.roster import Roster
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_packed
from fairlead_contracts.base.errors import ContractError
from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_contracts.messages.decisions import Decision
from fairlead_contracts.messages.members import Holding, MemberLease
from fairlead_contracts.messages.questions import SHARD_QUESTION
from fairlead_contracts.topology import DECISION
from fairlead_runtime.spans import Spans
from fairlead_runtime.waiting import Pacing
from fairlead_scorer.decide import decision
from fairlead_scorer.decide.decision import DecisionContent
from fairlead_scorer.decide.pace import rest_after
from fairlead_scorer.decide.shard_assignment import shards_of
from fairlead_scorer.decide.shard_ownership import CONFIRM_SECONDS, ShardDecision, ShardName, ShardOwnership
from fairlead_scorer.query import shard_answers
from fairlead_scorer.query.reservations import ADMITTER
from fairlead_scorer.report.pass_traces import PassTraces
from fairlead_scorer.report.record import ScorerRecord
from fairlead_scorer.route.router import Router
from fairlead_scorer.settings import ScorerSettings
from fairlead_scorer.state.pool import ScoredPool
from fairlead_scorer.state.state_view import StateView

ROLE = "scorer"
_LONGEST_SLEEP = 60.0
"""Seconds between two passes at most: a clock that is set right would leave a timer of the far future wrong."""
_REST_SECONDS = 0.002
"""Seconds between two passes at least: one follows from each state that is told, and from each decision that
left."""
_CONFIRMS_PER_SECOND = 50.0
_KINDS: dict[str, subjects.QuestionKind] = {"queue": "queue", "tenants": "tenants", "explain": "explain"}


@dataclass(eq=False)
class Scorer:
    """A replica of the scorer."""

    bus: Bus
    state_view: StateView
    roster: Roster
    router: Router
    """Takes submissions for any cluster while we own a shard 0."""
    record: ScorerRecord
    _: KW_ONLY
    settings: ScorerSettings
    replica: str
    """Our name."""
    wake: asyncio.Event
    """Set whenever something changed that a pass looks at."""
    now: Callable[[], Micros]
    spans: InitVar[Spans]
    """Takes the spans of passes and of jobs' stages."""

    def __post_init__(self, spans: Spans) -> None:
        self._traces = PassTraces(self.record, spans, self.state_view.cache.job, self.replica, self.now)
        self._ownerships: dict[ShardName, ShardOwnership] = {}
        self._flips: dict[ShardName, Micros] = {}
        self._withheld: dict[str, list[str]] = {}
        self._holdings: list[Holding] = []
        self._doubtful = False
        self._ready_to_join = asyncio.Event()
        self._pacing = Pacing(least=_REST_SECONDS)
        self.membership = Membership(
            self.bus, self.roster, role=ROLE, replica=self.replica, describe=self.lease
        )

    # The loop -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Scores until cancelled."""
        forget = self.bus.on_connection(self._on_connection)
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    await self._pacing.wake_or_timeout(self.wake, self._until_next_flip())
                    await self._observe()
                    self._arrange(tasks)
                    # All are decided and published side by side, each in its own task.
                    for ownership in self._ownerships.values():
                        ownership.look()
                    self._report()
        finally:
            forget()

    async def take_part(self) -> None:
        """Joins the live scorers once there is something to decide from, and leaves when cancelled.

        Whoever is counted in is given shards at once, and those who had them let go: a replica that still replays, or
        that finds no valid policy, would hold its part of every pool up.
        """
        await self._ready_to_join.wait()
        await self.membership.run()

    async def _observe(self) -> None:
        await self.state_view.observe(lambda pool, number: self.owns(ShardName(pool, number)))
        if self.state_view.known:
            self._ready_to_join.set()
        now = self.now()
        for shard in [shard for shard, flip in self._flips.items() if flip <= now]:
            del self._flips[shard]
            self.put_back(shard)
        if self._doubtful:
            self._doubtful = False
            for ownership in self._ownerships.values():
                ownership.doubt()

    def _arrange(self, tasks: asyncio.TaskGroup) -> None:
        """Takes up and gives up shards as the assignment says. While that cannot be trusted, all stays as it is."""
        if not (self.membership.trusted and self.roster.complete and self.membership.visible):
            return
        pools = sorted((name, pool.shards) for name, pool in self.state_view.cache.pools.items())
        ours = shards_of(self.replica, tuple(pools), tuple(sorted(self.roster.members(ROLE))))
        gained, given_up = sorted(ours - self._ownerships.keys()), sorted(self._ownerships.keys() - ours)
        for shard in given_up:
            self._ownerships.pop(shard).give_up()
            self._flips.pop(shard, None)
        for shard in gained:
            self._ownerships[shard] = self._new_ownership(shard)
            tasks.create_task(self._hold(self._ownerships[shard]), name=f"ownership of {shard}")
        if gained or given_up:
            self.record.arranged(gained, given_up)

    def _report(self) -> None:
        self._report_withheld(self.state_view.cache.pools)
        holdings = self._holdings_now()
        if holdings != self._holdings:
            self._holdings = holdings
            self.membership.renew_soon()
        self.router.want(
            self.settings.route
            and any(shard.number == 0 and ownership.owned for shard, ownership in self._ownerships.items())
        )

    def _report_withheld(self, pools: Iterable[str]) -> None:
        """Says once of each pool that its order is withheld, and once that it is not any more."""
        if not self.state_view.complete:
            return
        withheld = {pool: clusters for pool in pools if (clusters := self.state_view.unmarked(pool))}
        for pool, clusters in withheld.items():
            if self._withheld.get(pool) != clusters:
                self.record.withheld(pool, clusters)
        for pool in self._withheld.keys() - withheld.keys():
            self.record.released(pool)
        self._withheld = withheld

    def _until_next_flip(self) -> float:
        """Seconds until aging alone moves the order of an owned shard."""
        if not self._flips:
            return _LONGEST_SLEEP
        return min(_LONGEST_SLEEP, max(0.0, (min(self._flips.values()) - self.now()) / SECOND))

    def _on_connection(self, up: bool) -> None:  # noqa: FBT001 # the listener's form
        self._doubtful = self._doubtful or up
        self.wake.set()

    # What an ownership asks ---------------------------------------------------------------------------------------

    def may_publish(self, shard: ShardName) -> bool:
        """Whether a decision of this shard may leave: our lease holds, and the pool's state is current."""
        return (
            self.membership.trusted
            and self.state_view.is_current(shard.pool)
            and self._pool_of(shard) is not None
        )

    def is_behind(self, shard: ShardName) -> bool:
        """Whether the shard changed since it was last decided."""
        pool = self._pool_of(shard)
        return pool is not None and shard.number in pool.dirty

    def decide(self, shard: ShardName, limit: int) -> ShardDecision:
        """Decides the shard's content now, so that it is not behind any more."""
        started = time.perf_counter()
        pool, now = self.state_view.cache.pools[shard.pool], self.now()
        pool.mark_clean(shard.number)
        content = decision.decide(pool, shard.number, now, limit=limit)
        flip = pool.next_flip(shard.number, now)
        if content.kept is not None and content.kept.at > now:
            self.record.clock_ahead(*shard, ours=True)
        if flip is None:
            self._flips.pop(shard, None)
        elif flip != self._flips.get(shard):
            self._flips[shard] = flip
            self.wake.set()
        self.record.decided(time.perf_counter() - started)
        return ShardDecision(
            content=content, state_seq=self.state_view.seq, clusters=tuple(sorted(pool.shape.clusters))
        )

    def pace(self, shard: ShardName) -> float:
        """Seconds for which the shard rests after a decision now."""
        pool = self._pool_of(shard)
        clusters = () if pool is None else pool.shape.clusters
        return rest_after(self.settings.pace_seconds, self.roster.leaders(ADMITTER), clusters, self.now())

    def put_back(self, shard: ShardName) -> None:
        """Marks the shard as behind again."""
        pool = self._pool_of(shard)
        if pool is not None:
            pool.mark_dirty(shard.number)

    def written(self, shard: ShardName, decided: ShardDecision, epoch: int, turn: int) -> bytes:
        """The decision as it is published."""
        content = decided.content
        return to_packed(
            Decision(
                pool=shard.pool,
                shard=shard.number,
                owner=self.replica,
                epoch=epoch,
                turn=turn,
                at=self.now(),
                basis=content.basis,
                revision=dict.fromkeys(decided.clusters, decided.state_seq),
                queue_heads=content.queue_heads,
                standings=content.standings,
                kept=content.kept,
                traceparent=self._traces.begin(shard, content, epoch, turn),
            )
        )

    def _pool_of(self, shard: ShardName) -> ScoredPool | None:
        """The shard's pool; None where a new policy has taken the pool, or this shard of it, away."""
        pool = self.state_view.cache.pools.get(shard.pool)
        return pool if pool is not None and shard.number < pool.shards else None

    # What others ask ----------------------------------------------------------------------------------------------

    def owns(self, shard: ShardName) -> bool:
        """Whether we have claimed the shard and know of no other claim."""
        ownership = self._ownerships.get(shard)
        return ownership is not None and ownership.owned

    def dirty(self) -> int:
        """The number of our shards that wait to be decided."""
        return sum(self.is_behind(shard) for shard in self._ownerships)

    def owned(self) -> list[ShardName]:
        """The shards that we have claimed, and know of no other claim."""
        return [shard for shard, ownership in self._ownerships.items() if ownership.owned]

    def decided(self) -> Iterator[tuple[ShardName, DecisionContent]]:
        """The decision that stands on each shard that we own."""
        for shard, ownership in self._ownerships.items():
            if ownership.owned and ownership.published is not None:
                yield shard, ownership.published

    def lease(self) -> MemberLease:
        """Our lease, as it is renewed: the shards that we own, and up to which state they are decided."""
        behind = [ownership.decided_seq for ownership in self._ownerships.values() if not ownership.caught_up]
        return MemberLease(
            role=ROLE,
            replica=self.replica,
            renewed=self.now(),
            holdings=self._holdings_now(),
            state_seq=min(behind, default=self.state_view.seq),
        )

    def _holdings_now(self) -> list[Holding]:
        held: dict[str, list[int]] = {}
        for shard, ownership in self._ownerships.items():
            if ownership.owned:
                held.setdefault(shard.pool, []).append(shard.number)
        return [
            Holding(pool=pool, shards=sorted(shards), current=self.state_view.is_current(pool))
            for pool, shards in sorted(held.items())
        ]

    # Owned shards -------------------------------------------------------------------------------------------------

    def _new_ownership(self, shard: ShardName) -> ShardOwnership:
        subject = subjects.decision(shard.pool, shard.number)
        return ShardOwnership(
            shard,
            lambda: OwnedSubject(self.bus, stream=DECISION, subject=subject, owner=self.replica),
            self,
            self._traces,
            rest=self.settings.step_down_seconds,
            # All quiet owners together ask the server a bounded number of times a second.
            confirm_after=lambda: max(CONFIRM_SECONDS, len(self._ownerships) / _CONFIRMS_PER_SECOND),
            changed_hands=self.wake.set,
        )

    async def _hold(self, ownership: ShardOwnership) -> None:
        """Runs the ownership, and answers the questions of other scorers about its shard meanwhile."""
        questions = subjects.shard_questions(*ownership.shard)
        endpoint = await self.bus.serve(questions, partial(self._answer, ownership))
        try:
            await ownership.run()
        finally:
            await endpoint.close()

    async def _answer(self, ownership: ShardOwnership, asked: Asked) -> bytes:
        pool = self._pool_of(ownership.shard)
        kind = _KINDS.get(asked.subject.rsplit(".", 1)[1])
        if kind is None:
            raise Rejected(404, "no such question")
        if pool is None or not ownership.owned or not self.state_view.complete:
            raise Rejected(503, "this scorer does not own the shard now")
        try:
            question = SHARD_QUESTION.decode(asked.payload)
        except ContractError as error:
            raise Rejected(400, str(error)) from error
        return to_packed(shard_answers.answer(pool, ownership.shard.number, kind, question))
