"""The terms of a waiting job's place in words: every number is one that the place was made from."""

from collections.abc import Iterator, Mapping

from fairlead_contracts.decisions import Place, Standing
from fairlead_contracts.instants import HOUR, SECOND, Micros
from fairlead_contracts.quantities import format_quantity
from fairlead_policy.rules import PoolRules, override_of

_SMALL_SHARE = 0.0005
_MINUTE = 60.0
_WHOLE_MINUTE = 60 * SECOND
_UNITS = ((86_400.0, "d"), (3600.0, "h"), (_MINUTE, "min"))


class Wording:
    """Says of the jobs of one pool why they stand where they stand. What many jobs share is put in words once.

    Args:
        rules: that the places were made by.
        standings: of the tenants, as far as they are known.
        now: the instant of the order.
        oversized: whether some job may ask for more than the pool has: each is looked at then.
    """

    def __init__(
        self, rules: PoolRules, standings: Mapping[str, Standing], now: Micros, *, oversized: bool = True
    ) -> None:
        self._oversized = oversized
        self._rules = rules
        self._room = rules.capacity.get
        self._standings = standings
        self._now = now
        rate = rules.rate
        # Integers divided once: the same float as that of the fraction, at a tenth of its price.
        self._over, self._under = rate.numerator, rate.denominator
        self._hourly = percent(rate.numerator * HOUR / rate.denominator)
        self._classes: dict[str, str] = {}
        self._tenants: dict[str, str] = {}
        self._durations: dict[int, str] = {}
        self._capped: dict[str, str] = {}

    def reasons(self, place: Place) -> list[str]:
        """What the class does to its place, and the terms."""
        if place.override is not None:
            return [_class(place, self._rules), *self.terms(place)]
        urgency = self._classes.get(place.urgency)
        if urgency is None:
            urgency = self._classes[place.urgency] = _class(place, self._rules)
        return [urgency, *self.terms(place)]

    def terms(self, place: Place) -> list[str]:
        """The tag, the waiting, what holds the job back, and what can never start."""
        terms = [self._tag(place)] if place.unbounded else [self._tag(place), self._waiting(place)]
        if place.top or place.position or place.blocked:
            terms += _tree(place)
        if self._oversized:
            room = self._room
            for resource, amount in place.demand.items():
                if amount > room(resource, 0):
                    terms += _too_large(place, self._rules.capacity)
                    break
        return terms

    def _tag(self, place: Place) -> str:
        if place.unbounded:
            return (
                f"Its tenant {place.top or place.tenant} has weight 0 here, or the pool has none of what it asks for: "
                "it stands behind every other job of its class."
            )
        tenant, dominant = place.top or place.tenant, place.dominant
        if not dominant:
            return f"Its tenant {tenant} uses nothing before it: its start tag is {place.tag:.4f}."
        beginning = self._tenants.get(tenant) or self._beginning(tenant)
        use = format_quantity(dominant, place.use)
        return (
            f"{beginning}{use} {dominant}: divided by the pool's capacity and by its weight, that is a start tag "
            f"of {place.tag:.4f}; lower goes first."
        )

    def _beginning(self, tenant: str) -> str:
        """Of the sentence that says what a tenant has, as far as it is known."""
        standing = self._standings.get(tenant)
        found = f"With the jobs before this one, tenant {tenant} comes to "
        if standing is not None:
            past = _past(standing)
            found = (
                f"Tenant {tenant} (weight {standing.weight:g}) holds {percent(standing.share)} of the pool with "
                f"{standing.running} running{past}. With its jobs before this one it comes to "
            )
        self._tenants[tenant] = found
        return found

    def _waiting(self, place: Place) -> str:
        age = max(self._now - place.submitted, 0)
        cap = self._rules.cap
        if not self._over:
            return f"It has waited {self._duration(age)}; waiting counts nothing in this policy."
        if cap is not None and age > cap:
            return self._beyond_cap(age, cap)
        worth = percent(self._over * age / self._under)
        return f"It has waited {self._duration(age)}: worth {worth} of share at {self._hourly} an hour."

    def _beyond_cap(self, age: Micros, cap: Micros) -> str:
        waited = self._duration(age)
        found = self._capped.get(waited)
        if found is None:
            worth = percent(self._over * cap / self._under)
            found = self._capped[waited] = (
                f"It has waited {waited}, of which {duration(cap / SECOND)} count: worth {worth} of share at "
                f"{self._hourly} an hour."
            )
        return found

    def _duration(self, age: Micros) -> str:
        """Beyond an hour the words change at whole minutes alone: between two of these they are found once."""
        minute, rest = divmod(age, _WHOLE_MINUTE)
        if age < HOUR or not rest:
            return duration(age / SECOND)
        words = self._durations.get(minute)
        if words is None:
            words = self._durations[minute] = duration(age / SECOND)
        return words


