"""Messages of a stranger who speaks the bare protocol: none may pass for the server's word or cut a client off."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from fairlead_bus import Asked, Bus, Delivery, PoisonError
from fairlead_bus.observer import BusTally
from fairlead_contracts import subjects
from fairlead_contracts.messages.submissions import DEAD_LETTER
from fairlead_contracts.topology import submit_durable
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.by_hand.bus_harness import working

pytestmark = pytest.mark.integration

SUBJECT = subjects.submit("c1", "team-a")
DURABLE = submit_durable("c1")
QUESTION = subjects.ask("queue", "team-a")


class Stranger:
    """A connection that sends bytes as they are, as no client library would."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(
        self, subject: bytes, *, headers: bytes = b"", payload: bytes = b"", reply: bytes = b""
    ) -> None:
        """Publishes, and returns once the server has taken it."""
        answer = reply + b" " if reply else b""
        whole = len(headers) + len(payload)
        if headers:
            line = b"HPUB %b %b%d %d\r\n" % (subject, answer, len(headers), whole)
        else:
            line = b"PUB %b %b%d\r\n" % (subject, answer, whole)
        self._writer.write(line + headers + payload + b"\r\nPING\r\n")
        while (said := await self._reader.readline()) != b"PONG\r\n":
            assert said, "the server hung up"
            assert not said.startswith(b"-ERR"), said


@pytest.fixture
async def stranger(nats_server: NatsServer, bus: Bus) -> AsyncIterator[Stranger]:
    del bus  # the streams stand
    address = urlsplit(nats_server.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    await reader.readline()
    writer.write(b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\n')
    yield Stranger(reader, writer)
    writer.close()


@contextlib.asynccontextmanager
async def answering(bus: Bus, said: bytes = b"heard") -> AsyncIterator[list[bytes]]:
    """Questions that came to an endpoint at QUESTION, which gives one answer; the stranger's server knows it."""
    asked: list[bytes] = []

    async def handle(question: Asked) -> bytes:
        asked.append(question.payload)
        return said

    endpoint = await bus.serve(QUESTION, handle)
    assert await bus.request(QUESTION, b"first") == said  # the server knows who answers
    yield asked
    await endpoint.close()


@contextlib.asynccontextmanager
async def overheard(bus: Bus, subject: str) -> AsyncIterator[list[bytes]]:
    """Messages that come to a subject."""
    came: list[bytes] = []

    async def hear(message: Asked) -> None:
        came.append(message.payload)

    stop = await bus.subscribe_core(subject, hear)
    yield came
    await stop()


@pytest.mark.parametrize(
    "headers",
    [
        b"NATS/1.0\r\nStatus: 100\r\n\r\n",
        b"NATS/1.0\r\nStatus: 409\r\n\r\n",
        b"NATS/1.0 100 Idle Heartbeat\r\n\r\n",
        b"NATS/1.0 503\r\n\r\n",
        b"NATS/1.0 \xff\xff\xff\r\n\r\n",
        b"NATS/1.0 100 \xff\xff\r\n\r\n",
        b"NATS/1.0\r\nName: \xff\xff\r\n\r\n",
        b"NATS/1.0\r\n\xff: x\r\n no colon\r\n\r\n",
    ],
)
async def test_a_message_that_looks_like_the_servers_own_is_handled_like_any(
    bus: Bus, tally: BusTally, stranger: Stranger, headers: bytes
) -> None:
    handled: list[bytes] = []

    async def handle(delivery: Delivery) -> None:
        handled.append(delivery.payload)

    async with working(bus, handle):
        await stranger.send(SUBJECT.encode(), headers=headers)
        await bus.publish(SUBJECT, b"a neighbour's")
        await eventually(lambda: tally.counts["worker.handled"] == 2, on=tally.heard)
    assert sorted(handled) == [b"", b"a neighbour's"]
    assert tally.counts["bus.disconnects"] == 0


@pytest.mark.parametrize("token", [b"\xff\xfe", b"a\x0bb", b"a\x0cb", b"\x0b1\x0b2", b"\xc3\x28"])
async def test_a_subject_that_is_no_text_disconnects_nobody_and_ends_in_the_dead_letters(
    bus: Bus, tally: BusTally, stranger: Stranger, token: bytes
) -> None:
    handled: list[str] = []

    async def handle(delivery: Delivery) -> None:
        if "\x0b" in delivery.subject or "\x0c" in delivery.subject:
            raise PoisonError("text, and nobody's")
        handled.append(delivery.subject)

    async with working(bus, handle):
        await stranger.send(b"fairlead.v1.submit.c1." + token, payload=b"{}")
        await bus.publish(SUBJECT, b"a neighbour's")
        await eventually(lambda: tally.counts["worker.handled"] == 1, on=tally.heard)
        await eventually(lambda: tally.counts["worker.dead_letters"] == 1, on=tally.heard)
    assert handled == [SUBJECT]
    assert tally.counts["bus.disconnects"] == 0
    found = await bus.last("dead", subjects.dead(">"))
    assert found is not None
    assert DEAD_LETTER.decode(found.payload).payload == b"{}"


@pytest.mark.parametrize("reply", [b"\xff\xfe", b"a\x0bb", b"a\x0cb"])
async def test_a_question_whose_reply_subject_is_no_text_harms_no_other(
    bus: Bus, tally: BusTally, stranger: Stranger, reply: bytes
) -> None:
    async with answering(bus) as asked:
        await stranger.send(QUESTION.encode(), payload=b"hostile", reply=reply)
        assert await bus.request(QUESTION, b"neighbour") == b"heard"
    assert asked == [b"first", b"neighbour"]
    assert (tally.counts["bus.disconnects"], tally.counts["serve.misdirected"]) == (0, 1)


@pytest.mark.parametrize(
    "reply",
    ["$KV.policy.document", subjects.state("c1", "node", "n1"), "_INBOXES.x", "$JS.API.STREAM.PURGE.state"],
)
async def test_an_answer_is_never_aimed_at_what_the_asker_may_not_write(
    bus: Bus, tally: BusTally, stranger: Stranger, reply: str
) -> None:
    async with overheard(bus, reply) as aimed, answering(bus, b"overwritten") as asked:
        await stranger.send(QUESTION.encode(), payload=b"hostile", reply=reply.encode())
        assert await bus.request(QUESTION, b"last") == b"overwritten"
    assert (asked, aimed) == ([b"first", b"last"], [])
    assert tally.counts["serve.misdirected"] == 1


async def test_a_question_that_nobody_hears_the_answer_to_is_no_work(
    bus: Bus, tally: BusTally, stranger: Stranger
) -> None:
    async with answering(bus) as asked:
        await stranger.send(QUESTION.encode(), payload=b"hostile")
        await eventually(lambda: tally.counts["serve.unanswerable"] == 1)
        await bus.request(QUESTION, b"last")
    assert asked == [b"first", b"last"]


@pytest.mark.parametrize("reply", ["_INBOX.abc.1", "_INBOX_team-a.abc.1"])
async def test_an_inbox_of_any_client_is_answered(bus: Bus, stranger: Stranger, reply: str) -> None:
    async with overheard(bus, reply) as aimed, answering(bus):
        await stranger.send(QUESTION.encode(), payload=b"mine", reply=reply.encode())
        await eventually(lambda: aimed == [b"heard"])
