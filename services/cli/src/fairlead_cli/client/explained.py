"""The answer to `fairlead explain`: one sentence, what it is made of, and the reasons that count most."""

from collections.abc import Iterator
from datetime import datetime

from fairlead_cli.client.phrases import (
    ahead_in_words,
    amounts,
    approval_in_words,
    counted,
    demand,
    levels_left_in_words,
    preempted_in_words,
    promised_in_words,
    scarce_first,
    unwell_in_words,
)
from fairlead_cli.console import PIPED, Screen
from fairlead_contracts.base import figures
from fairlead_contracts.base.instants import from_datetime, to_seconds
from fairlead_contracts.base.quantities import format_quantity, short_resource
from fairlead_contracts.frontend.shipped import shipped_capabilities
from fairlead_contracts.messages.decisions import Position, TenantShare
from fairlead_contracts.messages.explanations import RoomForecast
from fairlead_contracts.messages.questions import ExplainReply, Explanation, Steering
from fairlead_contracts.messages.state import job_name

MOST_REASONS = 5
"""Number of reasons that are shown unless all are asked for."""
_FRONTENDS = {"kueue": "Kueue", "slurm": "Slurm"}
_HELD = "held"
_NEAR = 0.02
"""Part of its entitlement by which a tenant's share may differ and still count as its share."""


def explain_text(reply: ExplainReply, screen: Screen = PIPED, *, verbose: bool = False) -> str:
    """The text of an answer: of each job the headline, the facts, and the reasons that count most.

    Args:
        verbose: whether tags, keys, levels and all reasons are shown, too.
    """
    parts = (_lines(found, reply.at, screen, verbose=verbose) for found in reply.found)
    return "\n\n".join("\n".join(lines) for lines in parts)


def headline(found: Explanation) -> str:
    """A sentence on why the job waits, as `Waiting, 6th of 40: needs 2 gpu, none free.`, or on its state."""
    if found.unchecked:
        return "It has its quota, and its pods may not start yet."
    if found.rank is None or found.waiting is None:
        held = found.reasons[:1] if found.phase == _HELD else []
        return held[0] if held else f"{found.phase.capitalize()}."
    # Nobody stands before the first: its tenant's share is not what it waits for.
    stands = () if found.divide_by or not found.rank else _how_its_tenant_stands(found)
    clauses = [*_what_is_short(found), *stands]
    position = f"Waiting, {_ordinal(found.rank + 1)} of {found.waiting}"
    return f"{position}: {'; '.join(clauses)}." if clauses else f"{position}."


def _what_is_short(found: Explanation) -> Iterator[str]:
    room = None if found.what_if is None else found.what_if.room
    if found.never:
        yield "no node of its cluster can hold it, even empty"
    elif found.no_room and room is not None and not room.missing:
        yield "its pool has quota for it, but its nodes or cards have no room"
        return
    elif room is not None and found.position is not None:
        yield _needs(found, room, found.position.demand)
    elif found.no_quota:
        yield "its pool has not enough quota left"
    if found.no_room:
        yield "there is quota, but no card has room"


def _needs(found: Explanation, room: RoomForecast, asked: dict[str, int]) -> str:
    if not room.missing:
        if room.in_turn:
            return "it would fit now, but jobs before it go first"
        # What is free is not all: a limit of its frontend's may hold it back, or it starts nobody now, and says so of one job.
        if said := _who_said(found):
            return f"what it asks for is free, but see what {said}"
        check = "" if found.steering is None else shipped_capabilities(found.steering.frontend).check_command
        return f"it fits now; where it does not start, `{check}` may say why" if check else "it fits now"
    missing = scarce_first(room.missing)
    wanted = " and ".join(
        f"{format_quantity(name, asked.get(name, 0))} {short_resource(name)}" for name in missing
    )
    free = [
        format_quantity(name, room.free[name]) if room.free.get(name, 0) > 0 else "no" for name in missing
    ]
    if len(missing) == 1:
        return f"needs {wanted}, {'none' if free[0] == 'no' else free[0]} free"
    told = " and ".join(
        f"{amount} {short_resource(name)}" for name, amount in zip(missing, free, strict=True)
    )
    return f"needs {wanted}, of which {told} are free"


def _how_its_tenant_stands(found: Explanation) -> Iterator[str]:
    standing = found.standing
    if standing is None or not standing.entitled:
        return
    part = standing.share / standing.entitled
    if part > 1 + _NEAR:
        yield f"{standing.tenant} is over its share"
    elif part < 1 - _NEAR:
        yield f"{standing.tenant} is under its share{_but_own_jobs(found)}"
    else:
        yield f"{standing.tenant} has its share{_but_own_jobs(found)}"


