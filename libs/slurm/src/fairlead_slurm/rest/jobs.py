"""The queue as slurmrestd tells it, job by job. Pure."""

import re
from collections.abc import Iterator

import msgspec

from fairlead_contracts.base.instants import MINUTE, SECOND, Micros
from fairlead_slurm.errors import UnreadableError
from fairlead_slurm.queue import LONGEST_TEXT, QueueReading, SlurmJob, joined, resources_of
from fairlead_slurm.rest.forms import Number, RestWords, number, words

_FLAGS = (
    "COMPLETING", "STAGE_OUT", "CONFIGURING", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT",
    "STOPPED", "REVOKED", "RESV_DEL_HOLD", "SIGNALING",
)  # fmt: skip
_PENDING = "PENDING"
_LASTING = ("RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING")
_UNSIGNED = 2**32
_CUT = "..."
_WHOLE = "none"
"""The word of a job that shares its nodes with no other."""
_TASKS = re.compile(r"([0-9]+)(?:-([0-9]+)(?::([0-9]+))?)?")
_MOST_TASKS = 4_000_001
"""Slurm's own bound of MaxArraySize."""


class TasksCutError(UnreadableError):
    """slurmrestd names the first tasks of an array alone: SLURM_BITSTR_LEN=0 in its environment makes it name all."""


class _JobRecords(msgspec.Struct, frozen=True):
    jobs: list[msgspec.Raw]


class _JobRecord(msgspec.Struct, frozen=True):
    """A record of slurmctld's: a job, an array's task, or all tasks that are not split off an array."""

    job_id: int
    job_state: RestWords
    priority: Number
    partition: str
    submit_time: Number
    user_name: str
    array_job_id: Number = None
    array_task_id: Number = None
    array_task_string: str = ""
    het_job_id: Number = None
    nice: int | None = None
    account: str = ""
    qos: str = ""
    start_time: Number = None
    end_time: Number = None
    eligible_time: Number = None
    time_limit: Number = None
    restart_cnt: Number = None
    node_count: Number = None
    tasks: Number = None
    tres_alloc_str: str = ""
    tres_req_str: str = ""
    tres_per_node: str = ""
    tres_per_job: str = ""
    tres_per_task: str = ""
    cpus_per_tres: str = ""
    shared: RestWords | None = None
    dependency: str = ""
    required_nodes: str = ""
    licenses: str = ""
    resv_name: str = ""
    state_reason: str = ""
    comment: str = ""
    name: str = ""


def reading_of(document: bytes) -> QueueReading:
    """The jobs of /jobs. A record that cannot be read is counted, and keeps no other back.

    Raises:
        UnreadableError: the document is no such one.
        TasksCutError: the document does not name all tasks of an array.
    """
    try:
        records = msgspec.json.decode(document, type=_JobRecords).jobs
    except msgspec.MsgspecError as error:
        raise UnreadableError(f"slurmrestd's jobs: {error}") from error
    jobs: list[SlurmJob] = []
    unreadable = 0
    for raw in records:
        try:
            jobs += _jobs_of(msgspec.json.decode(raw, type=_JobRecord))
        except TasksCutError:
            raise
        except (msgspec.MsgspecError, UnreadableError):
            unreadable += 1
    return QueueReading(jobs=joined(jobs), unreadable=unreadable)


def _jobs_of(record: _JobRecord) -> list[SlurmJob]:
    array = number(record.array_job_id)
    if record.array_task_string:
        # A bounded array ends with how many may run at a time: `1-200%4`.
        tasks: list[int | None] = list(tasks_of(record.array_task_string.partition("%")[0]))
    else:
        tasks = [number(record.array_task_id) if array else None]
    first = _job(record, array or record.job_id, tasks[0])
    alike = (msgspec.structs.replace(first, id=f"{array}_{task}", task=task) for task in tasks[1:])
    return [first, *alike]


def _job(record: _JobRecord, array: int, task: int | None) -> SlurmJob:
    nodes, minutes, submitted = (
        number(told) for told in (record.node_count, record.time_limit, record.submit_time)
    )
    if submitted is None:
        raise UnreadableError("a job without a submit time")
    state = _state(words(record.job_state))
    asked = (
        (record.tres_per_node, nodes or 0),
        (record.tres_per_job, 1),
        (record.tres_per_task, number(record.tasks) or 1),
    )
    return SlurmJob(
        id=str(array) if task is None else f"{array}_{task}",
        array=array,
        task=task,
        number=record.job_id,
        state=state,
        priority=number(record.priority) or 0,
        nice=_nice(record.nice or 0),
        account=record.account[:LONGEST_TEXT],
        user=record.user_name,
        partitions=tuple(record.partition.split(",")),
        qos=record.qos,
        submitted=submitted * SECOND,
        started=_instant(record.start_time),
        ends=None if _ends_unknown(state, minutes) else _instant(record.end_time),
        eligible=_instant(record.eligible_time),
        time_limit=None if minutes is None else minutes * MINUTE,
        restarts=number(record.restart_cnt) or 0,
        nodes=nodes or 0,
        resources=resources_of(
            record.tres_alloc_str or record.tres_req_str, *asked, cpus_per=record.cpus_per_tres
        ),
        whole_nodes=_WHOLE in words(record.shared or ""),
        dependency=record.dependency,
        required_nodes=record.required_nodes,
        licences=record.licenses,
        reservation=record.resv_name,
        reason=record.state_reason,
        comment=record.comment[:LONGEST_TEXT],
        name=record.name[:LONGEST_TEXT],
        leader=number(record.het_job_id) or 0,
    )


def _ends_unknown(state: str, minutes: int | None) -> bool:
    """Whether the end is unknown: of a waiting job it is a guess, and without a time limit a year from its start."""
    return state == _PENDING or (state in _LASTING and minutes is None)


def _state(told: list[str]) -> str:
    """The state that squeue prints: the first of these flags, else the job's own (slurm_protocol_defs.c)."""
    return next((flag for flag in _FLAGS if flag in told), told[0] if told else "")


def tasks_of(text: str) -> Iterator[int]:
    """The numbers of `1-3,7,10-20:2`.

    Raises:
        TasksCutError: the text is cut short.
        UnreadableError: the text is in another form.
    """
    if text.endswith(_CUT):
        raise TasksCutError(f"slurmrestd cuts the tasks of an array short: {text[:80]}")
    for part in text.split(","):
        found = _TASKS.fullmatch(part)
        if found is None or int(found[2] or 0) > _MOST_TASKS:
            raise UnreadableError(f"tasks {text[:80]!r}")
        yield from range(int(found[1]), int(found[2] or found[1]) + 1, int(found[3] or 1) or 1)


def _nice(told: int) -> int:
    """The nice value. Up to v0.0.38 a negative one comes as if it had no sign."""
    return told - _UNSIGNED if told >= _UNSIGNED // 2 else told


def _instant(told: Number) -> Micros | None:
    return (number(told) or 0) * SECOND or None
