"""Whether stated nodes could hold a stated job at all: the same question as of a snapshot, asked of what services know.

Services know what nodes have, not what pods on them use, nor taints that are tolerated, required affinity, or cards. So
only what cannot be is told: all that is not known is taken as if it stood in nobody's way, which can hide a job that
never fits and never makes one of a job that does. It is a word on the nodes of now: an autoscaler may add larger ones.
"""

from collections.abc import Iterable, Mapping

from fairlead_contracts.cards import PER_VGPU
from fairlead_contracts.errors import FieldError
from fairlead_contracts.state import JobShape, JobState, NodeState
from fairlead_policy.fit import Gang, Node, Obstacle, PodShape, Unfit, place

_PODS = "pods"
_UNSTATED = frozenset({_PODS, *PER_VGPU})
"""Resources that a node may have without stating them: HAMi answers for parts of cards in its own way."""


def outgrown(job: JobState, nodes: Iterable[NodeState]) -> tuple[Obstacle, ...]:
    """What would keep the job from running if nothing else ran; empty where nothing is proven to.

    Args:
        job: that waits.
        nodes: of its cluster, those that are not ready too: they may be again. None say nothing.
    """
    shapes = job.shapes or _evenly(job)
    stated = [_empty(node) for node in nodes]
    if not shapes or not stated:
        return ()
    try:
        gang = Gang(shapes=tuple(map(_pods, shapes)))
    except FieldError:
        return ()  # a quantity that no cluster has: its watcher objects to it on the job itself
    found = place(gang, stated)
    return found.obstacles if isinstance(found, Unfit) and found.exact else ()


def _evenly(job: JobState) -> list[JobShape]:
    """Of a job that does not state its pods one by one; none where it does not go evenly into them."""
    if job.pods < 1 or any(amount % job.pods for amount in job.demand.values()):
        return []
    demand = {name: amount // job.pods for name, amount in job.demand.items()}
    return [JobShape(name=_PODS, pods=job.pods, demand=demand)]


def _pods(shape: JobShape) -> PodShape:
    return PodShape(
        name=shape.name, count=shape.pods, demand=_without_unstated(shape.demand), selector=shape.selector
    )


def _without_unstated(demand: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in demand.items() if name not in _UNSTATED}


def _empty(node: NodeState) -> Node:
    return Node(name=node.name, free=node.allocatable, allocatable=node.allocatable, labels=node.labels)
