"""Waits of event loops: no wake is lost, bursts become one, and a burst without end is cut."""

import asyncio

from fairlead_runtime import Coalescer, wake_or_timeout

PLENTY = 30.0
SHORT = 0.02


class Clock:
    """Monotonic seconds under the test's hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


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


async def test_nothing_is_coalesced_from_nothing() -> None:
    assert not await Coalescer(asyncio.Event(), idle=SHORT, longest=PLENTY).wait(SHORT)


async def test_a_single_wake_comes_through_after_the_idle_time() -> None:
    wake = asyncio.Event()
    wake.set()
    assert await Coalescer(wake, idle=SHORT, longest=PLENTY).wait()
    assert not wake.is_set()


async def test_a_burst_becomes_one() -> None:
    wake = asyncio.Event()
    loop = asyncio.get_running_loop()
    left = 50

    def again() -> None:
        nonlocal left
        left -= 1
        wake.set()
        if left:
            loop.call_soon(again)

    loop.call_soon(again)
    assert await Coalescer(wake, idle=SHORT, longest=PLENTY).wait()
    assert left == 0
    assert not wake.is_set()


async def test_a_burst_without_end_is_cut_at_the_longest_wait() -> None:
    wake, clock = asyncio.Event(), Clock()
    loop = asyncio.get_running_loop()
    ticks = 0

    def again() -> None:
        nonlocal ticks
        ticks += 1
        clock.now += 0.1
        wake.set()
        if ticks < 1000:
            loop.call_soon(again)

    loop.call_soon(again)
    assert await Coalescer(wake, idle=PLENTY, longest=1.0, clock=clock).wait()
    assert 5 <= ticks < 100, "a second of its clock, not the whole thousand ticks"


async def test_a_wake_after_the_burst_is_kept_for_the_next_wait() -> None:
    wake = asyncio.Event()
    coalescer = Coalescer(wake, idle=SHORT, longest=PLENTY)
    wake.set()
    assert await coalescer.wait()
    wake.set()
    assert await coalescer.wait(PLENTY)


async def test_a_cancelled_wait_is_cancelled() -> None:
    task = asyncio.create_task(Coalescer(asyncio.Event(), idle=SHORT, longest=PLENTY).wait())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
