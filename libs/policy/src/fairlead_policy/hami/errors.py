"""What of HAMi's notation cannot be taken. All are field errors: the same bytes will never be right later."""

from fairlead_contracts.base.errors import FieldError


class AskError(FieldError):
    """What a container asks of cards is no ask that HAMi takes. The field is the resource."""
