"""A job whose level somebody else keeps changing, as people see it: from the fight to `queue` and `explain`."""

from datetime import datetime
from pathlib import Path

import pytest

from fairlead_admitter.app import main as admit
from fairlead_admitter.observe.expectations import FIGHT_ROUNDS
from fairlead_admitter.settings import AdmitterSettings
from fairlead_bus import Bus
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.control import Mode
from fairlead_contracts.messages.questions import (
    EXPLAIN_REPLY,
    QUEUE_REPLY,
    ExplainQuestion,
    Explanation,
    PoolQueue,
    QueueQuestion,
)
from fairlead_scorer import ScorerSettings
from fairlead_scorer import main as score
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.by_hand.bus_harness import BusHarness
from fairlead_testkit.by_hand.fake_cluster import CLUSTER, DOCUMENT, FakeCluster
from fairlead_testkit.by_hand.people import say

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


async def ask_queue(bus: Bus) -> PoolQueue:
    reply = await bus.request(subjects.ask("queue", None), to_json(QueueQuestion()), timeout=5)
    [pool] = QUEUE_REPLY.decode(reply).pools
    return pool


async def ask_why(bus: Bus, job: str) -> Explanation:
    question = to_json(ExplainQuestion(job=job))
    [found] = EXPLAIN_REPLY.decode(
        await bus.request(subjects.ask("explain", None), question, timeout=5)
    ).found
    return found


async def test_a_job_that_is_left_alone_is_seen_by_everybody_until_an_operator_has_it_tried_again(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with BusHarness.open(nats_server, tmp_path) as harness:
        await harness.policy(DOCUMENT)
        cluster = FakeCluster(harness.bus)
        await cluster.come_up()
        await cluster.declare()
        async with (
            harness.serving(score, ScorerSettings, "scorer-1"),
            harness.serving(admit, AdmitterSettings, "admitter-1", cluster=CLUSTER, tick_seconds=0.2),
        ):
            await _fought_over(harness.bus, cluster)
        await cluster.go_down()


async def _fought_over(bus: Bus, cluster: FakeCluster) -> None:
    # The frontend alone would start them the other way round: their levels have to do it.
    for number, name in enumerate(("late", "next", "first")):
        [uid] = await cluster.put(name)
        await cluster.state(cluster.jobs[uid], submitted=cluster.jobs[uid].submitted - number * 10)
    wanted = [f"team-a/{name}" for name in ("first", "next", "late")]
    await cluster.contest(wanted, 1)

    async def contested() -> bool:
        [told] = (await ask_queue(bus)).steering
        return told.enforcement == "loose" and told.enforcement_why.startswith("somebody else changed")

    await eventually(contested, 8, what="the queue says that a level was lost")
    await cluster.contest(wanted, FIGHT_ROUNDS)

    async def alone(*, told: bool) -> bool:
        return bool((await ask_queue(bus)).steering[0].left_alone) is told

    await eventually(lambda: alone(told=True), 30, what="the queue says that a job is left alone")
    pool = await ask_queue(bus)
    assert [bool(one.left_alone) for one in pool.positions] == [True, False, False]
    assert [(one.enforcement, one.left_alone) for one in pool.steering] == [("loose", 1)]
    assert "leaves 1 job alone" in pool.steering[0].enforcement_why
    found = await ask_why(bus, "first")
    assert isinstance(found.left_alone, datetime)
    assert found.reasons[0].startswith("The admitter has left its level alone since")
    assert f"Level {cluster.jobs[wanted[0]].level} stands" in found.reasons[1]
    assert "`fairlead resume c1/gpu`" in found.reasons[1]
    assert not any("left its level alone" in line for line in (await ask_why(bus, "next")).reasons)
    await say(bus, Mode.ACTIVE, "c1/gpu")
    await eventually(lambda: cluster.order() == wanted, on=cluster.changed, what="the order stands again")
    await eventually(lambda: alone(told=False), 30, what="nothing is left alone any more")
    assert (await ask_queue(bus)).steering[0].enforcement == "exact"
