"""Services and commands as forks of a process that has imported them: a start costs a tenth of the CPU that it costs from nothing.

A service imports eight hundred modules at its start, 0.6 to 1.1 s of CPU; tests start services by the hundred. Here a
server imports what a service is made of once, and forks for each start; the fork runs the service's own `__main__`, with
the arguments, the environment and the log that it is given. So does the `fairlead` command (`fairlead_testkit.processes.command`).

What a fork shares with the others is what was imported, and the seed by which strings are hashed. That no order hangs on
that seed is for tests to find; so there are two servers with seeds of their own, in turn, and two replicas differ as in
production. All workers of a run share these two: what they import takes 1.3 s of CPU each. `make deep` starts each service
from nothing.
"""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Self

import msgspec

from fairlead_testkit.processes import forking
from fairlead_testkit.processes.forking import COMMANDS, LONGEST, ForkOrder

FORKED = frozenset(
    {
        "fairlead_scorer",
        "fairlead_admitter",
        "fairlead_watcher",
        "fairlead_checker",
        "fairlead_slurm_bridge",
        "fairlead_sim",
    }
)
"""Services that run as forks; everything else is started from nothing."""
_SERVERS = 2

type Streams = tuple[int, int, int]
"""File descriptors of standard input, output and error."""


class ForkServerError(Exception):
    """The server ended, or could not fork."""


