"""Answers as tables."""

from collections.abc import Iterator
from datetime import datetime

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairlead_cli.client.marks import BAR_WIDTH, share_bar, steering_lines
from fairlead_cli.client.words import (
    demand,
    job_name,
    multiple,
    reason,
    short_resource,
    waited,
)
from fairlead_contracts.base.quantities import format_quantity
from fairlead_contracts.messages.decisions import Standing
from fairlead_contracts.messages.questions import (
    PoolQueue,
    PoolTenants,
    QueueReply,
    RankedPlace,
    TenantsReply,
)

WIDE_COLUMNS, NARROW_COLUMNS, SLIM_COLUMNS = 120, 100, 75
"""Of a terminal: below the last two the tables leave out what they can, and more."""
NARROW_BAR = 10
"""Cells of a share's bar."""
_SHARE_THEN = "share then: of the pool, with its tenant's jobs before this one; `fairlead tenants` has the shares of now"


def queue_view(
    reply: QueueReply, *, tenant: str | None = None, columns: int = WIDE_COLUMNS
) -> RenderableType:
    """Who waits, in order, a table a pool; of one tenant alone where one was asked for. Columns: of the terminal."""
    if not any(pool.waiting for pool in reply.pools):
        return Group(Text("Nobody waits."), *(part for pool in reply.pools for part in _idle_parts(pool)))
    return Group(
        *(
            part
            for pool in reply.pools
            if pool.waiting
            for part in _queue_parts(pool, reply.at, tenant, columns)
        )
    )


def _idle_parts(pool: PoolQueue) -> Iterator[RenderableType]:
    """Of a pool in which nobody waits: what would be in the way if somebody did."""
    if any(one.withheld for one in pool.steering):
        yield Text(f"pool {pool.pool}", style="bold")
        yield from steering_lines(pool.steering)
    yield from _silences([pool])


def _queue_parts(
    pool: PoolQueue, now: datetime, tenant: str | None, columns: int
) -> Iterator[RenderableType]:
    yield Text.assemble((f"pool {pool.pool}", "bold"), f": {pool.waiting} waiting")
    yield from steering_lines(pool.steering)
    if tenant is None or pool.places:
        yield places_table(pool.places, now, narrow=columns < NARROW_COLUMNS, slim=columns < SLIM_COLUMNS)
    if pool.places and columns >= NARROW_COLUMNS:
        yield Text(_SHARE_THEN, style="dim")
    # A scorer of an earlier release counts the pool's jobs alone.
    more = pool.more or (pool.waiting - len(pool.places) if tenant is None else 0)
    of_whom = "" if tenant is None else f" of {tenant}"
    if tenant is not None and not pool.places:
        yield Text(f"No job of {tenant} waits here.", style="dim")
    if more > 0:
        yield Text(f"… and {more} more{of_whom} ({_how_to_see_more(pool)})", style="dim")
    yield from _silences([pool])


def _how_to_see_more(pool: PoolQueue) -> str:
    if pool.most is None:
        return "--limit N shows more"
    if len(pool.places) < pool.most:
        return f"--limit N shows up to {pool.most}"
    return f"an answer holds at most {pool.most}: `fairlead snapshot`, then `fairlead order`, lists all"


def places_table(
    places: list[RankedPlace], now: datetime, *, narrow: bool = False, slim: bool = False
) -> Table:
    """Waiting jobs, first goes first; ranks count from 1 for people. A narrow one leaves out what they ask for.

    A slim one, for less than `SLIM_COLUMNS`, leaves out the class as well. Names of jobs are never cut: people copy them.
    """
    table = _plain_table()
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("job", no_wrap=True)
    wide = not (narrow or slim)
    for name in (*(() if slim else ("tenant", "class")), *(("asks for",) if wide else ())):
        table.add_column(name)
    for name in ("share then", "entitled") if wide else ():
        table.add_column(name, justify="right")
    table.add_column("waited", justify="right")
    told = any(ranked.why for ranked in places)
    table.add_column("why the one above goes first" if told else "why here: its tenant", ratio=1)
    for ranked in places:
        place = ranked.place
        table.add_row(
            str(ranked.rank + 1),
            Text(job_name(place.id, ranked.owner)),
            *(() if slim else (Text(place.tenant), _class(ranked))),
            *((demand(place.demand), *_quotient(ranked)) if wide else ()),
            waited(place, now),
            Text(_why(ranked, told=told), style="dim"),
        )
    return table


