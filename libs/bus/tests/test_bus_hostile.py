"""What a stranger who speaks the bare protocol can send: nothing of it may pass for the server's word or cut a client off."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import urlsplit

import pytest

from fairlead_bus import Asked, Bus, BusTally, Delivery, PoisonError
from fairlead_contracts import subjects
from fairlead_contracts.messages.submissions import DEAD_LETTER
from fairlead_contracts.topology import submit_durable
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.bus_harness import working

pytestmark = pytest.mark.integration

SUBJECT = subjects.submit("c1", "team-a")
DURABLE = submit_durable("c1")

type Handle = Callable[[Delivery], Awaitable[None]]


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
    asked: list[bytes] = []

    async def handle(question: Asked) -> bytes:
        asked.append(question.payload)
        return b"heard"

    question = subjects.ask("queue", "team-a")
    endpoint = await bus.serve(question, handle)
    assert await bus.request(question, b"first") == b"heard"  # the server knows who answers
    await stranger.send(question.encode(), payload=b"hostile", reply=reply)
    assert await bus.request(question, b"neighbour") == b"heard"
    await endpoint.close()
    assert asked == [b"first", b"neighbour"]
    assert (tally.counts["bus.disconnects"], tally.counts["serve.misdirected"]) == (0, 1)


@pytest.mark.parametrize(
    "reply",
    ["$KV.policy.document", subjects.state("c1", "node", "n1"), "_INBOXES.x", "$JS.API.STREAM.PURGE.state"],
)
async def test_an_answer_is_never_aimed_at_what_the_asker_may_not_write(
    bus: Bus, tally: BusTally, stranger: Stranger, reply: str
) -> None:
    asked: list[bytes] = []
    aimed: list[Asked] = []

    async def handle(question: Asked) -> bytes:
        asked.append(question.payload)
        return b"overwritten"

    async def hear(message: Asked) -> None:
        aimed.append(message)

    question = subjects.ask("queue", "team-a")
    endpoint = await bus.serve(question, handle)
    stop = await bus.subscribe_core(reply, hear)
    assert await bus.request(question, b"first") == b"overwritten"
    await stranger.send(question.encode(), payload=b"hostile", reply=reply.encode())
    assert await bus.request(question, b"last") == b"overwritten"
    await stop()
    await endpoint.close()
    assert (asked, aimed) == ([b"first", b"last"], [])
    assert tally.counts["serve.misdirected"] == 1


async def test_a_question_that_nobody_hears_the_answer_to_is_no_work(
    bus: Bus, tally: BusTally, stranger: Stranger
) -> None:
    asked: list[bytes] = []

    async def handle(question: Asked) -> bytes:
        asked.append(question.payload)
        return b""

    question = subjects.ask("queue", "team-a")
    endpoint = await bus.serve(question, handle)
    await bus.request(
        question, b"first"
    )  # the server knows who listens: the stranger's connection is another
    await stranger.send(question.encode(), payload=b"hostile")
    await eventually(lambda: tally.counts["serve.unanswerable"] == 1)
    await bus.request(question, b"last")
    await endpoint.close()
    assert asked == [b"first", b"last"]


@pytest.mark.parametrize("reply", ["_INBOX.abc.1", "_INBOX_team-a.abc.1"])
async def test_an_inbox_of_any_client_is_answered(bus: Bus, stranger: Stranger, reply: str) -> None:
    aimed: list[Asked] = []

    async def handle(question: Asked) -> bytes:
        return question.payload

    async def hear(message: Asked) -> None:
        aimed.append(message)

    question = subjects.ask("queue", "team-a")
    endpoint = await bus.serve(question, handle)
    stop = await bus.subscribe_core(reply, hear)
    assert await bus.request(question, b"first") == b"first"
    await stranger.send(question.encode(), payload=b"mine", reply=reply.encode())
    await eventually(lambda: [message.payload for message in aimed] == [b"mine"])
    await stop()
    await endpoint.close()
