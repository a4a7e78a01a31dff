"""Nodes and pods as a cluster describes them, as far as it decides which pods may run where. Amounts are in base units.

Defaults that HAMi fills in are not filled in: the description says what was written, and `fit` what follows from it.
"""

from collections.abc import Mapping

import msgspec

from fairlead_contracts.frontend.cards import PER_VGPU
from fairlead_contracts.frontend.label_requirements import LabelRequirement
from fairlead_contracts.frontend.taints import Taint, Toleration


class ObservedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node with nothing on it."""

    name: str
    ready: bool
    """Whether it takes pods now."""
    allocatable: Mapping[str, int]
    """Amounts that can be read."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    """All annotations; HAMi's register is among them."""
    taints: tuple[Taint, ...]
    """Taints as they stand in the node's spec."""
    unschedulable: bool
    """Whether it is cordoned."""


class ObservedPods(msgspec.Struct, frozen=True, kw_only=True):
    """A number of pods, all alike."""

    name: str
    count: int
    demand: Mapping[str, int]
    """Demand of one pod, cards among it."""
    card_asks: tuple[Mapping[str, int], ...] = ()
    """Cards that containers ask for, of those that ask for any."""
    card_annotations: Mapping[str, str] = {}
    """Annotations that choose cards; others are left out."""
    selector: Mapping[str, str] = {}
    affinity: tuple[tuple[LabelRequirement, ...], ...] = ()
    """Terms of the required node affinity, one of which must hold. Empty where none is required, or where one goes by what
    a node's description leaves out."""
    tolerations: tuple[Toleration, ...] = ()

    @property
    def ask_for_parts(self) -> bool:
        """Whether a container asks for less than whole cards, which HAMi alone can give."""
        return any(ask.get(name) for ask in self.card_asks for name in PER_VGPU)
