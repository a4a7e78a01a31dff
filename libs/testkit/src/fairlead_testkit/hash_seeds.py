"""Runs of a script by other processes, in which sets of texts stand in other orders than here and in each other."""

import os
import subprocess
import sys
from pathlib import Path

SEEDS = ("1", "2")


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
