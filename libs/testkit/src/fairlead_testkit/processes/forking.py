"""The server of forks itself (`fork_server` starts it): imports what a service is made of once, and forks for each order."""

import contextlib
import gc
import importlib
import os
import pkgutil
import runpy
import select
import socket
import sys
from collections.abc import Sequence

import msgspec

COMMANDS = frozenset({"fairlead_cli"})
"""Commands that run as forks, too."""
LONGEST = 256 * 1024
"""The most bytes of an order."""


class ForkOrder(msgspec.Struct, frozen=True):
    """An order to run a module as a fork."""

    module: str
    arguments: list[str]
    environ: dict[str, str]
    folder: str


class _Forking:
    """A server at work.

    Args:
        owner: from who started it; with that the server ends.
        listener: where others come to it, too.
    """

    def __init__(self, owner: socket.socket, listener: socket.socket | None) -> None:
        self._owner = owner
        self._listener = listener
        self._askers = {owner.fileno(): owner}
        self._endings: dict[int, tuple[int, int]] = {}
        """Process id of each fork, and where to say its exit code, by its pidfd."""

    def serve(self) -> ForkOrder | None:
        """Fork for each order, and tell of each end. Gives the order in a fork; None when its owner is gone."""
        listening = () if self._listener is None else (self._listener.fileno(),)
        while True:
            for ready in select.select([*self._askers, *listening, *self._endings], [], [])[0]:
                if ready in self._endings:
                    _tell(*self._endings.pop(ready))
                    os.close(ready)
                elif ready in self._askers:
                    asker = self._askers[ready]
                    said, fds, _, _ = socket.recv_fds(asker, LONGEST, 4)
                    if not said and asker is self._owner:
                        return None
                    if not said:
                        self._askers.pop(ready).close()
                    elif order := self._fork(msgspec.json.decode(said, type=ForkOrder), fds, asker):
                        return order
                elif self._listener is not None:
                    one, _ = self._listener.accept()
                    self._askers[one.fileno()] = one

    def _fork(self, order: ForkOrder, fds: Sequence[int], asker: socket.socket) -> ForkOrder | None:
        """Gives the order in the fork, None in the server."""
        *streams, end = fds
        _import(order.module)
        pid = os.fork()
        if pid == 0:
            sockets = (*self._askers.values(), *([self._listener] if self._listener else []))
            others = (one.detach() for one in sockets)
            for other in (*others, end, *self._endings, *(one for _, one in self._endings.values())):
                os.close(other)
            _become(order, streams)
            return order
        pidfd = os.pidfd_open(pid)
        self._endings[pidfd] = (pid, end)
        for stream in streams:
            os.close(stream)
        with contextlib.suppress(BrokenPipeError):  # who asked for it is gone
            socket.send_fds(asker, [str(pid).encode()], [pidfd])
        return None


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
    owner, *listener = (socket.socket(fileno=int(given)) for given in sys.argv[1:])
    order = _Forking(owner, listener[0] if listener else None).serve()
    if order is not None:
        runpy.run_module(order.module, run_name="__main__", alter_sys=True)
