"""The next change of one thing, for which several wait, each for as long as it likes."""

import asyncio


class News:
    """A bell that wakes all who wait, once a change; later waiters wait for the next one."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def tell(self) -> None:
        """Wake all who wait: something has changed."""
        told, self._next = self._next, asyncio.Event()
        told.set()

    async def wait(self, seconds: float) -> None:
        """Return when something has changed, or the time is over."""
        news = self._next
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await news.wait()
        except TimeoutError:
            return
