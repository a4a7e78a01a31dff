"""When Python looks for garbage in cycles: among young objects as ever, among all of them when we say so.

By itself it looks through every object each time their number has grown by a quarter. With 15,000 waiting jobs that
stops a service for 0.1 to 0.2 s, in the middle of whatever it reacts to. Nearly all garbage is freed without it, or
found while young; the rest can wait some minutes.
"""

import asyncio
import gc
import random

FULL_SECONDS = 300.0
"""About how often all objects are looked through: a pause of 0.2 s then is less than a thousandth of the time."""
_HARDLY_EVER = 1000
"""Collections of the middle generation before Python looks through all by itself: only where garbage piles up."""


def put_off_full_collections() -> None:
    """Leave what stands now, modules above all, out of every collection, and full collections to `collect_fully`."""
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _HARDLY_EVER)
    gc.collect()
    gc.freeze()


async def collect_fully(every: float = FULL_SECONDS) -> None:
    """Look through all objects about every so many seconds, until cancelled."""
    while True:
        # Replicas that were started together shall not pause together.
        await asyncio.sleep(every * random.uniform(0.7, 1.3))  # noqa: S311 # no secret
        gc.collect()
