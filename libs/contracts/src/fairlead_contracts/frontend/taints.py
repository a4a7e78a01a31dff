"""Taints of nodes and tolerations of pods, as Kubernetes has them."""

import msgspec


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
