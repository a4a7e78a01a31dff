"""An interpreter of its own for a script: nothing is imported there yet, and it can be killed."""

import asyncio
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


def printed_by(script: str) -> str:
    """The output of a script that a fresh interpreter runs, without its last end of line.

    Raises:
        subprocess.CalledProcessError: the script failed.
    """
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)  # noqa: S603 # a script of ours
    return done.stdout.removesuffix("\n")


@asynccontextmanager
async def child_running(script: str, *words: str) -> AsyncIterator[tuple[Process, asyncio.StreamReader]]:
    """Run a script beside the block, and kill it at its end; gives its process and what it prints.

    Args:
        script: the script.
        words: its arguments.
    """
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", script, *words, stdout=PIPE)
    assert child.stdout is not None  # noqa: S101 # it is a pipe
    try:
        yield child, child.stdout
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()
