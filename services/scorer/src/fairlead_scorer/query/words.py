"""Reasons in words: what a person reads about one job's place. Every number is one that the place was made from."""

from fairlead_contracts.base.instants import Micros, to_seconds
from fairlead_contracts.messages.questions import AheadOf, Explanation
from fairlead_contracts.messages.state import Holder, JobState, Outcome
from fairlead_policy.explain.figures import duration
from fairlead_policy.explain.forecast_text import prospects_in_words
from fairlead_policy.explain.reasons import class_in_words, terms_in_words
from fairlead_policy.rules.pool_rules import PoolRules

_TENANTS_NAMED = 3
"""How many tenants a sentence names; the rest are summed up."""
_HOLDERS = {
    Holder.USER: "its user holds it",
    Holder.ADMIN: "an operator of the cluster holds it",
    Holder.DEPENDENCY: "another job has to end first",
}


def held(job: JobState) -> list[str]:
    """Of a job that is queued but may not start."""
    why = job.held_by or "its frontend does not say why"
    if job.holder is not None:
        why = f"{_HOLDERS[job.holder]} ({job.held_by})" if job.held_by else _HOLDERS[job.holder]
    remedies = [f"{fault.field}: {fault.remedy}." for fault in job.faults]
    return [f"It is held: {why}. It has no place until that ends.", *remedies]


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
    """Of a job that waits: where it stands, behind whom, what its place is made of, and what would move it."""
    place = found.place
    terms = [] if place is None else terms_in_words(place, found.standing, rules, now)
    moves = []
    if place is not None and found.prospects is not None:
        moves = prospects_in_words(found.prospects, place, rules, now)
    return [*_rank(found), *_urgency(found, rules), *terms, *moves]


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


def _urgency(found: Explanation, rules: PoolRules) -> list[str]:
    if found.place is None:
        return []
    granted = class_in_words(found.place, rules)
    if found.refused_class is None:
        return [granted]
    return [
        granted,
        (
            f"It asked for class {found.refused_class}, which is not granted to {found.tenant}: "
            f"an operator may grant it in the policy, to the tenant or to this job alone."
        ),
    ]
