"""A running instance watched: the messages of a stream, and `fairlead top`, its live view."""

import asyncio
import os
import sys
import termios
import tty
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager

import msgspec
from rich.live import Live
from rich.text import Text

from fairlead_bus import Bus, Follower
from fairlead_cli.client.connection import ask, connected
from fairlead_cli.client.live import Throughput, dashboard, positions_that_fit
from fairlead_cli.client.visible import visible
from fairlead_cli.console import Screen, coloured, output, unstyled, write_line
from fairlead_cli.errors import NoScorerAnswersError
from fairlead_cli.signals import happens
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import Codec
from fairlead_contracts.base.errors import ContractError
from fairlead_contracts.messages.events import EVENT, AnyEvent
from fairlead_contracts.messages.questions import (
    QUEUE_REPLY,
    TENANTS_REPLY,
    QueueQuestion,
    QueueReply,
    TenantsQuestion,
    TenantsReply,
)


@asynccontextmanager
async def hearing[T](
    bus: Bus,
    *,
    stream: str,
    filter: str,  # noqa: A002 - the word of NATS
    codec: Codec[T],
    take: Callable[[T], None],
) -> AsyncIterator[None]:
    """Calls `take` with every message from the beginning of the block to its end, in order, over reconnects.

    A message that this release cannot read is left out: it comes from a newer one, and there is no one here to tell.
    """
    follower = Follower(bus, stream=stream, filter=filter)

    async def follow() -> None:
        async for message in follower:
            try:
                found = codec.decode(message.payload)
            except ContractError:
                continue
            take(found)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(follow(), name=f"hearing {filter}")
        await follower.ready.wait()
        yield
        task.cancel()


class InstanceAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of a running instance on tenants and jobs; None where no scorer answers."""

    tenants: TenantsReply | None = None
    queue: QueueReply | None = None


async def look(bus: Bus, *, positions: int, pool: str | None = None) -> InstanceAnswers:
    """Ask for tenants and for the next jobs, so many of each pool."""
    try:
        tenants = await ask(bus, "tenants", TenantsQuestion(pool=pool), TENANTS_REPLY)
        queue = await ask(bus, "queue", QueueQuestion(pool=pool, limit=positions), QUEUE_REPLY)
    except NoScorerAnswersError:
        return InstanceAnswers()
    return InstanceAnswers(tenants=visible(tenants), queue=visible(queue))


def events(bus: Bus, take: Callable[[AnyEvent], None]) -> AbstractAsyncContextManager[None]:
    """Calls `take` with every event from now on, for the time of the block."""
    return hearing(bus, stream=topology.EVENT, filter=subjects.event_filter(), codec=EVENT, take=take)


@contextmanager
def ending_on_q() -> Iterator[asyncio.Event]:
    """An event that the key `q` sets, where standard input is a terminal."""
    end = asyncio.Event()
    if not sys.stdin.isatty():
        yield end
        return
    keys, loop = sys.stdin.fileno(), asyncio.get_running_loop()

    def pressed() -> None:
        typed = os.read(keys, 64)
        if b"q" in typed.lower() or not typed:
            end.set()

    before = termios.tcgetattr(keys)
    # Each key at once, and not shown; Ctrl-C stays what it is.
    tty.setcbreak(keys)
    loop.add_reader(keys, pressed)
    try:
        yield end
    finally:
        loop.remove_reader(keys)
        termios.tcsetattr(keys, termios.TCSADRAIN, before)


async def watch(nats: str | None, *, pool: str | None, every: float) -> None:
    """Show the live view until `q` or Ctrl-C; where standard output is no terminal, print it once."""
    console = output()
    throughput = Throughput()

    def frame(found: InstanceAnswers) -> str:
        screen = Screen(console.width, coloured if console.is_terminal else unstyled)
        return dashboard("Fairlead", screen, tenants=found.tenants, queue=found.queue, throughput=throughput)

    async with connected(nats) as bus, events(bus, throughput.take):
        first = await look(bus, positions=positions_that_fit(console.height), pool=pool)
        if not console.is_terminal:
            write_line(frame(first))
            return
        with (
            ending_on_q() as end,
            Live(Text.from_ansi(frame(first)), console=console, screen=True, auto_refresh=False) as live,
        ):
            while not await happens(end, within=every):
                found = await look(bus, positions=positions_that_fit(console.height), pool=pool)
                live.update(Text.from_ansi(frame(found)), refresh=True)
