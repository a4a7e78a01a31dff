"""What is spoken on the gate's socket: a JSON object a line, both ways; the client is `fairlead_slurm.hooks.client`."""

import msgspec

from fairlead_slurm_bridge.pods.results import ResultPlan


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The first line."""

    hook: str
    """`prolog`, `epilog-slurmctld`, `epilog`, `submit` or `body`."""
    env: dict[str, str] = {}
    """Slurm's variables."""
    job: dict[str, str] = {}
    """Of job_submit: what the job asks for, by sbatch's long options; empty where it asks for nothing."""
    user: int | None = None
    """Of job_submit: the Unix user whose job it is."""
    offset: int = 0
    """Of a body: bytes of the pod's output that it has printed."""
    stop: bool = False
    """Of a body: whether Slurm has told it to end."""
    results: bool = False
    """Of an epilog: whether it knows how to move results."""


class Later(msgspec.Struct, frozen=True, kw_only=True):
    """Any further line of a body or epilog."""

    stop: bool = False
    moved: dict[str, object] = {}
    """What became of the results."""


REQUEST = msgspec.json.Decoder(Request)
LATER = msgspec.json.Decoder(Later)


def said(text: str) -> bytes:
    """Words for a log, or for the job's output."""
    return msgspec.json.encode({"say": text}) + b"\n"


def output(piece: bytes) -> bytes:
    """A piece of the pod's output."""
    return msgspec.json.encode({"log": len(piece)}) + b"\n" + piece


def results(plan: ResultPlan, summary: dict[str, object]) -> bytes:
    """What the epilog is to do with them; the pod's output follows, up to an empty piece."""
    found = {"from": plan.source, "to": plan.target, "summary": summary}
    return msgspec.json.encode({"results": found}) + b"\n"


def ended(code: int) -> bytes:
    """The last word: the exit code."""
    return msgspec.json.encode({"exit": code}) + b"\n"
