"""`fairlead feed`: the demo's jobs on a running Fairlead, lap after lap, so that there is something to look at."""

import asyncio
import time

import msgspec

from fairlead_bus import Bus, Publisher
from fairlead_cli.client.connection import ask, connected
from fairlead_cli.console import say
from fairlead_cli.errors import InputError, NoScorerAnswersError
from fairlead_cli.signals import ending_on_signals, happens
from fairlead_contracts import subjects
from fairlead_contracts.base.instants import to_seconds
from fairlead_contracts.base.quantities import format_quantity
from fairlead_contracts.messages.questions import QUEUE_REPLY, QueueQuestion
from fairlead_sim.demo import demo_workload
from fairlead_sim.errors import SimError
from fairlead_sim.workload import SimWorkload, WorkloadJob

LAP_SECONDS = 240.0
OVERLOAD = 1.5
"""Demand over capacity while jobs arrive; between two laps the queue grows shorter, so that a dashboard has
both to show."""
REST = 0.15
"""Part of a lap that is waited after it: a pool that drains is not full, and the queue must not grow from lap to lap."""

_LOOK_SECONDS = 5.0
"""Seconds between two looks whether the next lap may begin."""


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
                if why := await held_back(bus, cluster):
                    say(f"the next lap waits: {why}")
                    await happens(end, within=_LOOK_SECONDS)
                    continue
                lap = lap_of(workload, time.time())
                say(f"{len(lap.jobs)} jobs of {len(lap.weights)} tenants within {length / OVERLOAD:.0f} s")
                publishing = group.create_task(publish_workload(bus, lap, cluster=cluster), name="publish")
                await happens(end, within=length * (1 + REST))
                publishing.cancel()  # what a busy machine has not published by now would only make the next lap longer
    return 0


async def held_back(bus: Bus, cluster: str) -> str:
    """The reason for which a lap has to wait: submissions that nobody takes up pile up; empty for none."""
    try:
        reply = await ask(bus, "queue", QueueQuestion(limit=1), QUEUE_REPLY)
    except NoScorerAnswersError as error:
        return str(error)
    told = [one.untaken for pool in reply.pools for one in pool.steering if one.cluster == cluster]
    untaken = next((number for number in told if number), 0)
    return f"submissions not taken up yet: {untaken}" if untaken else ""


def lap_of(workload: SimWorkload, began: float) -> SimWorkload:
    """The jobs under names of this lap: an id names a job once and for all.

    Args:
        workload: the jobs of each lap.
        began: when the lap begins, Unix seconds.
    """
    jobs = [msgspec.structs.replace(job, id=f"{job.id}-{began:.0f}") for job in workload.jobs]
    return msgspec.structs.replace(workload, jobs=jobs)


async def publish_workload(bus: Bus, workload: SimWorkload, *, cluster: str) -> None:
    """Publish every job when its offset has passed; return when all are stored.

    Raises:
        PublishFailedError: some could not be stored.
    """
    publisher = Publisher(bus)
    clock = asyncio.get_running_loop().time
    start = clock()
    for job in workload.jobs:
        ahead = start + to_seconds(job.offset) - clock()
        if ahead > 0:
            await asyncio.sleep(ahead)
        await publisher.put(subjects.submit(cluster, job.tenant), body(job))
    await publisher.flush()


def body(job: WorkloadJob) -> bytes:
    """The job as a person would publish it: JSON, quantities in Kubernetes notation."""
    found: dict[str, object] = {
        "id": job.id,
        "demand": {resource: format_quantity(resource, amount) for resource, amount in job.demand.items()},
        "pods": job.pods,
        "class": job.job_class,
        "run_seconds": to_seconds(job.run),
        "labels": job.labels,
    }
    return msgspec.json.encode(found)
