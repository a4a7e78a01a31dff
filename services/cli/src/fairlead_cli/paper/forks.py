"""Pieces of a large result, made by several processes at once.

The others are forks: they have all that was worked out before, and nothing is sent to them. Each process makes every n-th
piece; a fork hands the bytes over in a pipe. A full pipe makes it wait, so few pieces are in memory at a time.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from typing import NamedTuple

from fairlead_cli.errors import CommandError

type ResultPiece = Callable[[], bytes | bytearray]
"""Makes a part of a result. No other one has to be made before."""

MOST_FORKS = 4
"""Processes at most: each has a copy of the memory that it looks at, so that more would take more than they
save."""


class ForkEndedError(CommandError):
    """A process that makes pieces ended before all were made: the result is not whole."""


class _Fork(NamedTuple):
    """A process that makes pieces, and the pipe that they come in."""

    process: ForkProcess
    pipe: Connection

    def fetch(self) -> bytes:
        """The next piece.

        Raises:
            ForkEndedError: it ended before that.
        """
        try:
            return self.pipe.recv_bytes()
        except (EOFError, OSError) as error:
            self.process.join()
            code = self.process.exitcode or 0
            ended = f"was ended by {signal.Signals(-code).name}" if code < 0 else "failed"
            raise ForkEndedError(
                f"the result is not whole: a process that made a part of it {ended}",
                hint="Where memory is short, set PYTHON_CPU_COUNT=1: a single process needs less of it.",
            ) from error

    def end(self) -> None:
        """Ends the process, if it is still there."""
        self.pipe.close()
        self.process.kill()
        self.process.join()


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
    with contextlib.ExitStack() as ending:
        forks: list[_Fork] = []
        try:
            for number in range(1, by):
                forks.append(_fork(pieces[number::by], forks))
                ending.callback(forks[-1].end)
        except OSError:
            forks = []
            ending.close()
        for number, piece in enumerate(pieces):
            yield forks[number % by - 1].fetch() if forks and number % by else piece()


def _fork(pieces: Sequence[ResultPiece], others: Sequence[_Fork]) -> _Fork:
    """A process that makes these pieces.

    Raises:
        OSError: the system gives no process, or no pipe.
    """
    reading, writing = multiprocessing.Pipe(duplex=False)
    # Whoever else holds the reading end of a pipe keeps its writer waiting for nobody.
    unread = (reading, *(fork.pipe for fork in others))
    with writing:
        process = ForkProcess(target=_hand_over, args=(pieces, writing, unread))
        process.start()
    return _Fork(process, reading)


def _hand_over(pieces: Sequence[ResultPiece], writing: Connection, unread: Sequence[Connection]) -> None:
    """Make pieces and write them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the other process, and that this one
    for pipe in unread:
        pipe.close()
    with contextlib.suppress(BrokenPipeError):  # nobody reads on
        for piece in pieces:
            writing.send_bytes(piece())
