"""Publishing a workload's jobs on the submit subjects, each at its time."""

import asyncio

import msgspec

from fairlead_bus import Bus, Publisher
from fairlead_contracts import subjects
from fairlead_contracts.base.instants import to_seconds
from fairlead_contracts.base.quantities import format_quantity
from fairlead_sim import Workload, WorkloadJob


async def publish_workload(bus: Bus, workload: Workload, *, cluster: str) -> None:
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
        "class": job.urgency,
        "run_seconds": to_seconds(job.run),
        "labels": job.labels,
    }
    return msgspec.json.encode(found)
