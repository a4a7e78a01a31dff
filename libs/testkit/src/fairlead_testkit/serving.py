"""A replica of a service within the test's own process: quick to start, and open to a debugger.

For the service as the process that it is in production, see `process`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from fairlead_runtime.lifecycle import Lifecycle
from fairlead_runtime.settings import ServiceSettings

type ServiceMain[S: ServiceSettings] = Callable[[S, Lifecycle], Awaitable[None]]


@asynccontextmanager
async def serving[S: ServiceSettings](
    main: ServiceMain[S], settings: S, replica: str
) -> AsyncIterator[Lifecycle]:
    """The service runs until the block ends, and is then asked to stop as by a signal."""
    lifecycle = Lifecycle(main.__module__.removeprefix("fairlead_").partition(".")[0], replica)

    async def live() -> None:
        await main(settings, lifecycle)

    async with asyncio.TaskGroup() as group:
        group.create_task(live(), name=replica)
        try:
            yield lifecycle
        finally:
            lifecycle.ask_stop("the test is over")
