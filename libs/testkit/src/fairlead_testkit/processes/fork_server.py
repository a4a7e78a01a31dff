"""Services and commands as forks of a process that has imported them: a start costs a tenth of the CPU that it costs from nothing.

A service imports eight hundred modules at its start, 0.6 to 1.1 s of CPU; tests start services by the hundred. Here a
server imports what a service is made of once, and forks for each start; the fork runs the service's own `__main__`, with
the arguments, the environment and the log that it is given. So does the `fairlead` command (`fairlead_testkit.processes.command`).

What a fork shares with the others is what was imported, and the seed by which strings are hashed. That no order hangs on
that seed is for tests to find; so there are two servers with seeds of their own, in turn, and two replicas differ as in
production. `make deep` starts each service from nothing.
"""

import contextlib
import gc
import importlib
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import BinaryIO

import msgspec

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
COMMANDS = frozenset({"fairlead_cli"})
"""Commands that run as forks, too."""
_SERVERS = 2
_LONGEST = 256 * 1024
"""The most bytes of an order."""


type Streams = tuple[int, int, int]
"""File descriptors of standard input, output and error."""


class ForkServerError(Exception):
    """The server ended, or could not fork."""


class ForkOrder(msgspec.Struct, frozen=True):
    """An order to run a module as a fork."""

    module: str
    arguments: list[str]
    environ: dict[str, str]
    folder: str


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


class ForkServer:
    """A server of forks and the way to it."""

    def __init__(self) -> None:
        self._channel, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _LONGEST)
        command = [sys.executable, "-c", f"import {__name__} as it; it.main()", str(far.fileno())]
        with far:
            self._process = subprocess.Popen(  # noqa: S603 # ourselves
                command, pass_fds=[far.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )

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
        """End the server; what it forked lives on, and nobody hears of its end."""
        self._channel.close()
        self._process.wait()


class _Servers:
    """The servers of this process; none until one is wanted."""

    def __init__(self) -> None:
        self.used = False
        self.asking = threading.Lock()
        """Lock for one order at a time: a test may run commands in threads."""
        self._started: deque[ForkServer] = deque()

    def next(self) -> ForkServer:
        """The server whose turn it is: the last of the row, which becomes its first."""
        if len(self._started) < _SERVERS:
            self._started.appendleft(ForkServer())
        else:
            self._started.rotate()
        return self._started[0]

    def end(self) -> None:
        """End the servers; what they forked lives on."""
        for server in self._started:
            server.end()
        self._started.clear()


_servers = _Servers()


def use() -> None:
    """Starts services of this process as forks from now on."""
    _servers.used = True


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


# The server ---------------------------------------------------------------------------------------------------------


def _serve(channel: socket.socket) -> ForkOrder | None:
    """Fork for each order, and tell of each end. Gives the order in a fork; None when nobody is left to give one."""
    endings: dict[int, tuple[int, int]] = {}  # by pidfd: process id, and where to say its exit code
    while True:
        for ready in select.select([channel.fileno(), *endings], [], [])[0]:
            if ready in endings:
                _tell(*endings.pop(ready))
                os.close(ready)
                continue
            said, fds, _, _ = socket.recv_fds(channel, _LONGEST, 4)
            if not said:
                return None
            order, [*streams, end] = msgspec.json.decode(said, type=ForkOrder), fds
            _import(order.module)
            pid = os.fork()
            if pid == 0:
                for other in (channel.detach(), end, *endings, *(one for _, one in endings.values())):
                    os.close(other)
                _become(order, streams)
                return order
            pidfd = os.pidfd_open(pid)
            endings[pidfd] = (pid, end)
            for stream in streams:
                os.close(stream)
            socket.send_fds(channel, [str(pid).encode()], [pidfd])


def _import(module: str) -> None:
    """Import what a service is made of, or all that some word of a command imports when it runs."""
    before = len(sys.modules)
    if module in COMMANDS:
        package = importlib.import_module(module)
        for found in pkgutil.walk_packages(package.__path__, f"{module}."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    else:
        importlib.import_module(f"{module}.app")
    if len(sys.modules) != before:
        gc.collect()
        gc.freeze()  # a fork that looks for garbage would copy all of it


def _tell(pid: int, end: int) -> None:
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):  # who asked for it is gone
        os.write(end, str(os.waitstatus_to_exitcode(status)).encode())
    os.close(end)


def _become(order: ForkOrder, streams: Sequence[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environ)
    sys.argv = [order.module, *order.arguments]


def main() -> None:
    """Be a server, and in a fork what was ordered."""
    order = _serve(socket.socket(fileno=int(sys.argv[1])))
    if order is not None:
        runpy.run_module(order.module, run_name="__main__", alter_sys=True)
