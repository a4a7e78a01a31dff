"""The processes of a lab: started, watched, paused and ended by their pids; gone with their owner, however it ended."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from fairlead_testkit.awaiting import pause_after
from fairlead_testkit.fork_server import ForkedProcess
from fairlead_testkit.kubelab.errors import NeverReadyError, PartDiedError
from fairlead_testkit.own_process import OwnProcess

_SHOWN_CHARACTERS = 3000
_POLL_SECONDS = 0.03


class Guardian:
    """Ends the lab's processes when their owner is gone, also after a `kill -9` of it.

    A shell that leads the process group of all of them and reads from a pipe whose other end only the owner has. When
    that end closes, it kills its group. (A death signal of Linux would not do: it follows the thread that started a
    process, and threads of pools end early.)
    """

    def __init__(self) -> None:
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", "cat >/dev/null; kill -9 0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,  # also: a Ctrl-C at the terminal is the owner's alone
        )

    @property
    def group(self) -> int:
        """The process group that the lab's processes are to join."""
        return self._shell.pid

    def dismiss(self) -> None:
        """Close the pipe: whatever is left of the group ends now."""
        if self._shell.stdin is not None:
            self._shell.stdin.close()
        self._shell.wait()


class LabProcess(OwnProcess):
    """One process of the lab.

    Args:
        name: as `kueue`; its log is `<name>.log`.
        command: program and arguments.
        directory: where its log goes.
        guardian: whose process group it joins.
        environ: over the owner's own environment.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        directory: Path,
        guardian: Guardian,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name, directory / f"{name}.log")
        self.command = list(command)
        self._guardian = guardian
        self._environ = dict(environ or {})

    def start(self) -> Self:
        """Start it, or start it again; returns at once. Its log is continued."""
        self._begin(self.command, os.environ | self._environ, group=self._guardian.group)
        return self

    @property
    def memory(self) -> int:
        """Bytes of resident memory now."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    def check_alive(self) -> None:
        """Do nothing while it runs.

        Raises:
            PartDiedError: it does not.
        """
        if not self.running:
            code = None if self._process is None else self._process.returncode
            raise PartDiedError(
                f"{self.name} does not run (exit code {code}):\n{self.log[-_SHOWN_CHARACTERS:]}"
            )

    def stop(self, grace: float = 5.0) -> None:
        """SIGTERM, and SIGKILL after the grace (seconds): an API server may take a minute to leave. Waits for the end."""
        if self.running:
            process = self._started()
            process.send_signal(signal.SIGTERM)
            if self._paused:
                self.resume()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(grace)
        self.kill()

    def _started(self) -> subprocess.Popen[bytes] | ForkedProcess:
        self.check_alive()
        return super()._started()


def born(pid: int) -> int | None:
    """The start of a process, in ticks since the machine's; None where there is none, or only its remains.

    Pids are used again; a pid with this is not.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, started = fields[0], fields[19]
    return None if state in "ZX" else int(started)


def until[T](condition: Callable[[], T], seconds: float, what: str, *parts: LabProcess) -> T:
    """Ask again and again until the condition gives something true, and return that.

    Args:
        condition: asked about thirty times a second, one that takes long less often.
        seconds: how long at most.
        what: words for the error message.
        parts: processes that have to live meanwhile.

    Raises:
        NeverReadyError: the time is over.
        PartDiedError: one of the parts ended.
    """
    deadline = time.monotonic() + seconds
    while True:
        asked = time.monotonic()
        value = condition()
        if value:
            return value
        for part in parts:
            part.check_alive()
        if time.monotonic() > deadline:
            logs = "\n".join(f"--- {part.name}\n{part.log[-_SHOWN_CHARACTERS:]}" for part in parts)
            raise NeverReadyError(f"not within {seconds:g} s: {what}; the last value was {value!r}\n{logs}")
        time.sleep(max(_POLL_SECONDS, pause_after(time.monotonic() - asked)))
