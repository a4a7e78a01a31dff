"""Questions to the scorers, and their answers on a terminal or as JSON."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from fairlead_bus import Bus, BusError
from fairlead_cli.client.connection import ask, connected
from fairlead_cli.client.explained import explain_text
from fairlead_cli.client.phrases import duration, what_is_known
from fairlead_cli.client.tables import left_out_in_words, queue_view, tenants_view
from fairlead_cli.client.visible import visible
from fairlead_cli.console import say, warn
from fairlead_cli.errors import CommandError
from fairlead_cli.options import Format
from fairlead_cli.printing import is_for_people, print_answer
from fairlead_contracts.messages.questions import (
    EXPLAIN_REPLY,
    QUEUE_REPLY,
    TENANTS_REPLY,
    ExplainQuestion,
    Explanation,
    QueueQuestion,
    QueueReply,
    RankedPosition,
    TenantsQuestion,
)
from fairlead_contracts.messages.state import job_name

if TYPE_CHECKING:
    from fairlead_cli.client.approval_dates import GrantedSince

_CLOCKS_DIFFER_SECONDS = 60.0
"""Difference between two clocks from which waits and instants mislead people."""


async def show_queue(
    nats: str | None, *, pool: str | None, tenant: str | None, limit: int, form: Format
) -> None:
    """Print who waits, in order."""
    question = QueueQuestion(pool=pool, tenant=tenant, limit=limit)
    async with connected(nats) as bus:
        reply = await ask(bus, "queue", question, QUEUE_REPLY, tenant=tenant)
        if form in ("wide", "json", "yaml"):
            reply = await _with_dates(bus, reply)
    _compare_clocks(reply.at)
    print_answer(
        reply,
        form,
        view=lambda screen: queue_view(
            visible(reply), screen, tenant=tenant, limit=limit, approvals=form == "wide"
        ),
        names=(
            _full_name(one.position.scope, one.position.id, one.owner)
            for pool in reply.pools
            for one in pool.positions
        ),
    )
    for one in reply.pools if form == "name" else ():  # what names alone cannot say
        if left_out := left_out_in_words(one, tenant):
            say(f"pool {one.pool}: {left_out}")


async def show_tenants(nats: str | None, *, pool: str | None, tenant: str | None, form: Format) -> None:
    """Print who has what, of what they may have."""
    async with connected(nats) as bus:
        reply = await ask(bus, "tenants", TenantsQuestion(pool=pool), TENANTS_REPLY, tenant=tenant)
    _compare_clocks(reply.at)
    names = dict.fromkeys(one.standing.tenant for pool in reply.pools for one in pool.tenants)
    print_answer(
        reply,
        form,
        view=lambda screen: tenants_view(visible(reply), screen),
        names=names,
    )


async def show_explanation(
    nats: str | None, job: str, *, tenant: str | None, form: Format, verbose: bool = False
) -> None:
    """Print why a job stands where it stands.

    Raises:
        CommandError: nobody knows the job.
    """
    question = ExplainQuestion(job=job, tenant=tenant)
    async with connected(nats) as bus:
        reply = await ask(bus, "explain", question, EXPLAIN_REPLY, tenant=tenant)
        if any(one.approved for one in reply.found) and (history := await _history(bus)) is not None:
            found = [_dated(one, {one.id, one.uid}, history) for one in reply.found]
            reply = msgspec.structs.replace(reply, found=found)
    _compare_clocks(reply.at)
    if reply.found or not is_for_people(form):
        print_answer(
            reply,
            form,
            view=lambda screen: explain_text(visible(reply), screen, verbose=verbose or form == "wide"),
            names=(_full_name(one.scope, one.id, one.owner) for one in reply.found),
        )
    if not reply.found:
        of_whom = f" of {tenant}" if tenant else ""
        raise CommandError(f"nobody knows a job {job!r}{of_whom}", hint=what_is_known(job, reply.near or ()))


def _compare_clocks(at: datetime) -> None:
    """Warns where the clock of the scorer that answered is not this machine's: all waits are told by it."""
    ahead = (at - datetime.now(UTC)).total_seconds()
    if abs(ahead) >= _CLOCKS_DIFFER_SECONDS:
        side = "ahead of" if ahead > 0 else "behind"
        warn(
            f"the clock of the scorer that answered is {duration(abs(ahead))} {side} this machine's, and it counts how "
            "long jobs have waited. Set both by NTP (`timedatectl` shows which one is not)"
        )


async def _with_dates(bus: Bus, reply: QueueReply) -> QueueReply:
    """Adds grant dates to every approved job of a queue reply."""
    approved = any(one.approved for pool in reply.pools for one in pool.positions)
    if not approved or (history := await _history(bus)) is None:
        return reply
    pools = []
    for pool in reply.pools:
        positions = [_dated(one, {one.position.id, one.position.uid}, history) for one in pool.positions]
        pools.append(msgspec.structs.replace(pool, positions=positions))
    return msgspec.structs.replace(reply, pools=pools)


def _dated[T: (Explanation, RankedPosition)](one: T, names: set[str], history: "GrantedSince") -> T:
    """The job with the instant at which a class was granted to it, where the policy's history tells."""
    if one.approved is None:
        return one
    approved = msgspec.structs.replace(one.approved, since=history(names))
    return msgspec.structs.replace(one, approved=approved)


async def _history(bus: Bus) -> "GrantedSince | None":
    """The history of grants, where we may read it."""
    from fairlead_cli.client.approval_dates import grant_history

    try:
        return await grant_history(bus)
    except BusError:
        return None


def _full_name(scope: str, job: str, owner: str | None) -> str:
    """The name as `fairlead explain` and `approve` take it."""
    return f"{scope}/{job_name(job, owner)}"
