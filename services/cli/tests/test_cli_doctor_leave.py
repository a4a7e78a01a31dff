"""Sentences of the doctor on levels that are not written in spite of leave."""

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from fairlead_bus import Bucket, Bus, ConnectionSettings, connect
from fairlead_bus.ownership.leadership import Leadership
from fairlead_bus.server.provision import provision
from fairlead_cli.kueue.doctor.checks.queues import preempting_pools
from fairlead_cli.kueue.doctor.doctor_run import checker_leads, settle
from fairlead_cli.kueue.doctor.survey import Survey
from fairlead_cli.kueue.doctor.verdict import judge
from fairlead_cli.kueue.flags import DoctorFlags
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.control import Control, Mode
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_kube.kinds.queues import ClusterQueue
from fairlead_kube.lever import Lever, LeverProbe
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.kubelab import GPU, things
from fairlead_testkit.timing.in_hand import beside

pytestmark = pytest.mark.integration
FLAGS = DoctorFlags()
AT = datetime(2026, 11, 25, 12, tzinfo=UTC)


def survey(within: str = "Never", **policy: str) -> Survey:
    queue = things.cluster_queue("gpus", {GPU: 8}, flavor="gpu", preemption={"withinClusterQueue": within})
    return Survey(
        cluster="lab",
        policy=msgspec.convert(policy, PolicyDocument),
        probe=LeverProbe(Lever.BOOST, "asked"),
        cluster_queues=msgspec.convert([queue], list[ClusterQueue]),
    )


@pytest.mark.parametrize(
    ("pool", "told"),
    [
        (None, "but all pools are released by ann since 2026-11-25 12:00 UTC; `fairlead resume` ends that"),
        (
            "lab/gpus",
            "but pool lab/gpus is released by ann since 2026-11-25 12:00 UTC; `fairlead resume lab/gpus` ends that",
        ),
        ("elsewhere/gpus", None),
    ],
)
async def test_leave_beside_a_word_that_holds_levels_back(
    bus: Bus, pool: str | None, told: str | None
) -> None:
    word = Control(mode=Mode.RELEASED, at=AT, by="ann")
    await Bucket(bus, topology.POLICY).put(subjects.control_key(pool), to_json(word))
    found = survey()
    given, first = await settle(found, judge(found, [], []), bus, FLAGS)
    assert given is not None
    again = msgspec.structs.replace(found, leave=given)
    _, second = await settle(again, judge(again, [], []), bus, FLAGS)
    expected = [] if told is None else [told]
    assert [line for line in first if line.startswith("but ")] == expected
    assert [line for line in second if line.startswith("but ")] == expected
    assert any("levels may be written from now on" in line for line in first)
    assert any("levels may be written already" in line for line in second)


async def test_leave_alone_does_not_open_a_pool_whose_queues_preempt(bus: Bus) -> None:
    found = survey("LowerPriority")
    _, said = await settle(found, judge(found, [], ["preempting-queue"]), bus, FLAGS)
    assert said[-1].startswith("but nothing is written in pool lab/gpus, where queues preempt")
    assert "`preemption: protect` or `accept` in the policy" in said[-1]
    assert preempting_pools(survey("LowerPriority", preemption="accept")) == []


async def test_a_name_that_no_service_has_gets_no_leave(bus: Bus) -> None:
    found = msgspec.structs.replace(survey(), told_of=["kubelab"])
    given, said = await settle(found, judge(found, [], []), bus, FLAGS)
    assert given is None
    assert "Known are kubelab" in said[1]


async def test_whether_a_checker_leads_is_told_by_its_lease(nats_server: NatsServer) -> None:
    async with connect(ConnectionSettings(url=nats_server.url), name="test") as bus:
        assert await checker_leads(bus, "lab") is None, "there is no Fairlead to ask"
        await provision(bus, topology.topology(["lab"]))
        assert await checker_leads(bus, "lab") is False
        leadership = Leadership(bus, role="checker", cluster="lab", replica="r1", wake=asyncio.Event())
        async with beside(leadership.run()):
            await eventually(lambda: leadership.epoch is not None, what="it leads")
            assert await checker_leads(bus, "lab") is True
            assert await checker_leads(bus, "other") is False
