"""The time for which a process waits for a CPU."""

import os
import sys
import time
from multiprocessing import Process

import pytest

from fairlead_runtime.cpu_wait import CpuWait, run_and_wait
from fairlead_testkit.timing.in_hand import ManualClock


def test_the_part_is_of_the_last_seconds_alone() -> None:
    clock, counted = ManualClock(), [(10, 20)]
    wait = CpuWait(1.0, clock=clock, counted=lambda: counted[0])
    counted[0] = (11, 23)
    assert wait.part() == 0.0, "not measured yet"
    clock.now = 1.0
    assert wait.part() == 0.75
    counted[0] = (90, 90)
    clock.now = 1.5
    assert wait.part() == 0.75, "until the next measurement"
    counted[0] = (15, 24)
    clock.now = 2.0
    assert wait.part() == 0.2
    clock.now = 3.0
    assert wait.part() == 0.0, "it did not want to run"


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not count it")
def test_who_shares_a_core_waits_for_it() -> None:
    """Two processes that never rest have half a core each, on one."""
    allowed = os.sched_getaffinity(0)
    others = [Process(target=_spin, daemon=True) for _ in range(2)]
    try:
        os.sched_setaffinity(0, {min(allowed)})
        for other in others:
            other.start()
        ran, waited = run_and_wait()
        until = time.monotonic() + 10
        while time.monotonic() < until and (
            run_and_wait()[0] - ran < 1e8 or run_and_wait()[1] - waited < 5e7
        ):
            pass
        after = run_and_wait()
    finally:
        os.sched_setaffinity(0, allowed)
        for other in others:
            other.kill()
            other.join()
    assert after[1] - waited > 0.3 * (after[0] - ran)


def _spin() -> None:
    while True:
        pass
