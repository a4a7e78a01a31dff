"""What the pod of a job runs: the script as its user submitted it, behind what job_submit.lua put before it. Pure."""

import msgspec

from fairlead_slurm.batch_pods import LONGEST_SCRIPT
from fairlead_slurm_bridge.errors import PodRefusedError

MARK = "#fairlead: what follows runs in the pod"
"""The line that job_submit.lua ends its part of a script with."""
VARIABLE, ARGUMENT, GPUS = "#fairlead-env ", "#fairlead-arg ", "#fairlead-gpus "


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """What runs in the pod."""

    script: str
    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    wants_gpus: bool = False
    """Whether GPUs were asked for at its submission, whatever Slurm counts of them."""


def payload(script: str) -> Payload | None:
    """What a batch script holds for the pod; None for one that job_submit.lua has not seen: it would run on the node.

    Raises:
        PodRefusedError: it is too long.
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
