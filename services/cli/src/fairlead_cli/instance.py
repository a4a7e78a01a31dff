"""The running instance that `fairlead up` leaves word of, so that other terminals find it without being told.

One small file under `$XDG_STATE_HOME/fairlead` (default `~/.local/state/fairlead`), readable by its owner alone: an
address may carry a password.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from fairlead_cli.errors import NotRunningError

_FILE = "running.json"


class RunningInstance(msgspec.Struct, frozen=True, kw_only=True):
    """Where NATS is, and the process that keeps it."""

    url: str
    pid: int
    store: str


def state_directory(environ: Mapping[str, str]) -> Path:
    """Where state of this user lives. Without a home directory: a private one under the temporary directory."""
    stated = environ.get("XDG_STATE_HOME")
    if stated:
        return Path(stated) / "fairlead"
    try:
        home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"fairlead-{os.getuid()}"
    return home / ".local" / "state" / "fairlead"


def remember(directory: Path, instance: RunningInstance) -> None:
    """Write the file, whole or not at all."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = directory / f"{_FILE}.{instance.pid}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(instance))
    draft.replace(directory / _FILE)


def forget(directory: Path, pid: int) -> None:
    """Take the file away where it is still that process's own."""
    found = recall(directory)
    if found is not None and found.pid == pid:
        (directory / _FILE).unlink(missing_ok=True)


def recall(directory: Path) -> RunningInstance | None:
    """The instance that was left word of, alive or not."""
    try:
        payload = (directory / _FILE).read_bytes()
        return msgspec.json.decode(payload, type=RunningInstance)
    except (OSError, msgspec.MsgspecError):
        return None


def is_alive(pid: int) -> bool:
    """Whether a process of that number exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def find_url(stated: str | None, environ: Mapping[str, str]) -> str:
    """The address to talk to: as stated, else that of the running instance.

    Raises:
        NotRunningError: none was stated and none runs.
    """
    if stated:
        return stated
    found = recall(state_directory(environ))
    if found is None:
        raise NotRunningError(
            "no running Fairlead is known",
            hint="Start one with `fairlead up`, or say where NATS is: --nats URL or FAIRLEAD_NATS_URL.",
        )
    if not is_alive(found.pid):
        raise NotRunningError(
            f"the Fairlead that ran at {found.url} has ended",
            hint="Start it again with `fairlead up`; its jobs and its queue are kept.",
        )
    return found.url
