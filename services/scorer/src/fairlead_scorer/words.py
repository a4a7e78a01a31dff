"""Reasons in words: what a person reads about one job's place. Every number is one that the place was made from."""

from fairlead_contracts.instants import HOUR, Micros, to_seconds
from fairlead_contracts.quantities import format_quantity
from fairlead_contracts.questions import AheadOf, Explanation
from fairlead_contracts.state import JobState, Outcome
from fairlead_policy import PoolRules

_TENANTS_NAMED = 3
"""How many tenants a sentence names; the rest are summed up."""
_SMALL_SHARE = 0.0005
_MINUTE = 60.0
_UNITS = ((86_400.0, "d"), (3600.0, "h"), (_MINUTE, "min"))


def held() -> list[str]:
    """Of a job that is queued but may not start."""
    return [
        "It is held: inactive, gated, backing off or on hold in its frontend. It has no place until it is released."
    ]


def running(job: JobState) -> list[str]:
    """Of a job that runs."""
    if job.started is None:
        return ["It runs, and counts as its tenant's use."]
    waited = duration(to_seconds(job.started - job.submitted))
    return [f"It started {waited} after it was submitted, and counts as its tenant's use while it runs."]


def ended(job: JobState) -> list[str]:
    """Of a job that ended."""
    outcome = {Outcome.SUCCEEDED: "succeeded", Outcome.FAILED: "failed", Outcome.CANCELLED: "was cancelled"}
    found = "ended" if job.outcome is None else outcome[job.outcome]
    if job.started is None or job.ended is None:
        return [f"It {found}."]
    return [f"It {found} after it ran for {duration(to_seconds(job.ended - job.started))}."]


def nowhere(job: JobState) -> list[str]:
    """Of a waiting job whose queue leads to no pool."""
    return [f"Its queue {job.queue!r} is not one that cluster {job.cluster!r} states, so it is in no order."]


def waiting(found: Explanation, rules: PoolRules, now: Micros) -> list[str]:
    """Of a job that waits: where it stands, behind whom, and what its place is made of."""
    return [
        *_rank(found),
        *_urgency(found),
        *_tag(found),
        *_aging(found, rules, now),
        *_too_large(found, rules),
    ]


def withheld(clusters: list[str]) -> str:
    """The pool's order stands still."""
    names = ", ".join(clusters)
    return f"The order stands still: {names} has not confirmed its state since NATS started; levels stay as they are."


def silent(shards: list[int]) -> str:
    """A shard's owner did not answer."""
    names = ", ".join(str(shard) for shard in shards)
    return f"The owners of shards {names} did not answer in time: jobs of their tenants are not counted here."


def _rank(found: Explanation) -> list[str]:
    if found.rank is None:
        return ["Its place is not known now: the owner of its shard did not answer in time. Ask again."]
    if found.rank == 0:
        return [f"It is the first of {found.waiting} that wait in pool {found.pool}."]
    stands = "1 job stands" if found.rank == 1 else f"{found.rank} jobs stand"
    return [
        (
            f"It is number {found.rank + 1} of {found.waiting} that wait in pool {found.pool}: "
            f"{stands} before it ({_names(found.ahead, found.tenant)})."
        )
    ]


def _names(ahead: list[AheadOf], own: str | None) -> str:
    parts = [
        f"{line.jobs} of {'its own tenant' if line.tenant == own else line.tenant}"
        for line in ahead[:_TENANTS_NAMED]
    ]
    rest = sum(line.jobs for line in ahead[_TENANTS_NAMED:])
    return ", ".join([*parts, f"{rest} of others"] if rest else parts)


def _urgency(found: Explanation) -> list[str]:
    if found.place is None:
        return []
    granted = f"Its class is {found.place.urgency}; every job of a higher class goes before it."
    if found.refused_class is None:
        return [granted]
    return [
        granted,
        (
            f"It asked for class {found.refused_class}, which is not granted to {found.tenant}: "
            f"an operator may grant it in the policy, to the tenant or to this job alone."
        ),
    ]


def _tag(found: Explanation) -> list[str]:
    place, standing = found.place, found.standing
    if place is None:
        return []
    if place.unbounded:
        return [
            (
                f"Its tenant {place.tenant} has weight 0 here, or the pool has none of what it asks for: "
                "it stands behind every other job of its class."
            )
        ]
    if standing is None or not place.dominant:
        return [f"Its tenant {place.tenant} uses nothing before it: its start tag is {place.tag:.4f}."]
    use = format_quantity(place.dominant, place.use)
    return [
        (
            f"Tenant {place.tenant} (weight {standing.weight:g}) holds {percent(standing.share)} of the pool with "
            f"{standing.running} running. With its jobs before this one it comes to {use} {place.dominant}: "
            f"divided by the pool's capacity and by its weight, that is a start tag of {place.tag:.4f}; lower goes first."
        )
    ]


def _aging(found: Explanation, rules: PoolRules, now: Micros) -> list[str]:
    if found.place is None or found.place.unbounded:
        return []
    age = max(0, now - found.place.submitted)
    rate = rules.rate
    if not rate:
        return [f"It has waited {duration(to_seconds(age))}; waiting counts nothing in this policy."]
    cap = rules.cap
    counted = age if cap is None else min(age, cap)
    beyond = "" if counted == age else f", of which {duration(to_seconds(counted))} count"
    return [
        (
            f"It has waited {duration(to_seconds(age))}{beyond}: worth {percent(float(rate * counted))} of share "
            f"at {percent(float(rate * HOUR))} an hour."
        )
    ]


def _too_large(found: Explanation, rules: PoolRules) -> list[str]:
    if found.place is None:
        return []
    return [
        f"It asks for {format_quantity(resource, amount)} {resource}, more than the "
        f"{format_quantity(resource, rules.capacity.get(resource, 0))} that the pool has: it cannot start."
        for resource, amount in sorted(found.place.demand.items())
        if amount > rules.capacity.get(resource, 0)
    ]


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
