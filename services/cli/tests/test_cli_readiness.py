"""What is said while an instance does not answer yet: who is waited for, and why."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from fairlead_bus import Asked, Bus, ConnectionSettings, Rejected, connect
from fairlead_cli.client import readiness
from fairlead_cli.client.readiness import wait_answering
from fairlead_cli.local.up import tell_ready
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_testkit import NatsServer
from fairlead_testkit.builders import a_pool_tenants, a_tenants_reply

NO_POOL = "the scorers wait for a cluster: its watcher (of a simulated one, the service `sim`) has told of no pool yet"
pytestmark = pytest.mark.integration


@pytest.fixture
async def bus(nats_server: NatsServer) -> AsyncIterator[Bus]:
    async with connect(ConnectionSettings(url=nats_server.url), name="test") as opened:
        yield opened


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
