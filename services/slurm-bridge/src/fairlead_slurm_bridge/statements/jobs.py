"""Translation of a Slurm job into Fairlead's statement, and the window of an array. Pure.

Slurm keeps one record for what is left of an array. A task that gets a level is split off into a record of its own; the
rest stays unlabelled below every level, and so cannot start past those. A new task moves up when one has started.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.state import JobArray, JobHolder, JobState, Outcome, Phase, task_uid
from fairlead_slurm import SlurmJob
from fairlead_slurm.ladder import UNLABELLED, Ladder
from fairlead_slurm.submitting import SubmissionMark, submission_mark
from fairlead_slurm_bridge.statements.hindrances import ORDINARY_REASONS
from fairlead_slurm_bridge.statements.partition_pools import Naming

_PENDING = "PENDING"
NO_EPOCH = 0
UNSTAMPED = 0
"""Epoch and revision of a statement before the announcer gives it others."""
_RUNNING = {
    "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING",
}  # fmt: skip
"""States of a job that holds its resources, as one that was requeued and is still completing does, too."""
_HELD = {"REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"}
OUTCOMES = {"COMPLETED": Outcome.SUCCEEDED, "CANCELLED": Outcome.CANCELLED, "REVOKED": Outcome.CANCELLED}
"""Outcomes by state; any other end is a failure: FAILED, TIMEOUT, NODE_FAIL, OUT_OF_MEMORY, PREEMPTED,
DEADLINE, BOOT_FAIL."""
_MAY_END_WAITING = {"CANCELLED", "DEADLINE", "REVOKED", "NODE_FAIL"}
"""States in which a job may have ended that never ran: the last also where its partition was taken out of slurm.conf."""
_OF_ITS_PARTITION = {
    "PartitionTimeLimit": "its partition does not take it (PartitionTimeLimit)",
    "PartitionNodeLimit": "its partition does not take it (PartitionNodeLimit)",
}
"""Slurm's reasons of one partition, in words. Of a job that lists several the last one that refuses it leaves its reason."""
_NO_REASON = ("", "None")
_BEGIN_TIME, _RESERVATION = "BeginTime", "Reservation"
_BY_ITS_SCHEDULER = (_RESERVATION, *_OF_ITS_PARTITION)
"""Reasons that Slurm gives where it tries to start a job, and that no other field of the job tells."""
_NOT_ELIGIBLE = {
    "Dependency": "waits for other jobs to end (dependency)",
    "DependencyNeverSatisfied": "its dependency can never be satisfied",
    _BEGIN_TIME: "may not begin yet (begin time)",
    "JobHeldUser": "held by its user",
    "JobHeldAdmin": "held by an administrator",
    _RESERVATION: "waits for its reservation",
    **_OF_ITS_PARTITION,
}
"""Slurm's reasons for which a job may not start whatever stands before it, in words."""
_HOLDERS = {
    "JobHeldUser": JobHolder.USER,
    "JobHeldAdmin": JobHolder.ADMIN,
    "Dependency": JobHolder.DEPENDENCY,
    "DependencyNeverSatisfied": JobHolder.DEPENDENCY,
}
"""Holders of a job by Slurm's reason. A begin time is not among them: it is the user's, or Slurm's own
after a requeue."""


class ArrayRemainder(msgspec.Struct, frozen=True, kw_only=True):
    """An array's remainder: waiting tasks that share a record."""

    tasks: int
    first: SlurmJob
    """First of the tasks, which are alike but for their numbers."""
    window: tuple[SlurmJob, ...]
    """Tasks that have a position, in their order; empty where as many were split off already."""


