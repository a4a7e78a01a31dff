"""Garbage in cycles that nobody found while it was young."""

import asyncio
import gc
import weakref

from fairlead_runtime.garbage import collect_fully
from fairlead_testkit import eventually


class _Knot:
    def __init__(self) -> None:
        self.itself = self


async def test_old_garbage_is_found_by_a_full_collection() -> None:
    knot = _Knot()
    dead = weakref.ref(knot)
    gc.collect()  # old now
    gc.disable()
    collecting = asyncio.create_task(collect_fully(every=0.01))
    try:
        del knot
        await eventually(lambda: dead() is None, what="the knot is found")
    finally:
        collecting.cancel()
        gc.enable()
