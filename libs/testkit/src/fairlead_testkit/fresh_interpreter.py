"""An interpreter of its own for a script: nothing is imported there yet."""

import subprocess
import sys


def printed_by(script: str) -> str:
    """The output of a script that a fresh interpreter runs, without its last end of line.

    Raises:
        subprocess.CalledProcessError: the script failed.
    """
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)  # noqa: S603 # a script of ours
    return done.stdout.removesuffix("\n")
