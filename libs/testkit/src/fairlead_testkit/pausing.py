"""Pausing a child process for certain.

A SIGSTOP takes effect a moment after `kill` returns, thread by thread; what the process still does in that moment would
make a test of pauses a matter of luck.
"""

import os
import signal


def pause(pid: int) -> None:
    """SIGSTOP, and wait until every thread of the child stands still, or it has ended."""
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)  # leaves an exit code to its owner


def resume(pid: int) -> None:
    """SIGCONT."""
    os.kill(pid, signal.SIGCONT)
