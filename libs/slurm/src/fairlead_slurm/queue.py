"""The queue, read by one squeue: a line a job or array task.

Users choose names, comments and, without accounting, accounts: any of them may hold newlines and whatever would look
like the next line. So what stands between two lines, and between two fields of theirs, is drawn anew for each reading.
Their fields stand last, so the others can do with a mark that never changes, and a line that stood in the last reading is
known again: most of 10,000 did.
"""

import secrets
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_slurm.errors import UnreadableError
from fairlead_slurm.quantities import duration, gres, instant, tres

_FIELDS = (
    "jobarrayid",
    "jobid",
    "state",
    "prioritylong",
    "nice",
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
    "numtasks",
    "tres-per-node",
    "tres-per-job",
    "tres-per-task",
    "cpus-per-tres",
    "oversubscribe",
    "dependency",
    "reqnodes",
    "licenses",
    "reservation",
    "reason",
    "account",
    "comment",
    "name",
)
_OF_USERS = 3
"""Number of fields, the last ones, that hold what users chose."""
_MARK = "\x1f"
"""Mark behind each field that Slurm itself fills."""
_OWN = len(_FIELDS) - _OF_USERS
_ANY = b"\x1d"
"""Byte in place of the drawn marks, where lines of two readings are compared."""
_NONE = ("(null)", "N/A", "")
_WHOLE = "NO"
"""The word of a job that shares its nodes with no other."""
_THOUSANDTHS = 1000
LONGEST_TEXT = 256
"""Characters kept of what users wrote."""


class SlurmJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job or array task as slurmctld has it."""

    id: str
    """Id that people use: `123`, or `123_4` for a task of an array, whether Slurm has split it off or not."""
    array: int
    """Number in front of the id: of the array, or of the job itself."""
    task: int | None
    """The task's number within its array; None for a job of no array."""
    number: int
    """Number of the job's record; tasks that Slurm has not split off an array share one."""
    state: str
    """State as squeue prints it: `PENDING`, `RUNNING` and so on."""
    priority: int
    """Slurm's priority; 0 while the job is held."""
    nice: int
    account: str
    user: str
    partitions: tuple[str, ...]
    """Partitions: all that a waiting job lists, in its order."""
    qos: str
    submitted: Micros
    """Time of the submission, or of the last requeue."""
    started: Micros | None
    """Start of the job; of a waiting job the start that Slurm expects."""
    ends: Micros | None
    eligible: Micros | None
    time_limit: Micros | None
    restarts: int
    nodes: int
    resources: dict[str, int]
    """Amounts by Slurm's names, of all nodes together: asked for while it waits, held later. Shared, so never
    changed."""
    dependency: str
    """Dependencies that the job still waits for; empty for none."""
    reason: str
    comment: str
    name: str
    required_nodes: str = ""
    """Nodes that the job names, as Slurm writes a list of them; empty where any will do."""
    licences: str = ""
    """Licences that the job asks for, as Slurm writes them: `a:2,b:1`; empty for none."""
    whole_nodes: bool = False
    """Whether it takes its nodes whole, by its own words (`--exclusive`) or its partition's (`OverSubscribe=EXCLUSIVE`)."""
    reservation: str = ""
    """Reservation whose nodes the job waits for; empty for none."""
    leader: int = 0
    """Number of the first part, for a part of a heterogeneous job; else 0."""
    parts: tuple["SlurmJob", ...] = ()
    """All parts, for a heterogeneous job as a whole: they start together, and have one level."""


class QueueReading(msgspec.Struct, frozen=True, kw_only=True):
    """A reading of the queue: all jobs, and the number of lines that could not be read."""

    jobs: list[SlurmJob]
    unreadable: int = 0


class QueueFormat:
    """The words that make squeue print the fields, with ends of lines and fields that nobody can know beforehand."""

    def __init__(self) -> None:
        self._field = f"\x1f{secrets.token_hex(4)}"
        self._line = f"\x1e{secrets.token_hex(8)}"

    @property
    def arguments(self) -> list[str]:
        """The arguments of squeue. Width 0 is any width; what follows it stands behind the field."""
        ends = [_MARK] * _OWN + [self._field] * (_OF_USERS - 1) + [self._line]
        fields = ",".join(f"{name}:0{end}" for name, end in zip(_FIELDS, ends, strict=True))
        # Sorted as slurmctld has them: by partition and priority, as by default, costs squeue more than all else.
        return ["--noheader", "--all", "--array", "--states=all", "--sort=i", "-O", fields]

    def lines(self, printed: bytes) -> list[bytes]:
        """The lines of what squeue printed, one for each job or task."""
        return printed.split(self._line.encode())[:-1]

    def comparable(self, printed: bytes) -> list[bytes]:
        """The lines in the form in which those of two readings are compared.

        Where a user wrote the very mark, two lines of one job of theirs may look alike, never those of two jobs.
        """
        return self.lines(printed.replace(self._field.encode(), _ANY))

    def fields(self, line: bytes) -> list[str]:
        """The fields of one line, as many as are asked for where it is a job's."""
        *own, users = line.removeprefix(b"\n").decode(errors="replace").split(_MARK, _OWN)
        return [*own, *users.split(self._field)]


