"""`fairlead top` on a terminal: the key that ends it."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

ALTERNATE_SCREEN = b"\x1b[?1049h"
"""Bytes that a terminal gets when the live view begins."""


def read_until(terminal: int, right: Callable[[bytes], bool], seconds: float = 60.0) -> bytes:
    shown, deadline = b"", time.monotonic() + seconds
    while not right(shown):
        assert time.monotonic() < deadline, shown
        readable, _, _ = select.select([terminal], [], [], 0.1)
        if readable:
            shown += os.read(terminal, 65_536)
    return shown


def test_q_ends_it_and_leaves_the_terminal_as_it_was(nats: str) -> None:
    ours, its = pty.openpty()
    words = [sys.executable, "-m", "fairlead_cli", "top", "--nats", nats, "--every", "60"]
    environ = {"TERM": "xterm", "COLUMNS": "60", "LINES": "20"}
    stated = ["/bin/stty", "-g"]
    before = subprocess.run(stated, stdin=its, capture_output=True, check=True).stdout
    with subprocess.Popen(words, stdin=its, stdout=its, stderr=its, env=environ) as process:
        try:
            read_until(ours, lambda shown: ALTERNATE_SCREEN in shown)
            os.write(ours, b"q")
            shown = read_until(ours, lambda _: process.poll() is not None)
            assert process.returncode == 0, shown
            assert subprocess.run(stated, stdin=its, capture_output=True, check=True).stdout == before
        finally:
            process.kill()
            os.close(ours)
            os.close(its)
