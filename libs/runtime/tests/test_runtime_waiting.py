"""Waits of event loops: no wake is lost, and a wait ends in time."""

import asyncio

from fairlead_runtime import pause_after, wake_or_timeout

PLENTY = 30.0
SHORT = 0.02


async def test_a_wake_before_the_wait_counts() -> None:
    wake = asyncio.Event()
    wake.set()
    assert await wake_or_timeout(wake, PLENTY)
    assert not wake.is_set()


async def test_the_time_passes_without_a_wake() -> None:
    assert not await wake_or_timeout(asyncio.Event(), SHORT)


async def test_a_wake_during_the_wait_ends_it() -> None:
    wake = asyncio.Event()
    asyncio.get_running_loop().call_soon(wake.set)
    assert await wake_or_timeout(wake, None)


async def test_a_cancelled_wait_is_cancelled() -> None:
    task = asyncio.create_task(wake_or_timeout(asyncio.Event(), None))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


def test_pauses_double_up_to_the_longest_and_differ() -> None:
    for row, most in ((0, 1.0), (1, 2.0), (2, 4.0), (3, 5.0), (10_000, 5.0)):
        pauses = [pause_after(row, first=1.0, longest=5.0) for _ in range(50)]
        assert most / 2 <= min(pauses) < max(pauses) <= most
