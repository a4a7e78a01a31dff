"""Requirements that labels have to fulfil, as Kubernetes has them."""

import operator
from collections.abc import Callable, Mapping

import msgspec

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
