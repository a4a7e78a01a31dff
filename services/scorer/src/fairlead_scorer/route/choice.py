"""Choosing a cluster for a submission that does not name one. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.messages.submissions import Submission
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.stated_facts import StatedKey
from fairlead_scorer.state.cluster_cache import ClusterCache

_MOST_NAMED = 20


class NoQueueError(FieldError):
    """No cluster has a queue for the tenant. What its sender is told names nobody else; whom clusters let in is for operators.

    Args:
        tenant: the tenant that it was submitted as.
        let_in: the tenants that have a queue.
    """

    def __init__(self, tenant: str, let_in: Sequence[str]) -> None:
        super().__init__(
            "tenant",
            tenant,
            f"no cluster has a queue for tenant {tenant!r}: check the name, or ask an operator for a queue",
        )
        more = ", …" if len(let_in) > _MOST_NAMED else ""
        self.for_operators = f"{self}; these have one: {', '.join(let_in[:_MOST_NAMED]) or 'none'}{more}"


def choose(
    cache: ClusterCache,
    rulebook: Rulebook,
    submission: Submission,
    sent: Mapping[StatedKey, Mapping[str, int]],
    led: Collection[str],
) -> StatedKey:
    """The cluster with a queue of the tenant whose pool can hold the job and has most room for it, then by name; with that pool.

    Room is the capacity that neither runs nor waiting jobs ask for, counted in jobs of this size by the scarcest
    resource; it is negative where more waits than fits.

    What a cluster stated outlasts its services. One that no admitter leads takes nothing until one does, so it is passed
    over where another that can take the job is led.

    Args:
        cache: the known state of the clusters.
        rulebook: the policy.
        submission: the submission, as checked by the contracts.
        sent: base units of what went to each pool and does not show in the cluster cache yet.
        led: clusters that an admitter leads now.

    Raises:
        FieldError: no cluster takes it; says why, of each cluster that was considered.
    """
    # Room is negated: the option with most of it sorts first.
    options: list[tuple[Fraction, StatedKey]] = []
    problems: dict[str, FieldError] = {}
    for cluster, name in sorted(set(_queues(cache, submission))):
        queue = cache.facts.queue(cluster, name)
        pool = None if queue is None else cache.facts.clusters[cluster].pools.get(queue.pool)
        if queue is None or pool is None:
            continue
        try:
            rulebook.check_submission(
                submission, capacity=pool.capacity, cluster=cluster, queue=name, frontend=queue.frontend
            )
        except FieldError as error:
            problems.setdefault(cluster, error)
            continue
        stated = (cluster, pool.name)
        room = _room(submission.demand, pool.capacity, [cache.taken(*stated), sent.get(stated, {})])
        options.append((-room, stated))
    if not options:
        raise _nowhere(submission, problems, sorted(cache.facts.scopes()))
    _, best = min([option for option in options if option[1][0] in led] or options)
    return best


def _queues(cache: ClusterCache, submission: Submission) -> Iterator[StatedKey]:
    """The (cluster, queue) pairs that the submission could stand in: it enters by the account of its tenant's name."""
    for name, cluster in cache.facts.clusters.items():
        for account in cluster.accounts.get(submission.tenant, {}).values():
            yield name, submission.queue or account.queue


def _room(
    demand: Mapping[str, int], capacity: Mapping[str, int], taken: Iterable[Mapping[str, int]]
) -> Fraction:
    amounts = list(taken)
    return min(
        Fraction(capacity[resource] - sum(amount.get(resource, 0) for amount in amounts), asked)
        for resource, asked in demand.items()
    )


def _nowhere(submission: Submission, problems: Mapping[str, FieldError], let_in: Sequence[str]) -> FieldError:
    if not problems:
        return _without_queue(submission, let_in)
    first = next(iter(problems.values()))
    if len(problems) == 1:
        return first
    reasons = "; ".join(f"{cluster}: {error.field} {error.reason}" for cluster, error in problems.items())
    return FieldError(first.field, first.value, f"no cluster can take it: {reasons}")


def _without_queue(submission: Submission, let_in: Sequence[str]) -> FieldError:
    tenant = submission.tenant
    if submission.queue is not None and tenant in let_in:
        return FieldError(
            "queue",
            submission.queue,
            f"no cluster has a queue of that name for tenant {tenant!r}: submit without `queue` for the tenant's own",
        )
    return NoQueueError(tenant, let_in)
