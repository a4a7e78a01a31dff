"""How several wait for the next change of one thing, each for as long as it likes."""

import asyncio


class News:
    """Wakes all who wait, once a change; who begins to wait afterwards waits for the next one."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def tell(self) -> None:
        """Something has changed."""
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
