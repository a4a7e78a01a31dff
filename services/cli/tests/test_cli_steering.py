"""`fairlead pause`, `resume` and `release` on a real nats-server, with something that answers for a scorer."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from fairlead_bus import Asked, Bus
from fairlead_cli.client.connection import ask
from fairlead_cli.client.controls import control_words, said
from fairlead_cli.client.steering_mode import set_mode
from fairlead_cli.errors import CommandError
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.messages.control import Mode
from fairlead_contracts.messages.questions import (
    TENANTS_REPLY,
    PoolTenants,
    Steering,
    TenantsQuestion,
    TenantsReply,
)

pytestmark = pytest.mark.integration


@asynccontextmanager
async def answering(bus: Bus, pools: Sequence[str]) -> AsyncIterator[None]:
    """Answers for a scorer: each pool is of one cluster, called after it."""
    known = [
        PoolTenants(
            pool=pool,
            capacity={},
            tenants=[],
            steering=[Steering(cluster=f"{pool}-lab", frontend="kueue", enforcement="exact")],
        )
        for pool in pools
    ]

    async def answer(asked: Asked) -> bytes:
        del asked
        return to_json(TenantsReply(at=to_datetime(0), pools=known))

    endpoint = await bus.serve(subjects.ask_filter("tenants"), answer)
    # By the same connection: the server has the subscription once it answered, and commands come by one of their own.
    await ask(bus, "tenants", TenantsQuestion(), TENANTS_REPLY)
    yield
    await endpoint.close()


async def say(nats: str, mode: Mode, pool: str | None = None) -> None:
    await set_mode(nats, mode, pool=pool, by="ann", why="disks")


async def test_a_word_on_all_pools_tells_which_of_them_a_stricter_one_holds_back(
    nats: str, bus: Bus, capsys: pytest.CaptureFixture[str]
) -> None:
    async with answering(bus, ["cpu", "gpu"]):
        await say(nats, Mode.PAUSED, "gpu")
        assert "it holds for: gpu-lab (kueue)" in capsys.readouterr().out
        await say(nats, Mode.ACTIVE)
        told = capsys.readouterr().out.splitlines()
    assert told[0] == "all pools: active; levels follow the order again, except where a stricter word holds:"
    assert told[1].startswith("pool gpu stays paused by ann since 20")
    assert told[1].endswith(" UTC (disks); `fairlead resume gpu` ends that")
    assert told[2:] == ["it holds for: cpu-lab (kueue)"]


async def test_a_word_on_one_pool_tells_that_all_are_held_back(
    nats: str, bus: Bus, capsys: pytest.CaptureFixture[str]
) -> None:
    async with answering(bus, ["cpu", "gpu"]):
        await say(nats, Mode.RELEASED)
        capsys.readouterr()
        await say(nats, Mode.ACTIVE, "gpu")
        told = capsys.readouterr().out.splitlines()
    assert told[0] == "pool gpu: active"
    assert told[1].startswith("but all pools are released by ann since 20")
    assert len(told) == 2, "it holds nowhere"


async def test_a_word_on_a_pool_that_nobody_knows_is_never_given(nats: str, bus: Bus) -> None:
    async with answering(bus, ["cpu", "gpu"]):
        with pytest.raises(CommandError, match="no pool 'gpus', so nothing was changed") as refused:
            await say(nats, Mode.PAUSED, "gpus")
        assert refused.value.hint == "Pools are cpu, gpu."
        assert await said(bus) == [], "and the history shows nothing"


async def test_a_word_on_a_pool_that_is_gone_can_be_ended_and_only_that(
    nats: str, bus: Bus, capsys: pytest.CaptureFixture[str]
) -> None:
    async with answering(bus, []):
        # Nobody knows any pool yet: to stop is never the wrong guess.
        await say(nats, Mode.PAUSED, "gone")
        assert "the scorers know no pool 'gone' now" in capsys.readouterr().err
        assert (await control_words(bus))["gone"].by == "ann"
    async with answering(bus, ["gpu"]):
        with pytest.raises(CommandError, match="no pool 'gone'"):
            await say(nats, Mode.RELEASED, "gone")
        assert (await control_words(bus)).mode_of("gone") is Mode.PAUSED, "as it stood"
        await say(nats, Mode.ACTIVE, "gone")
        assert (await control_words(bus)).mode_of("gone") is Mode.ACTIVE


async def test_what_was_set_and_where_it_holds_is_told_to_programs(
    nats: str, bus: Bus, capsys: pytest.CaptureFixture[str]
) -> None:
    async with answering(bus, ["cpu", "gpu"]):
        await set_mode(nats, Mode.PAUSED, pool="gpu", by="ann", why="disks", form="name")
        assert capsys.readouterr().out == "gpu-lab\n"
        await set_mode(nats, Mode.ACTIVE, pool=None, by="bob", why="", form="json")
    assert json.loads(capsys.readouterr().out) == {
        "pool": None,
        "mode": "active",
        "by": "bob",
        "why": "",
        "stricter": ["gpu"],
        "clusters": ["cpu-lab"],
    }
