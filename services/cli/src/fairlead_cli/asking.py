"""Questions to the scorers, and their answers on a terminal or as JSON."""

from rich.console import RenderableType

from fairlead_cli.connection import ask, connected
from fairlead_cli.console import output, write_line
from fairlead_cli.errors import CommandError
from fairlead_cli.tables import explain_view, queue_view, tenants_view
from fairlead_contracts.codec import Message, to_json
from fairlead_contracts.questions import (
    EXPLAIN_REPLY,
    QUEUE_REPLY,
    TENANTS_REPLY,
    ExplainQuestion,
    QueueQuestion,
    TenantsQuestion,
)


async def show_queue(
    nats: str | None, *, pool: str | None, tenant: str | None, limit: int, as_json: bool
) -> None:
    """Print who waits, in order."""
    question = QueueQuestion(pool=pool, tenant=tenant, limit=limit)
    async with connected(nats) as bus:
        reply = await ask(bus, "queue", question, QUEUE_REPLY, tenant=tenant)
    _show(reply, queue_view(reply, tenant=tenant), as_json=as_json)


async def show_tenants(nats: str | None, *, pool: str | None, tenant: str | None, as_json: bool) -> None:
    """Print who has what, of what they may have."""
    async with connected(nats) as bus:
        reply = await ask(bus, "tenants", TenantsQuestion(pool=pool), TENANTS_REPLY, tenant=tenant)
    _show(reply, tenants_view(reply), as_json=as_json)


async def show_explanation(nats: str | None, job: str, *, tenant: str | None, as_json: bool) -> None:
    """Print why a job stands where it stands.

    Raises:
        CommandError: nobody knows the job.
    """
    question = ExplainQuestion(job=job, tenant=tenant)
    async with connected(nats) as bus:
        reply = await ask(bus, "explain", question, EXPLAIN_REPLY, tenant=tenant)
    if reply.found or as_json:
        _show(reply, explain_view(reply), as_json=as_json)
    if not reply.found:
        raise CommandError(
            f"nobody knows a job {job!r}",
            hint=(
                "`fairlead queue` lists those that wait; refused ones were never jobs, "
                "and ended ones are forgotten after a while."
            ),
        )


def _show(reply: Message, view: RenderableType, *, as_json: bool) -> None:
    if as_json:
        write_line(to_json(reply).decode())
    else:
        output().print(view)
