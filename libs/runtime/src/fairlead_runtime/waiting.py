"""How event loops wait: for the next wake, with a longest wait.

An `asyncio.Event` is the only thing that is waited for; what changed is read elsewhere. The event is always cleared
before the caller looks, so that a change during its work wakes it again and none is missed.
"""

import asyncio


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
