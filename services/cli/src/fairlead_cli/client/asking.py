"""Questions to the scorers, and their answers on a terminal or as JSON."""

from collections.abc import Sequence

import msgspec

from fairlead_bus import Bus, BusError
from fairlead_cli.client.connection import ask, connected
from fairlead_cli.client.explained import explain_text
from fairlead_cli.client.tables import queue_view, tenants_view
from fairlead_cli.console import styled
from fairlead_cli.errors import CommandError
from fairlead_cli.options import Format
from fairlead_cli.printing import Result, print_result
from fairlead_cli.published import published
from fairlead_contracts.messages.questions import (
    EXPLAIN_REPLY,
    QUEUE_REPLY,
    TENANTS_REPLY,
    ExplainQuestion,
    Explanation,
    QueueQuestion,
    TenantsQuestion,
)
from fairlead_contracts.messages.state import job_name


async def show_queue(
    nats: str | None, *, pool: str | None, tenant: str | None, limit: int, form: Format
) -> None:
    """Print who waits, in order."""
    question = QueueQuestion(pool=pool, tenant=tenant, limit=limit)
    async with connected(nats) as bus:
        reply = await ask(bus, "queue", question, QUEUE_REPLY, tenant=tenant)
    found = Result(
        document=lambda: published(reply),
        view=lambda columns: queue_view(reply, tenant=tenant, columns=columns, style=styled),
        names=lambda: (
            _full_name(one.place.scope, one.place.id, one.owner)
            for pool in reply.pools
            for one in pool.places
        ),
    )
    print_result(found, form)


async def show_tenants(nats: str | None, *, pool: str | None, tenant: str | None, form: Format) -> None:
    """Print who has what, of what they may have."""
    async with connected(nats) as bus:
        reply = await ask(bus, "tenants", TenantsQuestion(pool=pool), TENANTS_REPLY, tenant=tenant)
    found = Result(
        document=lambda: published(reply),
        view=lambda columns: tenants_view(reply, columns=columns, style=styled),
        names=lambda: dict.fromkeys(one.standing.tenant for pool in reply.pools for one in pool.tenants),
    )
    print_result(found, form)


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
        reply = msgspec.structs.replace(reply, found=[await _dated(bus, found) for found in reply.found])
    found = Result(
        document=lambda: published(reply),
        view=lambda columns: explain_text(
            reply, verbose=verbose or form == "wide", columns=columns, style=styled
        ),
        names=lambda: (_full_name(one.scope, one.id, one.owner) for one in reply.found),
    )
    if reply.found or form in ("json", "yaml"):
        print_result(found, form)
    if not reply.found:
        of_whom = f" of {tenant}" if tenant else ""
        raise CommandError(f"nobody knows a job {job!r}{of_whom}", hint=_what_is_known(job, reply.near or ()))


def _what_is_known(job: str, near: Sequence[str]) -> str:
    if near:
        return f"Names that begin so: {', '.join(near)}."
    of_all = "`fairlead queue` lists those that wait; refused ones were never jobs, and ended ones are forgotten after a while."
    array, _, task = job.rpartition("/")[2].partition("_")
    if array.isdecimal() and task.isdecimal():
        return f"Of an array the first waiting tasks alone have a place, and those behind them are not known one by one. {of_all}"
    return (
        f"{of_all} On Kubernetes a job without the label kueue.x-k8s.io/queue-name is none of Kueue's, so nobody tells of it: "
        "`fairlead doctor` lists such jobs."
    )


async def _dated(bus: Bus, found: Explanation) -> Explanation:
    """With the instant at which a class was granted to the job, where the policy's history tells and we may read it."""
    if found.approved is None:
        return found
    from fairlead_cli.client.approval_dates import granted_since

    try:
        since = await granted_since(bus, {found.id, found.uid})
    except BusError:
        return found
    return msgspec.structs.replace(found, approved=msgspec.structs.replace(found.approved, since=since))


def _full_name(scope: str, job: str, owner: str | None) -> str:
    """As `fairlead explain` and `approve` take it."""
    return f"{scope}/{job_name(job, owner)}"
