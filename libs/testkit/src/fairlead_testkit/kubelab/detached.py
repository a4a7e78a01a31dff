"""The lab that outlives the command which started it: `make lab-kube`, `make lab-down`. One for each user of a machine.

A supervisor process of its own session owns it, as a test process owns a test's lab: when the supervisor ends, however
it ends, so does the lab. A state file says who the supervisor is; a pid is only trusted with its start time, since pids
are used again.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec

from fairlead_testkit.kubelab.building import build
from fairlead_testkit.kubelab.errors import KubeLabError, PartDiedError
from fairlead_testkit.kubelab.lab import KubeLab
from fairlead_testkit.kubelab.processes import born, until
from fairlead_testkit.kubelab.users import FAIRLEAD_USERS

_START_SECONDS = 180.0
_END_SECONDS = 30.0


class Running(msgspec.Struct, frozen=True):
    """A lab that is up.

    Attributes:
        pid: of the supervisor.
        born: when that started, in the kernel's ticks.
        server: the API server's URL.
        kubeconfig: of the user who may do everything.
        kubeconfigs: of Fairlead's users, by their names.
        binaries: the folder that kubectl is in.
        logs: the folder of the logs.
        parts: pids by name.
    """

    pid: int
    born: int
    server: str
    kubeconfig: str
    kubeconfigs: dict[str, str]
    binaries: str
    logs: str
    parts: dict[str, int]

    @classmethod
    def of(cls, lab: KubeLab) -> Self:
        """What the supervisor, which calls this, writes down."""
        return cls(
            pid=os.getpid(),
            born=born(os.getpid()) or 0,
            server=lab.server,
            kubeconfig=str(lab.kubeconfig()),
            kubeconfigs={user: str(lab.kubeconfig(user)) for user in FAIRLEAD_USERS},
            binaries=str(lab.kit.binary("kubectl").parent),
            logs=str(lab.audit_log.parent),
            parts=lab.pids(),
        )

    @property
    def alive(self) -> bool:
        """Whether its supervisor still runs."""
        return born(self.pid) == self.born


def folder() -> Path:
    """Where the state file is, and the lab's data and logs."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "fairlead" / "kubelab"


def running() -> Running | None:
    """The lab that is up, or None."""
    try:
        found = msgspec.json.decode(_state().read_bytes(), type=Running)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return found if found.alive else None


def up() -> tuple[Running, bool]:
    """Start the lab, with the example queues, unless it is up; and whether it was up already.

    Raises:
        GoMissingError: it has to be built, and Go is missing.
        KubeLabError: it did not start; carries the supervisor's log.
    """
    build()
    with _locked():
        found = running()
        if found is not None:
            return found, True
        _state().unlink(missing_ok=True)
        return _start_supervisor(), False


def down() -> bool:
    """End the lab; whether there was one.

    Raises:
        NeverReadyError: something still runs.
    """
    with _locked():
        found = running()
        if found is None:
            return False
        os.kill(found.pid, signal.SIGTERM)
        with contextlib.suppress(KubeLabError):
            until(lambda: not found.alive, _END_SECONDS, "the supervisor ends")
        if found.alive:
            os.kill(found.pid, signal.SIGKILL)  # its guardian ends the rest
        pids = found.parts.values()
        until(lambda: not any(born(pid) for pid in pids), _END_SECONDS, f"the processes {list(pids)} end")
        _state().unlink(missing_ok=True)
        return True


def serve() -> None:
    """Be the supervisor: start the lab, say so in the state file, and keep it until SIGTERM."""
    data = folder() / "lab"
    shutil.rmtree(data, ignore_errors=True)
    with KubeLab(directory=data) as lab:
        lab.apply_examples()
        # Only now: children inherit what is blocked, and before this the guardian is enough.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        unfinished = _state().with_suffix(".new")
        unfinished.write_bytes(msgspec.json.encode(Running.of(lab)))
        unfinished.rename(_state())
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


def _start_supervisor() -> Running:
    log = folder() / "supervisor.log"
    with log.open("wb") as output:
        supervisor = subprocess.Popen(  # this very module under this very interpreter
            [sys.executable, "-m", "fairlead_testkit.kubelab", "serve"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    def started() -> Running | None:
        if supervisor.poll() is not None:
            raise PartDiedError(f"the lab did not start:\n{log.read_text(errors='replace')[-4000:]}")
        return running()

    found = until(started, _START_SECONDS, "the lab is up")
    assert found is not None  # noqa: S101 # until returns what is true
    return found


def _state() -> Path:
    return folder() / "state.json"


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    folder().mkdir(parents=True, exist_ok=True)
    with (folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
