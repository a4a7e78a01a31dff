"""The live view of `top` and of the demo, and the throughput behind it."""

import time
from collections import deque
from collections.abc import Iterator

from fairlead_cli.client.marks import steering_lines
from fairlead_cli.client.tables import NARROW_COLUMNS, WIDE_COLUMNS, position_lines, tenants_lines
from fairlead_cli.console import Style, unstyled, wrapped
from fairlead_contracts.messages.events import AnyEvent, JobEnded, JobQueued, JobStarted, LevelWritten
from fairlead_contracts.messages.questions import QueueReply, TenantsReply

WINDOW_SECONDS = 10.0
"""Seconds over which throughput is a mean."""
_FEWEST_POSITIONS, _MOST_POSITIONS = 5, 30
_OTHER_LINES = 20
"""Lines of a frame that hold no jobs: titles, table heads and a pool's usual tenants."""
ORDER_RULE = "Class first; then the tenant that has less of its part. Waiting makes up for a part of it."


class Throughput:
    """Counts of jobs' events: all since it began, and ends over the last seconds."""

    def __init__(self) -> None:
        self.queued = self.started = self.ended = self.levels = 0
        self._ends: deque[float] = deque()
        self._began = time.monotonic()

    def take(self, event: AnyEvent) -> None:
        """Count one event."""
        match event:
            case JobQueued():
                self.queued += 1
            case JobStarted():
                self.started += 1
            case JobEnded():
                self.ended += 1
                self._ends.append(time.monotonic())
            case LevelWritten():
                self.levels += 1

    def ended_per_second(self) -> float:
        """Jobs that ended a second, over the last ones."""
        now = time.monotonic()
        while self._ends and self._ends[0] < now - WINDOW_SECONDS:
            self._ends.popleft()
        return len(self._ends) / max(1.0, min(WINDOW_SECONDS, now - self._began))

    def words(self) -> str:
        """The counts on one line; they begin when the view does, and leave out what stood there then."""
        return (
            f"{self.queued} queued, {self.started} started, {self.ended} ended "
            f"({self.ended_per_second():.1f}/s), {self.levels} levels written"
        )


def positions_that_fit(height: int) -> int:
    """The number of next jobs for which a terminal of so many lines has room."""
    return max(_FEWEST_POSITIONS, min(_MOST_POSITIONS, height - _OTHER_LINES))


def dashboard(
    title: str,
    *,
    tenants: TenantsReply | None,
    queue: QueueReply | None,
    throughput: Throughput,
    columns: int = WIDE_COLUMNS,
    style: Style = unstyled,
) -> str:
    """A frame of the live view: tenants, the next jobs with the reason for their position, throughput.

    `columns` is the width of the terminal.
    """
    since = wrapped(f"since this view began: {throughput.words()}", columns)
    head = [style(title, "bold"), style(since, "dim")]
    if tenants is None:
        return "\n".join([*head, style("waiting for a scorer to answer …", "yellow")])
    return "\n".join([*head, *_pool_lines(tenants, queue, columns, style)])


def _pool_lines(tenants: TenantsReply, queue: QueueReply | None, columns: int, style: Style) -> Iterator[str]:
    waiting = {} if queue is None else {pool.pool: pool for pool in queue.pools}
    for pool in tenants.pools:
        yield ""
        yield style(f"pool {pool.pool}", "bold")
        yield from steering_lines(pool.steering, columns=columns, style=style)
        yield from tenants_lines(pool, columns=columns, style=style)
        if (line := waiting.get(pool.pool)) is not None and line.positions and queue is not None:
            rule = f"  {style(ORDER_RULE, 'dim')}" if columns >= NARROW_COLUMNS else ""
            yield ""
            yield style(f"next of {line.waiting} waiting", "bold") + rule
            yield from position_lines(
                line.positions, queue.at, columns=columns, style=style, by_weight=bool(line.divide_by)
            )
