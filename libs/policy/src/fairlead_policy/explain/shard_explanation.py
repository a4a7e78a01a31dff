"""The explanation of a waiting job, made of what shards say: the questions they are asked, and what their answers come to.

On paper one order holds all shards, and an explanation is a function of it: `explain`. Live, each shard's owner answers
over the bus. Both ask by the same generator, `query_shards`: it yields questions, is sent the answers, and returns what was
found.
"""

from collections.abc import Callable, Collection, Generator, Sequence
from typing import NamedTuple

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position, TenantShare
from fairlead_contracts.messages.explanations import PromotedPosition
from fairlead_contracts.messages.questions import AheadOf, Explanation, ShardQuestion, ShardReply
from fairlead_policy.explain.explanation import (
    NEIGHBOURS,
    ExplanationFacts,
    targets_of,
    what_if_of,
)
from fairlead_policy.explain.neighbourhood import (
    around_position,
    count_before,
    count_others_before,
    join_around,
)
from fairlead_policy.explain.waiting_text import most_first, waiting_in_words
from fairlead_policy.explain.what_if import (
    AmountsByResource,
    breakdown_of,
    ended_of,
    in_higher_classes,
    least_ends_to_pass,
)
from fairlead_policy.order.order import Order
from fairlead_policy.order.shares import divided_by
from fairlead_policy.rules.pool_rules import PoolRules


class ShardsAsked(NamedTuple):
    """One question, and who is asked: the shard of this tenant, or all shards."""

    question: ShardQuestion
    shard_of: str | None = None


type ShardQuery[T] = Generator[ShardsAsked, Sequence[ShardReply], T]
"""Yields questions, is sent the replies of those shards that answered, and returns what they come to."""


class ShardFindings(NamedTuple):
    """Findings of a waiting job's shards."""

    standing: TenantShare | None
    """The share of its top-level tenant, by which it is compared with others' jobs."""
    waiting: int
    """Number of waiting jobs in the pool."""
    ahead: Sequence[AheadOf]
    found: ExplanationFacts | None
    """Orders and facts that the job is explained from; None where it has no position."""


# Asking -----------------------------------------------------------------------------------------------------------------


def query_shards(uid: str, tenant: str, rules: PoolRules, at: Micros) -> ShardQuery[ShardFindings]:
    """Asks all shards, for one instant, where a job stands and which changes would move it, all else being equal."""
    own = yield ShardsAsked(ShardQuestion(at=at, uid=uid, tenant=tenant, what_if=True), tenant)
    standing = standing_in(own, rules.top_of(tenant))
    reply = next((one for one in own if one.positions), None)
    if reply is None:
        return ShardFindings(standing, 0, (), None)
    position, promoted = reply.positions[0], reply.promoted
    all_asked = ShardQuestion(at=at, below=position, what_if=True, higher=[one.position for one in promoted])
    replies = yield ShardsAsked(all_asked)
    around = join_around([one.around for one in replies if one.around is not None], rules, at, NEIGHBOURS)
    targets = targets_of(position, around, rules, at)
    ends, ended = yield from _ends(position, targets, at)
    ranks = yield from _ranks(ended, at)
    promotions = [
        (one.position.job_class, one.own + others)
        for one, others in zip(promoted, _summed(replies, len(promoted)), strict=False)
    ]
    return ShardFindings(
        standing,
        sum(one.waiting for one in replies),
        most_first({line.tenant: line.jobs for one in replies for line in one.ahead}),
        ExplanationFacts(position, reply.breakdown, around, targets, ends, ranks, promotions),
    )


def standing_in(replies: Sequence[ShardReply], tenant: str) -> TenantShare | None:
    """The share that the tenant has and may have, as its shard tells it; None where no shard does."""
    return next((one for reply in replies for one in reply.standings if one.tenant == tenant), None)


def _ends(
    position: Position, targets: Sequence[Position], at: Micros
) -> ShardQuery[tuple[Sequence[AmountsByResource | None], Sequence[PromotedPosition | None]]]:
    """Asks how much of its tenant's running jobs must end before the job passes each target, and where it would stand then.

    None stands for what nobody knows, or does not tell.
    """
    unknown = [None for _ in targets]
    question = ShardQuestion(at=at, uid=position.uid, passing=list(targets))
    for reply in (yield ShardsAsked(question, position.tenant)) if targets else ():
        if len(reply.ends) == len(targets):
            return reply.ends, reply.ended if len(reply.ended) == len(targets) else unknown
    return unknown, unknown


