"""The processes of a lab: started, watched, paused and ended by their pids; gone with their owner, however it ended."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
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
    """A process of the lab.

    Args:
        name: name of the part, such as `kueue`; its log is `<name>.log`.
        command: program and arguments.
        directory: folder of its log.
        guardian: the guardian whose process group it joins.
        environ: variables over the owner's own environment.
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
        """Start the process, or start it again; returns at once. Its log is continued."""
        self._begin(self.command, os.environ | self._environ, group=self._guardian.group)
        return self

    @property
    def memory(self) -> int:
        """Bytes of resident memory now."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    def check_alive(self) -> None:
        """Check that the process runs.

        Raises:
            PartDiedError: the part does not run.
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


class Lab(ABC):
    """Processes that come up together, are asked for by their names, and end together; also with this object's process.

    Blocking, and without a thread or an event loop of its own, so that one lab serves tests of any loop; from a
    coroutine call the slow verbs by `asyncio.to_thread`.

    Args:
        folder: folder for data and logs, kept; by default a temporary one, removed at the end.
        prefix: beginning of the temporary folder's name.
    """

    def __init__(self, folder: Path | None, prefix: str) -> None:
        self._temporary = folder is None
        self._folder = folder or Path(tempfile.mkdtemp(prefix=prefix))
        self._guardian: Guardian | None = None
        self._processes: dict[str, LabProcess] = {}

    def start(self) -> Self:
        """Start all; returns when everything is ready for work.

        Raises:
            PartDiedError: a process ended by itself.
            NeverReadyError: some part took too long.
        """
        self._guardian = Guardian()
        try:
            self._bring_up()
        except BaseException:
            self.stop()
            raise
        return self

    @abstractmethod
    def _bring_up(self) -> None:
        """Start part after part."""

    def stop(self) -> None:
        """End all; a temporary folder goes too. What the parts themselves need for a good end, a subclass does before."""
        if self._guardian is not None:
            self._guardian.dismiss()
            self._guardian = None
        if self._temporary:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def process(self, name: str) -> LabProcess:
        """The part of this name, as `kueue` or `slurmd-n1`: pause it, kill it, start it again, read its log."""
        return self._processes[name]

    def pids(self) -> dict[str, int]:
        """Process ids of what runs, by name."""
        return {name: process.pid for name, process in self._processes.items() if process.running}

    def _launch(
        self, name: str, command: Sequence[str], logs: Path, environ: Mapping[str, str] | None = None
    ) -> LabProcess:
        assert self._guardian is not None  # noqa: S101 # start() made it
        self._processes[name] = LabProcess(name, command, logs, self._guardian, environ)
        return self._processes[name].start()


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
        seconds: longest wait.
        what: words for the error message.
        parts: processes that have to live meanwhile.

    Raises:
        NeverReadyError: the time is over.
        PartDiedError: some part ended.
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
