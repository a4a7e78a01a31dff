"""Batch jobs made of submissions, each submission once.

A submission is noted before sbatch runs, and its job carries it in its comment: whoever is killed in between,
the next one finds the job in slurmctld, or knows that there is none yet.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fairlead_bus import Rejected
from fairlead_contracts.base.instants import Micros, from_seconds, to_seconds
from fairlead_contracts.frontend.verbs import UNAVAILABLE, CreateJob, CreateOutcome, CreateReply
from fairlead_slurm import SlurmJob
from fairlead_slurm.batch.options import Remark
from fairlead_slurm.errors import RetryableSlurmError, SlurmError, SubmitRefusedError
from fairlead_slurm.submitting import BatchJob, submission_mark
from fairlead_slurm.submitting.batch_job import sbatch_words
from fairlead_slurm_bridge.statements.partition_pools import Naming
from fairlead_slurm_bridge.store import SubmissionStore, SubmittedJob
from fairlead_slurm_bridge.submitting import NoBatchJobError, batch_job_of

AT_ONCE = 4
"""Number of sbatch processes at a time: slurmctld takes one job after the other."""
_IN_DOUBT_SECONDS = 30.0
"""Seconds for which a slurmctld that was too busy to answer may still take a job after sbatch gave up."""


@dataclass(eq=False)
class Creator:
    """A maker of batch jobs."""

    submit: Callable[[BatchJob], Awaitable[str]]
    """Has a job made as the user of its account; gives its number."""
    store: SubmissionStore
    partition_of: Callable[[str | None], str | None]
    """Finds the partition of that name, or the default one, as they were read last."""
    look: Callable[[], Awaitable[Sequence[SlurmJob]]]
    """Reads all jobs from slurmctld, now."""
    ended: Callable[[str, Sequence[str], Micros], Awaitable[Sequence[SlurmJob]]]
    """Asks accounting for jobs of submissions that ended, by account, names, and the instant from which on."""
    naming: Naming
    qos_classes: Mapping[str, str]
    """The class that a job of a QOS asks for."""
    remarks: Callable[[Sequence[str]], Awaitable[list[Remark]]]
    """Looks at a job before it is made, by sbatch's words."""
    clock: Callable[[], float] = time.time
    """Wall seconds."""
    made_before: dict[tuple[str, str], str] = field(default_factory=dict, init=False)
    """The jobs that submissions were known to be as this bridge took the lead, by scope and submission: the bridge before it
    has the notes."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE), init=False)

    async def create(self, jobs: Sequence[CreateJob]) -> list[CreateReply]:
        """Make jobs (see `Obedient`), one batch at a time, so that no submission is on its way twice."""
        try:
            # Before its turn: slurmdbd may need long, or hang, and nobody else waits for it.
            forgotten = await self._forgotten([job for job in jobs if self._is_in_doubt(job)])
            async with self._turn:
                await self._find([job for job in jobs if self._is_in_doubt(job)], forgotten)
                # To the last one: what is on its way when the turn ends would be begun a second time.
                found = await asyncio.gather(*(self._create(job) for job in jobs), return_exceptions=True)
        except SlurmError as error:
            raise Rejected(UNAVAILABLE, str(error)) from error
        return [_reply(one) for one in found]

    def _is_in_doubt(self, job: CreateJob) -> bool:
        asked = self.store.asked(job.scope, job.id)
        return asked is None or not asked.job

    async def _find(self, jobs: Sequence[CreateJob], forgotten: Sequence[SlurmJob]) -> None:
        """Note those jobs that slurmctld already has, or had, as where an answer or a note was lost.

        Who has the name of a submission and not what it asks for is somebody else's, who writes comments of his own.
        """
        wanted = {(job.scope, job.id): job for job in jobs}
        if not wanted:
            return
        for there in [*await self.look(), *forgotten]:
            origin = submission_mark(there.comment)
            job = wanted.get((there.account, origin.submission)) if origin is not None else None
            if origin is None or job is None:
                continue
            if origin.is_of(job.digest) or self.made_before.get((job.scope, job.id)) == there.id:
                at = to_seconds(job.submitted)
                found = SubmittedJob(digest=origin.digest, job=there.id, queue=there.partitions[0], at=at)
                self.store.note_asked(there.account, origin.submission, found)

    async def _forgotten(self, jobs: Sequence[CreateJob]) -> list[SlurmJob]:
        """The jobs of submissions that may have been made, and ended so long ago that slurmctld has forgotten them."""
        asked: dict[str, dict[str, float]] = {}
        for job in jobs:
            known = self.store.asked(job.scope, job.id)
            if known is not None and self.clock() - known.at >= _IN_DOUBT_SECONDS:
                asked.setdefault(job.scope, {})[job.id] = known.at
        found: list[SlurmJob] = []
        for scope, at in asked.items():
            found += await self.ended(scope, list(at), from_seconds(min(at.values())))
        return found

    async def _create(self, job: CreateJob) -> CreateReply:
        known = self.store.asked(job.scope, job.id)
        if known is not None and not known.is_of(job.digest):
            return CreateReply(outcome=CreateOutcome.CONFLICT)
        if known is not None and known.job:
            return CreateReply(outcome=CreateOutcome.EXISTS, queue=known.queue, job=known.job)
        if known is not None and self.clock() - known.at < _IN_DOUBT_SECONDS:
            raise Rejected(UNAVAILABLE, f"whether {job.id} was made is not known yet")
        queue = self.partition_of(job.queue)
        if queue is None:
            return CreateReply(outcome=CreateOutcome.NO_QUEUE)
        try:
            batch = batch_job_of(job, naming=self.naming, qos_classes=self.qos_classes, partition=queue)
        except NoBatchJobError as error:
            return CreateReply(outcome=CreateOutcome.REFUSED, reason=str(error))
        # What sbatch says of a limit comes after the job stands; what it says of an image, never.
        refused = [one.says for one in await self.remarks(sbatch_words(batch)) if one.refused]
        if refused:
            return CreateReply(outcome=CreateOutcome.REFUSED, reason="; ".join(refused))
        return await self._submit(job, batch, queue)

    async def _submit(self, job: CreateJob, batch: BatchJob, queue: str) -> CreateReply:
        noted = SubmittedJob(digest=job.digest, job="", queue=queue, at=self.clock())
        async with self._places:
            self.store.note_asked(job.scope, job.id, noted)
            try:
                number = await self.submit(batch)
            except SubmitRefusedError as error:
                self.store.forget_asked(job.scope, job.id)
                return CreateReply(outcome=CreateOutcome.REFUSED, reason=str(error))
        made = SubmittedJob(digest=job.digest, job=number, queue=queue, at=to_seconds(job.submitted))
        self.store.note_asked(job.scope, job.id, made)
        return CreateReply(outcome=CreateOutcome.CREATED, queue=queue, job=number)


def _reply(found: CreateReply | BaseException) -> CreateReply:
    match found:
        case CreateReply():
            return found
        case RetryableSlurmError():
            raise Rejected(UNAVAILABLE, str(found)) from found
        case _:
            raise found
