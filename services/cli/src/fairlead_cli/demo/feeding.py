"""`fairlead feed`: the demo's jobs on a running Fairlead, lap after lap, so that there is something to look at."""

import asyncio
import contextlib
import time

import msgspec

from fairlead_cli.client.connection import connected
from fairlead_cli.console import say
from fairlead_cli.demo.publishing import publish_workload
from fairlead_cli.errors import InputError
from fairlead_cli.signals import ending_on_signals
from fairlead_sim import SimError, Workload, demo_workload

LAP_SECONDS = 240.0
OVERLOAD = 1.5
"""While jobs arrive; between two laps the queue grows shorter, so that a dashboard has both to show."""
REST = 0.15
"""Part of a lap that is waited after it: a pool that drains is not full, and the queue must not grow from lap to lap."""


async def feed(nats: str | None, *, cluster: str, seconds: float | None) -> int:
    """Publish until a signal asks for the end; returns the exit code.

    Raises:
        InputError: the length of a lap is none.
        PublishFailedError: jobs could not be stored.
    """
    length = seconds or LAP_SECONDS
    try:
        workload = demo_workload(length, overload=OVERLOAD, cluster=cluster)
    except SimError as error:
        raise InputError(str(error)) from error
    with ending_on_signals() as end:
        async with connected(nats) as bus, asyncio.TaskGroup() as group:
            while not end.is_set():
                began = time.time()
                lap = lap_of(workload, began)
                say(f"{len(lap.jobs)} jobs of {len(lap.weights)} tenants within {length / OVERLOAD:.0f} s")
                publishing = group.create_task(publish_workload(bus, lap, cluster=cluster), name="publish")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(end.wait(), length * (1 + REST))
                    publishing.cancel()
    return 0


def lap_of(workload: Workload, began: float) -> Workload:
    """The jobs under names of this lap: an id names a job once and for all.

    Args:
        workload: the jobs of each lap.
        began: when the lap begins, Unix seconds.
    """
    jobs = [msgspec.structs.replace(job, id=f"{job.id}-{began:.0f}") for job in workload.jobs]
    return msgspec.structs.replace(workload, jobs=jobs)
