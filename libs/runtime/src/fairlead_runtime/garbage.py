"""Collection of garbage in cycles: among young objects as Python does it, among older ones when we say so.

By itself it looks through every object each time their number has grown by a quarter. With 15,000 waiting jobs that
stops a service for 0.05 to 0.1 s, in the middle of whatever it reacts to. Nearly all garbage is freed without it, or
found while young. So twice a minute it looks through what has come since the last time alone, some milliseconds long, and
through all that stands only every few hours, or once that has doubled: a knot that falls apart later than it was looked at
waits for that. On a machine so busy that leases were lost every minute, half of a service was such knots after 45 minutes.
Every five minutes was too seldom: what came in five minutes of 30 starts a second, or with a backlog, took 0.05 to 0.08 s
in one step.
"""

import asyncio
import gc
import random
from itertools import count

RECENT_SECONDS = 30.0
"""Mean time between two looks through the objects that came since the last one."""
WHOLE_EVERY = 480
"""Number of looks through the recent objects for one through all: about every four hours, for a tenth of a
second."""
GROWN = 2.0
"""Growth, since the last look through all objects, at which all are looked through again: up to half of them
may be knots."""
_HARDLY_EVER = 1000
"""Collections of the middle generation before Python looks through all by itself: only where garbage piles
up."""


def put_off_full_collections() -> None:
    """Leave what stands now, modules above all, out of every collection, and full collections to `collect_fully`."""
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _HARDLY_EVER)
    gc.collect()
    gc.freeze()


async def collect_fully(every: float = RECENT_SECONDS, whole_every: int = WHOLE_EVERY) -> None:
    """Collect young objects about every `every` seconds, all objects every `whole_every` rounds or after doubling."""
    stood = gc.get_freeze_count()
    for number in count(1):
        # Replicas that were started together shall not pause together.
        await asyncio.sleep(every * random.uniform(0.7, 1.3))  # noqa: S311 # no secret
        whole = number % whole_every == 0 or gc.get_freeze_count() > GROWN * stood
        if whole:
            gc.unfreeze()
        gc.collect()
        gc.freeze()
        if whole:
            stood = gc.get_freeze_count()
