"""The exactness with which Kueue can follow an order in a pool, and whether it keeps a promised start there. Pure.

One integer a Workload is the lever, and Kueue puts other things before it: the queue's turn, who borrows, its own fair
shares. Rules: kueue.sigs.k8s.io, `pkg/scheduler` (`entryOrdering`, `fairSharingIterator`) and `pkg/cache/queue`
(`queueOrderingFunc`) of 0.19, and what they did in trials.
"""

from collections import Counter
from typing import NamedTuple

from fairlead_watcher.objects.quota import Forest, QueueFacts, Tree

STRICT = "StrictFIFO"
_CYCLIC = "its cohorts are parents of one another: Kueue admits nothing there"
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
        return Enforcement(TIE_BREAK, _CYCLIC)
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
    """The enforcement of a tree without quota in the way: exact, but of a strict queue, whose head takes room at once."""
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


def why_not_reservable(tree: Tree, forest: Forest) -> str:
    """The reason, in words, for which no start can be promised; empty where one can.

    Only the first job in line may take what is free. Counterexamples of a model: with two strict queues on one quota nearly
    every tenth promise broke; a head in a queue that fills gaps waits for ever. Quotas of several flavors do not add up: a
    job takes each resource from one of them.
    """
    if len(tree.queues) != 1:
        names = [queue.name for queue in tree.queues]
        return f"{len(names)} ClusterQueues draw on its quota ({', '.join(names[:3])}): reserve mode needs one that is alone"
    [queue] = tree.queues
    return _of_queue(queue) or _of_quota(queue, tree, forest)


def _of_queue(queue: QueueFacts) -> str:
    if queue.strategy != STRICT:
        return (
            f"ClusterQueue {queue.name} is {queue.strategy or 'of unknown strategy'}: "
            f"it fills gaps, and keeps no place for a job that does not fit; set queueingStrategy {STRICT}"
        )
    if queue.usage_first:
        return f"AdmissionFairSharing in {queue.name}: Kueue puts the use of LocalQueues before priority"
    return ""


def _of_quota(queue: QueueFacts, tree: Tree, forest: Forest) -> str:
    if tree.cyclic:
        return _CYCLIC
    potential = forest.potential(queue)
    flavors = Counter(name.resource for name, amount in potential.items() if amount)
    several = sorted(resource for resource, count in flavors.items() if count > 1)
    if several:
        return f"several flavors give {', '.join(several)}: a job that fits their sum may fit none of them"
    reach: Counter[str] = Counter()
    for name, amount in potential.items():
        reach[name.resource] += amount
    short = sorted(name for name, amount in forest.capacity(tree).items() if reach[name] < amount)
    return f"a borrowing limit keeps {', '.join(short)} of its cohort from it" if short else ""
