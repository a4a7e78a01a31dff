"""Positions, shares, durations, numbers and lists in words."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from fairlead_contracts.base import figures
from fairlead_contracts.base.instants import from_datetime, to_seconds
from fairlead_contracts.base.quantities import base_units, format_quantity, quantity_format, short_resource
from fairlead_contracts.frontend.cards import PER_VGPU
from fairlead_contracts.frontend.marks import GANG_FIT
from fairlead_contracts.messages.decisions import EffectiveJob, Position, UnboundedBy
from fairlead_contracts.messages.questions import Adherence, Approval, PromisedStarts, Steering

_TENANTS_NAMED = 6
"""Number of tenants named on one line; the others are counted together."""
_RESOURCES_NAMED = 12
"""Number of resources of a demand that are named on one line; the others are counted."""
_THOUSANDTHS = 1000
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def duration(seconds: float) -> str:
    """A duration as people say it: `3.2 s`, `4.5 min`, `2 h 10 min`, `3 d 4 h`."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    if seconds < _HOUR:
        return figures.duration(seconds)
    if seconds < _DAY:
        return f"{seconds // _HOUR:.0f} h {seconds % _HOUR // _MINUTE:.0f} min"
    return f"{seconds // _DAY:.0f} d {seconds % _DAY // _HOUR:.0f} h"


def listed(names: Iterable[str], *, most: int = 5) -> str:
    """The first names of a list in words, and how many more there are."""
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def scarce_first(resources: Iterable[str]) -> list[str]:
    """Resources in the order in which people ask for them: what there is little of before cores and memory."""
    return sorted(resources, key=lambda name: (name in ("cpu", "memory"), name))


def demand(amounts: dict[str, int]) -> str:
    """A demand on one line, scarce resources first; beyond the first dozen they are counted."""
    parts = []
    for name in scarce_first(amounts)[:_RESOURCES_NAMED]:
        # As Kubernetes writes it, but for thousandths of more than one: `19660800m` is 19660.8 to people.
        written = figures.amount_format if amounts[name] > _THOUSANDTHS else quantity_format
        parts.append(f"{short_resource(name)}={written(name)(amounts[name])}")
    more = len(amounts) - len(parts)
    return " ".join([*parts, f"and {more} more"] if more else parts)


def amounts(found: dict[str, int]) -> str:
    """Amounts that are no whole numbers of anything, as people write them: `12.5 gpu and 3 cpu`."""
    parts = []
    for name in scarce_first(found):
        quantity = format_quantity(name, found[name])
        decimal = f"{int(quantity[:-1]) / 1000:g}" if quantity.endswith("m") else quantity
        parts.append(f"{decimal} {short_resource(name)}")
    return " and ".join(parts)


def ahead_in_words(ahead: Sequence[tuple[str, int]]) -> str:
    """The jobs that stand before one, counted by tenant, in words; beyond the first few tenants together.

    Args:
        ahead: tenants with their numbers of jobs, the largest first.
    """
    named = ahead if len(ahead) == _TENANTS_NAMED + 1 else ahead[:_TENANTS_NAMED]
    others = ahead[len(named) :]
    parts = [f"{jobs} of {tenant}" for tenant, jobs in named]
    if others:
        parts.append(f"{sum(jobs for _, jobs in others)} of {len(others)} others")
    return ", ".join(parts)


def waited(position: Position, now: datetime) -> str:
    """The time that a job has waited, in words."""
    return duration(max(0.0, to_seconds(from_datetime(now) - position.submitted)))


def reason(
    position: Position, counts_as: EffectiveJob | Position | None = None, *, relative: bool = True
) -> str:
    """The reason for a job's position within its class: what its tenant stands at before it.

    Reads on from "its tenant", which heads the column. Pools are shared between top-level tenants: of one below such a
    one, that is named.

    Args:
        position: the job's.
        counts_as: the job by whose terms it counts now, itself or another, where that is known to whoever asks.
        relative: whether tags are of parts; else they are shares over weights.
    """
    at = tree_reason(position.top, _at(position, relative=relative))
    if position.within or position.own_rank or position.blocked:
        return "; ".join([at, *_held_back(position, counts_as)])
    return at


def tree_reason(top: str, at: str, behind: str = "") -> str:
    """The reason for a job's position by what its tenant, or the top-level one above it, stands at.

    Args:
        top: the top-level tenant; empty where it is the job's own.
        at: the clause on what that one stands at.
        behind: the job that this one counts as; empty where it counts by itself.
    """
    held = f"is below {top}, which {at}" if top else at
    return f"{held}; {_behind(behind, top)}" if behind else held


