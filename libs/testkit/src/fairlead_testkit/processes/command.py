"""The `fairlead` command as a process, with what it printed and its exit code, as a person's shell has it; and `fairlead up` there.

Within a test run it is a fork of a process that has imported the command already (`fork_server`): a short one takes 0.4 s
of CPU from nothing, most of it for imports.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from fairlead_testkit.processes import fork_server
from fairlead_testkit.processes.own_process import OwnProcess
from fairlead_testkit.timing.awaiting import until

MODULE = "fairlead_cli"
_SAID_SECONDS = 90.0
_END_SECONDS = 60.0


def fairlead(
    *words: str, environ: Mapping[str, str] | None = None, given: str = "", seconds: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Run `fairlead` to its end.

    Args:
        environ: the whole of its environment; by default ours.
        given: the text on its standard input.

    Raises:
        subprocess.TimeoutExpired: it took longer.
    """
    environ = dict(os.environ if environ is None else environ)
    if fork_server.serves_bare(MODULE, environ):
        # Where its modules cannot be imported, the command itself shall say so.
        with contextlib.suppress(fork_server.ForkServerError):
            return _forked(words, environ, given, seconds)
    command = [sys.executable, "-m", MODULE, *words]
    return subprocess.run(  # noqa: S603 # our own command under our own interpreter
        command, env=environ, input=given, capture_output=True, text=True, check=False, timeout=seconds
    )


def _forked(
    words: Sequence[str], environ: Mapping[str, str], given: str, seconds: float
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as read:
        read.write(given.encode())
        read.seek(0)
        streams = (read.fileno(), said.fileno(), told.fileno())
        process = fork_server.fork_with(MODULE, words, environ, streams)
        try:
            code = process.wait(seconds)
        except BaseException:
            process.kill()
            process.wait()
            raise
        printed = []
        for stream in (said, told):
            stream.seek(0)
            printed.append(stream.read().decode())
    return subprocess.CompletedProcess(["fairlead", *words], code, *printed)


class LocalInstance(OwnProcess):
    """A `fairlead up` of this test alone, as a person has it in a terminal; the end of the block ends it well, and has it end with 0.

    Args:
        home: folder of its log and its state.
    """

    def __init__(self, home: Path, *flags: str) -> None:
        super().__init__("fairlead up", home / "up.log")
        self.environ = {"XDG_STATE_HOME": str(home)}
        """The environment that `env -i` leaves, and a place of its own for the state: no HOME, no PATH."""
        self._flags = flags

    def start(self) -> Self:
        """Start it, or start it again; returns at once. Its log is continued."""
        self._begin([sys.executable, "-m", MODULE, "up", *self._flags], self.environ)
        return self

    def said(self, text: str, *, count: int = 1) -> str:
        """Everything printed so far, once these words were printed so many times."""
        until(lambda: self.log.count(text) >= count, _SAID_SECONDS, f"it says {text!r}", self)
        return self.log

    def ask(self, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command in another terminal, with a text on its standard input."""
        return fairlead(*words, environ=self.environ, given=text, seconds=120)

    def ended_by(self, number: signal.Signals) -> int:
        """The exit code with which it ends by a signal."""
        self._started().send_signal(number)
        return self._started().wait(_END_SECONDS)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            assert not self.running or self.ended_by(signal.SIGTERM) == 0, self.log  # noqa: S101 # a check of tests
        finally:
            super().__exit__(kind)
