"""Nodes that a Karpenter NodePool can make, against what a flavor asks for.

Rules: Karpenter documentation, "NodePools" (`spec.template.spec.requirements`) and "Scheduling": a pod's node selector on
a label that the pool neither sets nor requires, and that Karpenter does not know, rules the pool out.
"""

from collections.abc import Iterable, Iterator

import msgspec

from fairlead_contracts.frontend.observed import OPERATORS
from fairlead_kube.kinds.core import NodePool
from fairlead_kube.kinds.queues import ResourceFlavor

CAPACITY_TYPE = "karpenter.sh/capacity-type"
POOL = "karpenter.sh/nodepool"
_KNOWN = frozenset(
    {
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "node.kubernetes.io/instance-type",
        "node.kubernetes.io/windows-build",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        CAPACITY_TYPE,
    }
)
_PROVIDERS = ("karpenter.k8s.aws/", "karpenter.azure.com/", "karpenter.k8s.gcp/")
"""Labels of instance types, GPUs among them, that the provider sets on each node that it makes."""


class Misfit(msgspec.Struct, frozen=True, kw_only=True):
    """A label that a flavor asks for and a pool cannot give its nodes."""

    key: str
    value: str
    why: str
    allowed: tuple[str, ...] = ()
    """Values that the pool gives instead, where it names them."""


def misfits(flavor: ResourceFlavor, pool: NodePool) -> list[Misfit]:
    """The labels of the flavor that no node of the pool can have; none where it can make what the flavor asks for."""
    return [
        misfit
        for key, value in sorted((flavor.spec.node_labels or {}).items())
        for misfit in _misfit(key, value, pool)
    ]


def makers(flavor: ResourceFlavor, pools: Iterable[NodePool]) -> list[NodePool]:
    """The pools that can make what the flavor asks for."""
    return [pool for pool in pools if not misfits(flavor, pool)]


def _misfit(key: str, value: str, pool: NodePool) -> Iterator[Misfit]:
    template = pool.spec.template
    fixed = {**(template.metadata.labels or {}), POOL: pool.metadata.name}
    if key in fixed:
        if fixed[key] != value:
            yield Misfit(
                key=key, value=value, why=f"its nodes have {key}={fixed[key]}", allowed=(fixed[key],)
            )
        return
    required = [one for one in template.spec.requirements or () if one.key == key]
    if not required and key not in _KNOWN and not key.startswith(_PROVIDERS):
        why = f"it neither sets nor requires {key}, which Karpenter does not know"
        yield Misfit(key=key, value=value, why=why)
    for one in required:
        # A requirement by an unknown operator keeps nothing off.
        if one.operator in OPERATORS and not one.holds({key: value}):
            allowed = one.values or () if one.operator == "In" else ()
            stated = f"{one.key} {one.operator} {list(one.values or ())}".replace("'", "")
            yield Misfit(key=key, value=value, why=f"it requires {stated}", allowed=allowed)
