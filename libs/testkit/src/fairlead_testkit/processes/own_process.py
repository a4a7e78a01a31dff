"""A process that a test starts: watched, paused for certain and killed by its pid, with one log over all its starts.

A SIGSTOP takes effect a moment after `kill` returns, thread by thread; what the process still does in that moment would
make a test of pauses a matter of luck. Nobody but a parent is told when it has taken effect, and the parent of a service
may be a fork server: so its threads are looked at.

When a test fails inside the `with` block, the end of the log is printed, and pytest shows it with the failure.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from fairlead_testkit.processes.fork_server import ForkedProcess
from fairlead_testkit.timing.awaiting import until

_LOOK_SECONDS = 0.001
_SHOWN_CHARACTERS = 8000
_STILL = frozenset("TtZX")
"""States of threads that are stopped or have ended, as /proc writes them."""


class OwnProcessError(Exception):
    """A process ended by itself, or did not do as it was told; carries the end of its log."""


class OwnProcess:
    """A process of the test's own, by its name in messages; a subclass starts it."""

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
        """The process's id.

        Raises:
            OwnProcessError: the process does not run.
        """
        self.check_alive()
        return self._started().pid

    @property
    def log(self) -> str:
        """Text that the process wrote over all its starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    @property
    def log_end(self) -> str:
        """The end of the log, for the message of a failure."""
        return self.log[-_SHOWN_CHARACTERS:]

    @property
    def exit_code(self) -> int | None:
        """The process's exit code once it has ended; negative where a signal ended it."""
        return None if self._process is None else self._process.poll()

    def check_alive(self) -> None:
        """Check that the process runs.

        Raises:
            OwnProcessError: the process does not run.
        """
        if not self.running:
            raise OwnProcessError(f"{self.name} does not run (exit code {self.exit_code}):\n{self.log_end}")

    def pause(self) -> None:
        """Sends SIGSTOP: it keeps its connections and does nothing; returns once every thread of it stands still, or it has ended."""
        pid = self.pid
        os.kill(pid, signal.SIGSTOP)
        while not all(_state(thread) in _STILL for thread in Path(f"/proc/{pid}/task").glob("*")):
            time.sleep(_LOOK_SECONDS)
        self._paused = True

    def resume(self) -> None:
        """Lets the process run on (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)
        self._paused = False

    def end(self, grace: float = 5.0) -> None:
        """Sends SIGTERM, and SIGKILL after the grace (seconds): an API server may take a minute to leave. Waits for the end."""
        if self.running:
            self._started().send_signal(signal.SIGTERM)
            if self._paused:
                self.resume()  # a stopped process does not act on SIGTERM
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._started().wait(grace)
        self.kill()

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
        if kind is not None:  # pytest shows it with the failure
            sys.stderr.write(f"--- log of {self.name}\n{self.log_end}\n")

    def _begin(
        self, command: Sequence[str], environ: Mapping[str, str] | None = None, *, group: int | None = None
    ) -> None:
        """Start a command, with nothing to read; in a process group, where one is given.

        Raises:
            OwnProcessError: the process runs already.
        """
        if self.running:
            raise OwnProcessError(f"{self.name} runs already")
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 # our own words
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, process_group=group
            )

    def _await(self, condition: Callable[[], object], seconds: float, what: str) -> None:
        """Wait for a process that was begun; one that does not get so far is killed.

        Raises:
            OwnProcessError: the process ended.
            NeverHappenedError: the time is over.
        """
        try:
            until(condition, seconds, what, self)
        except BaseException:
            self.kill()
            raise

    def _started(self) -> subprocess.Popen[bytes] | ForkedProcess:
        if self._process is None:
            raise OwnProcessError(f"{self.name} was not started")
        return self._process


def _state(thread: Path) -> str:
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
        return "X"
