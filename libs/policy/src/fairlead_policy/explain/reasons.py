"""The terms of a waiting job's position in words: every number is one that the position was made from."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial

from fairlead_contracts.base.figures import MANY, amount_format, decimals, duration, part_of, percent
from fairlead_contracts.base.instants import DAY, SECOND, Micros
from fairlead_contracts.base.quantities import format_quantity, short_resource
from fairlead_contracts.messages.decisions import Position, TenantShare
from fairlead_policy.explain.position_causes_text import (
    add_causes,
    beginning,
    causes_in_words,
    infinite_in_words,
    rescaled_in_words,
)
from fairlead_policy.order.position_columns import OfTenants, PositionColumns
from fairlead_policy.rules.jobs import PositionedJob
from fairlead_policy.rules.pool_rules import FULL, PoolRules

_WHOLE_MINUTE = 60 * SECOND


class Wording:
    """Says of the jobs of one pool why they stand where they stand. What many jobs share is put in words once.

    Args:
        standings: the tenants' shares, as far as they are known.
        oversized: whether some job may ask for more than the pool has: each is looked at then.
    """

    def __init__(
        self, rules: PoolRules, standings: Mapping[str, TenantShare], now: Micros, *, oversized: bool = True
    ) -> None:
        self._oversized = oversized
        self._rules = rules
        self._standings = standings
        self._now = now
        rate = rules.rate
        # Integers divided once: the same float as that of the fraction, at a tenth of its price.
        self._over, self._under = rate.numerator, rate.denominator
        self._cap = rules.cap if rate else None
        """The longest waiting that counts; None where all or none does."""
        self._whole = "what its tenant is entitled to" if rules.relative else "the pool over its weight"
        """The whole of which waiting is worth a part."""
        daily = rate.numerator * DAY / rate.denominator
        self._daily = f", at {percent(daily) if daily < MANY else f'{daily:g} times that'} a day."
        self._counting = "" if all(rules.resource_weights.values()) else " that counts"
        self._class = cache(partial(class_in_words, rules=rules))
        self._tenant = OfTenants(cache(self._of_tenant))
        self._beginning = OfTenants(lambda name: beginning(name, rules.parents[name]) if name else "")
        self._resource, self._minute = cache(self._of_resource), cache(self._of_minute)
        self._rescaled = cache(self._rescaled_of)

    def reasons(self, position: Position) -> list[str]:
        """The reasons of a position: class, tag, waiting, what holds the job back, and that it can never start."""
        job_class = self._class(position.job_class, position.override)
        if position.unbounded:
            found = [job_class, infinite_in_words(position, self._rules)]
        else:
            found = [
                job_class,
                *self._by_tag(PositionColumns.of([position])),
                *self._waiting([position.submitted]),
            ]
        if position.top or position.own_rank or position.blocked:
            found += causes_in_words(position, self._rules, self._now)
        if self._oversized:
            found += _too_large(position, self._rules)
        return found

    def of_columns(self, positions: PositionColumns) -> list[list[str]]:
        """The reasons of each of these positions: the same words, without an object a position."""
        columns = (
            map(self._class, [job.job_class for job in positions.jobs], positions.override),
            self._by_tag(positions),
            self._waiting(positions.submitted),
        )
        found = [[job_class, use, waiting] for job_class, use, waiting in zip(*columns, strict=True)]
        add_causes(found, positions, self._rules, self._beginning)
        if self._oversized:
            for told, job in zip(found, positions.jobs, strict=True):
                told.extend(_too_large(job, self._rules))
        for row, position in positions.apart.items():
            found[row] = self.reasons(position)
        return found

    def _by_tag(self, positions: PositionColumns) -> list[str]:
        """The sentences that say what tenants have, as far as it is known, and what they stand at by it."""
        tenants, numbers, exact = positions.tenants, positions.top, positions.exact
        dominant, tags = positions.dominant, positions.tag
        if len(exact) == len(tags):
            rows = zip(numbers, dominant, tags, strict=True)
            return [self._rescaled(tenants[number], name)(tag) for number, name, tag in rows]
        words = zip(
            self._tenant.of(tenants, numbers), map(self._resource, dominant), positions.use, tags, strict=True
        )
        told = [
            f"{before}{written(use)}{behind}{decimals(tag)}{end}"
            for (before, end), (written, behind), use, tag in words
        ]
        for row, name in enumerate(dominant):
            if not name:
                tenant = tenants[numbers[row]]
                told[row] = (
                    f"Its tenant {tenant} holds nothing{self._counting} before this job starts, so it stands at "
                    f"{decimals(tags[row])}; lower goes first."
                )
        for row in exact:
            told[row] = self._rescaled(tenants[numbers[row]], dominant[row])(tags[row])
        return told

    def _rescaled_of(self, tenant: str, dominant: str) -> Callable[[float], str]:
        """The sentence on a tenant that H-DRF counts by what is below it, by its tag."""
        standing = self._standings.get(tenant)
        held = f"Tenant {tenant}" if standing is None else f"{_holding(standing, self._rules)}, and"
        counts = rescaled_in_words(tenant, dominant, self._rules)
        return lambda tag: f"{held} {counts(tag)}"

    def _of_tenant(self, tenant: str) -> tuple[str, str]:
        """The tenant's words in the sentence on its use and tag: the beginning and the end."""
        standing = self._standings.get(tenant)
        before = f"With the jobs before this one, tenant {tenant} comes to "
        if standing is not None:
            before = f"{_holding(standing, self._rules)}. With its jobs before this one it comes to "
        return before, f" {self._entitled(tenant)}; lower goes first."

    def _of_resource(self, dominant: str) -> tuple[Callable[[int], str], str]:
        """The dominant resource's words in that sentence: what writes the use, and the words behind it."""
        weight = self._rules.resource_weights.get(dominant, FULL)
        counted = "" if weight == FULL else f", times its resource weight of {float(weight):g}"
        behind = f" {short_resource(dominant)}{counted}, which is "
        return amount_format(dominant), behind

    def _entitled(self, tenant: str) -> str:
        """The part that tags of the tenant are multiples of."""
        part = self._rules.entitlement_of(tenant)
        if not self._rules.relative:
            return f"of the pool over its weight of {float(part):g}"
        return f"times the {percent(float(part))} of the pool that it is entitled to"

    def _waiting(self, submitted: Iterable[Micros]) -> list[str]:
        """The sentences on jobs' waiting: beyond an hour most minutes have one throughout, found once."""
        of_minute, waited, now = self._minute, self._waited, self._now
        return [of_minute((now - instant) // _WHOLE_MINUTE) or waited(now - instant) for instant in submitted]

    def _of_minute(self, minute: int) -> str:
        """The sentence from a whole minute to the next; empty where that is not the same all along."""
        # Each number in it grows with the age: where both ends say the same, so does all between them.
        start = minute * _WHOLE_MINUTE
        ends = self._waited(start), self._waited(start + _WHOLE_MINUTE - 1)
        return ends[0] if ends[0] == ends[1] else ""

    def _waited(self, age: Micros) -> str:
        age, cap = max(age, 0), self._cap
        waited = duration(age / SECOND)
        if not self._over:
            return f"It has waited {waited}; waiting counts nothing in this policy."
        if cap is None or age <= cap:
            worth = part_of(self._over * age / self._under, self._whole)
            return f"It has waited {waited}: worth {worth}{self._daily}"
        counted, worth = duration(cap / SECOND), part_of(self._over * cap / self._under, self._whole)
        return f"It has waited {waited}, of which {counted} count: worth {worth}{self._daily}"


def _holding(standing: TenantShare, rules: PoolRules) -> str:
    """The tenant's amount of the resource that its share is of, without that resource's weight."""
    weight = rules.resource_weights.get(standing.dominant, FULL)
    counted = weight != FULL and weight > 0
    share = standing.share / float(weight) if counted else standing.share
    pool = f"the pool's {standing.dominant}" if counted else "the pool"
    return (
        f"Tenant {standing.tenant} (weight {standing.weight:g}) holds {percent(share)} of {pool} with "
        f"{_running(standing.running)}{_past(standing)}"
    )


def _running(count: int) -> str:
    if not count:
        return "no running job"
    return "1 running job" if count == 1 else f"{count} running jobs"


def _past(standing: TenantShare) -> str:
    """The past use in a tenant's share, of the resource that it is counted by."""
    amount = standing.past.get(standing.dominant, 0)
    if not amount:
        return ""
    return f" and {amount_format(standing.dominant)(amount)} {short_resource(standing.dominant)} of past use"


def terms_in_words(
    position: Position, standing: TenantShare | None, rules: PoolRules, now: Micros
) -> list[str]:
    """The tag, the waiting, and what can never start; `standing` is that of the job's top-level tenant, where it is known."""
    known = {} if standing is None else {standing.tenant: standing}
    return Wording(rules, known, now).reasons(position)[1:]


def class_in_words(job_class: str, override: float | None, rules: PoolRules) -> str:
    """The effect of a job's class on its position, or of the number that counts in its place."""
    if rules.strict and job_class == rules.classes[0]:
        return f"Its class is {job_class}, the highest: it goes before every job of another class."
    if rules.strict:
        return f"Its class is {job_class}; every job of a higher class goes before it."
    weight = float(rules.class_weight(job_class, override))
    named = f"Its class is {job_class}"
    if override is not None:
        named = f"Its class is {job_class}, but a number of its own counts in place of the class's"
    if rules.class_mode == "additive":
        return f"{named}: it adds {weight:g} to the key; lower goes first."
    return f"{named}: its start tag is divided by {weight:g}."


def _too_large(job: PositionedJob, rules: PoolRules) -> Iterator[str]:
    for resource in rules.beyond(job.demand):
        most = max(rules.capacity.get(resource, 0), rules.quota.get(resource, 0))
        has = format_quantity(resource, most)
        asked = format_quantity(resource, job.demand[resource])
        yield f"It asks for {asked} {resource}, more than the {has} that the pool has: it cannot start."
