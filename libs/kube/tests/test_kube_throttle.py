"""The token bucket: a burst at once, then its pace, first come first served."""

import asyncio

import pytest

from fairlead_kube.connection.throttle import Throttle
from fairlead_testkit.timing.in_hand import ManualClock


async def test_a_burst_goes_at_once_and_a_rest_fills_the_bucket() -> None:
    clock = ManualClock(100.0)
    throttle = Throttle(50, 3, clock=clock)

    async def waited(calls: int) -> int:
        before = throttle.waited
        for _ in range(calls):
            await throttle.acquire()
        return throttle.waited - before

    assert await waited(3) == 0
    clock.now += 0.04
    assert await waited(2) == 0, "two calls came back meanwhile"
    assert await waited(1) == 1, "and no third one"
    clock.now += 100
    assert await waited(3) == 0
    assert await waited(1) == 1, "a long rest brings no more than a burst"


async def test_beyond_the_burst_calls_wait_in_order_and_are_counted() -> None:
    throttle = Throttle(
        200, 1, clock=ManualClock(100.0)
    )  # it stands still: nothing comes back while they get in line
    done: list[int] = []

    async def call(number: int) -> None:
        await throttle.acquire()
        done.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(call(number))
    assert done == [0, 1, 2, 3, 4]
    assert throttle.granted == 5
    assert throttle.waited == 4
    assert throttle.waited_seconds > 0


async def test_a_waiter_that_is_cancelled_takes_nothing() -> None:
    throttle = Throttle(0.001, 1)
    await throttle.acquire()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await throttle.acquire()
    assert throttle.granted == 1


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_limits_that_let_nothing_through_are_refused(qps: float, burst: int) -> None:
    with pytest.raises(ValueError, match="throttle"):
        Throttle(qps, burst)
