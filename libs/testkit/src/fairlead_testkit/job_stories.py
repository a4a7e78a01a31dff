"""Jobs' traces in a test: which trace a job has, when it is whole, and whether it hangs together."""

import asyncio
from collections.abc import Iterable

from fairlead_bus import Bus, Follower
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.events import EVENT, JobEnded
from fairlead_contracts.messages.job_traces import trace_of_job
from fairlead_testkit.awaiting import NeverHappenedError, eventually
from fairlead_testkit.jaeger import FoundTrace, Jaeger

STAGES = frozenset({"submit", "observed", "scored", "level", "admitted", "started", "ended"})


async def traces_of(bus: Bus, cluster: str, jobs: Iterable[str], *, within: float = 120) -> dict[str, str]:
    """The trace of each job, by its submission or else by its name, once all of them have ended."""
    follower = Follower(bus, stream=topology.EVENT, filter=subjects.event_filter(cluster), since=0)
    left, found = set(jobs), {}
    async with asyncio.timeout(within):
        async for delivery in follower:
            event = EVENT.decode(delivery.payload)
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
        found = await eventually(complete, 30, what="a trace has every stage")
    except NeverHappenedError as error:
        told = jaeger.trace(trace_id)
        error.add_note(f"wanted {sorted(stages)}, found {sorted(told.names()) if told else None}")
        raise
    assert found is not None  # noqa: S101 # eventually returns what is true
    return found


def check_connected(trace: FoundTrace) -> None:
    """One root, and nothing that hangs on what is not there.

    Raises:
        AssertionError: it is not so.
    """
    orphans = [span.operation_name for span in trace.orphans()]
    if orphans or len(trace.roots()) != 1:
        raise AssertionError(f"{len(trace.roots())} roots, orphans {orphans} in {sorted(trace.names())}")
