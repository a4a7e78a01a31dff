"""Fit of a waiting job: the nodes of its cluster at all, the quota that its pool has left, or cards as they are held.

The first of these that is so is told, as `fairlead order` does: where nodes could never hold a job, quota would not help
it, and without quota it does not matter what is free.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fairlead_contracts.messages.questions import Shortfall
from fairlead_contracts.messages.state import JobState, NodeState, Phase
from fairlead_policy.fit.unschedulable import (
    CardRefusals,
    CardShort,
    NoCards,
    PoolFull,
    TooFewCards,
    UnschedulableReason,
)
from fairlead_policy.fit.words import all_in_words, in_words
from fairlead_scorer.query.shortfalls import shortfalls_of
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_scorer.state.pool import ScoredPool

_LISTED = 3
"""Reasons told of one job, and nodes that a sentence names; the first are the plainest."""
_OF_CARDS = (CardShort, CardRefusals, NoCards, TooFewCards)


class JobMisfit(NamedTuple):
    """Why a waiting job does not fit, in words and as numbers; at most one of the three has any words."""

    never: list[str] = []
    no_quota: list[str] = []
    no_room: list[str] = []
    shortfalls: list[Shortfall] = []


FITS = JobMisfit()
"""As far as anybody knows."""


def misfit_of(job: JobState, cache: ClusterCache, pool: ScoredPool | None) -> JobMisfit:
    """The known reasons against a waiting job's start, its place in the order apart.

    Args:
        job: in any phase.
        cache: what is known.
        pool: that it waits in.
    """
    if job.phase not in {Phase.WAITING, Phase.HELD}:
        return FITS
    packed = not cache.starts_by_quota_alone(job.cluster, job.queue)
    nodes, sizes = cache.nodes_of(job.cluster) if packed else [], cache.sizes_of(job.cluster)
    if reasons := sizes.outgrown(job, nodes):
        said = f"The nodes of cluster {job.cluster} cannot hold it, even if nothing else ran."
        return JobMisfit(never=_told(said, reasons, nodes), shortfalls=shortfalls_of("never", reasons))
    if pool is not None and (short := list(_lacking(job, pool, cache))):
        return JobMisfit(no_quota=list(map(in_words, short)), shortfalls=shortfalls_of("no-quota", short))
    if reasons := sizes.crowded_out(job, nodes):
        said = f"The cards of cluster {job.cluster} have no room for it now, as HAMi gave them away."
        return JobMisfit(no_room=_told(said, reasons, nodes), shortfalls=shortfalls_of("no-room", reasons))
    return FITS


def _told(beginning: str, reasons: Sequence[UnschedulableReason], nodes: Sequence[NodeState]) -> list[str]:
    found = all_in_words(reasons[:_LISTED])
    of_cards = any(isinstance(one, _OF_CARDS) for one in reasons)
    return [f"{beginning} {found}", *(_unread(nodes) if of_cards else ())]


def _unread(nodes: Sequence[NodeState]) -> Iterator[str]:
    """Cards that nobody can count, HAMi no more than we."""
    refused = sorted(node.name for node in nodes if node.cards_refused)
    if refused:
        named = ", ".join(refused[:_LISTED])
        more = f" and {len(refused) - _LISTED} nodes more" if len(refused) > _LISTED else ""
        yield f"Not counted: the cards of {named}{more}, whose register cannot be read."


def _lacking(job: JobState, pool: ScoredPool, cache: ClusterCache) -> Iterator[PoolFull]:
    """The resources that quota has too little left of. More than the pool has at all is among the reasons of the job's place."""
    quota = cache.quota_of(pool.name)
    for resource, amount in sorted(job.demand.items()):
        has, used = quota.get(resource, (0, 0))
        if amount <= has < amount + used:
            yield PoolFull(pool=pool.name, resource=resource, wanted=amount, left=max(has - used, 0))
