"""Words for what stood on NATS and in each process when a wait was given up: the next red run of a storm explains itself."""

import contextlib
import re
from collections.abc import AsyncIterator, Callable

from fairlead_bus import Bus, BusError, bucket_stream
from fairlead_contracts import subjects, topology
from fairlead_testkit.fleets.process_fleet import ProcessFleet
from fairlead_testkit.nats_servers.streams import stream_info
from fairlead_testkit.processes.own_process import OwnProcessError
from fairlead_testkit.processes.process import ServiceProcess
from fairlead_testkit.timing.awaiting import NeverHappenedError

_SHOWN = 600
"""Characters of each value: a decision's first ones have its epoch, its revision and its first heads."""
_LINES = 30
"""Last lines of warning or worse of each service."""
_ALARMING = re.compile(r'"level":"(warning|error|critical)"|^Traceback')


@contextlib.asynccontextmanager
async def explained(fleet: ProcessFleet, bus: Bus, *more: Callable[[], object]) -> AsyncIterator[None]:
    """Adds to the error of a wait that was given up what stood then.

    Args:
        more: tell what the test itself saw last.
    """
    try:
        yield
    except NeverHappenedError as error:
        for tell in more:
            error.add_note(str(tell()))
        error.add_note(
            "\n".join([*await _stored(bus), *[await _told_by(one) for one in fleet.services.values()]])
        )
        raise


async def _stored(bus: Bus) -> list[str]:
    """Leases and decisions, and how many messages each kind of statement has."""
    lines = []
    filters = {
        bucket_stream(topology.MEMBERS): ">",
        topology.DECISION: ">",
        topology.STATE: subjects.state_filter(),
        topology.SUBMIT: ">",
    }
    for stream, pattern in filters.items():
        try:
            state = (await stream_info(bus, stream, subjects_filter=pattern))["state"]
            names = sorted(state.get("subjects") or {})
            lines.append(f"--- {stream}: last {state['last_seq']}, {len(names)} subjects")
            lines += [await _last(bus, stream, name) for name in names if not re.search(r"\.job\.", name)]
        except BusError as error:
            lines.append(f"--- {stream}: {error}")
    return lines


async def _last(bus: Bus, stream: str, subject: str) -> str:
    found = await bus.last(stream, subject)
    return f"{subject}: gone" if found is None else f"{subject} ({found.seq}): {found.payload[:_SHOWN]!r}"


async def _told_by(service: ServiceProcess) -> str:
    """The health of a service, and its last warnings."""
    try:
        health = repr(await service.health())
    except (OSError, OwnProcessError, NeverHappenedError) as error:
        health = f"no answer: {error!r}"
    alarming = [line for line in service.log.splitlines() if _ALARMING.search(line)]
    return "\n".join([f"--- {service.name}: {health}", *alarming[-_LINES:]])
