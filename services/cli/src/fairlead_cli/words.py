"""Places, shares and durations in words and bars."""

from datetime import datetime

from rich.text import Text

from fairlead_contracts.decisions import Place
from fairlead_contracts.instants import from_datetime, to_seconds
from fairlead_contracts.quantities import format_quantity

BAR_WIDTH = 28
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def duration(seconds: float) -> str:
    """A duration as people say it: `3.2 s`, `4 min`, `2 h 10 min`, `3 d 4 h`."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    if seconds < _DAY:
        return f"{seconds // _HOUR:.0f} h {seconds % _HOUR // _MINUTE:.0f} min"
    return f"{seconds // _DAY:.0f} d {seconds % _DAY // _HOUR:.0f} h"


def short_resource(resource: str) -> str:
    """The resource without its vendor: `nvidia.com/gpu` is `gpu`."""
    return resource.rpartition("/")[2]


def demand(amounts: dict[str, int]) -> str:
    """A demand on one line, scarce resources first."""
    names = sorted(amounts, key=lambda name: (name in ("cpu", "memory"), name))
    return " ".join(f"{short_resource(name)}={format_quantity(name, amounts[name])}" for name in names)


def waited(place: Place, now: datetime) -> str:
    """How long a waiting job has waited."""
    return duration(max(0.0, to_seconds(from_datetime(now) - place.submitted)))


def reason(place: Place) -> str:
    """Why a job stands where it stands within its class: what its tenant stands at before it.

    Reads on from "its tenant", which heads the column.
    """
    if place.unbounded:
        return "has weight 0, or asks for what the pool lacks: last"
    if not place.use:
        return "has nothing before it"
    return f"is at {place.tag:.2%} of {short_resource(place.dominant)} by weight"


def share_bar(share: float, entitlement: float, *, scale: float, width: int = BAR_WIDTH) -> Text:
    """A bar of the share with a mark at the entitlement. `scale` is the share at the bar's full width."""
    filled = min(width, round(share / scale * width)) if scale else 0
    mark = min(width - 1, round(entitlement / scale * width)) if scale else 0
    bar = Text()
    for cell in range(width):
        inside = cell < filled
        if cell == mark and entitlement:
            bar.append("┃" if inside else "│", style="bold reverse cyan" if inside else "bold")
        else:
            bar.append("█" if inside else "·", style="cyan" if inside else "dim")
    return bar
