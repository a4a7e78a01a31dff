import asyncio
from collections.abc import Awaitable, Callable

import pytest

from fairlead_bus import (
    AnswerTimeoutError,
    Asked,
    Bus,
    ConnectionSettings,
    NobodyAnswersError,
    Rejected,
    RemoteError,
    connect,
)
from fairlead_bus.errors import ConnectionLostError
from fairlead_bus.observer import BusTally
from fairlead_contracts import subjects
from fairlead_testkit import NatsServer, eventually

pytestmark = pytest.mark.integration

ASK = subjects.ask("queue", "team-a")


async def echo(asked: Asked) -> bytes:
    return asked.subject.encode() + b" " + asked.payload


async def test_a_question_is_answered(bus: Bus) -> None:
    endpoint = await bus.serve(subjects.ask_filter("queue"), echo, queue="scorers")
    assert await bus.request(ASK, b"?") == ASK.encode() + b" ?"
    await endpoint.close()
    with pytest.raises(NobodyAnswersError):
        await bus.request(ASK, b"?")


async def test_a_rejection_reaches_the_asker_with_code_text_and_payload(bus: Bus) -> None:
    async def reject(asked: Asked) -> bytes:
        raise Rejected(400, "no such pool: grün", b'{"field":"pool"}' + asked.payload)

    endpoint = await bus.serve(ASK, reject)
    with pytest.raises(RemoteError) as refused:
        await bus.request(ASK, b"!")
    error = refused.value
    assert (error.code, error.text, error.payload) == (400, "no such pool: grün", b'{"field":"pool"}!')
    await endpoint.close()


async def test_a_handlers_fault_is_an_answer_too_and_tells_nothing_of_its_inside(
    bus: Bus, tally: BusTally
) -> None:
    async def fail(asked: Asked) -> bytes:
        raise ValueError(f"secret {asked.payload!r}")

    endpoint = await bus.serve(ASK, fail)
    with pytest.raises(RemoteError) as refused:
        await bus.request(ASK, b"")
    assert (refused.value.code, refused.value.text) == (500, "internal error")
    assert tally.counts["serve.failed"] == 1
    await endpoint.close()


async def test_an_answer_that_is_too_large_is_an_error_and_no_silence(bus: Bus, tally: BusTally) -> None:
    async def answer(asked: Asked) -> bytes:
        return bytes(2 * 1024 * 1024) + asked.payload

    endpoint = await bus.serve(ASK, answer)
    with pytest.raises(RemoteError, match="ask for less") as refused:
        await bus.request(ASK, b"")
    assert refused.value.code == 413
    assert tally.counts["serve.too_large"] == 1
    await endpoint.close()


async def test_a_slow_answer_holds_up_no_other(bus: Bus) -> None:
    go = asyncio.Event()

    async def handle(asked: Asked) -> bytes:
        if asked.payload == b"slow":
            await go.wait()
        return asked.payload

    endpoint = await bus.serve(ASK, handle)
    slow = asyncio.create_task(bus.request(ASK, b"slow", timeout=20))
    assert await bus.request(ASK, b"quick", timeout=20) == b"quick"
    go.set()
    assert await slow == b"slow"
    await endpoint.close()


async def test_no_answer_in_time_is_a_timeout(bus: Bus) -> None:
    never = asyncio.Event()

    async def handle(asked: Asked) -> bytes:
        await never.wait()
        return asked.payload

    endpoint = await bus.serve(ASK, handle)
    with pytest.raises(AnswerTimeoutError):
        await bus.request(ASK, b"", timeout=0.05)
    never.set()
    await endpoint.close()


async def test_of_a_queue_group_one_answers_and_without_one_all_hear(
    settings: ConnectionSettings, bus: Bus
) -> None:
    heard: list[str] = []

    def hear(name: str) -> Callable[[Asked], Awaitable[bytes]]:
        async def handle(asked: Asked) -> bytes:
            heard.append(name)
            return asked.payload

        return handle

    async with connect(settings, name="ops") as other:
        endpoints = [
            await on.serve(ASK, hear(name), queue="scorers") for on, name in ((bus, "one"), (other, "two"))
        ]
        await other.request(ASK, b"")  # both subscriptions are known to the server by now
        heard.clear()
        for _ in range(20):
            await bus.request(ASK, b"")
        assert len(heard) == 20
        for endpoint in endpoints:
            await endpoint.close()


async def test_a_question_in_flight_fails_when_the_connection_drops(
    nats_server: NatsServer, bus: Bus
) -> None:
    asked = asyncio.Event()

    async def handle(question: Asked) -> bytes:
        asked.set()
        await asyncio.Event().wait()
        return question.payload

    endpoint = await bus.serve(ASK, handle)
    asking = asyncio.create_task(bus.request(ASK, b"", timeout=300))
    await asked.wait()
    nats_server.kill()
    with pytest.raises(ConnectionLostError):
        await asyncio.wait_for(asking, 40)
    for task in endpoint._busy:
        task.cancel()


async def test_questions_are_served_again_after_a_restart(nats_server: NatsServer, bus: Bus) -> None:
    await bus.serve(ASK, echo)
    await asyncio.to_thread(nats_server.restart)
    await bus.connection.until_connected()
    assert await bus.request(ASK, b"?") == ASK.encode() + b" ?"


async def test_core_messages_reach_who_listens(bus: Bus) -> None:
    heard: list[Asked] = []
    wake = asyncio.Event()

    async def hear(asked: Asked) -> None:
        heard.append(asked)
        wake.set()

    stop = await bus.subscribe_core("some.*", hear)
    await bus.connection.send("some.thing", b"x")
    await eventually(lambda: heard, on=wake)
    assert (heard[0].subject, heard[0].payload, heard[0].headers) == ("some.thing", b"x", {})
    await stop()
