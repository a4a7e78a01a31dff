"""Reasons for which a waiting job does not fit: no node could ever hold it, its pool lacks quota, or others hold the cards.

The first that applies is told, as `fairlead order` does: where nodes could never hold a job, quota would not help it, and
without quota it does not matter what is free.

Reasons travel as numbers, too (term, value, unit, who); what has no number is told in words alone.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fairlead_contracts.messages.questions import Shortfall
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_policy.fit.unschedulable import (
    CardShort,
    GangShort,
    NodeShort,
    PodsShort,
    PoolFull,
    TooFewCards,
    TotalShort,
    UnschedulableReason,
    all_in_words,
)
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_scorer.state.pool import ScoredPool

_UNITS = {"memory": "MiB", "cores": "%"}
"""Units of what cards have."""
_ALL_PODS = "the job's pods"
_LISTED = 3
"""Reasons told of one job; the first are the plainest."""


def shortfalls_of(answer: str, reasons: Iterable[UnschedulableReason]) -> list[Shortfall]:
    """The numbers of the reasons, in their order.

    Args:
        answer: the answer that they come to; see `Shortfall`.
        reasons: the reasons of one job.
    """
    found = (_shortfall(answer, reason) for reason in reasons)
    return [one for one in found if one is not None]


def _shortfall(answer: str, reason: UnschedulableReason) -> Shortfall | None:  # noqa: PLR0911 # one line a kind
    match reason:
        case CardShort(shape=who, of=part, wanted=wanted, largest=most, free=free):
            return Shortfall(
                answer=answer,
                term=f"card-{part}",
                wanted=wanted,
                most=most,
                total=free,
                unit=_UNITS[part],
                who=who,
            )
        case TooFewCards(shape=who, wanted=wanted, most=most):
            return Shortfall(answer=answer, term="cards", wanted=wanted, most=most, unit="cards", who=who)
        case NodeShort(shape=who, resource=name, wanted=wanted, largest=most, free=free):
            return Shortfall(answer=answer, term=name, wanted=wanted, most=most, total=free, who=who)
        case TotalShort(shape=who, resource=name, wanted=wanted, free=free):
            return Shortfall(answer=answer, term=name, wanted=wanted, most=free, total=free, who=who)
        case PodsShort(shape=who, wanted=wanted, fits=fits):
            return Shortfall(answer=answer, term="pods", wanted=wanted, most=fits, unit="pods", who=who)
        case GangShort(wanted=wanted, fits=fits):
            return Shortfall(answer=answer, term="pods", wanted=wanted, most=fits, unit="pods", who=_ALL_PODS)
        case PoolFull(pool=who, resource=name, wanted=wanted, left=left):
            return Shortfall(answer=answer, term=name, wanted=wanted, most=left, who=who)
        case _:
            return None


class JobMisfit(NamedTuple):
    """Reasons for which a waiting job does not fit, in words and as numbers; at most one list has any words."""

    never: list[str] = []
    no_quota: list[str] = []
    no_room: list[str] = []
    shortfalls: list[Shortfall] = []


FITS = JobMisfit()
"""The answer where nothing is known to speak against a start."""


def misfit_of(job: JobState, cache: ClusterCache, pool: ScoredPool | None) -> JobMisfit:
    """The known reasons against a waiting job's start, its position in the order apart.

    Args:
        job: a job in any phase.
        cache: the known state of the clusters.
        pool: the pool that it waits in.
    """
    if job.phase not in {Phase.WAITING, Phase.HELD}:
        return FITS
    queue, sizes = cache.facts.queue(job.cluster, job.queue), cache.fit_on_nodes[job.cluster]
    by_quota_alone = queue is not None and queue.by_quota_alone
    nodes = [] if by_quota_alone else list(cache.facts.cluster(job.cluster).nodes.values())
    if reasons := sizes.outgrown(job, nodes):
        said = f"The nodes of cluster {job.cluster} cannot hold it, even if nothing else ran."
        return JobMisfit(
            never=[f"{said} {all_in_words(reasons[:_LISTED])}"], shortfalls=shortfalls_of("never", reasons)
        )
    if pool is not None and (short := list(_lacking(job, pool, cache))):
        return JobMisfit(no_quota=list(map(str, short)), shortfalls=shortfalls_of("no-quota", short))
    if reasons := sizes.crowded_out(job, nodes):
        said = f"The cards of cluster {job.cluster} have no room for it now, as HAMi gave them away."
        return JobMisfit(
            no_room=[f"{said} {all_in_words(reasons[:_LISTED])}"],
            shortfalls=shortfalls_of("no-room", reasons),
        )
    return FITS


def _lacking(job: JobState, pool: ScoredPool, cache: ClusterCache) -> Iterator[PoolFull]:
    """The resources that quota has too little left of; without those of which the pool never has enough."""
    quota = cache.quota_of(pool.name)
    for resource, amount in sorted(job.demand.items()):
        has, used = quota.get(resource, (0, 0))
        if amount <= has < amount + used:
            yield PoolFull(pool=pool.name, resource=resource, wanted=amount, left=max(has - used, 0))