class ForkedProcess:
    """A fork, shown as `subprocess.Popen` shows a child.

    Args:
        pidfd: names it for good, also when its number belongs to another process.
        ending: gives its exit code once it has ended.
    """

    def __init__(self, pid: int, pidfd: int, ending: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._pidfd = pidfd
        self._ending = ending

    def poll(self) -> int | None:
        """The process's exit code once it has ended; negative where a signal ended it."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end; returns the exit code.

        Raises:
            subprocess.TimeoutExpired: it has not ended in time.
        """
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired([str(self.pid)], timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal. Does nothing where it has ended."""
        with contextlib.suppress(ProcessLookupError):
            if self.poll() is None:
                signal.pidfd_send_signal(self._pidfd, number)

    def kill(self) -> None:
        """Kills the fork (SIGKILL). Does nothing where it has ended."""
        self.send_signal(signal.SIGKILL)

    def _look(self, seconds: float | None) -> int | None:
        if self.returncode is None and self._has_ended(seconds):
            said = os.read(self._ending, 16)
            self.returncode = int(said) if said else -signal.SIGKILL  # nothing: its server ended before it
            os.close(self._ending)
            os.close(self._pidfd)
        return self.returncode

    def _has_ended(self, seconds: float | None) -> bool:
        looking = select.poll()
        looking.register(self._ending, select.POLLIN)
        return bool(looking.poll(None if seconds is None else 1000 * seconds))


class ForkChannel:
    """The way to a server of forks, whosever it is."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * LONGEST)

    @classmethod
    def to(cls, address: str) -> Self:
        """The way to a server that another process shares.

        Raises:
            OSError: it has ended.
        """
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            channel.connect(address)
        except OSError:
            channel.close()
            raise
        return cls(channel)

    def fork(self, order: ForkOrder, streams: Streams) -> ForkedProcess:
        """Run a module in a fork.

        Raises:
            ForkServerError: the server ended.
        """
        ending, end = os.pipe()
        try:
            socket.send_fds(self._channel, [msgspec.json.encode(order)], [*streams, end])
            said, fds, _, _ = socket.recv_fds(self._channel, 16, 1)
        except OSError as error:
            os.close(ending)
            raise ForkServerError(f"the fork server is gone: {error}") from error
        finally:
            os.close(end)
        if not said:
            os.close(ending)
            raise ForkServerError("the fork server ended")
        return ForkedProcess(int(said), fds[0], ending)

    def end(self) -> None:
        """Leave the server; what it forked lives on."""
        self._channel.close()


class ForkServer(ForkChannel):
    """A server of this process's own; others come to it by the listener, where there is one."""

    def __init__(self, listener: socket.socket | None = None) -> None:
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        super().__init__(near)
        given = [one.fileno() for one in (far, listener) if one is not None]
        command = [sys.executable, "-c", f"import {forking.__name__} as it; it.main()", *map(str, given)]
        with far:
            self._process = subprocess.Popen(  # noqa: S603 # ourselves
                command, pass_fds=given, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )

    def end(self) -> None:
        """End the server; what it forked lives on, and nobody hears of its end."""
        super().end()
        self._process.wait()


class _Servers:
    """The servers of this process; none until one is wanted."""

    def __init__(self) -> None:
        self.used = False
        self.of_another: Sequence[str] = ()
        """Addresses of servers that another process shares."""
        self.asking = threading.Lock()
        """Lock for one order at a time: a test may run commands in threads."""
        self._started: deque[ForkChannel] = deque()
        self._shared: dict[str, ForkServer] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def next(self) -> ForkChannel:
        """The server whose turn it is: the last of the row, which becomes its first."""
        if len(self._started) < _SERVERS:
            self._started.appendleft(self._another())
        else:
            self._started.rotate()
        return self._started[0]

    def _another(self) -> ForkChannel:
        for address in self.of_another[len(self._started) :]:
            with contextlib.suppress(OSError):  # who shares them is gone
                return ForkChannel.to(address)
        return ForkServer()

    def share(self) -> list[str]:
        """Start servers for others, unless they are there; gives their addresses."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="forks-")
            for number in range(_SERVERS):
                address = str(Path(self._folder.name, str(number)))
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
                    listener.bind(address)
                    listener.listen()
                    self._shared[address] = ForkServer(listener)
        return list(self._shared)

    def end(self) -> None:
        """End the servers, and leave those of another; what they forked lives on."""
        for server in (*self._started, *self._shared.values()):
            server.end()
        self._started.clear()
        self._shared.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


_servers = _Servers()


def use(addresses: Sequence[str] = ()) -> None:
    """Starts services of this process as forks from now on: of servers that another process shares at these addresses, or its own."""
    _servers.used = True
    _servers.of_another = addresses


def share() -> list[str]:
    """The addresses of servers that other processes may use until `end`; none where this process uses no forks itself."""
    return _servers.share() if _servers.used else []


def end() -> None:
    """Ends the servers of this process, where any were started; who wants one later starts it anew."""
    with _servers.asking:
        _servers.end()


def serves(module: str, environ: Mapping[str, str]) -> bool:
    """Whether a module may run as a fork: this process uses forks, and its interpreter would be set up as ours is."""
    return _servers.used and module in FORKED and _of_python(environ) == _of_python(os.environ)


def serves_bare(module: str, environ: Mapping[str, str]) -> bool:
    """Whether a command may, or a service whose environment a manifest gives: also where that says less of its interpreter than ours."""
    may = module in FORKED | COMMANDS and _of_python(environ).items() <= _of_python(os.environ).items()
    return _servers.used and may


def fork(module: str, arguments: Sequence[str], environ: Mapping[str, str], log: BinaryIO) -> ForkedProcess:
    """Run a service as `python -m` does, with nothing to read; what it prints goes to the log.

    Raises:
        ForkServerError: the server ended.
    """
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 # as the others have it
        return fork_with(module, arguments, environ, (nothing.fileno(), log.fileno(), log.fileno()))


def fork_with(
    module: str, arguments: Sequence[str], environ: Mapping[str, str], streams: Streams
) -> ForkedProcess:
    """Run a module as `python -m` does, with standard streams of its own.

    Raises:
        ForkServerError: the server ended.
    """
    order = ForkOrder(module, list(arguments), dict(environ), os.getcwd())  # noqa: PTH109 # as the order has it, a str
    with _servers.asking:
        return _servers.next().fork(order, streams)


def _of_python(environ: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in environ.items() if key.startswith(("PYTHON", "LANG", "LC_"))}