def _behind(job: str, top: str) -> str:
    return f"behind {job}, which {top or 'it'} serves first"


def _at(position: Position, *, relative: bool) -> str:
    if position.unbounded:
        return f"{_cause(position.unbounded_by, short_resource(position.dominant))}: last"
    resource = short_resource(position.dominant) if position.use else None
    return share_in_words(position.tag, resource, relative=relative, rescaled=bool(position.share))


def share_in_words(tag: float, resource: str | None, *, relative: bool = True, rescaled: bool = False) -> str:
    """The clause on what a tenant is at before a job of it; reads on from "its tenant".

    Args:
        tag: the job's.
        resource: the dominant one, in short; None where it has nothing.
        relative: whether tags are of parts; else they are shares over weights.
        rescaled: whether H-DRF makes the tag.
    """
    if rescaled:
        of = "" if resource is None else f" of {resource}"
        at = f"{of_part(tag)}{of}" if relative else f"{tag:.2%}{of} over its weight"
        return f"counts at {at} by H-DRF"
    if resource is not None and not relative:
        return f"is at {tag:.2%} of {resource} over its weight"
    return "has nothing before it" if resource is None else f"is at {of_part(tag)} of {resource}"


def of_part(tag: float) -> str:
    """A tag as a share of what the tenant is entitled to: a percentage, or how many times that is."""
    return f"{tag:.2%} of its part" if tag < figures.MANY else f"{tag:.1f} times its part"


def multiple(share: float) -> str:
    """A share of a whole as a percentage, or as how many times the whole it is."""
    return f"{share:.1%}" if share < figures.MANY else f"{share:.1f}x"


def _cause(unbounded_by: UnboundedBy | None, resource: str) -> str:
    """The clause on what makes a share infinite."""
    match unbounded_by:
        case "weight":
            return "has weight 0"
        case "held":
            return f"holds {resource}, of which the pool has none"
        case "asked":
            return f"asked for {resource} before, of which the pool has none"
        case "beyond":
            return "holds more than can be counted"
        case None:
            return "has an infinite share"


def _held_back(position: Position, counts_as: EffectiveJob | Position | None) -> Iterator[str]:
    """The clauses on what puts a job behind others beside its tenant's share."""
    for one in reversed(position.within):
        if one.unbounded_by is not None:
            yield f"{one.tenant} {_cause(one.unbounded_by, 'a resource')}: last of {position.top}'s"
    if counts_as is not None:
        effective_jobs = [_named(counts_as)] if counts_as.uid != position.uid else []
    else:
        known = (position.effective, position.effective_late) if position.effective is not None else ()
        effective_jobs = list(dict.fromkeys(_named(one) for one in known if one is not None))
    if effective_jobs:
        yield _behind(" or ".join(effective_jobs), position.top)
    if position.blocked:
        yield "the job asks for what is used up"


def _named(job: EffectiveJob | Position) -> str:
    """The name of a job, as far as it is known: those of others are not named to a tenant."""
    return job.id or job.uid or "another job"


def approval_in_words(approval: Approval) -> str:
    """A class that was granted to one job, by whom, when and why."""
    since = f" since {approval.since:%Y-%m-%d %H:%M} UTC" if approval.since is not None else ""
    why = f" ({approval.why})" if approval.why else ""
    return f"{approval.job_class}, granted to it by {approval.by or 'an operator'}{since}{why}"


def unwell_in_words(steering: Steering) -> Iterator[str]:
    """Reasons for which news of a cluster may be old, or nothing is written: to be read before its order."""
    if steering.unheard:
        yield f"what stands here may be old: {steering.unheard}"
    if steering.withheld:
        yield f"nothing is written: {steering.withheld}"


def untaken_in_words(steering: Steering) -> str:
    """A clause on submissions that wait to become jobs; empty for none."""
    if not steering.untaken:
        return ""
    count = counted(steering.untaken, "submission is", "submissions are")
    return f"{count} published and not taken up yet, so not in this list"


def unanswered_in_words(steering: Steering) -> str:
    """A sentence on jobs that start nothing because nobody answers their check; empty for none."""
    if not steering.unanswered:
        return ""
    jobs = counted(steering.unanswered, "job has its quota and starts", "jobs have their quota and start")
    return (
        f"{jobs} nothing: no checker leads, so nobody answers the check {GANG_FIT}. "
        f"Start one, or let them through unchecked by `fairlead watchdog --check {GANG_FIT}`"
    )


