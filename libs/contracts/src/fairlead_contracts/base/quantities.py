"""Resource quantities: integers in base units inside, Kubernetes notation where people write.

Base units: `memory`, `ephemeral-storage` and `hugepages-*` in bytes, everything else in thousandths (millicores of
`cpu`, thousandths of a card). Integers keep sums and comparisons exact until the final division. The notation is
that of Kubernetes' `resource.Quantity`: decimal suffixes n u m k M G T P E, binary suffixes Ki Mi Gi Ti Pi Ei,
decimal exponents. A value finer than the base unit is rounded up, as Kubernetes does. A fraction that JSON gives as
a number means its shortest decimal notation: 0.1 is a tenth.
"""

import re
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache

from fairlead_contracts.base.errors import FieldError

type Quantities = dict[str, int]
"""Amounts by resource, in base units. Messages use this type wherever they hold amounts: a plain mapping to
numbers may count other things."""

type QuantitySeconds = dict[str, float]
"""Amounts by resource, in base units times seconds."""

MAX_QUANTITY = 2**60
"""The largest quantity of one job or node, in base units: an exbibyte of memory, 10^15 cards."""

MAX_SUM = 2**62
"""The largest quantity of several together, in base units: what a pool has, where queues say "no limit", or a tenant used."""

_BYTES = ("memory", "ephemeral-storage")
_SUFFIXES = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{suffix + "i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_SUFFIX_LETTERS = "".join(_SUFFIXES)
_MOST_DIGITS = 30
# Digits are bounded: an exponent such as 1e999999999 must not cost a second of arithmetic.
_NOTATION = re.compile(
    r"([+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?)([a-zA-Z]{0,2})"
)
_EXACT = Context(prec=120)
"""Room for 60 digits, the largest suffix and the base unit: nothing is rounded before the rounding that we
mean."""


_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


@lru_cache(maxsize=1024)
def base_units(resource: str) -> int:
    """The number of base units in one unit of the resource: 1 for bytes, 1000 for everything counted."""
    return 1 if resource in _BYTES or resource.startswith("hugepages-") else 1000


def short_resource(resource: str) -> str:
    """The resource without its vendor: `nvidia.com/gpu` is `gpu`."""
    return resource.rpartition("/")[2]


def is_extended(resource: str) -> bool:
    """Whether Kubernetes takes whole numbers of the resource alone: devices, named under a domain that is not its own.

    As `IsExtendedResourceName` in k8s.io/kubernetes/pkg/apis/core/v1/helper.
    """
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")


def parse_quantity(resource: str, value: object, *, field: str = "quantity", most: int = MAX_QUANTITY) -> int:
    """The quantity in base units of the resource.

    Raises:
        FieldError: not a number in Kubernetes notation, negative, not finite, or above `most`.
    """
    # Most are whole numbers with or without a suffix: a tenth of the arithmetic below, which comes to the same.
    amount = _whole_amount(_whole_scales(resource), value)
    if 0 <= amount <= MAX_QUANTITY:
        return amount
    exact = _EXACT.multiply(exact_quantity(value, field=field), base_units(resource))
    if exact < 0 or exact > most:
        raise FieldError(field, value, _out_of_range(exact))
    return int(exact.to_integral_value(rounding=ROUND_CEILING))


def _whole_amount(scales: Mapping[str, int], value: object) -> int:
    """A whole number of what its suffix stands for, in base units; -1 for every other notation."""
    if type(value) is int:
        return value * scales[""]
    if type(value) is not str:
        return -1
    digits = value.rstrip(_SUFFIX_LETTERS)
    scale = scales.get(value[len(digits) :])
    if scale is None or not digits.isdecimal() or not digits.isascii() or len(digits) > _MOST_DIGITS:
        return -1
    return int(digits) * scale


@lru_cache(maxsize=1024)
def _whole_scales(resource: str) -> Mapping[str, int]:
    """Scales by suffix: how many base units of the resource it stands for, where that is a whole number."""
    scales = {suffix: scale * base_units(resource) for suffix, scale in _SUFFIXES.items()}
    return {suffix: int(scale) for suffix, scale in scales.items() if scale == int(scale)}


def exact_quantity(value: object, *, field: str = "quantity") -> Decimal:
    """The quantity as it is written, in whole units (cores, bytes, cards), with its sign and nothing rounded.

    Raises:
        FieldError: not a number in Kubernetes notation, not finite, or an integer far above MAX_QUANTITY.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise FieldError(field, value, 'a quantity is a number or a string such as "500m" or "64Gi"')
    if isinstance(value, int) and abs(value) > MAX_QUANTITY:
        raise FieldError(field, value, _out_of_range(value))
    match = _NOTATION.fullmatch(value.strip() if isinstance(value, str) else repr(value))
    if match is None or match[2] not in _SUFFIXES:
        raise FieldError(field, value, 'a quantity is a finite number or a string such as "500m" or "64Gi"')
    return _EXACT.multiply(Decimal(match[1]), _SUFFIXES[match[2]])


def _out_of_range(amount: Decimal | int) -> str:
    return "a quantity may not be negative" if amount < 0 else "the quantity is larger than any cluster"


def format_quantity(resource: str, amount: int) -> str:
    """The quantity as a person reads it: `1500m`, `64Gi`, `8`. Parses back to the same amount."""
    return quantity_format(resource)(amount)


def quantity_format(resource: str) -> Callable[[int], str]:
    """The function that writes quantities of the resource: for callers that write many of them."""
    return _written_bytes if base_units(resource) == 1 else _written_count


def _written_bytes(amount: int) -> str:
    # The largest power of 1024 that divides it: a tenth of the zeros that its binary notation ends with.
    power = min(((amount & -amount).bit_length() - 1) // 10, 6) if amount else 0
    return f"{amount >> 10 * power}{_BINARY[power]}"


def _written_count(amount: int) -> str:
    return f"{amount}m" if amount % 1000 else str(amount // 1000)


_WITH_EXPONENT = re.compile(r"[+-]?(?:[0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})[eE][+-]?[0-9]{1,3}")
_LONGEST = 20
"""Characters up to which a number is better read without an exponent."""


def in_digits(number: float) -> str:
    """The number without an exponent, thousands apart: `1,000,000,000`, `0.000001`."""
    return f"{number:,.6f}".rstrip("0").rstrip(".")


def exponent_hint(found: object, *, whole: bool = False) -> str:
    """A hint beside the problem where a number is expected: how to write it.

    Args:
        found: the value.
        whole: whether only an integer will do; YAML reads what has an exponent as a decimal.

    Returns:
        The end of a sentence; empty where the value does not look like such a number.
    """
    if not isinstance(found, str) or not _WITH_EXPONENT.fullmatch(found.strip()):
        return ""
    number = Decimal(found.strip())
    mantissa, _, exponent = f"{number:e}".partition("e")
    plain = f"{number:f}"
    forms = [plain] if len(plain) <= _LONGEST and (number == number.to_integral_value() or not whole) else []
    if not whole:
        forms.append(f"{mantissa if '.' in mantissa else f'{mantissa}.0'}e{exponent}")
    return f"; this is text: write the number {' or '.join(forms)}, without quotes" if forms else ""
