"""A Jaeger of a test's own: takes spans by OTLP/HTTP, and is asked for traces as its pages would ask.

All in one process and in memory, built once from its Go module beside the lab's binaries.

Behind it, jobs' traces in a test: which trace a job has, when it is whole, and whether it hangs together.
"""

import asyncio
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Self

import msgspec

from fairlead_bus import Bus
from fairlead_contracts.messages.events import JobEnded
from fairlead_contracts.messages.job_traces import trace_of_job
from fairlead_testkit.chaos.audit import events_of
from fairlead_testkit.kubelab import Kit
from fairlead_testkit.processes.free_ports import free_ports, listens
from fairlead_testkit.processes.own_process import OwnProcess
from fairlead_testkit.timing.awaiting import NeverHappenedError, eventually

STAGES = frozenset({"submit", "observed", "scored", "level", "admitted", "started", "ended"})
_FLAGS = (
    "--collector.otlp.http.host-port",
    "--query.http-server.host-port",
    "--collector.otlp.grpc.host-port",
    "--query.grpc-server.host-port",
    "--admin.http.host-port",
    "--collector.grpc-server.host-port",
    "--collector.http-server.host-port",
)
_START_SECONDS = 60.0
_ANSWER_SECONDS = 30.0


class Reference(msgspec.Struct, rename="camel", frozen=True):
    """A reference from one span to another: `CHILD_OF` its parent, `FOLLOWS_FROM` a link."""

    ref_type: str
    span_id: str = msgspec.field(name="spanID")
    trace_id: str = msgspec.field(name="traceID")


class Tag(msgspec.Struct, frozen=True):
    """An attribute of a span."""

    key: str
    value: object


class FoundSpan(msgspec.Struct, rename="camel", frozen=True):
    """A span as Jaeger gives it. Times in microseconds."""

    span_id: str = msgspec.field(name="spanID")
    trace_id: str = msgspec.field(name="traceID")
    operation_name: str
    start_time: int
    duration: int
    process_id: str = msgspec.field(name="processID")
    references: list[Reference] = []
    tags: list[Tag] = []

    @property
    def parent(self) -> str | None:
        """The id of the span above it."""
        return next((found.span_id for found in self.references if found.ref_type == "CHILD_OF"), None)

    @property
    def links(self) -> list[str]:
        """The traces that the span is linked to."""
        return [found.trace_id for found in self.references if found.ref_type == "FOLLOWS_FROM"]

    @property
    def said(self) -> dict[str, object]:
        """The span's attributes."""
        return {tag.key: tag.value for tag in self.tags}


class Process(msgspec.Struct, rename="camel", frozen=True):
    """A process whose spans they are."""

    service_name: str


class FoundTrace(msgspec.Struct, rename="camel", frozen=True):
    """A trace as Jaeger gives it."""

    trace_id: str = msgspec.field(name="traceID")
    spans: list[FoundSpan]
    processes: dict[str, Process]

    def service(self, span: FoundSpan) -> str:
        """The service that sent a span."""
        return self.processes[span.process_id].service_name

    def names(self) -> set[str]:
        """The names of the trace's spans."""
        return {span.operation_name for span in self.spans}

    def orphans(self) -> list[FoundSpan]:
        """Spans whose parent is not there."""
        ids = {span.span_id for span in self.spans}
        return [span for span in self.spans if span.parent is not None and span.parent not in ids]

    def roots(self) -> set[str]:
        """The ids of spans without a parent."""
        return {span.span_id for span in self.spans if span.parent is None}


class _TraceAnswer(msgspec.Struct, frozen=True):
    data: list[FoundTrace] | None = None


class Jaeger(OwnProcess):
    """A Jaeger process, on ports of its own and with its log in the directory; killed by its pid at the end."""

    def __init__(self, directory: Path, kit: Kit) -> None:
        super().__init__("Jaeger", directory / "jaeger.log")
        self._binary = kit.binary("jaeger")
        self._ports = free_ports(len(_FLAGS))

    @property
    def endpoint(self) -> str:
        """The address that spans go to."""
        return f"http://127.0.0.1:{self._ports[0]}"

    def start(self) -> Self:
        """Start Jaeger, and return once it takes spans and answers."""
        addresses = [f"{flag}=127.0.0.1:{port}" for flag, port in zip(_FLAGS, self._ports, strict=True)]
        command = [str(self._binary), "--log-level=error", *addresses]
        self._begin(command, {**os.environ, "SPAN_STORAGE_TYPE": "memory"})
        self._await(lambda: all(map(listens, self._ports[:2])), _START_SECONDS, "Jaeger listens")
        return self

    def trace(self, trace_id: str) -> FoundTrace | None:
        """The trace of this id; None where nobody sent any of it."""
        return next(iter(self._ask(f"/api/traces/{trace_id}")), None)

    def traces(
        self, service: str, operation: str | None = None, *, tags: dict[str, str] | None = None
    ) -> list[FoundTrace]:
        """The newest traces with a span of a service, of that name and with these attributes."""
        query = {"service": service, "limit": "1000", "lookback": "1h"}
        query |= {"operation": operation} if operation is not None else {}
        query |= {"tags": msgspec.json.encode(tags).decode()} if tags else {}
        return self._ask(f"/api/traces?{urllib.parse.urlencode(query)}")

    def _ask(self, path: str) -> list[FoundTrace]:
        request = f"http://127.0.0.1:{self._ports[1]}{path}"
        try:
            with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as reply:  # our own server
                return msgspec.json.decode(reply.read(), type=_TraceAnswer).data or []
        except urllib.error.HTTPError as error:
            if error.code == 404:  # noqa: PLR2004 # nobody knows this trace
                return []
            raise


async def traces_of(bus: Bus, cluster: str, jobs: Iterable[str], *, within: float = 120) -> dict[str, str]:
    """The trace of each job, by its submission or else by its name, once all of them have ended."""
    left, found = set(jobs), {}
    async with asyncio.timeout(within):
        async for event in events_of(bus, cluster):
            name = event.submission or event.job
            if isinstance(event, JobEnded) and name in left:
                found[name] = trace_of_job(event, 1.0).trace_id
                left.discard(name)
            if not left:
                break
    return found


async def whole_trace(jaeger: Jaeger, trace_id: str, stages: frozenset[str]) -> FoundTrace:
    """The trace, once it has these stages."""

    async def complete() -> FoundTrace | None:
        found = await asyncio.to_thread(jaeger.trace, trace_id)
        return found if found is not None and stages <= found.names() else None

    try:
        return await eventually(complete, 30, what="a trace has every stage")
    except NeverHappenedError as error:
        told = jaeger.trace(trace_id)
        error.add_note(f"wanted {sorted(stages)}, found {sorted(told.names()) if told else None}")
        raise


def check_connected(trace: FoundTrace) -> None:
    """Checks that a trace has one root, and no span below another that is not there.

    Raises:
        AssertionError: the trace is not connected.
    """
    orphans = [span.operation_name for span in trace.orphans()]
    if orphans or len(trace.roots()) != 1:
        raise AssertionError(f"{len(trace.roots())} roots, orphans {orphans} in {sorted(trace.names())}")
