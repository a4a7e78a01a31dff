"""Jobs that are left alone after a fight, as the lease tells them, and as an operator's word ends it."""

import itertools

import pytest

from fairlead_admitter.observe.expectations import FIGHT_ROUNDS
from fairlead_admitter.report.withheld_levels import LeftAloneRecord
from fairlead_bus import Bucket, Bus
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.control import Mode
from fairlead_contracts.messages.members import LEADER_LEASE, LeftAlone
from fairlead_runtime.metrics import Metrics
from fairlead_testkit import eventually
from fairlead_testkit.by_hand.bus_harness import sample
from fairlead_testkit.by_hand.fake_cluster import CLUSTER, POOL, FakeCluster, FakeScorer, RunAdmitter
from fairlead_testkit.by_hand.people import say


def test_jobs_are_told_by_pool_with_the_instant_since_when() -> None:
    clock = itertools.count(100)
    record = LeftAloneRecord(Metrics("admitter"), lambda: next(clock))
    assert record.stated() == []
    record.note({"b": "gpu", "stray": ""})
    record.note({"b": "gpu", "stray": "", "a": "gpu", "c": "cpu"})
    assert record.stated() == [
        LeftAlone(pool="cpu", jobs=1, since={"c": 101}),
        LeftAlone(pool="gpu", jobs=2, since={"b": 100, "a": 101}),
    ]
    record.note({"a": "gpu"})
    assert record.stated() == [LeftAlone(pool="gpu", jobs=1, since={"a": 101})]
    record.note({}, ["gpu", "", "cpu", "gpu"])
    assert record.stated() == []
    assert record.contested == {"gpu": 2, "cpu": 1}


def test_of_many_jobs_those_are_named_that_have_been_left_alone_longest() -> None:
    clock = itertools.count(1)
    record = LeftAloneRecord(Metrics("admitter"), lambda: next(clock))
    record.note({"z": "gpu"})
    record.note({"z": "gpu"} | {f"j{number:03}": "gpu" for number in range(300)})
    [told] = record.stated()
    assert told.jobs == 301
    assert list(told.since)[:2] == ["z", "j000"]
    assert len(told.since) == 100


async def stated(bus: Bus) -> list[LeftAlone]:
    """The jobs that the leading admitter's lease tells as left alone."""
    entry = await Bucket(bus, topology.MEMBERS).get(subjects.leader_key("admitter", CLUSTER))
    return [] if entry is None else LEADER_LEASE.decode(entry.value).left_alone


@pytest.mark.integration
async def test_a_fight_is_told_by_the_lease_and_any_word_of_an_operator_on_the_pool_has_it_tried_again(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    uids = await cluster.put("a", "b", "c")
    wanted = uids[::-1]

    async def told() -> bool:
        return [(one.pool, one.jobs, *one.since) for one in await stated(bus)] == [(POOL, 1, wanted[0])]

    async def untold() -> bool:
        return await stated(bus) == []

    async with run_admitter() as admitter:
        await scorer.decide(cluster, wanted)
        for word in (None, Mode.ACTIVE, Mode.RELEASED):
            if word is not None:
                await say(bus, word)
                await eventually(untold, what="nothing is told any more")
            if word is Mode.RELEASED:
                break
            await cluster.contest(wanted, FIGHT_ROUNDS + 1)
            await eventually(told, what="the lease says who is left alone")
            assert sample(admitter, "left_alone") == 1
        await eventually(lambda: cluster.levels() == {}, on=cluster.changed, what="no level is left")


@pytest.mark.deep
@pytest.mark.integration
@pytest.mark.timeout(180)
async def test_a_fight_ends_by_itself_where_the_admitters_own_level_stands_for_a_minute(
    cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    uids = await cluster.put("a", "b", "c")
    wanted = uids[::-1]
    async with run_admitter() as admitter:
        await scorer.decide(cluster, wanted)
        await cluster.contest(wanted, FIGHT_ROUNDS)
        await eventually(lambda: cluster.order() == wanted, on=cluster.changed, what="it is put right")
        ours = cluster.jobs[wanted[0]].level
        await cluster.contest(wanted, 1)
        await eventually(lambda: sample(admitter, "left_alone") == 1, what="it is left alone")
        await cluster.state(cluster.jobs[wanted[0]], level=ours)
        await eventually(lambda: sample(admitter, "left_alone") == 0, 90, what="the fight is over")
