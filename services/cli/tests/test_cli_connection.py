"""Over a real connection: questions, what is said while nobody answers yet, and answers that one listens to."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from fairlead_bus import Asked, Bus, Rejected
from fairlead_cli.client import readiness
from fairlead_cli.client.asking import show_tenants
from fairlead_cli.client.connection import ANSWER_SECONDS, ask
from fairlead_cli.client.readiness import wait_answering
from fairlead_cli.client.submitting import answers
from fairlead_cli.client.submitting.answers import hearing_answers
from fairlead_cli.errors import NoScorerAnswersError
from fairlead_cli.local.up import tell_ready
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.messages.questions import (
    ANSWER_QUESTION,
    TENANTS_REPLY,
    AnswerReply,
    TenantsQuestion,
    TenantsReply,
)
from fairlead_contracts.messages.state import Outcome
from fairlead_contracts.messages.submissions import AnyAnswer, Ended, Started
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.inputs.builders import a_pool_tenants, a_tenants_reply

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("mute", [1, len(ANSWER_SECONDS)])
async def test_a_question_that_a_stopped_scorer_got_is_asked_once_more(bus: Bus, mute: int) -> None:
    heard = 0
    over = asyncio.Event()
    reply = TenantsReply(at=to_datetime(0), pools=[])

    async def answer(asked: Asked) -> bytes:
        nonlocal heard
        assert asked.subject == subjects.ask("tenants")
        heard += 1
        if heard <= mute:
            await over.wait()
        return to_json(reply)

    endpoint = await bus.serve(subjects.ask_filter("tenants"), answer)
    if mute < len(ANSWER_SECONDS):
        assert await ask(bus, "tenants", TenantsQuestion(), TENANTS_REPLY) == reply
    else:
        with pytest.raises(NoScorerAnswersError, match="within 5 s"):
            await ask(bus, "tenants", TenantsQuestion(), TENANTS_REPLY)
    assert heard == len(ANSWER_SECONDS)
    over.set()
    await endpoint.close()


async def test_a_scorer_that_is_still_reading_is_nobody_who_answers_and_what_to_do_is_said(
    bus: Bus,
) -> None:
    async def answer(asked: Asked) -> bytes:
        del asked
        raise Rejected(503, "this scorer cannot answer yet: it still reads the state from NATS")

    endpoint = await bus.serve(subjects.ask_filter("tenants"), answer)
    with pytest.raises(NoScorerAnswersError) as refused:
        await ask(bus, "tenants", TenantsQuestion(), TENANTS_REPLY)
    await endpoint.close()
    assert str(refused.value) == "this scorer cannot answer yet: it still reads the state from NATS"
    assert "try again" in refused.value.hint
    assert refused.value.exit_code == 3


NO_POOL = "the scorers wait for a cluster: its watcher (of a simulated one, the service `sim`) has told of no pool yet"


@pytest.mark.parametrize(("ahead", "said"), [(600, "10 min ahead of"), (-600, "10 min behind"), (20, "")])
async def test_a_scorer_whose_clock_is_another_is_told(
    nats: str, bus: Bus, capsys: pytest.CaptureFixture[str], ahead: int, said: str
) -> None:
    async def answer(_: Asked) -> bytes:
        return to_json(TenantsReply(at=datetime.now(UTC) + timedelta(seconds=ahead), pools=[]))

    endpoint = await bus.serve(subjects.ask_filter("tenants"), answer)
    await show_tenants(nats, pool=None, tenant=None, form="json")
    await endpoint.close()
    told = capsys.readouterr().err
    assert (
        (told.startswith("warning: the clock of the scorer that answered is ") and said in told)
        if said
        else not told
    )


async def test_who_is_waited_for_is_said_until_all_shards_of_a_pool_are_answered_for(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "_TOLD_EVERY_SECONDS", 0.0)
    end, told = asyncio.Event(), list[str]()
    assert await wait_answering(bus, end, within=0.0) == "NATS is there, but no scorer answers"
    silent = a_tenants_reply(pools=[a_pool_tenants(pool="gpu", silent_shards=[2, 5])])
    answers = iter([None, to_json(a_tenants_reply(pools=[])), to_json(silent), to_json(a_tenants_reply())])

    async def answer(_: Asked) -> bytes:
        found = next(answers)
        if found is None:
            raise Rejected(503, "this scorer cannot answer yet: it still reads the state from NATS")
        return found

    await bus.serve(subjects.ask_filter("tenants"), answer)
    assert await wait_answering(bus, end, within=60.0, told=told.append) == ""
    assert told == [
        "not ready after 0 s: this scorer cannot answer yet: it still reads the state from NATS",
        "not ready after 0 s: " + NO_POOL,
        "not ready after 0 s: pool gpu: no scorer answers yet for its shards 2, 5",
    ]


async def test_a_signal_ends_the_wait(bus: Bus) -> None:
    end = asyncio.Event()
    end.set()
    assert await wait_answering(bus, end, within=600.0)


async def test_after_a_start_that_was_too_slow_it_is_said_once_the_scorers_answer(
    bus: Bus, capsys: pytest.CaptureFixture[str]
) -> None:
    async def answer(_: Asked) -> bytes:
        return to_json(a_tenants_reply())

    end = asyncio.Event()
    end.set()
    await tell_ready(bus, end)
    assert "ready now" not in capsys.readouterr().err, "it ends, and nobody answered"
    await bus.serve(subjects.ask_filter("tenants"), answer)
    await tell_ready(bus, asyncio.Event())
    assert "ready now: the scorers answer" in capsys.readouterr().err


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
            await bus.connection.send(subjects.answer("t", "a"), payload)
        await bus.connection.send(subjects.answer("u", "a"), started("a"))
        await eventually(lambda: len(heard) == 2)
    assert [type(one) for one in heard] == [Started, Ended]
