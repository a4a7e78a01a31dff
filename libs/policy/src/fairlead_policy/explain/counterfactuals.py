"""Changes that would move a job, solved exactly: the least that brings it before another, and the least that is too much.

A tag is `max over r of v_r * (use_r + before_r) / c_r / e`, so to bring it to a bound, each resource that is above it
must come down by itself: the least amounts of all of them together are the answer, and one unit less of any of them is
not enough.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil, floor

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.explanations import ShareBreakdown
from fairlead_policy.exact.terms import (
    Terms,
    class_weighted_tag,
    effective_jobs_of,
    leading_of,
    tag_of,
    top_of,
)
from fairlead_policy.order.merging import sort_key
from fairlead_policy.rules.pool_rules import NOTHING, PoolRules


def stands_alone(position: Position, rules: PoolRules) -> bool:
    """Whether a position is that of a tenant by itself, with strict classes: it then counts by its own terms."""
    return rules.strict and not position.top and not position.own_rank and not position.share


def tag_to_pass(
    position: Position, other: Position, rules: PoolRules, now: Micros
) -> tuple[Fraction, bool] | None:
    """The tag below which a job stands before another, and whether that very tag will do.

    None where no tag does: another class, or an infinite share.
    """
    own, bar = sort_key(position, rules, now), sort_key(other, rules, now)
    if own[0] != bar[0] or position.unbounded:
        return None
    return bar[1] - rules.aged(position.submitted, now) * rules.rate, own[2:] < bar[2:]


def ends_to_pass(
    breakdown: ShareBreakdown, position: Position, other: Position, rules: PoolRules, now: Micros
) -> dict[str, int] | None:
    """The least amounts of its own tenant's running jobs that have to end before a job stands before another.

    Args:
        breakdown: the parts of the tag of `position`.
        position: a position of a tenant that stands alone.
        other: a position of another top-level tenant, now before it.

    Returns:
        Base units by resource; None where no end is enough: past use and own jobs before it count on.
    """
    bound = tag_to_pass(position, other, rules, now)
    entitled = rules.entitlement_of(breakdown.tenant)
    if bound is None or not entitled:
        return None
    tag, inclusive = bound
    ends = {}
    for resource, unit in rules.unit_share_by_name.items():
        running = breakdown.running.get(resource, 0)
        total = running + breakdown.past.get(resource, 0) + breakdown.before.get(resource, 0)
        amount = tag * entitled / unit
        # The largest integer up to it, or below it.
        most = floor(amount) if inclusive else ceil(amount) - 1
        # Without any use the tag is 0, whatever the resource.
        if most < 0 or total - most > running:
            return None
        if total > most:
            ends[resource] = total - most
    return ends


def starts_to_fall_behind(
    position: Position, other: Position, rules: PoolRules, now: Micros
) -> tuple[str, int] | None:
    """The least amount that another's tenant has to start, out of its turn, before that job stands behind this one.

    Args:
        other: a position of a tenant that stands alone, now before it.

    Returns:
        The resource that the other tenant holds most of, and base units of it; None where no start is enough, or only
        more than the pool has.
    """
    bound = tag_to_pass(other, position, rules, now)
    entitled = rules.entitlement_of(top_of(other))
    resource = other.dominant or _largest_asked(other.demand, rules)
    unit = rules.unit_share_by_name.get(resource)
    if bound is None or unit is None or not entitled:
        return None
    tag, inclusive = bound
    amount = tag * entitled / unit
    least = floor(amount) + 1 if inclusive else ceil(amount)
    return (resource, least - other.use) if least <= rules.capacity[resource] else None


def weight_to_pass(position: Position, other: Position, rules: PoolRules, now: Micros) -> Fraction | None:
    """The weight of its tenant above which a job stands before another one.

    More weight for one makes the others' parts of the pool smaller, and their tags larger: that is left out, so a little
    less may be enough. None where no weight does it.
    """
    bound = tag_to_pass(position, other, rules, now)
    if bound is None or bound[0] <= 0:
        return None
    top = top_of(position)
    entitled, weight = rules.entitlement_of(top), rules.weight_of(top)
    wanted = entitled * tag_of(position, top, rules) / bound[0]
    if not rules.relative:
        return wanted
    if not weight or wanted >= 1:
        return None
    # The siblings' weights; of a tenant that is not listed yet, all that the sum counts.
    others = weight / entitled - (weight if top in rules.weights else NOTHING)
    return wanted * others / (1 - wanted)


def passes_at(position: Position, other: Position, rules: PoolRules, now: Micros) -> Micros | None:
    """The first instant after now at which time alone has brought a job before another; None where it never does.

    Both age alike below the cap. Beyond it a job ages no more, and a younger one with a lower tag passes it. In a tree,
    or with classes that are not strict, this goes by the terms as they stand: the tenants' own sequences may move, too.
    """
    if rules.cap is None or not rules.rate:
        return None
    pairs = ((own, bar) for own in effective_jobs_of(position) for bar in effective_jobs_of(other))
    found = (_flip(own, bar, top_of(position), top_of(other), rules) for own, bar in pairs)
    for instant in sorted(at for at in found if at is not None and at > now):
        if sort_key(position, rules, instant) < sort_key(other, rules, instant):
            return instant
    return None


def _flip(own: Terms, bar: Terms, own_top: str, bar_top: str, rules: PoolRules) -> Micros | None:
    """The instant at which the younger of two passes the older one, which then is beyond the cap."""
    if rules.cap is None or leading_of(own, rules) != leading_of(bar, rules):
        return None
    lead = class_weighted_tag(tag_of(bar, bar_top, rules), bar, rules) - class_weighted_tag(
        tag_of(own, own_top, rules), own, rules
    )
    if lead <= 0 or own.submitted <= bar.submitted:
        return None
    instant = rules.cap + own.submitted - lead / rules.rate
    return floor(instant) + 1


def first_to_pass(
    position: Position, behind: Iterable[Position], rules: PoolRules, now: Micros
) -> tuple[Micros, Position] | None:
    """The first instant at which time brings a job from behind past this one, and that job; None if none."""
    found = [(at, one) for one in behind if (at := passes_at(one, position, rules, now))]
    return min(found, key=lambda part: part[0], default=None)


def _largest_asked(demand: Mapping[str, int], rules: PoolRules) -> str:
    """The resource of which a demand is the largest part of the pool; empty where it asks for none that counts."""
    shares = ((demand.get(name, 0) * unit, name) for name, unit in rules.unit_share_by_name.items())
    share, name = max(shares, key=lambda part: part[0], default=(NOTHING, ""))
    return name if share else ""
