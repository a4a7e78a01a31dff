"""A Slurm job that shall run as a pod, and its program. Pure."""

from collections.abc import Mapping

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_slurm import SlurmJob
from fairlead_slurm.batch.pods import LONGEST_SCRIPT
from fairlead_slurm_bridge.errors import PodRefusedError
from fairlead_slurm_bridge.gate.attempts import Attempt

MARK = "#fairlead: what follows runs in the pod"
"""Line at the end of job_submit.lua's part of a script."""
_VARIABLE, _ARGUMENT, _GPUS = "#fairlead-env ", "#fairlead-arg ", "#fairlead-gpus "
_ONE = 1000
_GPU = "gres/gpu"


class PodJob(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt at a job, with all that its pod depends on but the script."""

    attempt: Attempt
    name: str
    user: str
    uid: int
    gid: int
    account: str
    qos: str
    partition: str
    work_dir: str
    comment: str
    cpu: int
    """Processors, in thousandths."""
    memory: int
    """Memory in bytes; 0 where Slurm counts none."""
    gpus: int
    submitted: Micros
    """Time of its submission to slurmctld, or back to it: after the loss of its state slurmctld gives numbers
    out again."""
    array: tuple[str, str] | None = None
    """Number of the array, and of the task; None for a job of no array."""


def pod_job(hook: Mapping[str, str], job: SlurmJob) -> PodJob:
    """The job, as PrologSlurmctld's environment and the queue tell of it.

    Raises:
        PodRefusedError: the job cannot run as a pod.
    """
    if job.nodes > 1:
        raise PodRefusedError(f"it asks for {job.nodes} nodes, and one pod runs on one")
    uid = int(hook["SLURM_JOB_UID"])
    if uid == 0:
        raise PodRefusedError("jobs of root do not run as pods")
    gpus, part = divmod(job.resources.get(_GPU, 0), _ONE)
    if part:
        raise PodRefusedError(f"it asks for {job.resources[_GPU]} thousandths of a GPU")
    array = hook.get("SLURM_ARRAY_JOB_ID"), hook.get("SLURM_ARRAY_TASK_ID")
    return PodJob(
        attempt=Attempt(job.number, int(hook.get("SLURM_JOB_RESTART_COUNT", "0"))),
        name=hook.get("SLURM_JOB_NAME", ""),
        user=hook.get("SLURM_JOB_USER", job.user),
        uid=uid,
        gid=int(hook["SLURM_JOB_GID"]),
        account=job.account,
        qos=job.qos,
        partition=hook["SLURM_JOB_PARTITION"],
        work_dir=hook.get("SLURM_JOB_WORK_DIR", ""),
        comment=hook.get("SLURM_JOB_COMMENT", ""),
        cpu=job.resources.get("cpu", _ONE),
        memory=job.resources.get("mem", 0),
        gpus=gpus,
        submitted=job.submitted,
        array=(array[0], array[1]) if array[0] and array[1] else None,
    )


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """The program of a job's pod: the script that its user submitted, behind job_submit.lua's part."""

    script: str
    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    wants_gpus: bool = False
    """Whether GPUs were asked for at the submission, whatever Slurm counts of them."""


def payload(script: str) -> Payload | None:
    """The pod's part of a batch script; None for one that would run on the node, unseen by job_submit.lua.

    Raises:
        PodRefusedError: the script is too long.
    """
    head, mark, rest = script.partition(f"\n{MARK}\n")
    if not mark:
        return None
    if len(rest.encode()) > LONGEST_SCRIPT:
        raise PodRefusedError(
            f"the script is longer than {LONGEST_SCRIPT} bytes: let it call another one that lies in the image or on a volume"
        )
    lines = head.split("\n")
    variables = {}
    for line in lines:
        if line.startswith(_VARIABLE):
            name, _, value = line.removeprefix(_VARIABLE).partition("=")
            variables[name] = _text(value)
    arguments = tuple(_text(line.removeprefix(_ARGUMENT)) for line in lines if line.startswith(_ARGUMENT))
    wants = any(line.startswith(_GPUS) for line in lines)
    return Payload(script=rest, arguments=arguments, variables=variables, wants_gpus=wants)


def _text(digits: str) -> str:
    try:
        return bytes.fromhex(digits).decode(errors="replace")
    except ValueError as error:
        raise PodRefusedError("the script's head is damaged") from error
