"""Errors in HAMi's notation. All are field errors: the same bytes will never be right later."""

from fairlead_contracts.base.errors import FieldError


class AskError(FieldError):
    """A container's ask for cards is no ask that HAMi takes. The field is the resource."""
