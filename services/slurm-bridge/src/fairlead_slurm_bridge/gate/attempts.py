"""Attempts at running a job: Slurm gives a requeued job the same number and a higher restart count."""

import re
from collections.abc import Mapping

import msgspec

LABEL_CLUSTER = "slurm.fairlead.dev/cluster"
LABEL_JOB = "slurm.fairlead.dev/job"
LABEL_RESTARTS = "slurm.fairlead.dev/restarts"
_NO_NAME = re.compile(r"[^a-z0-9-]+")
_LONGEST_CLUSTER = 30


class Attempt(msgspec.Struct, frozen=True, order=True):
    """A job, and one of its attempts."""

    job: int
    """Number of the job's record."""
    restarts: int
    """Number of times that the job was requeued before."""

    def __str__(self) -> str:
        return f"{self.job}r{self.restarts}"

    def pod_name(self, cluster: str) -> str:
        """The name of the attempt's pod: the same for whoever asks, so that no attempt has two."""
        stem = _NO_NAME.sub("-", cluster.lower()).strip("-")[:_LONGEST_CLUSTER].strip("-") or "cluster"
        return f"slurm-{stem}-{self.job}-r{self.restarts}"


def attempt_of(labels: Mapping[str, str] | None, cluster: str) -> Attempt | None:
    """The attempt that a pod is of, by its labels; None for a pod of no job of this cluster."""
    found = labels or {}
    job, restarts = found.get(LABEL_JOB, ""), found.get(LABEL_RESTARTS, "")
    if found.get(LABEL_CLUSTER) != cluster or not (job.isdecimal() and restarts.isdecimal()):
        return None
    return Attempt(int(job), int(restarts))
