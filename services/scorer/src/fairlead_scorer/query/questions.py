"""Answers to people's questions: who waits in which order, who has what, why a job stands where it stands.

One scorer of a queue group answers; it asks the owners of all shards and puts their parts together exactly.
"""

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import UNSET

from fairlead_bus import Asked
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.instants import Micros, to_datetime
from fairlead_contracts.messages.decisions import Position, TenantShare
from fairlead_contracts.messages.questions import (
    EXPLAIN_QUESTION,
    FIRST_POSITIONS,
    MOST_UNRANKED,
    QUEUE_QUESTION,
    TENANTS_QUESTION,
    ExplainReply,
    PoolQueue,
    PoolTenants,
    QueueReply,
    RankedPosition,
    ShardQuestion,
    ShardReply,
    TenantLine,
    TenantsReply,
    UnrankedJob,
)
from fairlead_contracts.messages.state import JobState, job_name
from fairlead_policy.explain.explanation import neighbour_of
from fairlead_policy.explain.neighbour_text import cause_in_words
from fairlead_policy.order.merging import merge_positions
from fairlead_policy.order.position_columns import PositionColumns
from fairlead_policy.order.shares import Quotients, divided_by
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_scorer.decide.decision import PAYLOAD_LIMIT
from fairlead_scorer.query import job_sentences
from fairlead_scorer.query.explaining import Explainer
from fairlead_scorer.query.names import called, concealed_position
from fairlead_scorer.query.question_reading import read_question, refuse, tenant_asked
from fairlead_scorer.query.reply_size import queue_payload, tenants_payload
from fairlead_scorer.query.shard_answers import MOST_POSITIONS
from fairlead_scorer.query.shard_asking import ShardAsker, ShardReplies
from fairlead_scorer.query.steering_view import SteeringView, as_a_tenant_hears
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_scorer.state.pool import ScoredPool

_SPARE_POSITIONS = 8
"""Positions that each shard tells beyond twice its even part."""
_RANKED_AT_ONCE = 20
"""Positions worked out for an answer before others of this process have their turn: some five milliseconds."""
_UNRANKED_TOLD = 3
"""Jobs without a position that an answer names to who asks for the first positions."""
_MOST_RANKED = 200
"""Positions of one tenant whose ranks are counted for one answer: each costs a count in every shard."""


