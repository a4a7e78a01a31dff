"""One shard's part of an answer, from its owner. Pure."""

import msgspec

from fairlead_contracts.messages.decisions import Place
from fairlead_contracts.messages.explanations import Promoted
from fairlead_contracts.messages.questions import AheadOf, ShardQuestion, ShardReply
from fairlead_contracts.subjects import QuestionKind
from fairlead_policy.explain.explanation import NEIGHBOURS, ended_of, higher_classes
from fairlead_policy.explain.surroundings import around_place, count_others_before
from fairlead_policy.explain.waiting_text import most_first
from fairlead_policy.explain.what_if import breakdown_of, if_promoted, least_ends_to_pass
from fairlead_policy.order.merging import merge_places
from fairlead_policy.order.order import Order
from fairlead_scorer.state.pool import ScoredPool

MOST_PLACES = 2000
"""Places in one reply or answer: about half a megabyte, under the server's limit for a message."""


def answer(pool: ScoredPool, shard: int, kind: QuestionKind, asked: ShardQuestion) -> ShardReply:
    """Answers a question to the shard, for the question's own instant."""
    tenants = pool.tenants_of(shard)
    reply = _reply(pool, shard, kind, asked, tenants)
    return _foreseen(reply, pool, asked, tenants) if asked.prospects or asked.passing else reply


def _reply(
    pool: ScoredPool, shard: int, kind: QuestionKind, asked: ShardQuestion, tenants: list[str]
) -> ShardReply:
    if asked.tenant is not None:
        tenants = [asked.tenant] if asked.tenant in tenants else []
    return ShardReply(
        pool=pool.name,
        shard=shard,
        policy=pool.policy,
        capacity=pool.shape.capacity,
        waiting=sum(pool.waiting_of(shard).values()),
        places=_places(pool, tenants, asked) if kind == "queue" else _one_place(pool, asked),
        standings=pool.standings(tenants) if _wants_tenant_shares(kind, asked) else [],
        ahead=[] if asked.below is None else _ahead(pool, shard, asked.below, asked),
        before=[sum(_before(pool, shard, place, asked).values()) for place in asked.among],
    )


def _foreseen(reply: ShardReply, pool: ScoredPool, asked: ShardQuestion, tenants: list[str]) -> ShardReply:
    """The reply with what is asked of a job's prospects."""
    order = pool.order_at(asked.at)
    own = reply.places[0] if reply.places else None
    ends = [] if own is None else _ends(order, own, asked)
    return msgspec.structs.replace(
        reply,
        makeup=breakdown_of(order, own) if own is not None and asked.prospects else None,
        promoted=_promoted(order, own) if own is not None and asked.prospects else [],
        around=None if asked.below is None else around_place(order, asked.below, NEIGHBOURS, tenants),
        higher=[count_others_before(order, place, tenants) for place in asked.higher],
        ends=ends,
        ended=[] if own is None else ended_of(order, own, ends),
    )


def _promoted(order: Order, own: Place) -> list[Promoted]:
    found = (if_promoted(order, own, job_class) for job_class in higher_classes(own, order.rules))
    return [one for one in found if one is not None]


def _ends(order: Order, own: Place, asked: ShardQuestion) -> list[dict[str, int] | None]:
    found = least_ends_to_pass(order, own, asked.passing)
    return [None if ends is None else dict(ends) for ends in found]


def _wants_tenant_shares(kind: QuestionKind, asked: ShardQuestion) -> bool:
    return kind == "tenants" or (kind == "explain" and asked.tenant is not None)


def _places(pool: ScoredPool, tenants: list[str], asked: ShardQuestion) -> list[Place]:
    if asked.among or not tenants:
        return []
    limit = min(asked.limit or MOST_PLACES, MOST_PLACES)
    fronts = pool.fronts(tenants, asked.at, limit)
    return merge_places(fronts.values(), pool.rules, asked.at)[:limit]


def _one_place(pool: ScoredPool, asked: ShardQuestion) -> list[Place]:
    place = None if asked.uid is None else pool.place(asked.uid, asked.at)
    return [] if place is None else [place]


def _before(pool: ScoredPool, shard: int, place: Place, asked: ShardQuestion) -> dict[str, int]:
    return pool.count_before(place, asked.at, pool.tenants_of(shard))


def _ahead(pool: ScoredPool, shard: int, place: Place, asked: ShardQuestion) -> list[AheadOf]:
    return most_first(_before(pool, shard, place, asked))
