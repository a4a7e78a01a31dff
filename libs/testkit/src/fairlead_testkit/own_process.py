"""A process that a test starts: watched, paused for certain and killed by its pid, with one log over all its starts.

A SIGSTOP takes effect a moment after `kill` returns, thread by thread; what the process still does in that moment would
make a test of pauses a matter of luck. Nobody but a parent is told when it has taken effect, and the parent of a service
may be a fork server: so its threads are looked at.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from fairlead_testkit.fork_server import ForkedProcess

_LOOK_SECONDS = 0.001
_STILL = frozenset("TtZX")
"""States of threads that are stopped or have ended, as /proc writes them."""


class OwnProcess:
    """A process of the test's own; a subclass starts it.

    Args:
        name: name for messages.
        log_path: path of what it writes.
    """

    def __init__(self, name: str, log_path: Path) -> None:
        self.name = name
        self.log_path = log_path
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self._paused = False

    def start(self) -> Self:
        """Start the process, or start it again."""
        raise NotImplementedError

    @property
    def running(self) -> bool:
        """Whether the process lives; a paused one does."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process's id; an error where it does not run."""
        return self._started().pid

    @property
    def log(self) -> str:
        """Text that the process wrote over all its starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and does nothing; returns once every thread of it stands still, or it has ended."""
        pid = self.pid
        os.kill(pid, signal.SIGSTOP)
        while not all(_state(thread) in _STILL for thread in Path(f"/proc/{pid}/task").glob("*")):
            time.sleep(_LOOK_SECONDS)
        self._paused = True

    def resume(self) -> None:
        """Lets the process run on (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)
        self._paused = False

    def kill(self) -> None:
        """Kills the process (SIGKILL), and waits for its end. Does nothing where it is not running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        self._paused = False

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.kill()

    def _begin(
        self, command: Sequence[str], environ: Mapping[str, str] | None = None, *, group: int | None = None
    ) -> None:
        """Start a command, with nothing to read; in a process group, where one is given."""
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 # our own words
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, process_group=group
            )

    def _started(self) -> subprocess.Popen[bytes] | ForkedProcess:
        if self._process is None:
            raise ProcessLookupError(f"{self.name} is not running")
        return self._process


def _state(thread: Path) -> str:
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
        return "X"
