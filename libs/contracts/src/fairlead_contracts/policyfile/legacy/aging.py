"""Aging as older policies have it: share an hour, beside tags that were shares over weights as they stand.

Such keys are refused, with the line that takes their place: another unit must not slip in unseen. With tags as shares
over entitlements, keys are the old ones times the sum of the weights, so the rate is, too.
"""

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.policyfile.document import PRESETS

_RATE, _CAP = "share_per_hour", "cap_hours"
_USUAL_RATE, _USUAL_CAP = Decimal("0.06"), Decimal(336)
"""Values of both keys where the file did not say."""
_HOURS_A_DAY = 24
_MOST = Decimal(10) ** 12
"""Largest `entitlement_per_day` that a document may have."""
_DIGITS = 15

type Keys = Mapping[object, object]


class _Sum(NamedTuple):
    """The sum of the weights at the top."""

    weights: Decimal
    pool: str
    """The first pool that has this sum, where others have another; else empty."""
    tree: bool
    """Whether tenants stand below others."""


def without_old_aging(
    found: Keys, beside: Collection[Mapping[str, object]] = ()
) -> tuple[Keys, list[FieldError]]:
    """The document's keys without the old ones of `aging`, and what to write in their place.

    Args:
        found: the document's keys, as they were written.
        beside: tenants with what is stated of them elsewhere, which counts before the document's own word.
    """
    aging = found.get("aging")
    if not isinstance(aging, Mapping) or not aging.keys() & {_RATE, _CAP}:
        return found, []
    kept = {key: value for key, value in aging.items() if key not in (_RATE, _CAP)}
    key = _RATE if _RATE in aging else _CAP
    problem = FieldError(f"aging.{key}", aging[key], _told(found, aging, beside))
    return {**found, "aging": kept}, [problem]


def _told(found: Keys, aging: Keys, beside: Collection[Mapping[str, object]]) -> str:
    begin = "is not a key any more: waiting counts in entitlements a day"
    rate, cap = _number(aging.get(_RATE, _USUAL_RATE)), _number(aging.get(_CAP, _USUAL_CAP))
    if rate is None or (cap is None and aging.get(_CAP) is not None):
        return f"{begin} (`aging: {{entitlement_per_day: 0.1, cap_days: null}}`)"
    total = _sum_of(found, beside)
    daily = min(rate * _HOURS_A_DAY * total.weights, _MOST)
    days = "null" if cap is None else _written(cap / _HOURS_A_DAY)
    line = f"aging: {{entitlement_per_day: {_written(daily)}, cap_days: {days}}}"
    counted = f"{_written(rate)} an hour, times 24, times {_written(total.weights)}, the sum of the weights at the top"
    return "; ".join([f"{begin}. For the same order write `{line}` ({counted})", *_except(found, total)])


def _except(found: Keys, total: _Sum) -> Iterator[str]:
    """Sentences on cases where the converted rate is only approximate."""
    if total.pool:
        yield f"that is for pool {total.pool}: where weights have another sum, it is approximate"
    if total.tree:
        yield "in trees it is approximate: each level had its own unit, and now all have one"
    if found.get("class_mode") == "additive" and total.weights != 1:
        yield f"class_weights are terms beside it: multiply them by {_written(total.weights)}, too"


def _sum_of(found: Keys, beside: Collection[Mapping[str, object]]) -> _Sum:
    """The sum of the weights that can be read: other problems are told by others."""
    tenants: dict[str, dict[str, object]] = {}
    listed = [one for one in beside if not one.get("unlisted")]
    for entry in [*_entries(found.get("tenants")), *_entries(listed)]:
        stated = {str(key): value for key, value in entry.items() if value is not None}
        tenants[str(entry.get("name"))] = tenants.get(str(entry.get("name")), {}) | stated
    tree = any("parent" in tenant for tenant in tenants.values())
    if found.get("divide_by") == "weight" or found.get("class_mode") in PRESETS:
        return _Sum(Decimal(1), "", tree=False)
    tops = [tenant for tenant in tenants.values() if "parent" not in tenant]
    unlisted = _number(found.get("unlisted_weight"))
    strangers = (unlisted or Decimal(0)) * (_number(found.get("expected_unlisted", 10)) or Decimal(10))
    pools = [str(pool["name"]) for pool in _entries(found.get("pools")) if "name" in pool]
    pools += [str(tenant["pool"]) for tenant in tops if "pool" in tenant]
    sums = {pool: _weights(tops, pool) + strangers for pool in pools or [""]}
    sums = {pool: total for pool, total in sums.items() if total} or {"": Decimal(1)}
    pool, total = next(iter(sums.items()))
    return _Sum(total, pool if len(set(sums.values())) > 1 else "", tree)


def _weights(tenants: Collection[Mapping[str, object]], pool: str) -> Decimal:
    """The weights that count in the pool."""
    counting = (tenant for tenant in tenants if tenant.get("pool", pool) == pool)
    return sum((_number(tenant.get("weight", 1)) or Decimal(0) for tenant in counting), Decimal(0))


def _entries(found: object) -> Iterator[Mapping[object, object]]:
    if isinstance(found, list):
        yield from (entry for entry in found if isinstance(entry, Mapping))


def _number(found: object) -> Decimal | None:
    if isinstance(found, bool) or not isinstance(found, int | float | Decimal):
        return None
    # Of a float, the decimal that was written; Python prints no integer of more than 4300 digits.
    number = Decimal(repr(found)) if isinstance(found, float) else Decimal(found)
    return number if number.is_finite() and number >= 0 else None


def _written(number: Decimal) -> str:
    """The number without an exponent, which YAML takes for text, and with as many digits as a float has."""
    text = f"{Decimal(f'{number:.{_DIGITS}g}'):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
