"""The running instances that `fairlead up` leaves word of, so that other terminals find theirs without being told.

One small file each under `$XDG_STATE_HOME/fairlead` (default `~/.local/state/fairlead`), readable by its owner alone: an
address may carry a password.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from fairlead_cli.errors import InputError, NotRunningError

_FILES = "running.*.json"


class RunningInstance(msgspec.Struct, frozen=True, kw_only=True):
    """The NATS of a running instance, and the process that keeps it."""

    url: str
    pid: int
    store: str


def state_directory(environ: Mapping[str, str]) -> Path:
    """The directory of this user's state. Without a home directory: a private one under the temporary directory."""
    stated = environ.get("XDG_STATE_HOME")
    if stated:
        return Path(stated) / "fairlead"
    try:
        home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"fairlead-{os.getuid()}"
    return home / ".local" / "state" / "fairlead"


def remember(directory: Path, instance: RunningInstance) -> None:
    """Write the instance's file, whole or not at all; what was left by instances that were killed goes."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path, found in _known(directory):
        if not is_alive(found.pid):
            path.unlink(missing_ok=True)
    draft = directory / f"draft.{instance.pid}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(instance))
    draft.replace(_file(directory, instance.pid))


def forget(directory: Path, pid: int) -> None:
    """Take that process's own file away."""
    _file(directory, pid).unlink(missing_ok=True)


def recall(directory: Path) -> list[RunningInstance]:
    """The instances that were left word of, alive or not, by their addresses."""
    return sorted((found for _, found in _known(directory)), key=lambda one: one.url)


def _file(directory: Path, pid: int) -> Path:
    return directory / _FILES.replace("*", str(pid))


def _known(directory: Path) -> Iterator[tuple[Path, RunningInstance]]:
    for path in sorted(directory.glob(_FILES)):
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            yield path, msgspec.json.decode(path.read_bytes(), type=RunningInstance)


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
    """The address to talk to: as stated, else that of the only running instance.

    One that is stated without a password gets that of the instance there, where it is this user's own.

    Raises:
        NotRunningError: none was stated and none runs.
        InputError: none was stated and several run.
    """
    known = recall(state_directory(environ))
    alive = [one for one in known if is_alive(one.pid)]
    if stated:
        return next((one.url for one in alive if without_password(one.url) == stated), stated)
    if len(alive) > 1:
        raise InputError(
            f"{len(alive)} Fairleads run here; say which one is meant:",
            problems=[f"--nats {without_password(one.url)}  (store {one.store})" for one in alive],
            hint="FAIRLEAD_NATS_URL says it for a whole terminal.",
        )
    if alive:
        return alive[0].url
    if known:
        raise NotRunningError(
            f"the Fairlead that ran at {known[-1].url} has ended",
            hint="Start it again with `fairlead up`; its jobs and its queue are kept.",
        )
    raise NotRunningError(
        "no running Fairlead is known",
        hint="Start one with `fairlead up`, or say where NATS is: --nats URL or FAIRLEAD_NATS_URL.",
    )


def without_password(url: str) -> str:
    """The address as others may see it."""
    scheme, _, rest = url.rpartition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if scheme else rest.rpartition("@")[2]
