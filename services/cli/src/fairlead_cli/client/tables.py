"""Answers as tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from fairlead_cli.client.marks import BAR_WIDTH, share_bar, steering_lines
from fairlead_cli.client.phrases import (
    amounts,
    approval_in_words,
    counted,
    demand,
    multiple,
    reason,
    waited,
)
from fairlead_cli.client.plain_table import Cell, Column, StyledText, table_lines
from fairlead_cli.console import WIDE, Screen
from fairlead_contracts.base.quantities import format_quantity, short_resource
from fairlead_contracts.messages.decisions import TenantShare
from fairlead_contracts.messages.questions import (
    FIRST_POSITIONS,
    MOST_UNRANKED,
    PoolQueue,
    PoolTenants,
    QueueReply,
    RankedPosition,
    TenantLine,
    TenantsReply,
    UnrankedJob,
)
from fairlead_contracts.messages.state import job_name

NARROW_COLUMNS, SLIM_COLUMNS = 100, 75
"""Columns of a terminal: below each of these the tables leave out more of what they can spare."""
NARROW_BAR = 10
"""Cells of a share's bar."""
type _Shown[T] = tuple[Column, Callable[[T], Cell]]
"""A column of a table, and its cell of a row."""

_IN_A_TREE = (
    ": of the tenant at the top of its tree, just before this job starts; "
    "`fairlead tenants` shows each tenant's own, as it is now"
)
_LEFT_ALONE = (
    "* the admitter leaves its level alone, as somebody else keeps changing it: "
    "it starts by the level that stands, whatever its position here"
)
_SHARE_THEN = "share then: what its tenant holds of the pool just before it starts; `fairlead tenants` shows what it holds now"


def queue_view(
    reply: QueueReply,
    screen: Screen = WIDE,
    *,
    tenant: str | None = None,
    limit: int = FIRST_POSITIONS,
    approvals: bool = False,
) -> str:
    """The waiting jobs in order, a table a pool.

    Args:
        tenant: the one whose jobs alone are shown, where one was asked for.
        limit: the number of jobs that was asked for; 0 for as many as there are.
        approvals: whether to say under each table when, why and by whom jobs of it were granted their class.
    """
    lines = [
        *_pools_lines(reply, tenant, limit, screen, approvals=approvals),
        *_nowhere_lines(reply, limit, screen),
    ]
    return "\n".join(lines)


def _pools_lines(
    reply: QueueReply, tenant: str | None, limit: int, screen: Screen, *, approvals: bool
) -> Iterator[str]:
    if not reply.pools:
        for cluster, why in sorted((reply.unheard or {}).items()):
            yield screen.line(f"{cluster}: nothing is known of it yet: {why}", "yellow")
        yield "No pool is known yet, so no job is. After `fairlead up`, wait until it says `running:`."
    elif not any(pool.waiting for pool in reply.pools):
        unranked = reply.nowhere or any(pool.unranked for pool in reply.pools)
        yield "Nobody waits in line." if unranked else "Nobody waits."
        for pool in reply.pools:
            yield from _idle_lines(pool, limit, screen)
    else:
        for pool in reply.pools:
            if pool.waiting or pool.unranked:
                yield from _queue_lines(pool, reply.at, tenant, screen, limit=limit)
                yield from _approval_lines(pool, screen) if approvals else ()


def _idle_lines(pool: PoolQueue, limit: int, screen: Screen) -> Iterator[str]:
    """The lines of a pool in which nobody waits: what would be in the way if somebody did."""
    if pool.unranked or any(one.withheld or one.unheard or one.untaken for one in pool.steering):
        yield screen.style(f"pool {pool.pool}", "bold")
        yield from steering_lines(pool.steering, screen)
    yield from _unranked_lines(pool, limit, screen)
    yield from _silences(pool, screen)


def _queue_lines(
    pool: PoolQueue, now: datetime, tenant: str | None, screen: Screen, *, limit: int
) -> Iterator[str]:
    yield f"{screen.style(f'pool {pool.pool}', 'bold')}: {pool.waiting} waiting"
    yield from steering_lines(pool.steering, screen)
    if pool.positions or (tenant is None and pool.waiting):
        yield from position_lines(pool.positions, now, screen, by_weight=bool(pool.divide_by))
    if pool.positions and screen.columns >= NARROW_COLUMNS:
        in_a_tree = any(one.position.top for one in pool.positions)
        of_the_top = f"share then, {'weight' if pool.divide_by else 'entitled'}{_IN_A_TREE}"
        yield screen.line(of_the_top if in_a_tree else _SHARE_THEN, "dim")
    if tenant is not None and not pool.positions:
        yield screen.style(f"No job of {tenant} waits here.", "dim")
    if left_out := left_out_in_words(pool, tenant):
        yield screen.line(f"… and {left_out}", "dim")
    yield from _unranked_lines(pool, limit, screen)
    yield from _silences(pool, screen)


