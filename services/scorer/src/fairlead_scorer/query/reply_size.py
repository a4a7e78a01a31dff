"""Answers cut to what one message holds. One that no server takes tells nothing, and one shard's would seem silent. Pure."""

from collections.abc import Sequence

import msgspec

from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.questions import PoolQueue, PoolTenants, QueueReply, TenantsReply
from fairlead_scorer.decide.decision import PAYLOAD_LIMIT


def that_fit(positions: Sequence[Position], limit: int = PAYLOAD_LIMIT) -> list[Position]:
    """The first positions that a reply of so many bytes holds: jobs may ask for many resources, of long names."""
    fit = list(positions)
    while len(fit) > 1 and len(msgspec.msgpack.encode(fit)) > limit:
        fit = fit[: len(fit) // 2]
    return fit


def queue_payload(reply: QueueReply, limit: int = PAYLOAD_LIMIT) -> bytes:
    """The answer as it is sent: with the first of its jobs where all of them are more than one message holds.

    So are those without a position: each has a sentence, and a pool, or many, may have hundreds of them.
    """
    payload = to_json(reply)
    named = [jobs for pool in reply.pools for jobs in (pool.positions, pool.unranked_first)]
    most = max(map(len, [*named, reply.nowhere_first or ()]), default=0)
    while len(payload) > limit and most > 1:
        most //= 2
        reply = msgspec.structs.replace(
            reply,
            pools=[_first(pool, most) for pool in reply.pools],
            nowhere_first=reply.nowhere_first and reply.nowhere_first[:most],
        )
        payload = to_json(reply)
    return payload


def _first(pool: PoolQueue, most: int) -> PoolQueue:
    pool = msgspec.structs.replace(pool, unranked_first=pool.unranked_first[:most])
    left_out = len(pool.positions) - most
    if left_out <= 0:
        return pool
    return msgspec.structs.replace(
        pool, positions=pool.positions[:most], more=pool.more + left_out, most=most
    )


def tenants_payload(reply: TenantsReply, limit: int = PAYLOAD_LIMIT) -> bytes:
    """The answer as it is sent: with the first of its tenants where all of them are more than one message holds."""
    payload = to_json(reply)
    most = max((len(pool.tenants) for pool in reply.pools), default=0)
    while len(payload) > limit and most > 1:
        most //= 2
        shortened = [_first_tenants(pool, most) for pool in reply.pools]
        payload = to_json(msgspec.structs.replace(reply, pools=shortened))
    return payload


def _first_tenants(pool: PoolTenants, most: int) -> PoolTenants:
    more = len(pool.tenants) - most
    return msgspec.structs.replace(pool, tenants=pool.tenants[:most], more=more) if more > 0 else pool
