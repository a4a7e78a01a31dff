"""The reaper: ends every child when the process that started them is gone, however it went.

A process killed with SIGKILL cannot clean up, and its children would live on. So `up` and `demo` first start this
small process and hold a pipe to it; every other child joins the reaper's process group. When the pipe closes, which
the kernel sees to, the reaper ends its whole group. A group's number is not given away while the reaper is in it, so
no stranger can be hit. Works alike on Linux and macOS; imports nothing but the standard library.
"""

import os
import signal
import sys
import time

GRACE_SECONDS = 3.0
"""Seconds between asking the group to end and killing it: a service leaves its leases in well under one."""


def reap() -> None:
    """Wait until the other end of standard input closes, then end the process group."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.killpg(0, signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    reap()