def left_out_in_words(pool: PoolQueue, tenant: str | None) -> str:
    """The number of waiting jobs that the answer leaves out, and how to see them; empty where it has all."""
    # A scorer of an earlier release counts the pool's jobs alone.
    more = pool.more or (pool.waiting - len(pool.positions) if tenant is None else 0)
    of_whom = "" if tenant is None else f" of {tenant}"
    return f"{more} more{of_whom} ({_how_to_see_more(pool)})" if more > 0 else ""


def _approval_lines(pool: PoolQueue, screen: Screen) -> Iterator[str]:
    """The approvals: who granted a class to which job, when and why."""
    for one in pool.positions:
        if one.approved is not None:
            job = f"{one.position.scope}/{job_name(one.position.id, one.owner)}"
            yield screen.line(f"{job} is {approval_in_words(one.approved)}", indent="  · ", hanging="    ")


def _unranked_lines(pool: PoolQueue, limit: int, screen: Screen) -> Iterator[str]:
    """Jobs that do not run and stand in no line: how many, and why the first of them."""
    if pool.unranked:
        jobs = counted(pool.unranked, "job does", "jobs do")
        has = "has" if pool.unranked == 1 else "have"
        told = f"{jobs} not run now, and {has} no position in this order:"
        yield screen.line(told, "yellow")
        yield from _first_lines(pool.unranked, pool.unranked_first, limit, screen)


def _nowhere_lines(reply: QueueReply, limit: int, screen: Screen) -> Iterator[str]:
    """Jobs that are in no pool: how many, and why the first of them."""
    if reply.nowhere:
        jobs = counted(reply.nowhere, "job is", "jobs are")
        yield screen.line(f"{jobs} in no order, as no pool is behind the queue:", "yellow")
        yield from _first_lines(reply.nowhere, reply.nowhere_first or [], limit, screen)


def _first_lines(count: int, first: Sequence[UnrankedJob], limit: int, screen: Screen) -> Iterator[str]:
    for one in first:
        yield screen.line(f"{one.job}: {one.why}", indent="  · ", hanging="    ")
    if (more := count - sum(one.tasks for one in first)) > 0:
        how = _how_to_see_more_unranked(len(first), limit)
        yield screen.line(f"  … and {more} more ({how}; `fairlead explain JOB` says why)", "dim")


def _how_to_see_more_unranked(named: int, limit: int) -> str:
    if named >= MOST_UNRANKED:
        return f"an answer names {MOST_UNRANKED}"
    wanted = limit or MOST_UNRANKED
    if wanted > FIRST_POSITIONS and named < wanted:
        return "one answer holds no more of them"
    return f"--limit N names up to {MOST_UNRANKED}"


def _how_to_see_more(pool: PoolQueue) -> str:
    if pool.most is None:
        return "--limit N shows more"
    if len(pool.positions) < pool.most:
        return f"--limit N shows up to {pool.most}"
    return f"an answer holds at most {pool.most}: `fairlead snapshot`, then `fairlead order`, lists all"


def position_lines(
    positions: list[RankedPosition],
    now: datetime,
    screen: Screen,
    *,
    by_weight: bool = False,
) -> Iterator[str]:
    """Waiting jobs, first goes first; ranks count from 1 for people. By weight: shares are over weights, not entitlements.

    A terminal of less than `NARROW_COLUMNS` shows no demand and no shares, one of less than `SLIM_COLUMNS` no class.
    """
    # Of the first alone there is nothing to tell; else no reason is one of a scorer of an earlier release.
    told = any(ranked.why for ranked in positions) or not any(ranked.rank for ranked in positions)
    shown: list[_Shown[RankedPosition]] = [
        (Column("#", right=True), lambda one: f"{one.rank + 1}{'*' if one.left_alone else ''}"),
        (Column("job", is_name=True), lambda one: job_name(one.position.id, one.owner)),
        (Column("tenant"), lambda one: one.position.tenant),
    ]
    if screen.columns >= SLIM_COLUMNS:
        shown.append((Column("class"), _class))
    if screen.columns >= NARROW_COLUMNS:
        divisor = Column("weight" if by_weight else "entitled", right=True)
        shown += [
            (Column("asks for"), lambda one: demand(one.position.demand)),
            (Column("share then", right=True), lambda one: "∞" if one.share is None else multiple(one.share)),
            (divisor, lambda one: f"{one.entitled:g}" if by_weight else _part(one.entitled)),
        ]
    why = "the one above goes first because" if told else "why here: its tenant"
    shown += [
        (Column("waited", right=True), lambda one: waited(one.position, now)),
        (Column(why, wraps=True), lambda one: StyledText(_why(one, told=told, by_weight=by_weight), "dim")),
    ]
    yield from _table(shown, positions, screen)
    if any(one.left_alone for one in positions):
        yield screen.line(_LEFT_ALONE, "yellow")


def _table[T](shown: Sequence[_Shown[T]], rows: Iterable[T], screen: Screen) -> Iterator[str]:
    cells = [[cell(row) for _, cell in shown] for row in rows]
    yield from table_lines([column for column, _ in shown], cells, screen)


def _part(entitled: float) -> str:
    return f"{entitled:.1%}" if entitled else "-"


