"""Pieces of a large result, made by several processes at once.

Each process is a fork: it has all that was worked out before, and nothing is sent to it. It makes every n-th piece and
hands the bytes over in a pipe. A full pipe makes it wait, so few pieces are in memory at a time.
"""

import contextlib
import fcntl
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from typing import BinaryIO, NamedTuple, NoReturn

from fairlead_cli.errors import CommandError

type ResultPiece = Callable[[], bytes | bytearray]
"""Makes a part of a result. No other one has to be made before."""

MOST_FORKS = 4
"""Processes at most: each has a copy of the memory that it looks at, so that more would take more than they
save."""
_LENGTH = 8
"""Bytes before a piece that say how long it is."""
_PIPE = 2**20
"""Bytes that a pipe holds: a fork goes on with its next piece while the last one is fetched."""


class ForkEndedError(CommandError):
    """A process that makes pieces ended before all were made: the result is not whole."""


class _Fork(NamedTuple):
    """A process that makes pieces, and the pipe that they come in."""

    pid: int
    pipe: BinaryIO

    def fetch(self) -> bytes:
        """The next piece.

        Raises:
            ForkEndedError: it ended before that.
        """
        length = self.pipe.read(_LENGTH)
        size = int.from_bytes(length)
        piece = self.pipe.read(size)
        if len(length) < _LENGTH or len(piece) < size:
            raise ForkEndedError(
                f"the result is not whole: a process that made a part of it {self._ended()}",
                hint="Where memory is short, set PYTHON_CPU_COUNT=1: a single process needs less of it.",
            )
        return piece

    def _ended(self) -> str:
        """The end of a process that closed its pipe, in words. It stays known to the system, so nobody gets its number."""
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        if found is None or found.si_code == os.CLD_EXITED:
            return "failed"
        return f"was ended by {signal.Signals(found.si_status).name}"

    def end(self) -> None:
        """Ends the process, if it is still there."""
        self.pipe.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def processes() -> int:
    """The number of processes that pieces are best made by here: one for each processor that this process may use.

    A process with threads is not forked, as a lock that one of them holds would stay locked. Nor is one outside of
    Linux, where libraries of the system do not stand it.
    """
    if sys.platform != "linux" or threading.active_count() > 1:
        return 1
    return min(os.process_cpu_count() or 1, MOST_FORKS)


def made(pieces: Sequence[ResultPiece], *, by: int) -> Generator[bytes | bytearray]:
    """The pieces in their order, made by so many processes; by this one alone where the system gives no more.

    Raises:
        ForkEndedError: one of the processes ended before its pieces were made.
    """
    forks = _forks(pieces, by) if by > 1 else []
    if not forks:
        for piece in pieces:
            yield piece()
        return
    try:
        for number in range(len(pieces)):
            yield forks[number % by].fetch()
    finally:
        for fork in forks:
            fork.end()


def _forks(pieces: Sequence[ResultPiece], count: int) -> list[_Fork]:
    """The processes, each with every `count`-th piece; none where the system does not give them all."""
    forks: list[_Fork] = []
    try:
        for number in range(count):
            forks.append(_fork(pieces[number::count], forks))
    except OSError:
        for fork in forks:
            fork.end()
        return []
    return forks


def _fork(pieces: Sequence[ResultPiece], others: Sequence[_Fork]) -> _Fork:
    """A process that makes these pieces.

    Raises:
        OSError: the system gives no process, or no pipe.
    """
    reading, writing = os.pipe()
    with contextlib.suppress(OSError):  # a smaller one does as well
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE)
    try:
        pid = os.fork()
        if not pid:
            # Whoever else holds the reading end of a pipe keeps its writer waiting for nobody.
            _hand_over(pieces, writing, to_close=(reading, *(fork.pipe.fileno() for fork in others)))
    except OSError:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return _Fork(pid, os.fdopen(reading, "rb"))


def _hand_over(pieces: Sequence[ResultPiece], writing: int, *, to_close: Sequence[int]) -> NoReturn:
    """Make pieces, write them, and end without what Python does at an end: its buffers are those of the other process."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the other process, and that this one
        gc.disable()  # a look for garbage would copy all memory
        for one in to_close:
            os.close(one)
        with os.fdopen(writing, "wb") as pipe:
            for piece in pieces:
                found = piece()
                pipe.write(len(found).to_bytes(_LENGTH))
                pipe.write(found)
                pipe.flush()
        code = 0
    except BrokenPipeError:
        pass  # nobody reads on
    except BaseException:  # noqa: BLE001 # said here, as nobody else can, and the other process ends by it
        sys.__excepthook__(*sys.exc_info())
    finally:
        os._exit(code)
