"""What is spoken on the gate's socket: a JSON object a line, both ways; the client is `fairlead_slurm.hooks.client`."""

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The first line."""

    hook: str
    """`prolog`, `epilog-slurmctld`, `epilog` or `body`."""
    env: dict[str, str] = {}
    """Slurm's variables."""
    offset: int = 0
    """Of a body: bytes of the pod's output that it has printed."""
    stop: bool = False
    """Of a body: whether Slurm has told it to end."""


class Later(msgspec.Struct, frozen=True, kw_only=True):
    """Any further line of a body."""

    stop: bool = False


REQUEST = msgspec.json.Decoder(Request)
LATER = msgspec.json.Decoder(Later)


def said(text: str) -> bytes:
    """Words for a log, or for the job's output."""
    return msgspec.json.encode({"say": text}) + b"\n"


def output(piece: bytes) -> bytes:
    """A piece of the pod's output."""
    return msgspec.json.encode({"log": len(piece)}) + b"\n" + piece


def ended(code: int) -> bytes:
    """The last word: the exit code."""
    return msgspec.json.encode({"exit": code}) + b"\n"
