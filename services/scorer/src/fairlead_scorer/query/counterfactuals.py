"""Counterfactuals of a job: its shard's owner knows its own tenant, all owners what stands around it; put together here."""

from collections.abc import Callable

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import EffectiveJob, Place
from fairlead_contracts.messages.explanations import Counterfactual, Neighbour, Promoted, WhatIf
from fairlead_contracts.messages.questions import ShardQuestion, ShardReply
from fairlead_policy.explain.explanation import NEIGHBOURS, Found, targets_of, what_if_of
from fairlead_policy.explain.neighbourhood import join_around
from fairlead_scorer.query.shard_asking import ShardAsker, ShardReplies
from fairlead_scorer.state.pool import ScoredPool

_SOME_JOB = "another job"


class Counterfactuals:
    """Says what would move a waiting job.

    Args:
        asker: asks the owners of shards.
        called: a place with jobs called as people call them.
    """

    def __init__(self, asker: ShardAsker, called: Callable[[Place], Place]) -> None:
        self._asker = asker
        self._called = called

    async def foresee(
        self, pool: ScoredPool, own: ShardReply, part: ShardReplies, at: Micros
    ) -> tuple[WhatIf, WhatIf]:
        """The changes that would move the job whose place its own shard gave, all else being equal.

        For programs, jobs by their ids; and the same with jobs by the names that people know.

        Args:
            pool: that it waits in.
            own: of its shard's owner, asked for its prospects.
            part: of all owners, asked for what stands around it and before its places in higher classes.
            at: the instant that all were asked for.
        """
        place, rules = own.places[0], pool.rules
        parts = [reply.around for reply in part.replies if reply.around is not None]
        around = join_around(parts, rules, at, NEIGHBOURS)
        targets = targets_of(place, around, rules, at)
        others = _summed(part.replies, len(own.promoted))
        ends, ended = await self._ends(pool, place, targets, at)
        found = Found(
            place,
            own.makeup,
            around,
            targets,
            ends,
            await self._ranks(pool, ended, at),
            [
                (one.place.job_class, one.own + count)
                for one, count in zip(own.promoted, others, strict=False)
            ],
        )
        called = self._named(found)
        prospects = what_if_of(found, rules, at)
        return prospects, prospects if called == found else what_if_of(called, rules, at)

    def _named(self, found: Found) -> Found:
        around = found.around
        return found._replace(
            place=self._called(found.place),
            targets=[self._called(one) for one in found.targets],
            around=msgspec.structs.replace(
                around,
                nearest=[self._called(one) for one in around.nearest],
                behind=[self._called(one) for one in around.behind],
                foremost=None if around.foremost is None else self._called(around.foremost),
            ),
        )

    async def _ends(
        self, pool: ScoredPool, place: Place, targets: list[Place], at: Micros
    ) -> tuple[list[dict[str, int] | None], list[Promoted | None]]:
        """What of its tenant's running jobs has to end before it passes each of these; None where nobody knows.

        Beside it where the job would stand then, where that is told.
        """
        unknown: list[Promoted | None] = [None for _ in targets]
        question = ShardQuestion(at=at, uid=place.uid, passing=targets)
        own = await self._asker.ask(pool, "explain", question, [pool.shard_of(place.tenant)])
        for reply in own.replies:
            if len(reply.ends) == len(targets):
                return reply.ends, reply.ended if len(reply.ended) == len(targets) else unknown
        return [None for _ in targets], unknown

    async def _ranks(self, pool: ScoredPool, ended: list[Promoted | None], at: Micros) -> list[int | None]:
        """The ranks of places that the job would have; None where none is told, or an owner does not count."""
        told = [one for one in ended if one is not None]
        if not told:
            return [None for _ in ended]
        question = ShardQuestion(at=at, prospects=True, higher=[one.place for one in told])
        part = await self._asker.ask(pool, "explain", question)
        counted = _summed(part.replies, len(told))
        ranks = iter([one.own + others for one, others in zip(told, counted, strict=False)])
        return [None if one is None else next(ranks, None) for one in ended]


def _summed(replies: list[ShardReply], length: int) -> list[int]:
    """The counts of all shards; none where an owner of an earlier release does not count."""
    if any(len(reply.higher) != length for reply in replies):
        return []
    return [sum(reply.higher[number] for reply in replies) for number in range(length)]


def concealed(found: WhatIf, tenant: str) -> WhatIf:
    """Without the names of others' jobs: a tenant hears whose they are, as in the counts of those before it."""
    return msgspec.structs.replace(
        found,
        nearest=[_unnamed(one, tenant) for one in found.nearest],
        moves=[_unnamed_move(one) if one.passed_tenant != tenant else one for one in found.moves],
    )


def concealed_place(place: Place) -> Place:
    """The same of a place: below a tenant with others, what holds it back may be a sibling's job."""
    if not place.top:
        return place
    return msgspec.structs.replace(
        place,
        effective=_unnamed_effective_job(place.effective),
        effective_late=_unnamed_effective_job(place.effective_late),
        # A tenant's own level holds its own jobs alone.
        within=[
            one
            if one.tenant == place.tenant
            else msgspec.structs.replace(one, effective=_unnamed_effective_job(one.effective))
            for one in place.within
        ],
    )


def _unnamed_effective_job(effective_job: EffectiveJob | None) -> EffectiveJob | None:
    return None if effective_job is None else msgspec.structs.replace(effective_job, uid="", id="")


def _unnamed(one: Neighbour, tenant: str) -> Neighbour:
    if one.own_side and one.own_effective:
        one = msgspec.structs.replace(one, own_effective=_SOME_JOB)
    if one.effective and (one.side or one.tenant != tenant):
        one = msgspec.structs.replace(one, effective=_SOME_JOB)
    return one if one.tenant == tenant else msgspec.structs.replace(one, uid="", scope="", id="")


def _unnamed_move(one: Counterfactual) -> Counterfactual:
    return msgspec.structs.replace(one, passed="", passed_id="")