def _ranks(ended: Sequence[PromotedPosition | None], at: Micros) -> ShardQuery[Sequence[int | None]]:
    """Asks the ranks of positions that the job would have; None where none is told, or an owner does not count."""
    told = [one for one in ended if one is not None]
    if not told:
        return [None for _ in ended]
    replies = yield ShardsAsked(ShardQuestion(at=at, what_if=True, higher=[one.position for one in told]))
    counted = _summed(replies, len(told))
    ranks = iter([one.own + others for one, others in zip(told, counted, strict=False)])
    return [None if one is None else next(ranks, None) for one in ended]


def _summed(replies: Sequence[ShardReply], length: int) -> list[int]:
    """The counts of all shards; none where an owner of an earlier release does not count."""
    if any(len(reply.higher) != length for reply in replies):
        return []
    return [sum(reply.higher[number] for reply in replies) for number in range(length)]


# Answering --------------------------------------------------------------------------------------------------------------


def with_what_if(
    reply: ShardReply, order: Order, asked: ShardQuestion, tenants: Collection[str] | None
) -> ShardReply:
    """A shard's reply with what is asked of a job's surroundings and what would move it.

    Args:
        reply: the reply with the job's position, where that is asked for and the shard holds it.
        order: the order of the shard's tenants, or of more.
        tenants: the shard's tenants; None for all of the order.
    """
    if asked.below is not None:
        reply = msgspec.structs.replace(reply, ahead=most_first(count_before(order, asked.below, tenants)))
    if not asked.what_if and not asked.passing:
        return reply
    own = reply.positions[0] if reply.positions else None
    ends = [] if own is None else least_ends_to_pass(order, own, asked.passing)
    wanted = own if asked.what_if else None
    return msgspec.structs.replace(
        reply,
        breakdown=None if wanted is None else breakdown_of(order, wanted),
        promoted=[] if wanted is None else in_higher_classes(order, wanted),
        around=None if asked.below is None else around_position(order, asked.below, NEIGHBOURS, tenants),
        higher=[count_others_before(order, position, tenants) for position in asked.higher],
        ends=[None if one is None else dict(one) for one in ends],
        ended=[] if own is None else ended_of(order, own, ends),
    )


def findings_in(order: Order, position: Position) -> ShardFindings:
    """The findings of the job at a position, where one order holds all shards."""
    waiting = sum(order.snapshot.waiting().values())
    query = query_shards(position.uid, position.tenant, order.rules, order.now)
    try:
        asked = next(query)
        while True:
            question, tenant = asked.question, asked.question.tenant
            reply = ShardReply(
                pool="",
                shard=0,
                policy=0,
                capacity=dict(order.rules.capacity),
                waiting=waiting,
                positions=[position] if question.uid == position.uid else [],
                standings=[] if tenant is None else order.snapshot.standings([tenant]),
            )
            asked = query.send([with_what_if(reply, order, question, None)])
    except StopIteration as over:
        findings: ShardFindings = over.value
        return findings


# Telling ----------------------------------------------------------------------------------------------------------------


def explain(fact: Explanation, position: Position, order: Order) -> Explanation:
    """The explanation of a waiting job by the order of its whole pool at the instant that is asked for."""
    found = with_findings(fact, findings_in(order, position), order.rules, order.now)
    return msgspec.structs.replace(found, reasons=waiting_in_words(found, order.rules, order.now))


def with_findings(fact: Explanation, findings: ShardFindings, rules: PoolRules, at: Micros) -> Explanation:
    """The explanation of a job with what its shards found."""
    fact = msgspec.structs.replace(fact, standing=findings.standing, divide_by=divided_by(rules))
    found = findings.found
    if found is None:
        return fact
    return msgspec.structs.replace(
        fact,
        position=found.position,
        rank=sum(line.jobs for line in findings.ahead),
        waiting=findings.waiting,
        ahead=list(findings.ahead),
        what_if=what_if_of(found, rules, at),
    )


def rename_jobs(findings: ShardFindings, called: Callable[[Position], Position]) -> ShardFindings:
    """The findings with jobs under the names that `called` gives their positions."""
    found = findings.found
    if found is None:
        return findings
    around = msgspec.structs.replace(
        found.around,
        nearest=[called(one) for one in found.around.nearest],
        behind=[called(one) for one in found.around.behind],
        foremost=None if found.around.foremost is None else called(found.around.foremost),
    )
    targets = [called(one) for one in found.targets]
    return findings._replace(
        found=found._replace(position=called(found.position), targets=targets, around=around)
    )