def _why(ranked: RankedPlace, *, told: bool) -> str:
    if ranked.why:
        return ranked.why
    if not told:
        return reason(ranked.place)
    return "first" if ranked.rank == 0 else f"(its tenant {reason(ranked.place)})"


def _quotient(ranked: RankedPlace) -> tuple[str, str]:
    """What its tag is the one over the other of, both of the pool."""
    share = "∞" if ranked.share is None else multiple(ranked.share)
    return share, f"{ranked.entitled:.1%}" if ranked.entitled else "-"


def tenants_view(reply: TenantsReply, *, columns: int = WIDE_COLUMNS) -> RenderableType:
    """Who has what, a table a pool. Columns: of the terminal."""
    if not reply.pools:
        return Text("No pool is known yet: has a cluster stated its capacity?")
    return Group(*(part for pool in reply.pools for part in _tenant_parts(pool, columns)))


def _tenant_parts(pool: PoolTenants, columns: int) -> Iterator[RenderableType]:
    capacity = ", ".join(
        f"{format_quantity(name, amount)} {short_resource(name)}"
        for name, amount in sorted(pool.capacity.items())
    )
    yield Text.assemble((f"pool {pool.pool}", "bold"), f": {capacity}")
    yield from steering_lines(pool.steering)
    if pool.tenants:
        yield tenants_table(pool, narrow=columns < NARROW_COLUMNS, slim=columns < SLIM_COLUMNS)
    else:
        yield Text("No tenant has jobs that run or wait.", style="dim")
    yield from _silences([pool])


def tenants_table(pool: PoolTenants, *, narrow: bool = False, slim: bool = False) -> Table:
    """Tenants with their share beside what they may have, as figures and as a bar with a mark.

    A narrow one has a shorter bar, and leaves out what they use; a slim one leaves out bar and weight, too.
    """
    scale = max((max(line.standing.share, line.standing.entitled) for line in pool.tenants), default=1.0)
    table = _plain_table()
    narrow = narrow or slim
    table.add_column("tenant", no_wrap=True)
    for name in (
        *(() if slim else ("weight",)),
        "share" if narrow else "share now",
        "entitled",
        "of its part",
    ):
        table.add_column(name, justify="right")
    if not slim:
        table.add_column("│ entitled" if narrow else "share now, │ marks what it is entitled to")
    for name in ("running", "waiting"):
        table.add_column(name, justify="right")
    if not narrow:
        table.add_column("uses")
    for line in pool.tenants:
        standing = line.standing
        table.add_row(
            Text(standing.tenant),
            *(() if slim else (f"{standing.weight:g}",)),
            multiple(standing.share),
            f"{standing.entitled:.1%}" if standing.entitled else "-",
            "-" if line.tag is None else multiple(line.tag),
            *(() if slim else (_bar(standing, scale, NARROW_BAR if narrow else BAR_WIDTH),)),
            str(standing.running),
            str(standing.waiting),
            *(() if narrow else (Text(_use(standing), style="dim"),)),
        )
    return table


def _bar(standing: Standing, scale: float, width: int) -> Text:
    return share_bar(standing.share, standing.entitled, scale=scale, width=width)


def _use(standing: Standing) -> str:
    use = demand({name: amount for name, amount in standing.use.items() if amount})
    return f"{use}; of late {demand(standing.past)}" if standing.past else use


def _silences(pools: list[PoolQueue] | list[PoolTenants]) -> Iterator[Text]:
    for pool in pools:
        if pool.silent_shards:
            yield Text(
                f"incomplete: {len(pool.silent_shards)} shards of {pool.pool} did not answer; "
                "their tenants are missing (a scorer may be starting or gone)",
                style="yellow",
            )


def _class(ranked: RankedPlace) -> Text:
    urgency, approved = ranked.place.urgency, ranked.approved
    by = "" if approved is None else f" (by {approved.by or 'an operator'})"
    return Text(f"{urgency}{by}", style="bold red" if urgency == "urgent" else "")


def _plain_table() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
