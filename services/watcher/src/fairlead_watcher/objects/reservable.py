"""Whether a start can be promised in a pool: only the first job in line may take what is free there. Pure.

Counterexamples of a model: with two strict queues on one quota nearly every tenth promise broke; a head in a queue that
fills gaps waits for ever. Quotas of several flavors do not add up: a job takes each resource from one of them.
"""

from collections import Counter

from fairlead_watcher.objects.quota import Forest, QueueFacts, Tree

STRICT = "StrictFIFO"


def why_not_reservable(tree: Tree, forest: Forest) -> str:
    """The reason, in words, for which no start can be promised; empty where one can."""
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
        return "its cohorts are parents of one another: Kueue admits nothing there"
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
