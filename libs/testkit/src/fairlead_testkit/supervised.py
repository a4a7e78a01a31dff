"""A lab that outlives the command which started it. One of each kind for each user of a machine.

A supervisor process of its own session owns it, as a test process owns a test's lab: when the supervisor ends, however
it ends, so does the lab. A state file says who the supervisor is; a pid is only trusted with its start time, since pids
are used again.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from fairlead_testkit.kubelab.errors import KubeLabError, PartDiedError
from fairlead_testkit.kubelab.processes import born, until

START_SECONDS = 180.0
END_SECONDS = 30.0


class Supervised(msgspec.Struct, frozen=True, kw_only=True):
    """A lab that is up.

    Attributes:
        pid: of the supervisor.
        born: when that started, in the kernel's ticks.
        parts: pids by name.
    """

    pid: int = msgspec.field(default_factory=os.getpid)
    born: int = msgspec.field(default_factory=lambda: born(os.getpid()) or 0)
    parts: dict[str, int]

    @property
    def alive(self) -> bool:
        """Whether its supervisor still runs."""
        return born(self.pid) == self.born


class Supervision[R: Supervised]:
    """Starts, finds and ends the one lab of a kind.

    Args:
        module: run as `python -m <module> serve`, it is the supervisor.
        kind: what the state file says.
    """

    def __init__(self, module: str, kind: type[R]) -> None:
        self._module = module
        self._kind = kind

    @property
    def folder(self) -> Path:
        """The folder of the state file, and of the lab's data and logs."""
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        return state / "fairlead" / self._module.rpartition(".")[2]

    def running(self) -> R | None:
        """The lab that is up, or None."""
        try:
            found = msgspec.json.decode(self._state.read_bytes(), type=self._kind)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        return found if found.alive else None

    def up(self) -> tuple[R, bool]:
        """Start the lab unless it is up; and whether it was up already.

        Raises:
            KubeLabError: it did not start; carries the supervisor's log.
        """
        with self._locked():
            found = self.running()
            if found is not None:
                return found, True
            self._state.unlink(missing_ok=True)
            return self._start_supervisor(), False

    def down(self) -> bool:
        """End the lab; whether there was one.

        Raises:
            NeverReadyError: something still runs.
        """
        with self._locked():
            found = self.running()
            if found is None:
                return False
            os.kill(found.pid, signal.SIGTERM)
            with contextlib.suppress(KubeLabError):
                until(lambda: not found.alive, END_SECONDS, "the supervisor ends")
            if found.alive:
                os.kill(found.pid, signal.SIGKILL)  # its guardian ends the rest
            pids = found.parts.values()
            until(lambda: not any(born(pid) for pid in pids), END_SECONDS, f"the processes {list(pids)} end")
            self._state.unlink(missing_ok=True)
            return True

    def keep(self, found: R) -> None:
        """Says in the state file that the lab is up, as the supervisor, and returns at SIGTERM."""
        # Only now: children inherit what is blocked, and before this the guardian is enough.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        unfinished = self._state.with_suffix(".new")
        unfinished.write_bytes(msgspec.json.encode(found))
        unfinished.rename(self._state)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})

    @property
    def _state(self) -> Path:
        return self.folder / "state.json"

    def _start_supervisor(self) -> R:
        log = self.folder / "supervisor.log"
        with log.open("wb") as output:
            supervisor = subprocess.Popen(  # noqa: S603 # our own module under this very interpreter
                [sys.executable, "-m", self._module, "serve"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

        def started() -> R | None:
            if supervisor.poll() is not None:
                raise PartDiedError(f"the lab did not start:\n{log.read_text(errors='replace')[-4000:]}")
            return self.running()

        found = until(started, START_SECONDS, "the lab is up")
        assert found is not None  # noqa: S101 # until returns what is true
        return found

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
