"""Answers while one listens, and those that were given while one did not."""

from collections.abc import AsyncIterator, Mapping

import msgspec
import pytest

from fairlead_bus import Asked, Bus, ConnectionSettings, Rejected, connect
from fairlead_cli.client.submitting import answers
from fairlead_cli.client.submitting.answers import hearing_answers
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.messages.questions import ANSWER_QUESTION, AnswerReply
from fairlead_contracts.messages.state import Outcome
from fairlead_contracts.messages.submissions import AnyAnswer, Ended, Started
from fairlead_testkit import NatsServer, eventually

pytestmark = pytest.mark.integration


@pytest.fixture
async def bus(nats_server: NatsServer) -> AsyncIterator[Bus]:
    async with connect(ConnectionSettings(url=nats_server.url), name="test") as opened:
        yield opened


def started(job: str) -> bytes:
    found = Started(id=job, tenant="t", cluster="sim", at=to_datetime(0), job=job, waited_seconds=1.0)
    return to_json(found)


def ended(job: str) -> bytes:
    found = Ended(
        id=job,
        tenant="t",
        cluster="sim",
        at=to_datetime(0),
        job=job,
        outcome=Outcome.SUCCEEDED,
        ran_seconds=1.0,
    )
    return to_json(found)


async def tell(bus: Bus, kept: Mapping[str, bytes], asked: list[list[str]]) -> None:
    """Answers what is kept, an answer a page."""

    async def answer(question: Asked) -> bytes:
        found = ANSWER_QUESTION.decode(question.payload)
        asked.append(list(found.submissions or ()))
        if len(asked) == 1:
            raise Rejected(503, "not yet")
        names = [name for name in asked[-1] if name in kept][found.after :]
        told = [msgspec.Raw(kept[name]) for name in names[:1]]
        return to_json(AnswerReply(answers=told, after=found.after + 1, more=len(names) > 1))

    await bus.serve(subjects.ask("answer", "t"), answer)


async def test_what_was_missed_is_asked_for_on_a_reconnect_and_when_it_is_quiet(
    nats_server: NatsServer, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "QUIET_SECONDS", 0.2)
    monkeypatch.setattr(answers, "MOST_QUIET_SECONDS", 0.2)
    asked: list[list[str]] = []
    heard: list[AnyAnswer] = []
    await tell(bus, {"b": ended("b"), "c": ended("c")}, asked)
    open_names = [("t", "a"), ("t", "b"), ("t", "c")]
    async with hearing_answers(bus, "t", heard.append, lambda: open_names):
        await eventually(lambda: {one.id for one in heard} == {"b", "c"}, what="they were told again")
        assert asked[:2] == [["a", "b", "c"]] * 2
        open_names = []
        nats_server.restart()
        await eventually(lambda: bus.connected)
        open_names = [("t", "b")]
        heard.clear()
        await eventually(lambda: heard, what="it is asked again")


async def test_live_answers_are_heard_and_what_nobody_can_read_is_left_out(bus: Bus) -> None:
    heard: list[AnyAnswer] = []
    async with hearing_answers(bus, "t", heard.append, list):
        for payload in (b"\xff", started("a"), b'{"kind":"newer","v":1}', ended("a")):
            await bus.wire.send(subjects.answer("t", "a"), payload)
        await bus.wire.send(subjects.answer("u", "a"), started("a"))
        await eventually(lambda: len(heard) == 2)
    assert [type(one) for one in heard] == [Started, Ended]
