"""Messages on the gate's socket, both ways: a JSON object a line. Its client: `fairlead_slurm.hooks.client`."""

import msgspec

from fairlead_slurm_bridge.pods.following import LastWord, PodOutput, UserNotice, Word
from fairlead_slurm_bridge.pods.results import ResultPlan


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a hook, or of a job's process (hook `body`)."""

    hook: str
    """Name of the hook: `prolog`, `epilog-slurmctld`, `epilog`, `submit` or `body`."""
    env: dict[str, str] = {}
    """Variables of Slurm's."""
    job: dict[str, str] = {}
    """Job of job_submit, by sbatch's long options; empty for a job that asks for nothing."""
    user: int | None = None
    """Unix user of job_submit's job; None from other hooks."""
    offset: int = 0
    """Number of bytes of the pod's output that the process has printed."""
    stop: bool = False
    """Whether Slurm has told the process to end."""
    results: bool = False
    """Whether an epilog knows how to move results."""


class FurtherLine(msgspec.Struct, frozen=True, kw_only=True):
    """A further line of a process or epilog."""

    stop: bool = False
    moved: dict[str, object] = {}
    """Summary of the move of results."""


REQUEST = msgspec.json.Decoder(Request)
FURTHER_LINE = msgspec.json.Decoder(FurtherLine)


def told(*words: Word) -> bytes:
    """Words to a hook or a process: for a log or the job's output, a piece of the pod's output, or the last."""
    return b"".join(map(_told, words))


def _told(word: Word) -> bytes:
    match word:
        case UserNotice(text=text):
            return msgspec.json.encode({"say": text}) + b"\n"
        case PodOutput(piece=piece):
            return msgspec.json.encode({"log": len(piece)}) + b"\n" + piece
        case LastWord(code=code):
            return msgspec.json.encode({"exit": code}) + b"\n"


def results(plan: ResultPlan, summary: dict[str, object]) -> bytes:
    """Plan of the results that the epilog moves; the pod's output follows, up to an empty piece."""
    found = {"from": plan.source, "to": plan.target, "summary": summary}
    return msgspec.json.encode({"results": found}) + b"\n"
