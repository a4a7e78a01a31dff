"""Integers that stand in annotations as text. Pure."""

import re

_INT32 = re.compile(r"([+-]?)0*([0-9]{1,10})")
LOWEST_INT32, HIGHEST_INT32 = -(2**31), 2**31 - 1


def int32(text: str | None) -> int | None:
    """The number as Kueue reads it (Go's `strconv.ParseInt`, base 10, 32 bits); None where it would refuse.

    Leading zeros count for nothing, however many; Python alone refuses to read thousands of digits.
    """
    match = _INT32.fullmatch(text) if text is not None else None
    if match is None:
        return None
    number = int(match[1] + match[2])
    return number if LOWEST_INT32 <= number <= HIGHEST_INT32 else None
