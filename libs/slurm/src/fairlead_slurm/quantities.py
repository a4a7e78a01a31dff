"""Slurm's notation of amounts and times, in Fairlead's base units."""

import re
from decimal import Decimal
from functools import lru_cache

from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_contracts.base.quantities import MAX_QUANTITY
from fairlead_slurm.errors import UnreadableError

_MEBI = 1024**2
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGTP]?)")
_COUNT_UNITS = {"": 1, "K": 1024, "M": _MEBI, "G": 1024**3, "T": 1024**4, "P": 1024**5}
_MEMORY_UNITS = _COUNT_UNITS | {"": _MEBI}
_THOUSANDTHS = 1000
_LIMIT = re.compile(r"(?:([0-9]+)-)?(?:([0-9]+):)?([0-9]+):([0-9]+)")


@lru_cache(maxsize=4096)
def tres(text: str) -> dict[str, int]:
    """Amounts by Slurm's resource names: memory in bytes, others in thousandths. Shared, so never changed.

    Raises:
        UnreadableError: the text is not in the form `cpu=2,mem=200M,gres/gpu=16`.
    """
    if not text or text in ("(null)", "N/A"):
        return {}
    found = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        amount = _AMOUNT.fullmatch(value)
        if not equals or amount is None:
            raise UnreadableError(f"resources {text!r}")
        units = _MEMORY_UNITS if name == "mem" else _COUNT_UNITS
        whole = Decimal(amount[1]) * units[amount[2]] * (1 if name == "mem" else _THOUSANDTHS)
        found[name] = min(int(whole), MAX_QUANTITY)
    return found


@lru_cache(maxsize=1024)
def gres(text: str) -> dict[str, int]:
    """Number of each GRES in `gpu:h100:8(S:0-1),nvme:1`, by name as `gpu` and by type as `gpu:h100`.

    A name's types add up; one without a number is one. The dict is shared, so never changed.
    """
    counts: dict[str, int] = {}
    for part in re.sub(r"\([^)]*\)", "", text).split(","):
        words = part.removeprefix("gres:").removeprefix("gres/").split(":")
        if words[0] in ("", "N/A"):
            continue
        count = int(words.pop()) if len(words) > 1 and words[-1].isdecimal() else 1
        for name in {words[0], ":".join(words)}:
            counts[name] = counts.get(name, 0) + count
    return counts


@lru_cache(maxsize=8192)
def instant(text: str) -> Micros | None:
    """An instant from seconds since the epoch (SLURM_TIME_FORMAT=%s); None for `N/A`, `NONE`, `Unknown`."""
    return int(text) * SECOND if text.isdecimal() else None


@lru_cache(maxsize=1024)
def duration(text: str) -> Micros | None:
    """A time limit, `[days-][hours:]minutes:seconds`; None where there is none."""
    found = _LIMIT.fullmatch(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * SECOND
