"""Reserve mode in the answer of `fairlead order`: as data, and in words."""

from collections.abc import Iterator, Mapping

import msgspec

from fairlead_contracts.base.instants import to_datetime
from fairlead_policy.reserve.reservation import NoReservation
from fairlead_policy.snapshot.reserve import PaperReservation

_SHOWN = 10


class ReserveLine(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of reserve mode on a pool, jobs by id."""

    why_not: str
    """Reason for which nothing can be promised in this pool; empty where it can."""
    head: str | None
    shadow: str | None
    """Start that is promised to the head, as RFC 3339; None where nothing can be promised."""
    in_its_way: list[str]
    """Runs of which nobody knows the end, where that is why."""
    behind: list[str]
    """Jobs of higher classes before the head that never start as things are, where that is why."""
    passing: list[str]
    aside: list[str]
    """Jobs that never start as things are: the pool has less than they ask for, or no node ever holds them."""


def reserve_line(found: PaperReservation, ids: Mapping[str, str]) -> ReserveLine:
    """The reservation as JSON."""
    return ReserveLine(
        why_not=found.why_not,
        head=None if found.head is None else ids[found.head],
        shadow=None
        if found.shadow is None
        else to_datetime(found.shadow).isoformat(timespec="seconds").replace("+00:00", "Z"),
        in_its_way=list(found.endless),
        behind=[ids[uid] for uid in found.behind],
        passing=[ids[uid] for uid in found.passing],
        aside=[ids[uid] for uid in found.last],
    )


def reserve_words(found: PaperReservation, ids: Mapping[str, str]) -> Iterator[str]:
    """The reservation as a person reads it."""
    if found.why_not:
        yield f"  no start can be promised: {found.why_not}"
        return
    for uid, told in reserve_reasons(found, ids).items():
        yield f"  {ids[uid]}: {told}"


def reserve_reasons(found: PaperReservation, ids: Mapping[str, str]) -> dict[str, str]:
    """The sentences that reserve mode adds to jobs, by uid."""
    told = dict.fromkeys(found.aside, "It asks for more than the pool has: it is set aside.")
    told |= dict.fromkeys(
        found.stopping,
        "It asks for more than the pool has: it is set aside, behind its class alone. The frontend stops at it, and no "
        "job of a lower class starts.",
    )
    told |= dict.fromkeys(found.unplaceable, "No node can ever hold it as things are: it is set aside.")
    if found.head is None:
        return told
    told[found.head] = _of_head(found, ids)
    for uid in found.passing:
        told[uid] = f"It passes {ids[found.head]}: it ends before that one's start, or leaves room for it."
    return told


def _of_head(found: PaperReservation, ids: Mapping[str, str]) -> str:
    if found.shadow is not None:
        by = f"{to_datetime(found.shadow):%Y-%m-%d %H:%M:%S} UTC"
        return f"It is the first that does not fit, and starts by {by} at the latest."
    if found.behind:
        before = ", ".join(ids[uid] for uid in found.behind[:_SHOWN])
        return (
            "It is the first that does not fit. No start can be promised: jobs of a higher class stand before it that "
            f"never start as things are: {before}."
        )
    runs = ", ".join(found.endless[:_SHOWN])
    late = (
        "runs beyond their limit are"
        if found.why_none is NoReservation.OVERDUE
        else "runs without a limit are"
    )
    return f"It is the first that does not fit. No start can be promised: {late} in its way: {runs}."
