"""The terms of a waiting job's place in words: every number is one that the place was made from."""

from collections.abc import Iterator

from fairlead_contracts.decisions import Place, Standing
from fairlead_contracts.instants import HOUR, Micros, to_seconds
from fairlead_contracts.quantities import format_quantity
from fairlead_policy.rules import PoolRules

_SMALL_SHARE = 0.0005
_MINUTE = 60.0
_UNITS = ((86_400.0, "d"), (3600.0, "h"), (_MINUTE, "min"))


def terms_in_words(place: Place, standing: Standing | None, rules: PoolRules, now: Micros) -> list[str]:
    """The tag, the waiting, and what can never start.

    Args:
        place: of the job.
        standing: of its tenant; None where it is not known.
        rules: that the place was made by.
        now: the instant of the order.
    """
    return [_tag(place, standing), *_waiting(place, rules, now), *_too_large(place, rules)]


def class_in_words(place: Place) -> str:
    """What the class of the job does to its place."""
    return f"Its class is {place.urgency}; every job of a higher class goes before it."


def _tag(place: Place, standing: Standing | None) -> str:
    if place.unbounded:
        return (
            f"Its tenant {place.tenant} has weight 0 here, or the pool has none of what it asks for: "
            "it stands behind every other job of its class."
        )
    if standing is None or not place.dominant:
        return f"Its tenant {place.tenant} uses nothing before it: its start tag is {place.tag:.4f}."
    use = format_quantity(place.dominant, place.use)
    return (
        f"Tenant {place.tenant} (weight {standing.weight:g}) holds {percent(standing.share)} of the pool with "
        f"{standing.running} running. With its jobs before this one it comes to {use} {place.dominant}: "
        f"divided by the pool's capacity and by its weight, that is a start tag of {place.tag:.4f}; lower goes first."
    )


def _waiting(place: Place, rules: PoolRules, now: Micros) -> Iterator[str]:
    if place.unbounded:
        return
    age = max(0, now - place.submitted)
    rate = rules.rate
    if not rate:
        yield f"It has waited {duration(to_seconds(age))}; waiting counts nothing in this policy."
        return
    counted = age if rules.cap is None else min(age, rules.cap)
    beyond = "" if counted == age else f", of which {duration(to_seconds(counted))} count"
    # Integers divided once: the same float as that of the fraction, at a tenth of its price.
    worth = rate.numerator * counted / rate.denominator
    hourly = rate.numerator * HOUR / rate.denominator
    yield (
        f"It has waited {duration(to_seconds(age))}{beyond}: worth {percent(worth)} of share "
        f"at {percent(hourly)} an hour."
    )


def _too_large(place: Place, rules: PoolRules) -> Iterator[str]:
    capacity = rules.capacity
    for resource, amount in sorted(place.demand.items()):
        if amount > capacity.get(resource, 0):
            has = format_quantity(resource, capacity.get(resource, 0))
            asked = format_quantity(resource, amount)
            yield f"It asks for {asked} {resource}, more than the {has} that the pool has: it cannot start."


def percent(share: float) -> str:
    """A share as a person reads it."""
    if 0 < abs(share) < _SMALL_SHARE:
        return f"{100 * share:.2g} %"
    return f"{100 * share:.1f} %"


def duration(seconds: float) -> str:
    """A time as a person reads it: `45 s`, `12 min`, `3.5 h`, `2 d`."""
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{round(seconds / length, 1):g} {unit}"
    return f"{round(seconds, 1):g} s"
