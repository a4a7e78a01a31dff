"""What of HAMi's notation cannot be taken. All are field errors: the same bytes will never be right later."""

from fairlead_contracts.errors import FieldError, shown


class RegisterError(FieldError):
    """The cards that a node states cannot be read: which node, which field, what was found and why not."""

    def __init__(self, node: str, field: str, value: object, reason: str) -> None:
        super().__init__(field, value, reason)
        self.args = (f"node {shown(node)}: {self.args[0]}",)
        self.node = node


class AllocatedError(FieldError):
    """The cards that a pod holds cannot be read: which pod, which field, what was found and why not."""

    def __init__(self, pod: str, field: str, value: object, reason: str) -> None:
        super().__init__(field, value, reason)
        self.args = (f"pod {shown(pod)}: {self.args[0]}",)
        self.pod = pod


class AskError(FieldError):
    """What a container asks of cards is no ask that HAMi takes. The field is the resource."""
