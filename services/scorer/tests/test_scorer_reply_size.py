"""Answers about jobs that ask for so much that not all of them fit into one message."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import RemoteError
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.questions import (
    EXPLAIN_REPLY,
    QUEUE_REPLY,
    TENANTS_REPLY,
    ExplainQuestion,
    PoolQueue,
    QueueQuestion,
    UnrankedJob,
)
from fairlead_scorer import ScorerSettings, main
from fairlead_scorer.decide.decision import PAYLOAD_LIMIT
from fairlead_scorer.query import reply_size
from fairlead_scorer.query.reply_size import queue_payload, tenants_payload, that_fit
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.by_hand.bus_harness import BusHarness
from fairlead_testkit.inputs.builders import (
    NOW,
    a_document,
    a_job,
    a_pool,
    a_queue,
    a_queue_reply,
    a_tenants_reply,
)

ODD, PLAIN = 60, 3
WAITING = ODD + PLAIN
ASKED = {f"example.com/one-of-many-resources-{number:04}": 1000 for number in range(1000)}


@pytest.fixture
async def harness(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[BusHarness]:
    """Two scorers, and jobs of team-a that ask for a thousand resources each: some 40 kB a position."""
    async with BusHarness.open(nats_server, tmp_path) as opened, AsyncExitStack() as scorers:
        await opened.policy(a_document())
        await opened.state(
            a_pool(),
            a_queue(),
            *(a_job(f"odd-{number:02}", demand=ASKED, submitted=NOW + number) for number in range(ODD)),
            *(a_job(f"b{number}", scope="team-b", submitted=NOW + number) for number in range(PLAIN)),
        )
        await opened.mark()
        for name in ("s1", "s2"):
            await scorers.enter_async_context(opened.serving(main, ScorerSettings, name, answer_seconds=1.0))
        await opened.owned_by("s1", "s2")
        yield opened


@pytest.mark.integration
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("tenant", "waiting"), [(None, WAITING), ("team-a", ODD)])
async def test_an_answer_holds_the_first_that_fit_and_no_shard_seems_silent(
    harness: BusHarness, tenant: str | None, waiting: int
) -> None:
    async def answered() -> PoolQueue | None:
        question = to_json(QueueQuestion(limit=0))
        payload = await harness.bus.request(subjects.ask("queue", tenant), question, timeout=30)
        [pool] = QUEUE_REPLY.decode(payload).pools
        # A shard whose answer is too large is silent each time, one that a busy machine keeps from answering is not.
        return pool if pool.waiting == WAITING and not pool.silent_shards else None

    found = await eventually(answered)
    assert 5 <= len(found.positions) < ODD
    assert found.more == waiting - len(found.positions)
    first = [one.position.id for one in found.positions if one.position.scope == "team-a"]
    assert first == [f"odd-{number:02}" for number in range(len(first))]
    assert found.most == len(found.positions)
    if tenant is None:
        assert [one.rank for one in found.positions] == list(range(len(found.positions)))


@pytest.mark.integration
@pytest.mark.timeout(180)
async def test_who_explains_several_large_jobs_at_once_is_told_to_name_one(harness: BusHarness) -> None:
    async def explain(job: str) -> bytes:
        return await harness.bus.request(
            subjects.ask("explain"), to_json(ExplainQuestion(job=job)), timeout=30
        )

    await harness.state(*(a_job("same", scope=f"team-{number}", demand=ASKED) for number in range(8)))

    async def known() -> bool:
        return len(EXPLAIN_REPLY.decode(await explain("team-7/same")).found) == 1

    await eventually(known)
    with pytest.raises(
        RemoteError, match="8 jobs have that name, too much for one answer: name one, as team-"
    ):
        await explain("same")


def test_an_answer_is_halved_until_it_fits_and_says_how_many_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reply = a_queue_reply()
    [pool] = reply.pools
    many = msgspec.structs.replace(
        reply, pools=[msgspec.structs.replace(pool, positions=pool.positions * 40)]
    )
    held = 40 * len(pool.positions)
    monkeypatch.setattr(reply_size, "PAYLOAD_LIMIT", len(to_json(many)) // 3)
    payload = queue_payload(many)
    [cut] = QUEUE_REPLY.decode(payload).pools
    assert len(cut.positions) == cut.most == held // 4
    assert cut.more == pool.more + held - held // 4
    monkeypatch.setattr(reply_size, "PAYLOAD_LIMIT", len(to_json(many)))
    assert queue_payload(many) == to_json(many)


def test_jobs_without_a_position_are_halved_until_the_answer_fits() -> None:
    reply = a_queue_reply()
    [pool] = reply.pools
    held = [
        UnrankedJob(job=f"team-a/held-{number}", tenant="team-a", why="held" * 200) for number in range(512)
    ]
    pools = [msgspec.structs.replace(pool, unranked=512, unranked_first=held)] * 3
    many = msgspec.structs.replace(reply, pools=pools, nowhere=512, nowhere_first=held)
    payload = queue_payload(many)
    assert len(payload) <= PAYLOAD_LIMIT < len(to_json(many))
    cut = QUEUE_REPLY.decode(payload)
    assert cut.nowhere_first == held[:256]
    for found in cut.pools:
        assert (found.unranked, found.unranked_first) == (512, held[:256])
        assert (found.positions, found.more, found.most) == (pool.positions, pool.more, pool.most)


def test_tenants_are_halved_until_they_fit_and_the_others_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reply = a_tenants_reply()
    [pool] = reply.pools
    many = msgspec.structs.replace(reply, pools=[msgspec.structs.replace(pool, tenants=pool.tenants * 4000)])
    monkeypatch.setattr(reply_size, "PAYLOAD_LIMIT", len(to_json(many)) // 3)
    [cut] = TENANTS_REPLY.decode(tenants_payload(many)).pools
    stand = 4000 * len(pool.tenants)
    assert (len(cut.tenants), cut.more) == (stand // 4, stand - stand // 4)
    assert tenants_payload(reply) == to_json(reply)


def test_the_first_positions_are_kept_whatever_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    positions = [one.position for pool in a_queue_reply().pools for one in pool.positions] * 8
    assert that_fit(positions) == positions
    assert PAYLOAD_LIMIT < 2**20
    monkeypatch.setattr(reply_size, "PAYLOAD_LIMIT", 1)
    assert that_fit(positions) == positions[:1]
