"""Nodes and pods as a cluster describes them, as far as it decides which pods may run where. Amounts are in base units.

Defaults that HAMi fills in are not filled in: the description says what was written, and `fit` what follows from it.
"""

import operator
from collections.abc import Callable, Mapping

import msgspec

from fairlead_contracts.frontend.cards import PER_VGPU

_COMPARED: Mapping[str, Callable[[int, int], bool]] = {
    "Gt": operator.gt,
    "Lt": operator.lt,
    "Gte": operator.ge,
    "Lte": operator.le,
}
OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist", *_COMPARED})


class LabelRequirement(msgspec.Struct, frozen=True, kw_only=True):
    """An expression of a label selector, of a required node affinity, or of what a Karpenter pool makes."""

    key: str
    operator: str
    """Operator: `In`, `NotIn`, `Exists` or `DoesNotExist`; for nodes also `Gt` and `Lt`, for pools `Gte` and `Lte`."""
    values: tuple[str, ...] | None = None

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels fulfil it; never, where nobody knows the operator."""
        value, values = labels.get(self.key), self.values or ()
        match self.operator:
            case "In":
                return value in values
            case "NotIn":
                return value not in values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        try:
            [bound] = self.values or ()
            return _COMPARED[self.operator](int(value or ""), int(bound))
        except (KeyError, ValueError):
            return False


class Taint(msgspec.Struct, frozen=True, kw_only=True):
    """Keeps pods off a node that don't tolerate it. `PreferNoSchedule` keeps nobody off."""

    key: str
    value: str = ""
    effect: str = ""
    """Effect: `NoSchedule`, `PreferNoSchedule` or `NoExecute`."""

    def __str__(self) -> str:
        """The taint as kubectl writes it."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(msgspec.Struct, frozen=True, kw_only=True):
    """A taint that a pod puts up with: no effect means each one, no key with `Exists` means each taint."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether it covers the taint, by the rules of Kubernetes."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        if self.operator == "Exists":
            return True
        # Other operators than these two are refused by Kubernetes or not common yet: they tolerate nothing here.
        return bool(self.key) and self.operator in ("", "Equal") and self.value == taint.value


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