def promised_in_words(found: PromisedStarts) -> str:
    """The start that reserve mode promises, who waits for it and who does not."""
    if found.why_not:
        return f"no start can be promised: {found.why_not}"
    head = found.job or f"a job of {found.tenant}"
    if found.job and found.job.partition("/")[0] != found.tenant:
        head = f"{head} of {found.tenant}"
    if found.by is None:
        runs = f": {', '.join(found.in_its_way)}" if found.in_its_way else ""
        return f"{head} is the first that does not fit; no start is promised to it: {found.why_none}{runs}"
    starts = (
        f"{head} is the first that does not fit, and starts by {found.by:%Y-%m-%d %H:%M:%S} UTC at the latest"
    )
    if not found.passing:
        return f"{starts}. The jobs behind it wait for it"
    passing = listed(found.passing)
    return (
        f"{starts}. The jobs behind it wait for it, but for {passing}: they end by then, or leave room for it"
    )


def levels_left_in_words(steering: Steering) -> str:
    """A clause on levels that stand and should be gone; empty for none."""
    if not steering.levels_left:
        return ""
    count = counted(steering.levels_left, "level stands", "levels stand")
    return f"{count} that should be gone"


def preempted_in_words(steering: Steering) -> str:
    """A sentence on running jobs that were stopped for others meanwhile, and by what; empty for none."""
    stopped = steering.preemptions_by_left_levels
    if not stopped:
        return ""
    jobs = counted(stopped, "running job was", "running jobs were")
    return (
        f"{jobs} stopped for others while levels stood that should have been gone: "
        "by these levels, or by the jobs' own classes (the frontend does not say which)"
    )


def adherence_in_words(found: Adherence) -> str:
    """Admissions that missed the order and what stood idle, in words, with the instant it counts from."""
    since = f"since {found.since:%Y-%m-%d %H:%M} UTC{_unjudged(found)}"
    if not found.admissions:
        return f"no admission judged {since}; {_idle(found)}"
    missed = f"{found.missed} of {found.admissions} admissions out of order ({found.missed / found.admissions:.0%})"
    return f"{missed}, {_idle(found)}, {since}"


def _unjudged(found: Adherence) -> str:
    """The numbers of admissions that nobody could judge by the order, in words; empty for none."""
    kinds = (
        (found.newcomers, "that had just come"),
        (found.takeovers, "while the lead changed hands"),
        (found.unordered, "while there was no order"),
        (found.unseen, "while the admitter did not know everything"),
    )
    parts = [f"{number} {why}" for number, why in kinds if number]
    *first, last = parts or [""]
    return f" (not judged: {f'{", ".join(first)} and ' if first else ''}{last})" if parts else ""


def _idle(found: Adherence) -> str:
    """The idle time of the scarcest resource in words: of GPUs, else of cores.

    Memory and cores of cards are parts of these, not more of them.
    """
    cards = {
        name: amount for name, amount in found.idle.items() if "gpu" in name.lower() and name not in PER_VGPU
    }
    shown = cards or {name: amount for name, amount in found.idle.items() if name == "cpu"}
    if not shown:
        return "nothing idle that a waiting job would have fitted"
    total = sum(amount / base_units(name) for name, amount in shown.items())
    unit = "GPU" if cards else "core"
    each = f" ({total / found.admissions:.2f} an admission)" if found.admissions else ""
    return f"{total:.1f} {unit}-seconds idle{each}"


def what_is_known(job: str, near: Sequence[str]) -> str:
    """The jobs that may be meant, or else where jobs are listed, and why one may not be among them.

    Args:
        job: the name that nobody knows.
        near: jobs whose names begin so, with their scopes.
    """
    if near:
        return f"Names that begin so: {', '.join(near)}."
    of_all = "`fairlead queue` lists those that wait; refused ones were never jobs, and ended ones are forgotten after a while."
    array, _, task = job.rpartition("/")[2].partition("_")
    if array.isdecimal() and task.isdecimal():
        return f"Of an array the first waiting tasks alone have a position, and those behind them are not known one by one. {of_all}"
    first, _, part = array.partition("+")
    if first.isdecimal() and part.isdecimal():
        return f"A heterogeneous job is called as its first part, {first}. {of_all}"
    if array.isdecimal():
        return f"{of_all} Of an array's tasks each is a job of its own, as {array}_1."
    return (
        f"{of_all} On Kubernetes a job without the label kueue.x-k8s.io/queue-name is none of Kueue's, so nobody tells of it: "
        "`fairlead doctor` lists such Jobs, JobSets, RayJobs and their like, and Jobs that Kueue does not look after."
    )