class WindowedJobs(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs that are told one by one, and the remainders of arrays."""

    alone: list[SlurmJob]
    rests: list[ArrayRemainder]


def positioned(jobs: Sequence[SlurmJob], window: int) -> WindowedJobs:
    """Divide jobs into those told one by one and the remainders of arrays, each with its window.

    Args:
        jobs: all jobs of the queue.
        window: number of an array's waiting tasks that have a position.
    """
    sharing = Counter(job.number for job in jobs)
    alone: list[SlurmJob] = []
    rests: dict[int, list[SlurmJob]] = {}
    split: Counter[int] = Counter()
    for job in jobs:
        if job.task is not None and job.state == _PENDING:
            if sharing[job.number] > 1:
                rests.setdefault(job.array, []).append(job)
                continue
            split[job.array] += 1
        alone.append(job)
    remainders = []
    for array, tasks in rests.items():
        tasks.sort(key=lambda job: job.task or 0)
        head = tuple(tasks[: max(0, window - split[array])])
        remainders.append(ArrayRemainder(tasks=len(tasks), first=tasks[0], window=head))
    return WindowedJobs(alone=alone, rests=remainders)


class TranslationFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the cluster that all translations share."""

    cluster: str
    ladder: Ladder
    naming: Naming
    qos_classes: Mapping[str, str]
    made_of: Callable[[str, SubmissionMark, str], bool]
    """Whether the job of this id may be what its mark says, in its account."""

    def mark_of(self, job: SlurmJob, scope: str) -> SubmissionMark | None:
        """The mark of the submission that the job was made for; None where another wrote it: anybody may write a comment."""
        mark = submission_mark(job.comment)
        return mark if mark is not None and self.made_of(scope, mark, job.id) else None


def state_of(job: SlurmJob, since: Micros, facts: TranslationFacts, written: int = UNLABELLED) -> JobState:
    """The job's statement, before any jobs trade places.

    A held job keeps its SiteFactor, and has it again the moment that its user releases it: so its level is stated, too,
    and taken away.

    Args:
        job: the job as slurmctld has it.
        since: instant at which the job was first submitted.
        facts: facts about the cluster.
        written: the level that was written to it last, as far as that is known.
    """
    phase = phase_of(job)
    held_by, holder = (_held_by(job), _holder(job)) if phase is Phase.HELD else ("", None)
    room = facts.ladder.room
    if phase is Phase.WAITING and job.nice > room:
        phase, holder = Phase.HELD, JobHolder.USER
        held_by = f"its nice of {job.nice} puts it behind all levels: up to {room} would not"
    scope = job.account or job.user
    mark = facts.mark_of(job, scope)
    waits = phase in (Phase.WAITING, Phase.HELD)
    return JobState(
        cluster=facts.cluster,
        epoch=NO_EPOCH,
        rev=UNSTAMPED,
        id=job.id,
        uid=uid_of(facts.cluster, job.array, job.task, since),
        scope=scope,
        queue=job.partitions[0],
        demand=facts.naming.amounts(job.resources),
        phase=phase,
        submitted=since,
        queue_time=job.submitted,
        level=facts.ladder.level(job.priority, job.nice, written) if waits else UNLABELLED,
        pods=max(1, job.nodes),
        requested_class=facts.qos_classes.get(job.qos),
        started=None if waits or _ended_waiting(job) else job.started,
        ended=job.ends if phase is Phase.ENDED else None,
        outcome=OUTCOMES.get(job.state, Outcome.FAILED) if phase is Phase.ENDED else None,
        run_limit=job.time_limit,
        ends_by=job.ends if phase is Phase.RUNNING and job.time_limit is not None else None,
        submission=None if mark is None else mark.submission,
        traceparent=None if mark is None else mark.traceparent,
        labels={"name": job.name, "user": job.user, "qos": job.qos},
        said="" if not waits or job.reason in ORDINARY_REASONS else job.reason,
        held_by=held_by,
        holder=holder,
        queues=tuple(job.partitions) if waits and len(job.partitions) > 1 else (),
    )


def ended_somehow(job: JobState) -> JobState:
    """The statement of a job that is gone: it ended, and nobody knows yet when and how."""
    return msgspec.structs.replace(
        job, phase=Phase.ENDED, level=UNLABELLED, ends_by=None, said="", held_by="", holder=None, limited=msgspec.UNSET, queues=(),
    )  # fmt: skip


def rest_of(rest: ArrayRemainder, since: Micros, facts: TranslationFacts) -> JobState:
    """The statement of an array's waiting remainder: each task of its window is a job to others, by contract.

    Args:
        rest: tasks of the array that share a record.
        since: instant at which the array was first submitted.
        facts: facts about the cluster.
    """
    first = rest.first
    return msgspec.structs.replace(
        state_of(first, since, facts),
        id=str(first.array),
        uid=uid_of(facts.cluster, first.array, None, since),
        array=JobArray(tasks=rest.tasks, window=[job.task or 0 for job in rest.window]),
    )


def before_its_time(job: SlurmJob, now: Micros) -> SlurmJob:
    """The job, with that reason where its begin time is still to come: after each change of a job slurmctld gives none for a moment."""
    early = (
        job.state == _PENDING and job.reason in _NO_REASON and job.eligible is not None and job.eligible > now
    )
    return msgspec.structs.replace(job, reason=_BEGIN_TIME) if early else job


def as_said_before(job: SlurmJob, before: SlurmJob) -> SlurmJob:
    """The job, with what Slurm said of it last, where it gives no reason now and the job asks for the same: its scheduler is still to come by."""
    if job.state != _PENDING or job.reason not in _NO_REASON or before.reason not in _BY_ITS_SCHEDULER:
        return job
    same = msgspec.structs.replace(
        before, reason=job.reason, priority=job.priority, started=job.started, ends=job.ends, parts=job.parts
    )
    return msgspec.structs.replace(job, reason=before.reason) if same == job else job


def phase_of(job: SlurmJob) -> Phase:
    """The phase of a job, by its state."""
    if job.state in _RUNNING:
        return Phase.RUNNING
    if job.state in _HELD:
        return Phase.HELD
    if job.state != _PENDING:
        return Phase.ENDED
    refused = job.reason in _NOT_ELIGIBLE and not (
        job.reason in _OF_ITS_PARTITION and len(job.partitions) > 1
    )
    eligible = job.priority > 0 and not job.dependency and not refused
    return Phase.WAITING if eligible else Phase.HELD


def is_requeued_amid(job: SlurmJob) -> bool:
    """Whether it was requeued and its last run is not over yet: Slurm says that it starts now, and no end."""
    return job.state == "COMPLETING" and job.ends is None


def uid_of(cluster: str, array: int, task: int | None, since: Micros) -> str:
    """The uid of a job, an array or its task, unique over all clusters and time, also where Slurm counts anew; sorts as numbers do."""
    whole = f"{cluster}-{array:010d}-{since}"
    return whole if task is None else task_uid(whole, task)


def first_instant(job: JobState) -> tuple[str, Micros] | None:
    """The number and the first instant in the uid of a job, or of its array; None where nobody of ours made the uid."""
    found = re.fullmatch(r"(\d{10,})-(\d+)(_\d+)?", job.uid.removeprefix(f"{job.cluster}-"))
    return None if found is None else (str(int(found[1])), int(found[2]))


def _ended_waiting(job: SlurmJob) -> bool:
    """Whether the job ended before it started: Slurm says that it started when it ended."""
    return job.state in _MAY_END_WAITING and job.started == job.ends


def _holder(job: SlurmJob) -> JobHolder | None:
    if job.reason in _HOLDERS:
        return _HOLDERS[job.reason]
    return JobHolder.DEPENDENCY if job.dependency else None


def _held_by(job: SlurmJob) -> str:
    if job.reason in _NOT_ELIGIBLE:
        return _NOT_ELIGIBLE[job.reason]
    if job.dependency:
        return _NOT_ELIGIBLE["Dependency"]
    return f"held in Slurm ({job.reason or job.state})"