def _but_own_jobs(found: Explanation) -> str:
    """The clause on jobs of the tenant's own that go first: its share is not what the job waits for."""
    own = sum(part.jobs for part in found.ahead if part.tenant == found.tenant)
    return f", but {counted(own, 'job of its own goes', 'jobs of its own go')} first" if own else ""


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _lines(found: Explanation, now: datetime, screen: Screen, *, verbose: bool) -> Iterator[str]:
    name = job_name(found.id, found.owner)
    behind = _other_names(found, name)
    where = f" on {found.cluster}" if found.cluster else ""
    yield f"{screen.style(f'{found.scope}/{name}', 'bold')}{behind}{where}"
    for trouble in unwell_in_words(found.steering) if found.steering is not None else ():
        yield screen.line(f"{found.cluster}: {trouble}", "yellow")
    yield screen.line(headline(found), "bold")
    facts = list(_facts(found, now, verbose=verbose))
    width = max(len(label) for label, _ in facts)
    for label, value in facts:
        told = screen.line(f"{label:{width}}  {value}", hanging=" " * (width + 2))
        yield screen.style(label, "dim") + told[len(label) :]
    led = 1 if found.phase == _HELD and not found.unchecked else 0  # the first of its reasons is the headline
    reasons = [*found.never, *_no_quota(found), *found.no_room, *found.reasons[led:]]
    shown = reasons if verbose else reasons[:MOST_REASONS]
    for line in shown:
        yield screen.line(line, indent="  · ", hanging="    ")
    if len(shown) < len(reasons):
        yield screen.style(f"  {len(reasons) - len(shown)} more with -v", "dim")


def _other_names(found: Explanation, name: str) -> str:
    """The other names by which the job is known: each is taken in the name's place."""
    kind, _, made_for = (found.owner or "").partition("/")
    others = [
        *([f"{kind}; its Workload is {found.id}"] if made_for else []),
        *([f"submitted as {found.submission}"] if found.submission not in (None, name) else []),
    ]
    return f" ({'; '.join(others)})" if others else ""


def _no_quota(found: Explanation) -> list[str]:
    """The quota that is short, unless the reasons tell it better: how much is, and who holds it."""
    room = None if found.what_if is None else found.what_if.room
    return found.no_quota if room is None or not room.missing else []


def _facts(found: Explanation, now: datetime, *, verbose: bool) -> Iterator[tuple[str, str]]:
    yield "tenant", found.tenant or "(none)"
    yield from _where_it_waits(found)
    if found.rank is not None:
        yield "position", f"{found.rank + 1} of {found.waiting}"
    if found.position is not None:
        yield from _facts_of_position(found, found.position, now, verbose=verbose)
    else:
        yield "waited", figures.duration(found.waited_seconds)
        if found.approved is not None:
            yield "class", approval_in_words(found.approved)
    if found.refused_class:
        yield "class refused", found.refused_class
    if found.standing is not None:
        own = found.standing.tenant == found.tenant
        yield (
            "its tenant" if own else f"above it, {found.standing.tenant}",
            _tenant_share_in_words(found.standing, by_weight=bool(found.divide_by)),
        )
    if found.ahead:
        yield "before it", ahead_in_words([(part.tenant, part.jobs) for part in found.ahead])
    if verbose:
        yield (
            "level",
            str(found.level) if not found.base else f"{found.level} ({found.base} when nobody steers)",
        )
    if found.steering is not None:
        yield from _steering_facts(found.steering)
        if found.steering.promised and found.rank:  # what it waits behind; the first is told its own promise
            yield "reserved", f"{promised_in_words(found.steering.promised)}."
    last = ((_who_said(found), found.said), ("trace", found.trace))
    yield from ((name, told) for name, told in last if told)


def _who_said(found: Explanation) -> str:
    """`Slurm said`, where the job's frontend gave a reason for which it waits; empty where it did not."""
    frontend = "" if found.steering is None else found.steering.frontend
    return f"{_FRONTENDS.get(frontend, 'its frontend')} said" if found.said else ""


def _where_it_waits(found: Explanation) -> Iterator[tuple[str, str]]:
    if not found.queue:
        yield "pool", found.pool or "(none)"
    elif found.pool is None:
        yield "queue", found.queue
    else:
        yield "queue", f"{found.queue}, pool {found.pool}"


def _facts_of_position(
    found: Explanation, position: Position, now: datetime, *, verbose: bool
) -> Iterator[tuple[str, str]]:
    yield "class", position.job_class if found.approved is None else approval_in_words(found.approved)
    yield "asks for", demand(position.demand)
    yield "waited", figures.duration(max(0.0, to_seconds(from_datetime(now) - position.submitted)))
    if verbose:
        yield "start tag", f"{position.tag:.6f} ({short_resource(position.dominant) or 'no resource'})"
        yield "key", f"{position.key:.6f}"


def _tenant_share_in_words(standing: TenantShare, *, by_weight: bool) -> str:
    late = f", past use of {amounts(standing.past)} among it" if standing.past else ""
    entitled = "" if by_weight else f" entitled to {standing.entitled:.1%},"
    # Resources may weigh more or less than 1: it need not be a part of the pool.
    return f"weight {standing.weight:g},{entitled} dominant share {standing.share:.1%}{late}"


def _steering_facts(steering: Steering) -> Iterator[tuple[str, str]]:
    why = f": {steering.enforcement_why}" if steering.enforcement_why else ""
    when = ", once levels are written" if steering.withheld else ""
    when += ", as it was last heard" if steering.unheard else ""
    yield "enforcement", f"{steering.enforcement}{when}{why}"
    if words := levels_left_in_words(steering):
        yield "levels left", words
    if words := preempted_in_words(steering):
        yield "preempted", words
