"""Events that wake the loop, and the time of it."""

import asyncio

import pytest

from fairlead_admitter.observe.watch import STATE_SECONDS, DelayedEvent

pytestmark = pytest.mark.timeout(60)


class Counting(asyncio.Event):
    """An event that counts how often it was set."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def set(self) -> None:
        self.count += 1
        super().set()


async def test_changes_of_one_moment_are_looked_at_together() -> None:
    wake = Counting()
    delayed = DelayedEvent(wake)
    for _ in range(1000):
        delayed.set()
    assert not wake.is_set(), "it is put off"
    await wake.wait()
    await asyncio.sleep(3 * STATE_SECONDS)
    assert wake.count == 1, "nothing wakes it when nothing comes"
    wake.clear()
    delayed.set()
    await wake.wait()
    assert wake.count == 2


async def test_what_was_looked_at_for_another_reason_wakes_nobody() -> None:
    wake = Counting()
    delayed = DelayedEvent(wake)
    delayed.set()
    delayed.cancel()
    await asyncio.sleep(3 * STATE_SECONDS)
    assert wake.count == 0
    delayed.set()
    await wake.wait()
    assert wake.count == 1, "what comes afterwards does"
