"""The life of a service: its tasks live and end together, a signal ends it cleanly, a second one at once.

A service's `main` gets a `Lifecycle` and runs its endless tasks in `supervise`. The block ends when the process is
asked to stop: then the tasks are cancelled one after another, the last started first, so that what others build on
ends last. A task that fails, or ends unasked, ends the process with its error.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine

import structlog

from fairlead_runtime.errors import TaskEndedError
from fairlead_runtime.health import Readiness
from fairlead_runtime.metrics import Metrics, MetricsObserver
from fairlead_runtime.spans import Spans

type Work = Coroutine[object, object, object]


class Tasks:
    """The tasks of one `supervise` block."""

    def __init__(self, group: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        self._group = group
        self._stop = stop
        self._started: list[tuple[asyncio.Task[object], Work]] = []

    def start(self, name: str, work: Work) -> None:
        """Run `work` as long as the service runs. If it ends unasked, the process ends with TaskEndedError."""
        self._started.append((self._group.create_task(self._endless(name, work), name=name), work))

    async def _endless(self, name: str, work: Work) -> None:
        await work
        if not self._stop.is_set():
            raise TaskEndedError(name)

    async def end(self) -> None:
        """Cancel the tasks, the last started first, each to its end before the next."""
        for task, work in reversed(self._started):
            task.cancel()
            await asyncio.wait([task])
            work.close()  # a task cancelled before its first step has never awaited it


class Lifecycle:
    """The parts of a running service that its `main` is given beside its settings.

    Attributes:
        service: the service's name, as in logs and metrics.
        replica: this process among the service's replicas.
        stop: set once, when the process shall end.
        readiness: the checks that `/readyz` asks, named by `main`. A service that names none never becomes ready.
        metrics: the metrics that `main` declares.
        observer: counts and logs what the bus tells.
        spans: the receiver of finished spans.
    """

    def __init__(self, service: str, replica: str) -> None:
        self.service = service
        self.replica = replica
        self.stop = asyncio.Event()
        self.readiness = Readiness()
        self.metrics = Metrics(service)
        told = self.metrics.of("trace").counter(
            "spans", "Spans told, by what became of them.", labels=["outcome"]
        )
        self.spans = Spans(service, replica, lambda outcome, number: told.labels(outcome).inc(number))
        self.observer = MetricsObserver(self.metrics, spans=self.spans)
        self._waiting = 0
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    def ask_stop(self, why: str) -> None:
        """Ask the service to end cleanly, with exit code 0. Asking again changes nothing."""
        if self.stop.is_set():
            return
        self._log.info("stopping", why=why)
        self.readiness.add("stop", lambda: "the service is stopping")
        self.stop.set()

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for the stop; where nobody does, `main` itself is cancelled."""
        return self._waiting > 0

    async def stopped(self) -> None:
        """Return when the process shall end."""
        self._waiting += 1
        try:
            await self.stop.wait()
        finally:
            self._waiting -= 1

    @contextlib.asynccontextmanager
    async def supervise(self) -> AsyncIterator[Tasks]:
        """Run tasks until the process shall end, then end them.

        Raises:
            ExceptionGroup: of the errors of tasks that failed.
        """
        async with asyncio.TaskGroup() as group:
            tasks = Tasks(group, self.stop)
            try:
                yield tasks
                await self.stopped()
            finally:
                await tasks.end()
