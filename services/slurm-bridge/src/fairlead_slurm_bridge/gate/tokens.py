"""Number of GPUs that the partition's jobs may hold together: free ones, and those that they hold now. Pure.

It is a number for Slurm's scheduler, which counts tokens and knows nothing of Kubernetes. It does not change as jobs begin and
end: what a job takes moves from one part of the sum to the other. Others' pods change it, nodes that come and go, and pods that
take their time to end after Slurm has got the job's tokens back.
"""

from collections.abc import Iterable, Mapping

from fairlead_contracts.frontend.cards import PER_VGPU, VGPUS
from fairlead_policy.fit.filters import may_use
from fairlead_policy.fit.shapes import FitNode, PodShape

_ONE = 1000


def free_gpus(nodes: Iterable[FitNode], shape: PodShape) -> int:
    """The number of whole GPUs that nobody has any part of, on nodes where such pods may run."""
    return sum(_free_on(node) for node in nodes if may_use(shape, node))


def whole_gpus(demand: Mapping[str, int]) -> int:
    """The number of whole GPUs that a pod takes; 0 where it asks for parts, which take no tokens."""
    return 0 if any(demand.get(part) for part in PER_VGPU) else demand.get(VGPUS, 0) // _ONE


def _free_on(node: FitNode) -> int:
    if node.cards:
        return sum(card == card.emptied() for card in node.cards)
    return max(node.free.get(VGPUS, 0), 0) // _ONE
