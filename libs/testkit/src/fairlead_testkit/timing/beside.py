"""Tasks beside a block of a test: begun with it, cancelled at its end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any


@contextlib.asynccontextmanager
async def beside(*coroutines: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """Runs them beside the block, and cancels them at its end. Where one of them fails, so does the block, at once."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in coroutines]
        yield
        for task in tasks:
            task.cancel()
