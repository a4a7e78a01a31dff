"""An interpreter of its own for a script: nothing is imported there yet, and it can be killed."""

import asyncio
import os
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

SEEDS = ("1", "2")
"""Seeds by which texts are hashed: sets of them stand in other orders than here and in each other."""


def printed_by(script: str) -> str:
    """The output of a script that a fresh interpreter runs, without its last end of line.

    Raises:
        subprocess.CalledProcessError: the script failed.
    """
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)  # noqa: S603 # a script of ours
    return done.stdout.removesuffix("\n")


def printed_under_other_seeds(script: str, *arguments: Path) -> list[str]:
    """Runs a script in a process for each seed by which texts are hashed; returns what each prints, without its ends of line.

    Raises:
        subprocess.CalledProcessError: the script failed.
    """
    return [
        subprocess.run(  # noqa: S603 # a script of ours
            [sys.executable, script, *map(str, arguments)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in SEEDS
    ]


@asynccontextmanager
async def child_running(script: str, *words: str) -> AsyncIterator[tuple[Process, asyncio.StreamReader]]:
    """Run a script beside the block, and kill it at its end; gives its process and what it prints."""
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", script, *words, stdout=PIPE)
    assert child.stdout is not None  # noqa: S101 # it is a pipe
    try:
        yield child, child.stdout
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()
