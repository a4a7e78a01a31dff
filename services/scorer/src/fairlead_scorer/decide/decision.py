"""The content of one shard's decision: the heads of each queue, the tenants' standings, and what it was computed with.

No I/O. The same state, policy and instant give the same content, byte for byte, whichever replica works it out; only how far
heads go beyond the window follows from what the replica saw come free. Deciding lets the shard's past use decay up to that
instant, notes what the heads ask for, and changes nothing else.
"""

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import (
    AS_IT_TRAVELS,
    Basis,
    KeptPast,
    Position,
    QueueHeads,
    TenantShare,
)
from fairlead_scorer.state.pool import ScoredPool

PAYLOAD_LIMIT = 900_000
"""Bytes of a decision: below the server's default limit of 1 MiB, with room for headers."""

MOST_POSITIONS = 256
"""Positions of a queue up to which a decision goes where much is free."""


class DecisionContent(msgspec.Struct, frozen=True, kw_only=True, rename=AS_IT_TRAVELS):
    """The part of a decision that readers act on."""

    basis: Basis
    queue_heads: list[QueueHeads]
    standings: list[TenantShare]
    kept: KeptPast | None = None
    """Settled past use, for the next owner to go on from; None where there is none."""
    shortened: bool = False
    """Whether heads or standings were cut to keep the payload limit."""

    @property
    def startable_heads(self) -> list[QueueHeads]:
        """The heads of jobs that some flavor takes; the frontend passes the others by."""
        return [heads for heads in self.queue_heads if not heads.flavorless]


def decide(pool: ScoredPool, shard: int, now: Micros, *, limit: int = PAYLOAD_LIMIT) -> DecisionContent:
    """The shard's content at an instant.

    Where much came free at once it goes deeper, so that the order of all that have room is known. Heads that would break the
    payload limit are halved until they fit: readers see by `waiting` that more jobs wait.
    A shard of so many tenants that even their standings do not fit gives the heads, and if need be the heads alone.
    """
    pool.decay_past(shard, now)
    window = pool.window
    content = _content(pool, shard, now, window)
    pool.note_heads(shard, content.startable_heads, now)
    while window < MOST_POSITIONS and pool.has_more_room(shard, content.startable_heads):
        window *= 2
        content = _content(pool, shard, now, window)
    if _size(content, limit) <= limit:
        return content
    while _size(content, limit) > limit and window > 1:
        window //= 2
        content = msgspec.structs.replace(_content(pool, shard, now, window), shortened=True)
    if _size(content, limit) > limit:
        content = msgspec.structs.replace(content, standings=[], shortened=True)
    if _size(content, limit) > limit:
        content = msgspec.structs.replace(content, kept=None, shortened=True)
    return content


def _content(pool: ScoredPool, shard: int, now: Micros, window: int) -> DecisionContent:
    tenants = pool.tenants_of(shard)
    positions = pool.queue_heads(tenants, now, window)
    return DecisionContent(
        basis=pool.basis_of(shard),
        queue_heads=[
            QueueHeads(
                cluster=queue.cluster,
                queue=queue.name,
                flavorless=queue.apart or msgspec.UNSET,
                waiting=waiting,
                positions=positions.get(queue, []),
            )
            for queue, waiting in sorted(pool.waiting_of(shard).items())
        ],
        standings=pool.standings(tenants),
        kept=None if pool.past is None else pool.past.kept_past(shard),
    )


# A position takes about this much as MessagePack; below the estimate nothing is encoded just to be measured.
_TYPICAL_POSITION = 400
_TYPICAL_TENANT_SHARE = 400
_TYPICAL_RESOURCE = 40


def _size(content: DecisionContent, limit: int) -> int:
    positions = [position for heads in content.queue_heads for position in heads.positions]
    kept = [] if content.kept is None else content.kept.tenants.values()
    resources = (
        sum(len(position.demand) for position in positions)
        + sum(len(standing.use) + len(standing.past) for standing in content.standings)
        + sum(map(len, kept))
    )
    tenants = len(content.standings) + len(kept)
    estimate = (
        len(positions) * _TYPICAL_POSITION + tenants * _TYPICAL_TENANT_SHARE + resources * _TYPICAL_RESOURCE
    )
    if estimate < limit // 8:
        return estimate
    return len(msgspec.msgpack.encode(content))


def same(one: DecisionContent, other: DecisionContent) -> bool:
    """Whether a reader would act alike on two contents.

    The keys of jobs beyond the aging cap rise as time goes by; their positions do not change by that alone, so a key
    that differs is no difference. Readers compute keys for their own instant from the exact terms.
    """
    if one == other:
        return True
    return (
        one.basis == other.basis
        and one.standings == other.standings
        and one.kept == other.kept
        and len(one.queue_heads) == len(other.queue_heads)
        and all(_same_heads(*pair) for pair in zip(one.queue_heads, other.queue_heads, strict=True))
    )


def _same_heads(one: QueueHeads, other: QueueHeads) -> bool:
    if msgspec.structs.replace(one, positions=[]) != msgspec.structs.replace(other, positions=[]):
        return False
    return len(one.positions) == len(other.positions) and all(
        before == after or _without_key(before) == _without_key(after)
        for before, after in zip(one.positions, other.positions, strict=True)
    )


def _without_key(position: Position) -> Position:
    return msgspec.structs.replace(position, key=0.0)