class QueueReader:
    """Reads what squeue prints, time after time; what stood there the last time is not read again."""

    def __init__(self) -> None:
        self._known: dict[bytes, SlurmJob] = {}

    def read(self, printed: bytes, form: QueueFormat) -> QueueReading:
        """The jobs of what was printed. A line that cannot be read is counted, and keeps no other back."""
        known, self._known = self._known, {}
        unreadable = 0
        for key, line in zip(form.comparable(printed), form.lines(printed), strict=True):
            job = known.get(key)
            if job is None:
                try:
                    job = _job(form.fields(line))
                except (UnreadableError, ValueError):
                    unreadable += 1
                    continue
            self._known[key] = job
        return QueueReading(jobs=joined(self._known.values()), unreadable=unreadable)


def _job(fields: list[str]) -> SlurmJob:
    (
        name_in_array, number, state, priority, nice, user, partition, qos, submitted, started, ends,
        eligible, limit, restarts, nodes, tracked, tasks, per_node, per_job, per_task, per_gres, shares, dependency, required, licences, reservation,
        reason, account, comment, name,
    ) = fields  # fmt: skip
    since = instant(submitted)
    if since is None:
        raise UnreadableError(f"submit time {submitted!r}")
    leader, plus, _ = name_in_array.partition("+")
    # A part of a heterogeneous job, `11+1`, goes by the number of its record.
    own = number if plus else name_in_array
    array, underscore, task = own.partition("_")
    return SlurmJob(
        id=own,
        array=int(array),
        task=int(task) if underscore else None,
        number=int(number),
        state=state,
        priority=int(priority),
        nice=int(nice),
        account=_given(account)[:LONGEST_TEXT],
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
        resources=resources_of(
            tracked, (per_node, int(nodes)), (per_job, 1), (per_task, int(tasks)), cpus_per=per_gres
        ),
        whole_nodes=shares == _WHOLE,
        dependency=_given(dependency),
        required_nodes=_given(required),
        licences=_given(licences),
        reservation=_given(reservation),
        reason=_given(reason),
        comment=_given(comment)[:LONGEST_TEXT],
        name=name[:LONGEST_TEXT],
        leader=int(leader) if plus else 0,
    )


def joined(jobs: Iterable[SlurmJob]) -> list[SlurmJob]:
    """The jobs, parts of a heterogeneous job merged into its first."""
    found: list[SlurmJob] = []
    by_leader: dict[int, list[SlurmJob]] = {}
    for job in jobs:
        if job.leader:
            by_leader.setdefault(job.leader, []).append(job)
        else:
            found.append(job)
    for leader, parts in by_leader.items():
        parts.sort(key=lambda job: job.number)
        if parts[0].number == leader:  # else it ended, and slurmctld forgets part after part
            found.append(whole_job(parts))
    return found


def whole_job(parts: Sequence[SlurmJob]) -> SlurmJob:
    """A heterogeneous job, or some parts of it, as one: amounts are the sum over its parts, almost all else is its first part's."""
    resources: dict[str, int] = {}
    for part in parts:
        for name, amount in part.resources.items():
            resources[name] = resources.get(name, 0) + amount
    # The least of its parts, without what their users' nice takes from them.
    least = min(parts, key=lambda part: part.priority and part.priority + max(0, part.nice))
    return msgspec.structs.replace(
        parts[0],
        resources=resources,
        nodes=sum(part.nodes for part in parts),
        priority=least.priority,
        nice=least.nice,
        dependency=next((part.dependency for part in parts if part.dependency), ""),
        parts=tuple(parts),
    )


@lru_cache(maxsize=4096)
def resources_of(tracked: str, *asked: tuple[str, int], cpus_per: str = "") -> dict[str, int]:
    """Amounts of a job: those that accounting tracks, and of any other GRES what the job asks for.

    Args:
        tracked: amounts as accounting has them; while a job waits, without its CPUs by GPUs.
        asked: a list of GRES, and how many times it counts.
        cpus_per: CPUs for each of a GRES, as `gres:gpu:2`.
    """
    found: dict[str, int] = {}
    for text, times in asked:
        for name, count in gres(text).items():
            found[f"gres/{name}"] = found.get(f"gres/{name}", 0) + _THOUSANDTHS * count * times
    found |= tres(tracked)
    if cpus := gres(_given(cpus_per)).get("gpu"):
        found["cpu"] = max(found.get("cpu", 0), cpus * found.get("gres/gpu", 0))
    return found


@lru_cache(maxsize=1024)
def _partitions(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _given(text: str) -> str:
    return "" if text in _NONE else text
