"""The live view of `top` and of the demo, and the throughput behind it."""

import time
from collections import deque
from collections.abc import Iterator

from fairlead_cli.client.marks import steering_lines
from fairlead_cli.client.tables import NARROW_COLUMNS, position_lines, tenants_lines
from fairlead_cli.console import WIDE, Screen
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
    screen: Screen = WIDE,
    *,
    tenants: TenantsReply | None,
    queue: QueueReply | None,
    throughput: Throughput,
) -> str:
    """A frame of the live view: tenants, the next jobs with the reason for their position, throughput."""
    since = screen.line(f"since this view began: {throughput.words()}")
    head = [screen.style(title, "bold"), screen.style(since, "dim")]
    if tenants is None:
        return "\n".join([*head, screen.style("waiting for a scorer to answer …", "yellow")])
    return "\n".join([*head, *_pool_lines(tenants, queue, screen)])


def _pool_lines(tenants: TenantsReply, queue: QueueReply | None, screen: Screen) -> Iterator[str]:
    waiting = {} if queue is None else {pool.pool: pool for pool in queue.pools}
    for pool in tenants.pools:
        yield ""
        yield screen.style(f"pool {pool.pool}", "bold")
        yield from steering_lines(pool.steering, screen)
        yield from tenants_lines(pool, screen)
        if (line := waiting.get(pool.pool)) is not None and line.positions and queue is not None:
            rule = f"  {screen.style(ORDER_RULE, 'dim')}" if screen.columns >= NARROW_COLUMNS else ""
            yield ""
            yield screen.style(f"next of {line.waiting} waiting", "bold") + rule
            yield from position_lines(line.positions, queue.at, screen, by_weight=bool(line.divide_by))
