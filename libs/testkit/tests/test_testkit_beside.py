"""Tasks beside a block: ended with it, and the block with one that fails."""

import asyncio

import pytest

from fairlead_testkit.timing.in_hand import beside


async def test_what_runs_beside_a_block_ends_with_it() -> None:
    begun, over = asyncio.Event(), asyncio.Event()

    async def run() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            over.set()

    async with beside(run()):
        await begun.wait()
        assert not over.is_set()
    assert over.is_set()


async def test_what_fails_beside_a_block_ends_it() -> None:
    async def fail() -> None:
        raise LookupError("a fault")

    with pytest.RaisesGroup(LookupError):
        async with beside(fail()):
            await asyncio.Event().wait()
