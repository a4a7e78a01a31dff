"""Entry of the `fairlead` command."""

import atexit
import errno
import gc
import io
import os
import signal
import sys
from typing import NoReturn

from fairlead_cli.console import fail
from fairlead_cli.errors import CommandError, InputError, missing_part, refuse_other_bytes

FAILED = 1
INTERRUPTED = 130
_GARBAGE = 20_000
"""Objects between two looks for garbage: ten times what Python does, as all modules together make some."""
_UNWRITABLE = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG)
"""Errors of the system by which a result cannot be written: no room, a quota reached, a broken disk."""


def main() -> None:
    """Run the command line; say expected failures in words and end with their exit code."""
    if sys.stdout is None:
        # The caller closed it (`>&-`): what is asked for has nowhere to go.
        fail("standard output is closed")
        sys.exit(FAILED)
    # A script's shell starts what it has in the background deaf to Ctrl-C: `kill -INT` would be lost.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _print_in_utf_8()
    try:
        refuse_other_bytes(sys.argv[1:], os.environ)
        found = _answer()
        sys.stdout.flush()
    except CommandError as error:
        fail(str(error), problems=error.problems if isinstance(error, InputError) else (), hint=error.hint)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _end_without_reader()
    except SystemExit as ended:
        # So `rich` ends, which prints help and tables.
        if isinstance(ended.__context__, BrokenPipeError):
            _end_without_reader()
        raise
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        fail(f"the result cannot be written: {error.strerror}")
        sys.exit(FAILED)
    sys.exit(found if isinstance(found, int) else 0)


def _print_in_utf_8() -> None:
    """Has results and messages in UTF-8: in a locale of fewer letters no table could be written, and JSON would be none."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _end_without_reader() -> NoReturn:
    """End quietly as the reader of a pipe left (`fairlead queue | head`): not a failure, and Python's own flush must not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def _answer() -> object:
    """Runs the command line and returns its answer; the version is told without it: scripts ask for it."""
    if sys.argv[1:] == ["--version"]:
        from importlib.metadata import version

        sys.stdout.write(f"{version('fairlead-cli')}\n")
        return 0
    # A short command makes no garbage worth a look, and its imports would be looked through eight times.
    gc.set_threshold(_GARBAGE)
    # Nor at the end, where Python goes through all modules several times: a fifth of such a command.
    atexit.register(gc.freeze)
    # Commands import what they run when they run: `fairlead --help` must not wait for NATS, NumPy or rich tables.
    from cyclopts import CycloptsError

    from fairlead_cli.commands import application

    try:
        return application(sys.argv[1:])()
    except CycloptsError as error:
        from fairlead_cli.commands.misuse import misused

        raise misused(error) from None
    except ModuleNotFoundError as error:
        said = missing_part(next(iter(sys.argv[1:]), ""), error)
        if said is None:
            raise
        raise said from None


if __name__ == "__main__":
    main()
