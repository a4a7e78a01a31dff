"""Numbers with an exponent: YAML 1.1 takes only such as 1.0e+3 and reads others as text, and people read digits."""

import re
from decimal import Decimal

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