def _why(ranked: RankedPosition, *, told: bool, by_weight: bool) -> str:
    if ranked.why:
        return ranked.why
    if not told:
        return reason(ranked.position, relative=not by_weight)
    at = reason(ranked.position, relative=not by_weight)
    return "first" if ranked.rank == 0 else f"(its tenant {at})"


def tenants_view(reply: TenantsReply, screen: Screen = WIDE) -> str:
    """The tenants and what they have, a table a pool."""
    if not reply.pools:
        return "No pool is known yet: no cluster has stated what it has."
    return "\n".join(line for pool in reply.pools for line in _pool_lines(pool, screen))


def _pool_lines(pool: PoolTenants, screen: Screen) -> Iterator[str]:
    capacity = ", ".join(
        f"{format_quantity(name, amount)} {short_resource(name)}"
        for name, amount in sorted(pool.capacity.items())
    )
    yield screen.line(f"{screen.style(f'pool {pool.pool}', 'bold')}: {capacity}")
    yield from steering_lines(pool.steering, screen)
    if pool.tenants:
        yield from tenants_lines(pool, screen)
    else:
        yield screen.style("No tenant has jobs that run or wait.", "dim")
    yield from _silences(pool, screen)


def tenants_lines(pool: PoolTenants, screen: Screen) -> Iterator[str]:
    """Tenants with their share beside what they may have, as figures and as a bar with a mark.

    A terminal of less than `NARROW_COLUMNS` shows a shorter bar and not what they use, one of less than `SLIM_COLUMNS`
    neither bar nor weight.
    """
    slim, wide = screen.columns < SLIM_COLUMNS, screen.columns >= NARROW_COLUMNS
    by_weight = bool(pool.divide_by)
    scale = max(
        (max(line.standing.share, 0.0 if by_weight else line.standing.entitled) for line in pool.tenants),
        default=1.0,
    )

    def bar(line: TenantLine) -> Cell:
        mark = 0.0 if by_weight else line.standing.entitled
        return share_bar(line.standing.share, mark, scale=scale, width=BAR_WIDTH if wide else NARROW_BAR)

    tree = list(_as_tree(pool.tenants))
    indents = {line.standing.tenant: "  " * depth for depth, line in tree}
    shown: list[_Shown[TenantLine]] = [
        (
            Column("tenant", is_name=True),
            lambda one: f"{indents[one.standing.tenant]}{one.standing.tenant}",
        )
    ]
    if not slim:
        shown.append((Column("weight", right=True), lambda one: f"{one.standing.weight:g}"))
    share = Column("share now" if wide else "share", right=True)
    shown.append((share, lambda one: multiple(one.standing.share)))
    if not by_weight:
        shown.append((Column("entitled", right=True), lambda one: _part(one.standing.entitled)))
    tag = Column("over its weight" if by_weight else "of its part", right=True)
    shown.append((tag, lambda one: "-" if one.tag is None else multiple(one.tag)))
    if not slim:
        shown.append((Column(_bar_head(wide=wide, by_weight=by_weight)), bar))
    shown += [
        (Column("running", right=True), lambda one: str(one.standing.running)),
        (Column("waiting", right=True), lambda one: str(one.standing.waiting)),
    ]
    if wide:
        shown.append((Column("uses", wraps=True), lambda one: StyledText(_use(one.standing), "dim")))
    yield from _table(shown, [line for _, line in tree], screen)
    if pool.more:
        told = f"… and {counted(pool.more, 'more tenant')}, more than an answer holds (--tenant T shows one)"
        yield screen.line(told, "dim")


def _bar_head(*, wide: bool, by_weight: bool) -> str:
    if by_weight:
        return "share now"
    return "share now, │ marks what it is entitled to" if wide else "│ entitled"


def _as_tree(lines: Sequence[TenantLine]) -> Iterator[tuple[int, TenantLine]]:
    """The tenants, children right below their parent, each with its depth; siblings stay in their order."""
    shown = {line.standing.tenant for line in lines}
    children: dict[str | None, list[TenantLine]] = {}
    for line in lines:
        parent = line.standing.parent
        children.setdefault(parent if parent in shown else None, []).append(line)
    left = [(0, line) for line in reversed(children.get(None, []))]
    while left:
        depth, line = left.pop()
        yield depth, line
        left += [(depth + 1, below) for below in reversed(children.get(line.standing.tenant, []))]


def _use(standing: TenantShare) -> str:
    use = demand({name: amount for name, amount in standing.use.items() if amount})
    return f"{use}; of late {amounts(standing.past)}" if standing.past else use


def _silences(pool: PoolQueue | PoolTenants, screen: Screen) -> Iterator[str]:
    if pool.silent_shards:
        shards = counted(len(pool.silent_shards), "shard")
        told = (
            f"incomplete: {shards} of {pool.pool} did not answer: tenants are missing "
            "(a scorer may be starting or gone)"
        )
        yield screen.line(told, "yellow")


def _class(ranked: RankedPosition) -> StyledText:
    job_class, approved = ranked.position.job_class, ranked.approved
    by = "" if approved is None else f" (by {approved.by or 'an operator'})"
    return StyledText(f"{job_class}{by}", "bold red" if job_class == "urgent" else "")
