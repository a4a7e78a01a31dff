"""`fairlead up` as a person has it in a terminal: what it says, the commands that find it, and how it ends."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from fairlead_testkit.processes.command import MODULE, fairlead
from fairlead_testkit.processes.own_process import OwnProcess
from fairlead_testkit.timing.awaiting import until

_SAID_SECONDS = 90.0
_END_SECONDS = 60.0


class LocalInstance(OwnProcess):
    """A `fairlead up` of this test alone; the end of the block ends it well, and has it end with 0.

    Args:
        home: folder of its log and its state.
        flags: flags behind the word `up`.
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
        """All that it has said, once it has said these words so many times."""
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
