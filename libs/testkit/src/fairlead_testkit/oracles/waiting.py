"""A job that waits, as the policy core orders it: said by what its position depends on. An order, by uids."""

from collections.abc import Iterable, Mapping

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position
from fairlead_policy.rules.jobs import JobQueue, WaitingJob

THE_QUEUE = JobQueue("c", "q")
"""The queue of all jobs that are said without one."""


def a_waiting_job(
    uid: str,
    *,
    tenant: str,
    job_class: str = "normal",
    submitted: Micros = 0,
    demand: Mapping[str, int],
    queue: JobQueue = THE_QUEUE,
    override: float | None = None,
) -> WaitingJob:
    """A job with names made of its uid and its tenant."""
    return WaitingJob(
        uid=uid,
        scope=tenant,
        id=uid,
        tenant=tenant,
        job_class=job_class,
        submitted=submitted,
        demand=dict(demand),
        queue=queue,
        override=override,
    )


def judged(job: WaitingJob, capacity: Mapping[str, int]) -> WaitingJob:
    """The job as facts tell it of a pool of this capacity: who asks for more stands apart."""
    larger = any(amount > capacity.get(name, 0) for name, amount in job.demand.items())
    return set_apart(job) if larger else job


def set_apart(job: WaitingJob) -> WaitingJob:
    """The job as one that cannot start as things are."""
    return msgspec.structs.replace(job, queue=msgspec.structs.replace(job.queue, apart=True))


def uids(positions: Iterable[Position]) -> list[str]:
    """The uids of jobs in an order."""
    return [position.uid for position in positions]