def _past(standing: Standing) -> str:
    """What of its share is past use, of the resource that it is counted by."""
    amount = standing.past.get(standing.dominant, 0)
    if not amount:
        return ""
    used = format_quantity(standing.dominant, amount)
    return f" and {used} {standing.dominant} of past use"


def terms_in_words(place: Place, standing: Standing | None, rules: PoolRules, now: Micros) -> list[str]:
    """The tag, the waiting, and what can never start.

    Args:
        place: of the job.
        standing: of its top-level tenant; None where it is not known.
        rules: that the place was made by.
        now: the instant of the order.
    """
    known = {} if standing is None else {standing.tenant: standing}
    return Wording(rules, known, now).terms(place)


def class_in_words(place: Place, rules: PoolRules | None = None) -> str:
    """What the class of the job does to its place; classes are strict unless the rules say otherwise."""
    return _class(place, rules)


def _class(place: Place, rules: PoolRules | None) -> str:
    if rules is None or rules.strict:
        return f"Its class is {place.urgency}; every job of a higher class goes before it."
    weight = float(rules.class_weight(place.urgency, override_of(place.override)))
    named = f"Its class is {place.urgency}"
    if place.override is not None:
        named = f"Its class is {place.urgency}, but a number of its own counts in place of the class's"
    if rules.class_mode == "additive":
        return f"{named}: it adds {weight:g} to the key; lower goes first."
    return f"{named}: its start tag is divided by {weight:g}."


def _tree(place: Place) -> Iterator[str]:
    """What the levels below the top do to the place."""
    for one in reversed(place.within):
        at = f"{percent(one.tag)} of {one.dominant} by its weight" if one.dominant else "nothing before it"
        yield f"Below {place.top}, {one.tenant} stands at {at}."
    if place.lifted is not None:
        yield f"{place.top or place.tenant} serves {place.lifted.uid} before it: it goes right behind that one at the earliest."
    if place.blocked:
        yield "It asks for a resource that is used up: it stands behind the other jobs of its class."


def _too_large(place: Place, capacity: Mapping[str, int]) -> Iterator[str]:
    for resource, amount in sorted(place.demand.items()):
        if amount > capacity.get(resource, 0):
            has = format_quantity(resource, capacity.get(resource, 0))
            asked = format_quantity(resource, amount)
            yield f"It asks for {asked} {resource}, more than the {has} that the pool has: it cannot start."


def percent(share: float) -> str:
    """A share as a person reads it."""
    if share and -_SMALL_SHARE < share < _SMALL_SHARE:
        return f"{100 * share:.2g} %"
    return f"{100 * share:.1f} %"


def duration(seconds: float) -> str:
    """A time as a person reads it: `45 s`, `12 min`, `3.5 h`, `2 d`."""
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{f'{seconds / length:.1f}'.removesuffix('.0')} {unit}"
    return f"{f'{seconds:.1f}'.removesuffix('.0')} s"
