"""The rate of aging in words: how much of a tenant's part a day of waiting is worth."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from heapq import nsmallest

from fairlead_contracts.base.figures import duration, percent
from fairlead_contracts.base.instants import DAY, SECOND
from fairlead_contracts.base.quantities import base_units, short_resource
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_policy.rules.pool_rules import exactly
from fairlead_policy.rules.rulebook import Rulebook

_NAMED = 6
"""Tenants that are named; of the others it is said how many there are."""
_JOB, _JOBS = 8, 64
"""Cards of a job that nobody wonders at: those of one node, but no more than a 64th of the pool."""
_WHOLE = 100
"""Figures from here on are told without decimals."""
_MANY_PARTS = 2
"""A job of so many parts of its tenant holds that one's next for weeks behind whoever has nothing: worth a word."""


def aging_in_words(document: PolicyDocument) -> str:
    """The worth of a day, in parts of what a tenant is entitled to."""
    rate = exactly(document.aging.entitlement_per_day)
    if not rate:
        return "aging: waiting is worth nothing, only shares count: a tenant above its part waits while others below theirs have jobs"
    cap = document.aging.cap_days
    until = "" if cap is None else f", for up to {_days(cap)}"
    if document.divide_by == "weight":
        return f"aging: a day of waiting is worth {float(rate):g} times the whole pool, divided by a tenant's weight{until}"
    return (
        f"aging: a day of waiting is worth {float(rate):g} of what a tenant is entitled to{until}: "
        f"{_figure(1 / rate)} days make up for its whole part"
    )


def _days(cap: float) -> str:
    """The cap in words, as `14 days`; a shorter one than a day in hours."""
    if cap < 1:
        return duration(cap * DAY / SECOND)
    return f"{cap:g} {'day' if cap == 1 else 'days'}"


def aging_by_tenant(document: PolicyDocument, pool: str, capacity: Mapping[str, int]) -> list[str]:
    """The worth of a day in a pool, tenant by tenant, and how to choose the rate where parts are small.

    Args:
        pool: the pool's name in the policy.
        capacity: the pool's capacity in base units; empty where nobody knows it.

    Returns:
        What a day is worth to each tenant, then what is worth a word; nothing where nobody has a part, or waiting counts
        nothing.
    """
    rate = exactly(document.aging.entitlement_per_day)
    parts = _parts(document, pool)
    if not rate or not parts:
        return []
    resource = _resource(capacity)
    size = Fraction(capacity[resource], base_units(resource)) if resource else None
    of_each = _by_tenant(pool, parts, rate, resource, size)
    if document.divide_by == "weight":
        return [of_each]
    return [of_each, *_small_parts(pool, parts, rate, resource, size)]


def _small_parts(
    pool: str, parts: Mapping[str, Fraction], rate: Fraction, resource: str, size: Fraction | None
) -> Iterator[str]:
    """A warning of a part that is small beside a job; silent where none is."""
    name, least = min(parts.items(), key=lambda one: (one[1], one[0]))
    if size is None:
        if least * _JOBS * _MANY_PARTS < 1:
            yield (
                f"pool {pool}: {name} is entitled to {percent(float(least))} of it, less than many jobs ask for: waiting "
                f"hardly counts there. {_advice(least, rate)}"
            )
        return
    job = max(1, min(_JOB, size // _JOBS))
    asked = job / (least * size)
    if resource.endswith("gpu") and asked > _MANY_PARTS:
        yield (
            f"pool {pool}: a job of {job} {short_resource(resource)} is {_figure(asked)} parts of {name}, "
            f"{_figure(asked / rate)} days of waiting: waiting hardly counts there. {_advice(least, rate)}"
        )


def _advice(least: Fraction, rate: Fraction) -> str:
    """The rate that makes a day worth as much of what each really gets, where many parts lie idle."""
    count = round(1 / least)
    active = max(2, round(count / 50))
    return (
        f"Choose the rate by how many are active at a time: where some {active} of {count} equal parts are, "
        f"`entitlement_per_day: {_figure(rate * count / active)}` makes a day worth {float(rate):g} of what each then gets"
    )


def _by_tenant(
    pool: str, parts: Mapping[str, Fraction], rate: Fraction, resource: str, size: Fraction | None
) -> str:
    first = nsmallest(_NAMED, parts.items(), key=lambda one: (-one[1], one[0]))
    named = [f"{_amount(rate * part, resource, size)} for {name}" for name, part in first]
    if (rest := len(parts) - _NAMED) > 0:
        named.append(f"for {rest} more down to {_amount(rate * min(parts.values()), resource, size)}")
    of = "" if size is None else f" of {_figure(size)} {short_resource(resource)}"
    return f"pool {pool}{of}: a day is worth {', '.join(named)}"


def _amount(worth: Fraction, resource: str, size: Fraction | None) -> str:
    if worth >= 1:
        return "more than the whole pool"
    return (
        f"{percent(float(worth))} of it"
        if size is None
        else f"{_figure(worth * size)} {short_resource(resource)}"
    )


def _parts(document: PolicyDocument, pool: str) -> Mapping[str, Fraction]:
    """The entitlement of each tenant with jobs of its own; tenants of weight 0 go last, whatever they wait."""
    found = Rulebook(document, 0).entitlements(pool)
    above = {tenant.parent for tenant in document.tenants}
    parts = {name: part for name, part in found.listed.items() if part and name not in above}
    return parts | ({"each unlisted tenant": found.unlisted} if found.unlisted else {})


def _resource(capacity: Mapping[str, int]) -> str:
    """The resource to count in: cards where there are some, else cores."""
    known = [name for name, amount in sorted(capacity.items()) if amount > 0]
    cards = [name for name in known if name.endswith("gpu")]
    cores = [name for name in known if name == "cpu"]
    return next(iter([*cards, *cores, *known]), "")


def _figure(amount: Fraction) -> str:
    return f"{float(amount):,.0f}" if amount >= _WHOLE else f"{float(amount):.3g}"
