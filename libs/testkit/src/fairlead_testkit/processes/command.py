"""The `fairlead` command as a process, with what it printed and its exit code, as a person's shell has it.

Within a test run it is a fork of a process that has imported the command already (`fork_server`): a short one takes 0.4 s
of CPU from nothing, most of it for imports.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

from fairlead_testkit.processes import fork_server

MODULE = "fairlead_cli"


def fairlead(
    *words: str, environ: Mapping[str, str] | None = None, given: str = "", seconds: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Run `fairlead` to its end.

    Args:
        words: words that follow the command's name.
        environ: the whole of its environment; by default ours.
        given: the text on its standard input.
        seconds: longest run.

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
