"""The program of a job's pod: the script that its user submitted, behind job_submit.lua's part. Pure."""

import msgspec

from fairlead_slurm.batch.pods import LONGEST_SCRIPT
from fairlead_slurm_bridge.errors import PodRefusedError

MARK = "#fairlead: what follows runs in the pod"
"""Line at the end of job_submit.lua's part of a script."""
VARIABLE, ARGUMENT, GPUS = "#fairlead-env ", "#fairlead-arg ", "#fairlead-gpus "


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """The program of a pod."""

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
        if line.startswith(VARIABLE):
            name, _, value = line.removeprefix(VARIABLE).partition("=")
            variables[name] = _text(value)
    arguments = tuple(_text(line.removeprefix(ARGUMENT)) for line in lines if line.startswith(ARGUMENT))
    wants = any(line.startswith(GPUS) for line in lines)
    return Payload(script=rest, arguments=arguments, variables=variables, wants_gpus=wants)


def _text(digits: str) -> str:
    try:
        return bytes.fromhex(digits).decode(errors="replace")
    except ValueError as error:
        raise PodRefusedError("the script's head is damaged") from error
