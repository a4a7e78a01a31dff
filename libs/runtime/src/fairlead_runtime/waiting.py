"""How event loops wait: for the next wake, with a longest wait.

An `asyncio.Event` is the only thing that is waited for; what changed is read elsewhere. The event is always cleared
before the caller looks, so that a change during its work wakes it again and none is missed.
"""

import asyncio
import random

_ENDLESS = 32
"""Failures in a row after which none of them makes a pause any longer."""


def pause_after(row: int, *, first: float, longest: float) -> float:
    """Seconds to wait after a failure that so many others in a row came before: each time twice as long, with jitter.

    Args:
        row: failures before this one.
        first: seconds at most after the first one.
        longest: seconds at most.
    """
    # Several who failed in one instant shall not all come back in one.
    return min(first * 2.0 ** min(row, _ENDLESS), longest) * random.uniform(0.5, 1.0)  # noqa: S311 # no secret


async def wake_or_timeout(wake: asyncio.Event, seconds: float | None) -> bool:
    """Wait until `wake` is set, at most `seconds` (None for ever), and clear it.

    Returns:
        Whether it was set; False after the whole time without it.
    """
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        return False
    wake.clear()
    return True
