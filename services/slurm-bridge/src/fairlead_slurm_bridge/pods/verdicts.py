"""Answers of the gate, and the end of a pod's job. Pure."""

import msgspec

from fairlead_slurm import SlurmJob
from fairlead_slurm_bridge.gate.attempts import Attempt

START, REQUEUE = 0, 1
"""Exit codes of PrologSlurmctld: with any but 0 Slurm puts the job back, without hold and without draining a node."""
_PENDING = "PENDING"
_COMPLETING = "COMPLETING"
_HOLDS_NODES = frozenset(
    ("CONFIGURING", "RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT", _COMPLETING)
)


class PrologVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a prolog."""

    code: int
    why: str
    kind: str
    """The answer in one word, for metrics: `room`, `adopted`, `ended`, `handed-on`, `refused`, `short`,
    `away`, `not-ready`, `error`, `elsewhere`."""


def is_over(attempt: Attempt, job: SlurmJob | None, *, completing: bool, handed_on: bool = False) -> bool:
    """Whether nothing of Slurm's stands behind an attempt any more.

    A job that waits with the restart count of an attempt that began is one whose beginning slurmctld has forgotten.

    Args:
        attempt: attempt of the job.
        job: the job as slurmctld has it now; None where it does not know it any more.
        completing: whether a job whose epilogs run counts as over: to an epilog it does.
        handed_on: whether the pod is of an earlier attempt, and goes on for whichever begins next.
    """
    if job is None:
        return True
    if handed_on:
        return job.state != _PENDING and job.state not in _HOLDS_NODES
    if attempt.restarts < job.restarts:
        return True
    if job.state == _COMPLETING:
        return completing
    return job.state != _PENDING and job.state not in _HOLDS_NODES


def is_put_off(job: SlurmJob) -> bool:
    """Whether a job waits for the time that Slurm puts between two attempts, and for nothing else."""
    return job.state == _PENDING and job.priority > 0 and job.reason == "BeginTime" and not job.dependency
