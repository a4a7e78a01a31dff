"""The processes of a lab: started, watched, paused and ended by their pids; gone with their owner, however it ended."""

import os
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from fairlead_testkit.processes.own_process import OwnProcess


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
            OwnProcessError: a process ended by itself.
            NeverHappenedError: some part took too long.
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
