"""Answers cut to what one message holds. One that no server takes tells nothing, and one shard's would seem silent. Pure."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from fairlead_contracts.base.codec import Message, to_json
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.questions import PoolQueue, QueueReply, TenantsReply
from fairlead_scorer.decide.decision import PAYLOAD_LIMIT


def that_fit(positions: Sequence[Position]) -> list[Position]:
    """The first positions that one message holds: jobs may ask for many resources, of long names."""
    fit = list(positions)
    while len(fit) > 1 and len(msgspec.msgpack.encode(fit)) > PAYLOAD_LIMIT:
        fit = fit[: len(fit) // 2]
    return fit


def queue_payload(reply: QueueReply) -> bytes:
    """The answer as it is sent: with the first of its jobs where all of them are more than one message holds.

    So are those without a position: each has a sentence, and a pool, or many, may have hundreds of them.
    """
    named = [jobs for pool in reply.pools for jobs in (pool.positions, pool.unranked_first)]
    return _halved(reply, [*named, reply.nowhere_first or ()], _first_jobs)


def tenants_payload(reply: TenantsReply) -> bytes:
    """The answer as it is sent: with the first of its tenants where all of them are more than one message holds."""
    return _halved(reply, [pool.tenants for pool in reply.pools], _first_tenants)


def _halved[R: Message](reply: R, lists: Iterable[Sequence[object]], cut: Callable[[R, int], R]) -> bytes:
    """The answer in bytes, its lists cut to half of the longest, and again, until a message holds it."""
    payload, most = to_json(reply), max(map(len, lists), default=0)
    while len(payload) > PAYLOAD_LIMIT and most > 1:
        most //= 2
        payload = to_json(cut(reply, most))
    return payload


def _first_jobs(reply: QueueReply, most: int) -> QueueReply:
    return msgspec.structs.replace(
        reply,
        pools=[_first(pool, most) for pool in reply.pools],
        nowhere_first=reply.nowhere_first and reply.nowhere_first[:most],
    )


def _first(pool: PoolQueue, most: int) -> PoolQueue:
    pool = msgspec.structs.replace(pool, unranked_first=pool.unranked_first[:most])
    left_out = len(pool.positions) - most
    if left_out <= 0:
        return pool
    return msgspec.structs.replace(
        pool, positions=pool.positions[:most], more=pool.more + left_out, most=most
    )


def _first_tenants(reply: TenantsReply, most: int) -> TenantsReply:
    pools = [
        pool
        if len(pool.tenants) <= most
        else msgspec.structs.replace(pool, tenants=pool.tenants[:most], more=len(pool.tenants) - most)
        for pool in reply.pools
    ]
    return msgspec.structs.replace(reply, pools=pools)
