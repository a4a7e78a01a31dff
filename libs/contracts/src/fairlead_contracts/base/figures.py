"""Shares, times and amounts as a person reads them."""

from collections.abc import Callable

from fairlead_contracts.base.quantities import base_units, quantity_format

_SMALL_SHARE, _TINY_SHARE = 0.0005, 0.00005
MANY = 10.0
"""Smallest multiple of a whole that is told as a number of wholes: a larger percentage is hard to read."""
_UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))


def percent(share: float) -> str:
    """A share as a person reads it."""
    if share and -_TINY_SHARE < share < _TINY_SHARE:
        return "less than 0.01 %"
    if share and -_SMALL_SHARE < share < _SMALL_SHARE:
        return f"{100 * share:.2g} %"
    return f"{100 * share:.1f} %"


def part_of(share: float, whole: str) -> str:
    """A share that may be a multiple of the whole: `34.4 % of the pool`, and not 15756.2 % but `157.6 times the pool`."""
    return f"{percent(share)} of {whole}" if abs(share) < MANY else f"{share:.1f} times {whole}"


def decimals(tag: float) -> str:
    """A tag to four decimals, of which none is an idle zero."""
    return f"{tag:.4f}".rstrip("0").removesuffix(".")


def duration(seconds: float) -> str:
    """A time as a person reads it: `45 s`, `12 min`, `3.5 h`, `2 d`."""
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{f'{seconds / length:.1f}'.removesuffix('.0')} {unit}"
    return f"{f'{seconds:.1f}'.removesuffix('.0')} s"


def amount_format(resource: str) -> Callable[[int], str]:
    """The function that writes the resource's amounts in sentences: `71897.6`, for programs `71897600m`."""
    return quantity_format(resource) if base_units(resource) == 1 else _decimal


def _decimal(thousandths: int) -> str:
    whole, rest = divmod(thousandths, 1000)
    return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)
