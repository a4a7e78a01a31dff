"""One shard's part of an answer, from its owner. Pure."""

from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.questions import ShardQuestion, ShardReply
from fairlead_contracts.subjects import QuestionKind
from fairlead_policy.explain.shard_explanation import with_what_if
from fairlead_policy.order.merging import merge_positions
from fairlead_scorer.query.reply_size import that_fit
from fairlead_scorer.state.pool import ScoredPool

MOST_POSITIONS = 2000
"""Positions in one reply or answer: about half a megabyte, under the server's limit for a message; fewer where jobs ask
for many resources."""


def answer(pool: ScoredPool, shard: int, kind: QuestionKind, asked: ShardQuestion) -> ShardReply:
    """Answers a question to the shard, for the question's own instant."""
    tenants = pool.tenants_of(shard)
    chosen = tenants if asked.tenant is None else [name for name in tenants if name == asked.tenant]
    wants_shares = kind == "tenants" or (kind == "explain" and asked.tenant is not None)
    reply = ShardReply(
        pool=pool.name,
        shard=shard,
        policy=pool.policy,
        capacity=pool.shape.capacity,
        waiting=sum(pool.waiting_of(shard).values()),
        positions=_positions(pool, chosen, kind, asked),
        standings=pool.standings(chosen) if wants_shares else [],
        before=[sum(pool.count_before(position, asked.at, tenants).values()) for position in asked.among],
    )
    return with_what_if(reply, pool.order_at(asked.at), asked, tenants)


def _positions(
    pool: ScoredPool, tenants: list[str], kind: QuestionKind, asked: ShardQuestion
) -> list[Position]:
    """The tenants' first positions where the order is asked for; else that of the job that is asked about."""
    if kind != "queue":
        position = None if asked.uid is None else pool.position(asked.uid, asked.at)
        return [] if position is None else [position]
    if asked.among or not tenants:
        return []
    limit = min(asked.limit or MOST_POSITIONS, MOST_POSITIONS)
    queue_heads = pool.queue_heads(tenants, asked.at, limit)
    return that_fit(merge_positions(queue_heads.values(), pool.rules, asked.at)[:limit])
