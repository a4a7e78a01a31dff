"""A lab that outlives the command which started it. One of each kind for each user of a machine.

A supervisor process of its own session owns it, as a test process owns a test's lab: when the supervisor ends, however
it ends, so does the lab. A state file says who the supervisor is; a pid is only trusted with its start time, since pids
are used again.
"""

import argparse
import contextlib
import fcntl
import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from fairlead_testkit.labs import LabError
from fairlead_testkit.labs.processes import born
from fairlead_testkit.processes.own_process import OwnProcessError
from fairlead_testkit.timing.awaiting import NeverHappenedError, until

START_SECONDS = 180.0
END_SECONDS = 30.0


class Supervised(msgspec.Struct, frozen=True, kw_only=True):
    """A lab that is up.

    Attributes:
        born: start of that process, in the kernel's ticks.
        parts: pids by name.
    """

    pid: int = msgspec.field(default_factory=os.getpid)
    born: int = msgspec.field(default_factory=lambda: born(os.getpid()) or 0)
    parts: dict[str, int]

    @property
    def alive(self) -> bool:
        """Whether the lab's supervisor still runs."""
        return born(self.pid) == self.born


class Supervision[R: Supervised](ABC):
    """The one lab of a kind, as the words of a command start, show and end it; a subclass says what lab that is.

    Attributes:
        module: run as `python -m <module> serve`, it is the supervisor.
        kind: type of what the state file says.
    """

    module: str
    kind: type[R]
    name: str

    def main(self) -> int:
        """Run one word of the command line; the exit code is 1 where it failed, and for `status` where no lab is up."""
        words = self.words()
        parser = argparse.ArgumentParser(prog=f"python -m {self.module}", description=self.__doc__)
        parser.add_argument("word", choices=[*words])
        word = words[parser.parse_args().word]
        try:
            said = word()
        except (LabError, NeverHappenedError, OwnProcessError) as error:
            sys.stderr.write(f"{error}\n")
            return 1
        sys.stdout.write(f"{said}\n" if said else "")
        return int(word == self._status and self.running() is None)

    def words(self) -> dict[str, Callable[[], str]]:
        """Functions by the command's word: each does what the word says, and returns what is to be said."""
        return {"up": self._up, "down": self._down, "status": self._status, "serve": self._serve}

    @abstractmethod
    def prepare(self) -> None:
        """See that all is there that the lab is made of."""

    @abstractmethod
    def lab(self) -> contextlib.AbstractContextManager[R]:
        """Run the lab for the time of the block, as the supervisor; gives what is to be known of it."""

    @abstractmethod
    def described(self, found: R) -> str:
        """Text that people are told of a lab that is up."""

    @property
    def folder(self) -> Path:
        """The folder of the state file, and of the lab's data and logs."""
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        return state / "fairlead" / self.module.rpartition(".")[2]

    def running(self) -> R | None:
        """The lab that is up, or None."""
        try:
            found = msgspec.json.decode(self._state.read_bytes(), type=self.kind)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        return found if found.alive else None

    def _status(self) -> str:
        found = self.running()
        return f"No {self.name} is up." if found is None else self.described(found)

    def _up(self) -> str:
        """Start the lab unless it is up.

        Raises:
            LabError: the lab did not start; carries the supervisor's log.
        """
        self.prepare()
        with self._locked():
            found, was_up = self.running(), True
            if found is None:
                self._state.unlink(missing_ok=True)
                found, was_up = self._start_supervisor(), False
        return f"The {self.name} {'is up already' if was_up else 'is up'}.\n\n{self.described(found)}"

    def _down(self) -> str:
        """End the lab, where there is one.

        Raises:
            NeverHappenedError: some part still runs.
        """
        with self._locked():
            found = self.running()
            if found is None:
                return f"No {self.name} is up."
            os.kill(found.pid, signal.SIGTERM)
            with contextlib.suppress(NeverHappenedError):
                until(lambda: not found.alive, END_SECONDS, "the supervisor ends")
            if found.alive:
                os.kill(found.pid, signal.SIGKILL)  # its guardian ends the rest
            pids = found.parts.values()
            until(lambda: not any(born(pid) for pid in pids), END_SECONDS, f"the processes {list(pids)} end")
            self._state.unlink(missing_ok=True)
        return f"The {self.name} has ended; nothing of it runs."

    def _serve(self) -> str:
        """Be the supervisor: start the lab, say so in the state file, and keep it until SIGTERM."""
        with self.lab() as found:
            # Only now: children inherit what is blocked, and before this the guardian is enough.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
            unfinished = self._state.with_suffix(".new")
            unfinished.write_bytes(msgspec.json.encode(found))
            unfinished.rename(self._state)
            signal.sigwait({signal.SIGTERM, signal.SIGINT})
        return ""

    @property
    def _state(self) -> Path:
        return self.folder / "state.json"

    def _start_supervisor(self) -> R:
        log = self.folder / "supervisor.log"
        with log.open("wb") as output:
            supervisor = subprocess.Popen(  # noqa: S603 # our own module under this very interpreter
                [sys.executable, "-m", self.module, "serve"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

        def started() -> R | None:
            if supervisor.poll() is not None:
                raise LabError(f"the lab did not start:\n{log.read_text(errors='replace')[-4000:]}")
            return self.running()

        return until(started, START_SECONDS, "the lab is up")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
