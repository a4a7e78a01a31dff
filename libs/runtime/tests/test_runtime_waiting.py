"""Waits of event loops: no wake is lost, and a wait ends in time."""

import asyncio
import time

from fairlead_runtime.waiting import CpuTokenBucket, Pacing, pause_after, until_next, wake_or_timeout
from fairlead_testkit.timing.in_hand import ManualClock

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


async def test_the_first_pass_begins_at_once_and_those_that_follow_on_its_heels_together() -> None:
    wake, pacing = asyncio.Event(), Pacing(least=PLENTY, most=PLENTY)
    wake.set()
    async with asyncio.timeout(PLENTY / 2):
        assert await pacing.wake_or_timeout(wake, PLENTY)
    wake, pacing = asyncio.Event(), Pacing(least=10 * SHORT, most=PLENTY)
    wake.set()
    await pacing.wake_or_timeout(wake, PLENTY)
    wake.set()
    asyncio.get_running_loop().call_later(SHORT, wake.set)
    began = time.monotonic()
    assert await pacing.wake_or_timeout(wake, PLENTY)
    assert time.monotonic() - began >= 9 * SHORT
    assert not wake.is_set(), "what came while it rested is looked at by this pass"


async def test_a_pass_is_followed_by_a_rest_as_long_as_its_own_work_within_bounds() -> None:
    spent = iter([0.0, 0.1, 0.1, 1000.0, 1000.0])
    wake = asyncio.Event()
    pacing = Pacing(most=0.3, times=2.0, spent=lambda: next(spent))
    wake.set()
    await pacing.wake_or_timeout(wake, None)
    for least in (0.2, 0.3):
        wake.set()
        began = time.monotonic()
        await pacing.wake_or_timeout(wake, None)
        assert time.monotonic() - began >= 0.9 * least


def test_those_who_rest_until_the_next_instant_meet_there() -> None:
    assert [until_next(0.5, at) for at in (7.0, 7.125, 7.5, 7.75)] == [0.5, 0.375, 0.5, 0.25]
    assert until_next(0.0, 7.125) == 0.0


async def test_a_rest_that_is_over_delays_nothing() -> None:
    wake, pacing = asyncio.Event(), Pacing(least=SHORT)
    wake.set()
    await pacing.wake_or_timeout(wake, PLENTY)
    assert not await pacing.wake_or_timeout(wake, 2 * SHORT)


def test_an_allowance_lets_a_burst_pass_and_then_asks_for_rests_until_it_is_back() -> None:
    clock, cpu = ManualClock(), [0.0]
    allowance = CpuTokenBucket(0.05, share=0.1, burst=0.03, clock=clock, spent=lambda: cpu[0])

    def after(seconds: float, spent: float) -> float:
        clock.now += seconds
        cpu[0] += spent
        return allowance.due()

    assert [round(after(0.0, 0.01), 6) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert round(after(0.0, 0.002), 6) == 0.02, "as long as it takes to come back at a tenth of a core"
    assert round(after(0.0, 10.0), 6) == 0.05, "a long pass is followed by no longer rest than was asked for"
    assert round(after(0.05, 0.0), 6) == 0.0, "and is forgotten after it"
    assert [round(after(100.0, 0.0), 6), round(after(0.0, 0.03), 6)] == [0.0, 0.0], (
        "a quiet time saves up a burst"
    )
    assert after(0.0, 0.001) > 0.0, "and no more than that"


async def test_a_pass_begins_later_where_the_allowance_is_used_up() -> None:
    wake = asyncio.Event()
    pacing = Pacing(rests=[CpuTokenBucket(10 * SHORT, burst=0.0, spent=iter(range(9)).__next__).due])
    wake.set()
    await pacing.wake_or_timeout(wake, None)
    wake.set()
    began = time.monotonic()
    await pacing.wake_or_timeout(wake, None)
    assert time.monotonic() - began >= 9 * SHORT
