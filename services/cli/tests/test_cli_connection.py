"""Questions over a real connection."""

import asyncio

import pytest

from fairlead_bus import Asked, ConnectionSettings, Rejected, connect
from fairlead_cli.client.connection import ANSWER_SECONDS, ask
from fairlead_cli.errors import NoScorerAnswersError
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.messages.questions import TENANTS_REPLY, TenantsQuestion, TenantsReply
from fairlead_testkit import NatsServer

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("mute", [1, len(ANSWER_SECONDS)])
async def test_a_question_that_a_stopped_scorer_got_is_asked_once_more(
    nats_server: NatsServer, mute: int
) -> None:
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

    async with connect(ConnectionSettings(url=nats_server.url), name="test") as bus:
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
    nats_server: NatsServer,
) -> None:
    async def answer(asked: Asked) -> bytes:
        del asked
        raise Rejected(503, "this scorer cannot answer yet: it still reads the state from NATS")

    async with connect(ConnectionSettings(url=nats_server.url), name="test") as bus:
        endpoint = await bus.serve(subjects.ask_filter("tenants"), answer)
        with pytest.raises(NoScorerAnswersError) as refused:
            await ask(bus, "tenants", TenantsQuestion(), TENANTS_REPLY)
        await endpoint.close()
    assert str(refused.value) == "this scorer cannot answer yet: it still reads the state from NATS"
    assert "try again" in refused.value.hint
    assert refused.value.exit_code == 3
