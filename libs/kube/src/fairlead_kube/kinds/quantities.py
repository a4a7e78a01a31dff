"""Kubernetes quantities as Kueue counts them, in the base units of contracts. Pure.

Inside Kubernetes a quantity is exact down to a billionth; what is finer is rounded up. Kueue then takes thousandths
of `cpu` and whole units of everything else, rounded up (`MilliValue()` and `Value()` of apimachinery, `ResourceValue`
of Kueue's `pkg/resources`).

Beside them `int32`: integers that stand in annotations as text.
"""

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context
from functools import lru_cache

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.quantities import MAX_QUANTITY, base_units, exact_quantity
from fairlead_kube.kinds.objects import Amount

_INT32 = re.compile(r"([+-]?)0*([0-9]{1,10})")
LOWEST_INT32, HIGHEST_INT32 = -(2**31), 2**31 - 1
NANO = 10**9
_CPU = "cpu"
_MILLI = 10**6
# Sixty digits of notation, the largest suffix and this factor fit: nothing is rounded but where we say so.
_EXACT = Context(prec=140)


_SHORT = 32
"""Longest notation, in characters, whose amount is remembered: longer ones shall fill no memory."""


def int32(text: str | None) -> int | None:
    """The number as Kueue reads it (Go's `strconv.ParseInt`, base 10, 32 bits); None where it would refuse.

    Leading zeros count for nothing, however many; Python alone refuses to read thousands of digits.
    """
    match = _INT32.fullmatch(text) if text is not None else None
    if match is None:
        return None
    number = int(match[1] + match[2])
    return number if LOWEST_INT32 <= number <= HIGHEST_INT32 else None


def nanos(amount: Amount, *, field: str = "quantity") -> int:
    """The quantity in billionths of its unit, sums of which are exact.

    Raises:
        FieldError: the amount is not a quantity.
    """
    seen_often = not isinstance(amount, str) or len(amount) <= _SHORT
    try:
        return _nanos(amount) if seen_often else _nanos.__wrapped__(amount)
    except FieldError as error:
        raise FieldError(field, error.value, error.reason) from None


@lru_cache(maxsize=1024, typed=True)
def _nanos(amount: Amount) -> int:
    """The exact amount, remembered: thousands of jobs ask for the same few amounts."""
    scaled = _EXACT.multiply(exact_quantity(amount), NANO)
    return int(scaled.to_integral_value(rounding=ROUND_CEILING))


def kueue_count(resource: str, billionths: int) -> int:
    """The amount as Kueue counts it: millicores of `cpu`, else whole units; rounded up."""
    return -(-billionths // (_MILLI if resource == _CPU else NANO))


def from_kueue_count(resource: str, count: int, *, field: str = "quantity") -> int:
    """Kueue's count in base units.

    Raises:
        FieldError: the count is more than any cluster has.
    """
    amount = count if resource == _CPU else count * base_units(resource)
    if amount > MAX_QUANTITY:
        raise FieldError(field, str(amount), "the quantity is larger than any cluster")
    return amount


def in_base_units(resource: str, amount: Amount, *, field: str = "quantity") -> int:
    """The quantity in base units of the resource, rounded up as Kueue does: quotas, capacities, usage.

    Raises:
        FieldError: the amount is not a quantity, or more than any cluster has.
    """
    return from_kueue_count(resource, kueue_count(resource, nanos(amount, field=field)), field=field)


def bounded_quota(resource: str, amount: Amount) -> int:
    """The quota in base units, bounded: for "no limit" people write numbers larger than any quantity."""
    try:
        return in_base_units(resource, amount)
    except FieldError:
        return MAX_QUANTITY


def readable_amounts(amounts: Mapping[str, Amount]) -> dict[str, int]:
    """The stated quantities that can be read, by resource, in base units; what cannot be is left out."""
    found = {}
    for resource, amount in amounts.items():
        try:
            found[resource] = in_base_units(resource, amount)
        except FieldError:
            continue
    return found
