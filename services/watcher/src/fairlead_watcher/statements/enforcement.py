"""The exactness with which Kueue can follow an order in a pool, and what makes it no better. Pure.

One integer a Workload is the lever, and Kueue puts other things before it: the queue's turn, who borrows, its own fair
shares. Rules: kueue.sigs.k8s.io, `pkg/scheduler` (`entryOrdering`, `fairSharingIterator`) and `pkg/cache/queue`
(`queueOrderingFunc`) of 0.19, and what they did in trials.
"""

from typing import NamedTuple

from fairlead_watcher.objects.quota import Forest, QueueFacts, Tree
from fairlead_watcher.objects.reservable import STRICT

EXACT, STANDING, CLOSE, WITHIN_QUEUE, TIE_BREAK = "exact", "standing", "close", "within-queue", "tie-break"


class Enforcement(NamedTuple):
    """The degree of enforcement, and why it is no better."""

    how: str
    why: str = ""


def enforcement(tree: Tree, forest: Forest) -> Enforcement:
    """The enforcement of a pool."""
    by_use = [queue.name for queue in tree.queues if queue.usage_first]
    if by_use:
        return Enforcement(
            TIE_BREAK,
            f"AdmissionFairSharing in {_listed(by_use)}: Kueue puts the use of LocalQueues before priority",
        )
    if tree.cyclic:
        return Enforcement(TIE_BREAK, "its cohorts are parents of one another: Kueue admits nothing there")
    if len(tree.queues) == 1:
        return _in_order(tree)
    if not any(_can_borrow(queue, forest) for queue in tree.queues):
        return Enforcement(
            WITHIN_QUEUE,
            "several ClusterQueues that cannot borrow from each other: each has an order of its own",
        )
    reasons = _reasons(tree)
    return Enforcement(TIE_BREAK, "; ".join(reasons)) if reasons else _in_order(tree)


def _in_order(tree: Tree) -> Enforcement:
    """Exact, unless a head that is never parked takes what comes free before the order that follows from it is known."""
    strict = [queue.name for queue in tree.queues if queue.strategy == STRICT]
    if not strict:
        return Enforcement(EXACT)
    return Enforcement(
        STANDING, f"of a {STRICT} queue ({_listed(strict)}) Kueue admits the head the moment room comes free"
    )


def where_jobs_differ(found: Enforcement) -> Enforcement:
    """The enforcement while the waiting jobs differ.

    A second after a release Kueue tries all parked Workloads: those with a level first, then the oldest of each kind,
    by demand and class (see `equivalence`). What comes free in these few hundredths of a second goes to whoever is
    tried next. Where all are alike there are only two tries, and the first job of the order has the first.
    """
    if found.how != EXACT:
        return found
    return Enforcement(
        CLOSE, "the jobs that wait are not all alike: a few starts in a hundred come out of turn"
    )


def _reasons(tree: Tree) -> list[str]:
    """The reasons why Kueue does not follow the order where several queues draw on one quota."""
    reasons = []
    own = [queue.name for queue in tree.queues if any(quota.nominal for quota in queue.quotas.values())]
    if own:
        reasons.append(
            f"queues with quota of their own ({_listed(own)}): Kueue puts those that need not borrow first"
        )
    if any(queue.fair_sharing for queue in tree.queues):
        reasons.append("FairSharing: Kueue puts its own shares before priority")
    nested = sorted({queue.parent for queue in tree.queues} - {tree.name})
    if nested:
        reasons.append(f"nested cohorts ({_listed(nested)}): each level has its own turn")
    return reasons


def _can_borrow(queue: QueueFacts, forest: Forest) -> bool:
    potential = forest.potential(queue)
    return any(potential[name] > quota.nominal for name, quota in queue.quotas.items())


def _listed(names: list[str]) -> str:
    most = 3
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
