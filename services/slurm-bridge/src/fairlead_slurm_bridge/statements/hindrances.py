"""Jobs that ask for what is missing by their own words, whatever comes free: each keeps its position and is passed by. Pure.

A node that they name and that is down or drained, a licence, a partition that is closed or not for them, a reservation that
nobody else waits for. Of lists, licences and reservations the bridge reads itself whether they still keep a job out: Slurm
looks anew only at the first jobs of a full partition, and at a job of several partitions tells what the last of them says.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fairlead_slurm import SlurmJob
from fairlead_slurm.cluster import SlurmPartition

_NOT_LOOKED_AT = ("", "None", "Priority")
"""Reasons of a job that Slurm has not come to: it has another priority since, or others stand before it."""
_BEHIND_ANOTHER_PARTITION = "Nodes required for job are DOWN, DRAINED or reserved"
"""The beginning of the reason of one that Slurm has not come to as others of another partition wait for the same nodes."""
ORDINARY_REASONS = (*_NOT_LOOKED_AT, "Resources")
"""Reasons that others stand before a job, or that nothing is free: each pass of Slurm's scheduler says another of them."""
_OF_NAMED_NODES = "ReqNodeNotAvail"
"""The beginning of the reason that nodes are down, drained or reserved: also where a job of no node's name needs them."""
_OF_AN_ARRAY = "JobArrayTaskLimit"
"""The reason that as many tasks of an array run as its own words let run."""
_OF_LICENCES = "Licenses"
_OF_ITS_OWN = (_OF_AN_ARRAY, _OF_LICENCES, "InvalidAccount", "InvalidQOS", "QOSUsageThreshold")
"""Beginnings of reasons that hold in all partitions alike."""
_OF_LISTS = ("AccountNotAllowed", "QOSNotAllowed", "Job's account not permitted", "Job's QOS not permitted")
"""Beginnings of reasons that a partition's lists of accounts or QOS keep a job out."""
_OF_OWN_WORDS = (*_OF_ITS_OWN, *_OF_LISTS, "BadConstraints", "PartitionConfig", "MaxMemPerLimit", "QOSMin")
"""Beginnings of reasons of what a job asks for beside nodes. An array's tasks need a level: else Slurm comes to none once
some have ended."""
_NOWHERE = "no partition that it lists takes it now"
_OF_ITS_TIME = "PartitionTimeLimit"


class KeepingOut(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of the cluster that keep jobs out, as the bridge reads them."""

    partitions: Mapping[str, SlurmPartition] = {}
    closed: frozenset[str] = frozenset()
    """Partitions that start no jobs while others of their pool do."""
    licences: Mapping[str, int] = {}
    """Number of each licence that nobody uses."""
    lists_are_exact: bool = False
    """Whether a partition's lists mean the accounts that they name, and not those below these, too."""

    def everywhere(self, job: SlurmJob, said: str) -> bool:
        """Whether none of the partitions that the job lists takes it, by what Slurm said of it last."""
        return all(name in self.closed or self._refuses(name, job, said) for name in job.partitions)

    def _refuses(self, name: str, job: SlurmJob, said: str) -> bool:
        partition = self.partitions.get(name)
        if partition is None:
            return False
        if self.lists_are_exact and partition.excludes(job.account, job.qos):
            return True
        # A QOS may lift the limit of time, so Slurm has to say so, too.
        longest = math.inf if partition.max_time is None else partition.max_time
        asked = math.inf if job.time_limit is None else job.time_limit
        return said == _OF_ITS_TIME and asked > longest


class Hindrances:
    """Memory of what Slurm said last of jobs that ask for what is missing."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}
        """Reasons by job."""

    def hindered(self, jobs: Sequence[SlurmJob], keeping_out: KeepingOut) -> dict[str, str]:
        """The jobs, by id, that wait for what their own words ask for, each with what is missing.

        Args:
            jobs: the waiting jobs of one reading, an array's remainder as one.
            keeping_out: what keeps jobs out, as read last.
        """
        # Where Slurm has not come to a job anew, what it said of it last stands.
        self._said = {job.id: said for job in jobs if (said := self._last_said(job))}
        licences = Counter(keeping_out.licences)
        missing = _reserved_for_one(jobs)
        for job in sorted(jobs, key=lambda one: one.submitted):
            if self._still_misses(job, licences, keeping_out):
                missing[job.id] = self._said[job.id]
            elif keeping_out.everywhere(job, self._said.get(job.id, "")):
                missing[job.id] = self._said.get(job.id, _NOWHERE)
        return missing

    def _last_said(self, job: SlurmJob) -> str:
        if _misses(job) or job.reason == _OF_ITS_TIME:
            return job.reason
        looked_at = job.reason not in _NOT_LOOKED_AT and not job.reason.startswith(_BEHIND_ANOTHER_PARTITION)
        return "" if looked_at else self._said.get(job.id, "")

    def _still_misses(self, job: SlurmJob, licences: Counter[str], keeping_out: KeepingOut) -> bool:
        """Whether what Slurm said of the job holds. Licences that are there for it are no others' any more."""
        said = self._said.get(job.id, "")
        if said == _OF_ITS_TIME:
            return False  # each of its partitions is asked
        if said.startswith(_OF_LISTS):
            return not keeping_out.lists_are_exact
        if not said.startswith(_OF_LICENCES):
            return bool(said)
        asked = _asked_licences(job.licences)
        if not asked <= licences:
            return True
        licences -= asked
        return not asked


def _misses(job: SlurmJob) -> bool:
    """Whether Slurm says that what the job's own words ask for is missing. Of several partitions another one may have it."""
    missing = job.reason.startswith(_OF_OWN_WORDS) or (
        job.required_nodes and job.reason.startswith(_OF_NAMED_NODES)
    )
    return bool(missing) and (len(job.partitions) == 1 or job.reason.startswith(_OF_ITS_OWN))


def _asked_licences(text: str) -> Counter[str]:
    """The licences in `a:2,b`. Of a choice, as `a|b`, nobody can tell here which it will be: it names none that there is."""
    asked: Counter[str] = Counter()
    for part in filter(None, text.split(",")):
        name, _, count = part.partition(":")
        asked[name] += int(count) if count.isdecimal() else 1
    return asked


def _reserved_for_one(jobs: Iterable[SlurmJob]) -> dict[str, str]:
    """The jobs of reservations for which one account alone waits: they take no turn of anybody's, full or not."""
    by_reservation: dict[str, list[SlurmJob]] = defaultdict(list)
    for job in jobs:
        if job.reservation:
            by_reservation[job.reservation].append(job)
    return {
        job.id: f"waits for nodes of reservation {name}"
        for name, bound in by_reservation.items()
        if len({one.account for one in bound}) == 1
        for job in bound
    }
