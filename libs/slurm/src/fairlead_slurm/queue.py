"""The queue, read by one squeue: a line a job or array task.

Users choose names, comments and, without accounting, accounts: any of them may hold newlines and whatever would look
like the next line. So what stands between fields and between lines is drawn anew for each reading.
"""

import secrets
from functools import lru_cache

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_slurm.errors import UnreadableError
from fairlead_slurm.quantities import duration, instant, tres

_FIELDS = (
    "jobarrayid",
    "jobid",
    "state",
    "prioritylong",
    "nice",
    "account",
    "username",
    "partition",
    "qos",
    "submittime",
    "starttime",
    "endtime",
    "eligibletime",
    "timelimit",
    "restartcnt",
    "numnodes",
    "tres-alloc",
    "dependency",
    "reason",
    "comment",
    "name",
)
_NONE = ("(null)", "N/A", "")
_LONGEST = 256
"""Characters kept of what users wrote."""


class SlurmJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One job or array task as slurmctld has it."""

    id: str
    """As people name it: `123`, or `123_4` for a task of an array, split off or not."""
    number: int
    """Its record; what is left of an array shares one."""
    state: str
    """`PENDING`, `RUNNING` and so on."""
    priority: int
    """0 while it is held."""
    nice: int
    account: str
    user: str
    partitions: tuple[str, ...]
    """Of a waiting job all that it listed, in that order."""
    qos: str
    submitted: Micros
    """Moves with each requeue."""
    started: Micros | None
    """Of a waiting job when it is expected to start."""
    ends: Micros | None
    eligible: Micros | None
    time_limit: Micros | None
    restarts: int
    nodes: int
    resources: dict[str, int]
    """By Slurm's names, of all nodes together: what a waiting job asks for, what another one has. Shared: not to be changed."""
    dependency: str
    """What it still waits for; empty for nothing."""
    reason: str
    comment: str
    name: str


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """All jobs, and how many lines nobody could read."""

    jobs: list[SlurmJob]
    unreadable: int = 0


class QueueFormat:
    """The words that make squeue print the fields, and the reader of what it then prints."""

    def __init__(self) -> None:
        self._field = f"\x1f{secrets.token_hex(4)}"
        self._line = f"\x1e{secrets.token_hex(8)}"

    @property
    def arguments(self) -> list[str]:
        """Of squeue. Width 0 is any width; what follows it stands behind the field."""
        ends = [self._field] * (len(_FIELDS) - 1) + [self._line]
        fields = ",".join(f"{name}:0{end}" for name, end in zip(_FIELDS, ends, strict=True))
        return ["--noheader", "--all", "--array", "--states=all", "-O", fields]

    def read(self, text: str) -> Reading:
        """The jobs of what squeue printed. A line that cannot be read is counted, and keeps no other back."""
        lines = text.split(self._line)
        jobs = []
        unreadable = 0
        for line in lines[:-1]:
            try:
                jobs.append(_job(line.removeprefix("\n").split(self._field)))
            except (UnreadableError, ValueError):
                unreadable += 1
        return Reading(jobs=jobs, unreadable=unreadable)


def _job(fields: list[str]) -> SlurmJob:
    (
        name_in_array, number, state, priority, nice, account, user, partition, qos, submitted, started, ends,
        eligible, limit, restarts, nodes, resources, dependency, reason, comment, name,
    ) = fields  # fmt: skip
    since = instant(submitted)
    if since is None:
        raise UnreadableError(f"submit time {submitted!r}")
    return SlurmJob(
        id=name_in_array,
        number=int(number),
        state=state,
        priority=int(priority),
        nice=int(nice),
        account=_given(account)[:_LONGEST],
        user=user,
        partitions=_partitions(partition),
        qos=_given(qos),
        submitted=since,
        started=instant(started),
        ends=instant(ends),
        eligible=instant(eligible),
        time_limit=duration(limit),
        restarts=int(restarts),
        nodes=int(nodes),
        resources=tres(resources),
        dependency=_given(dependency),
        reason=_given(reason),
        comment=_given(comment)[:_LONGEST],
        name=name[:_LONGEST],
    )


@lru_cache(maxsize=1024)
def _partitions(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _given(text: str) -> str:
    return "" if text in _NONE else text
