"""A signal of the next change of one thing; several may wait for it, each for as long as it likes."""

import asyncio


class ChangeSignal:
    """A signal that wakes all who wait for a change; later waiters wait for the next change."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def notify(self) -> None:
        """Wake all who wait: something has changed."""
        changed, self._next = self._next, asyncio.Event()
        changed.set()

    async def wait(self, seconds: float) -> None:
        """Return when something has changed, or the time is over."""
        changed = self._next
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await changed.wait()
        except TimeoutError:
            return