@dataclass(eq=False)
class Questions:
    """Answers `ask.queue`, `ask.tenants` and `ask.explain`."""

    cache: ClusterCache
    asker: ShardAsker
    explainer: Explainer
    steering: SteeringView
    now: Callable[[], Micros]

    async def queue(self, asked: Asked) -> bytes:
        """Answers with the waiting jobs, in order."""
        question = read_question(QUEUE_QUESTION, asked)
        tenant = self._known_tenant(tenant_asked(asked, question.tenant))
        at = self.now()
        pools = [
            await (
                self._order(pool, at, question.limit)
                if tenant is None
                else self._order_of_tenant(pool, at, question.limit, tenant)
            )
            for pool in self._pools(question.pool)
        ]
        nowhere, first = self._unranked_lines(
            self.cache.unranked_nowhere(tenant) if question.pool is None else [], question.limit
        )
        reply = QueueReply(
            at=to_datetime(at),
            pools=pools,
            unheard=self.steering.unheard() or UNSET,
            nowhere=nowhere or UNSET,
            nowhere_first=first or UNSET,
        )
        return queue_payload(reply)

    async def tenants(self, asked: Asked) -> bytes:
        """Answers what the tenants have, of what they may have."""
        question = read_question(TENANTS_QUESTION, asked)
        tenant = self._known_tenant(tenant_asked(asked, None))
        at = self.now()
        pools = []
        for pool in self._pools(question.pool):
            part = await self.asker.ask(pool, "tenants", ShardQuestion(at=at))
            lines = tenant_lines(standing for reply in part.replies for standing in reply.standings)
            pools.append(
                PoolTenants(
                    pool=pool.name,
                    capacity=pool.shape.capacity,
                    tenants=[line for line in lines if tenant in (None, line.standing.tenant)],
                    steering=[
                        one if tenant is None else as_a_tenant_hears(one)
                        for one in self.steering.of(pool.name)
                    ],
                    silent_shards=part.silent,
                    divide_by=divided_by(pool.rules),
                )
            )
        return tenants_payload(TenantsReply(at=to_datetime(at), pools=pools))

    async def explain(self, asked: Asked) -> bytes:
        """Answers why a job stands where it stands."""
        question = read_question(EXPLAIN_QUESTION, asked)
        tenant = tenant_asked(asked, question.tenant)
        if not question.job:
            refuse("job", question.job, "must be a job's name, with or without its scope, or its uid")
        at = self.now()
        found = await self.explainer.explain(question.job, tenant, at)
        near: list[str] = []
        if not found:
            self._known_tenant(tenant)
            near = self.explainer.near(question.job, tenant)
        payload = to_json(ExplainReply(at=to_datetime(at), found=found, near=near or UNSET))
        if len(payload) > PAYLOAD_LIMIT and len(found) > 1:
            told = f"{found[0].scope}/{job_name(found[0].id, found[0].owner)}"
            refuse(
                "job",
                question.job,
                f"{len(found)} jobs have that name, too much for one answer: name one, as {told}",
            )
        return payload

    async def _order(self, pool: ScoredPool, at: Micros, limit: int) -> PoolQueue:
        wanted = min(limit or MOST_POSITIONS, MOST_POSITIONS)
        part, positions = await self._first_positions(pool, at, wanted)
        waiting = sum(reply.waiting for reply in part.replies)
        unranked, first = self._unranked_lines(self.cache.unranked_in(pool.name, None), limit)
        return PoolQueue(
            pool=pool.name,
            waiting=waiting,
            more=max(0, waiting - len(positions)),
            # Where jobs ask for so much that fewer fit than are wanted, no limit shows more.
            most=MOST_POSITIONS if part.silent or len(positions) >= min(wanted, waiting) else len(positions),
            positions=[position async for position in self._all_ranked(positions, pool.rules, at)],
            steering=self.steering.of(pool.name),
            silent_shards=part.silent,
            unranked=unranked,
            unranked_first=first,
            divide_by=divided_by(pool.rules),
        )

    async def _first_positions(
        self, pool: ScoredPool, at: Micros, wanted: int
    ) -> tuple[ShardReplies, list[Position]]:
        """The first positions of the pool, and what its shards said.

        Each shard tells a little more than its part of them. Where that leaves the merge uncertain, as with a tenant
        that has nearly all that waits, each is asked for as many as are wanted of all.
        """
        least = min(wanted, 2 * wanted // pool.shards + _SPARE_POSITIONS)
        part, merged = await self._merged(pool, at, least)
        if least < wanted and _certain_positions(part.replies, merged) < wanted:
            part, merged = await self._merged(pool, at, wanted)
        # Of jobs that ask for many resources a shard tells fewer than are wanted: behind its last one the merge is uncertain.
        return part, merged[: min(wanted, _certain_positions(part.replies, merged))]

    async def _merged(
        self, pool: ScoredPool, at: Micros, of_each: int
    ) -> tuple[ShardReplies, list[Position]]:
        part = await self.asker.ask(pool, "queue", ShardQuestion(at=at, limit=of_each))
        # In a thread, as these values do not change: thousands of positions take 50 ms, and decisions must not wait for
        # that.
        parts = [reply.positions for reply in part.replies]
        return part, await asyncio.to_thread(merge_positions, parts, pool.rules, at)

    async def _all_ranked(
        self, positions: Sequence[Position], rules: PoolRules, at: Micros
    ) -> AsyncIterator[RankedPosition]:
        """Ranks positions, a few at a time: each takes exact fractions, and decisions must not wait for all."""
        for rank, position in enumerate(positions):
            if rank % _RANKED_AT_ONCE == 0:
                await asyncio.sleep(0)
            yield self._ranked(rank, position, rules, self._why_behind(positions, rank, rules, at))

    async def _order_of_tenant(self, pool: ScoredPool, at: Micros, limit: int, tenant: str) -> PoolQueue:
        """The tenant's positions with their ranks in the whole pool: its own shard lists them, all shards count."""
        wanted = min(limit or _MOST_RANKED, _MOST_RANKED)
        own = await self.asker.ask(
            pool, "queue", ShardQuestion(at=at, limit=wanted, tenant=tenant), [pool.shard_of(tenant)]
        )
        positions: list[Position] = [position for reply in own.replies for position in reply.positions]
        part = await self.asker.ask(pool, "queue", ShardQuestion(at=at, among=positions, limit=1))
        ranks = [sum(reply.before[number] for reply in part.replies) for number in range(len(positions))]
        # Those above it in a tree are told with it, and their jobs are not all its own.
        waiting = sum(one.waiting for one in pool.standings([tenant]) if one.tenant == tenant)
        whole = own.silent or len(positions) >= min(wanted, waiting)
        unranked, first = self._unranked_lines(self.cache.unranked_in(pool.name, tenant), limit)
        return PoolQueue(
            pool=pool.name,
            waiting=sum(reply.waiting for reply in part.replies),
            positions=[
                self._ranked(rank, concealed_position(position), pool.rules)
                for rank, position in zip(ranks, positions, strict=True)
            ],
            more=max(0, waiting - len(positions)),
            most=_MOST_RANKED if whole else len(positions),
            steering=[as_a_tenant_hears(one) for one in self.steering.of(pool.name)],
            silent_shards=sorted({*own.silent, *part.silent}),
            unranked=unranked,
            unranked_first=first,
            divide_by=divided_by(pool.rules),
        )

    def _unranked_lines(self, jobs: Sequence[JobState], limit: int) -> tuple[int, list[UnrankedJob]]:
        """The number of jobs without a position, and the first of them. Tasks of an array count one by one."""
        wanted = min(limit or MOST_UNRANKED, MOST_UNRANKED)
        told = wanted if wanted > FIRST_POSITIONS else min(wanted, _UNRANKED_TOLD)
        first = heapq.nsmallest(told, jobs, key=lambda job: (job.submitted, job.uid))
        return sum(map(_tasks, jobs)), [
            UnrankedJob(
                job=job.full_name,
                tenant=self.cache.tenant_of(job),
                why=job_sentences.unranked(job),
                tasks=_tasks(job),
            )
            for job in first
        ]

    def _ranked(self, rank: int, position: Position, rules: PoolRules, why: str = "") -> RankedPosition:
        [share], [entitled] = Quotients(rules).of(PositionColumns.of([position]))
        job = self.cache.job(position.uid)
        owner = None if job is None else job.owner
        return RankedPosition(
            rank=rank,
            position=position,
            share=share,
            entitled=entitled,
            owner=owner,
            name=UNSET if (name := job_name(position.id, owner)) == position.id else name,
            approved=None if job is None else self.cache.approval_of(job),
            left_alone=self.steering.left_alone_since(position.uid) or UNSET,
            why=why,
        )

    def _why_behind(self, positions: Sequence[Position], rank: int, rules: PoolRules, at: Micros) -> str:
        """The cause that puts the position before this one first; empty further down than people read."""
        if not 0 < rank < _MOST_RANKED:
            return ""
        before, position = (called(one, self.cache) for one in positions[rank - 1 : rank + 1])
        return cause_in_words(neighbour_of(position, before, rules, at), position, rules)

    def _known_tenant(self, tenant: str | None) -> str | None:
        """The tenant, if anybody knows it: an empty answer about an unknown one would say that all is well."""
        if tenant is not None and not self.cache.knows_tenant(tenant):
            refuse("tenant", tenant, "is not in the policy, and has no job and no queue")
        return tenant

    def _pools(self, name: str | None) -> list[ScoredPool]:
        if name is None:
            return [self.cache.pools[known] for known in sorted(self.cache.pools)]
        if name not in self.cache.pools:
            known = ", ".join(sorted(self.cache.pools)) or "none yet"
            refuse("pool", name, f"is not a pool; pools are {known}")
        return [self.cache.pools[name]]


def _tasks(job: JobState) -> int:
    return 1 if job.array is None else job.array.tasks


def _certain_positions(replies: Iterable[ShardReply], merged: Sequence[Position]) -> int:
    """The number of certain positions of a merge: up to the last position of a shard that has more behind it."""
    last = {reply.positions[-1].uid for reply in replies if 0 < len(reply.positions) < reply.waiting}
    return next((rank for rank, position in enumerate(merged, start=1) if position.uid in last), len(merged))


def tenant_lines(standings: Iterable[TenantShare]) -> list[TenantLine]:
    """Each tenant with its tag, and with its part among those that run or wait.

    Tenants that are entitled to most come first, then by name. Each is told once, whichever shards told it.
    """
    found = {standing.tenant: standing for standing in standings}
    totals: dict[str | None, float] = {}
    for standing in found.values():
        if standing.running or standing.waiting:
            totals[standing.parent] = totals.get(standing.parent, 0.0) + standing.weight
    lines = [
        TenantLine(
            standing=standing,
            tag=standing.share / standing.entitled if standing.entitled else None,
            part_now=_part_now(standing, found, totals),
        )
        for standing in found.values()
    ]
    return sorted(lines, key=lambda line: (-line.standing.entitled, line.standing.tenant))


def _part_now(
    standing: TenantShare, known: Mapping[str, TenantShare], totals: Mapping[str | None, float]
) -> float:
    part = 1.0
    above: TenantShare | None = standing
    while above is not None:
        total = totals.get(above.parent, 0.0)
        if not total or not (above.running or above.waiting):
            return 0.0
        part *= above.weight / total
        above = None if above.parent is None else known.get(above.parent)
    return part
