"""Levels withheld: without leave, and where a level could preempt; each word of an operator holds at once."""

from datetime import UTC, datetime, timedelta
from itertools import count

import msgspec
import pytest

from fairlead_bus import Bucket, Bus
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json, to_packed
from fairlead_contracts.messages.control import Mode
from fairlead_contracts.messages.events import JobEvicted
from fairlead_contracts.messages.leave import Revocation
from fairlead_contracts.messages.members import LEADER_LEASE
from fairlead_contracts.messages.state import Phase, QueueState, State, subject_of
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_testkit import eventually
from fairlead_testkit.by_hand.bus_harness import sample
from fairlead_testkit.by_hand.fake_cluster import (
    CLUSTER,
    DOCUMENT,
    POOL,
    FakeCluster,
    FakeScorer,
    RunAdmitter,
)
from fairlead_testkit.by_hand.people import give_leave, put_policy, say
from fairlead_testkit.inputs.builders import NOON, NOW, a_class, a_queue

pytestmark = pytest.mark.integration


KUEUE = a_queue(frontend="kueue", bands_by_class=True)
UNSAFE: QueueState = msgspec.structs.replace(KUEUE, preemption={"withinClusterQueue": "LowerPriority"})
_REVS = count(1)
CLEARANCE_KEY = subjects.leave_key(CLUSTER)


async def stated(bus: Bus, state: State) -> None:
    """A fact of the cluster, newer than all that were stated by hand."""
    await bus.publish(subject_of(state), to_packed(msgspec.structs.replace(state, rev=10**9 + next(_REVS))))


async def evicted(bus: Bus, uid: str, at: datetime, reason: str = "Preempted") -> None:
    """The frontend stops a job for another one."""
    event = JobEvicted(
        id=f"e{next(_REVS)}",
        at=at,
        cluster=CLUSTER,
        tenant="team-a",
        scope="team-a",
        job=uid,
        uid=uid,
        ran_seconds=3.0,
        reason=reason,
    )
    await bus.publish(subjects.event("team-a", CLUSTER, "a"), to_json(event))


async def follows(cluster: FakeCluster, wanted: list[str]) -> None:
    await eventually(lambda: cluster.order() == wanted, on=cluster.changed, what=f"the order {wanted}")


async def says(admitter: Lifecycle, why: str) -> None:
    await eventually(lambda: why in admitter.readiness.details().get("withheld", ""), what=why)


async def test_nothing_is_written_to_a_cluster_without_leave_or_after_it_was_taken_back(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    await stated(bus, KUEUE)
    uids = await cluster.put("a", "b", "c")
    async with run_admitter() as admitter:
        await scorer.decide(cluster, uids[::-1])
        await says(admitter, "not cleared")
        assert sample(admitter, "pool_withheld", pool=POOL) == 1
        assert cluster.writes == []
        assert "withheld" not in admitter.readiness.reasons()
        await give_leave(bus, "boost")
        await follows(cluster, uids[::-1])
        assert admitter.readiness.details().get("withheld") is None
        await Bucket(bus, topology.POLICY).delete(CLEARANCE_KEY)
        await says(admitter, "not cleared")
        written = len(cluster.writes)
        await scorer.decide(cluster, uids)
        await says(admitter, "not cleared")
        assert len(cluster.writes) == written


async def test_where_a_level_could_preempt_the_policy_has_to_say_so(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    preempting: QueueState = msgspec.structs.replace(
        KUEUE, preemption={"withinClusterQueue": "LowerPriority"}
    )
    await stated(bus, preempting)
    await give_leave(bus, "boost")
    uids = await cluster.put("a", "b", "c")
    async with run_admitter() as admitter:
        await scorer.decide(cluster, uids[::-1])
        await says(admitter, "withinClusterQueue LowerPriority")
        assert cluster.writes == []
        scorer.policy = await put_policy(bus, msgspec.structs.replace(DOCUMENT, preemption="accept"))
        await scorer.decide(cluster, uids[::-1])
        await follows(cluster, uids[::-1])
        await evicted(bus, uids[0], NOON)
        await eventually(lambda: sample(admitter, "preemptions_seen_total", pool=POOL) == 1)


async def test_what_starts_gives_its_level_up_where_another_queue_takes_back_what_it_lent(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    lender = msgspec.structs.replace(KUEUE, name="lender", preemption={"reclaimWithinCohort": "Any"})
    await stated(bus, KUEUE)
    await stated(bus, lender)
    await give_leave(bus, "boost")
    uids = await cluster.put("a", "b", "c")
    async with run_admitter() as admitter:
        await scorer.decide(cluster, uids[::-1])
        await follows(cluster, uids[::-1])
        assert cluster.levels()[uids[2]]
        await cluster.start(uids[2])
        own = (uids[2], 0)
        await eventually(lambda: own in cluster.of_running, on=cluster.changed, what="its level goes")
        assert admitter.readiness.details().get("withheld") is None


async def test_what_waits_for_its_checks_gives_its_level_up(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    await stated(bus, KUEUE)
    await give_leave(bus, "boost")
    uids = await cluster.put("a", "b", "c")
    async with run_admitter():
        await scorer.decide(cluster, uids[::-1])
        await follows(cluster, uids[::-1])
        assert cluster.levels()[uids[2]]
        waiting = cluster.jobs[uids[2]]
        await cluster.state(
            waiting, phase=Phase.RUNNING, started=NOW, unchecked="nodes is Pending", open_checks=["nodes"]
        )
        own = (uids[2], 0)
        await eventually(lambda: own in cluster.of_running, on=cluster.changed, what="its level goes")


async def test_levels_go_the_highest_first_when_a_queue_turns_unsafe_and_come_back_when_it_is_safe(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    await stated(bus, KUEUE)
    await give_leave(bus, "boost")
    uids = await cluster.put("a", "b", "c", "d")
    wanted = [uids[3], uids[2], uids[1], uids[0]]
    async with run_admitter() as admitter:
        await scorer.decide(cluster, wanted)
        await follows(cluster, wanted)
        lifted = [uid for uid in wanted if cluster.jobs[uid].level]
        assert len(lifted) == 3
        written = len(cluster.writes)
        await stated(bus, UNSAFE)
        await says(admitter, "withinClusterQueue LowerPriority")
        await eventually(lambda: cluster.levels() == {}, on=cluster.changed, what="no level is left")
        assert cluster.writes[written:] == [(uid, 0) for uid in lifted]
        await scorer.decide(cluster, [uids[1], uids[3], uids[0], uids[2]])
        await eventually(lambda: sample(admitter, "levels_left", pool=POOL) == 0)
        assert len(cluster.writes) == written + 3
        await stated(bus, KUEUE)
        await scorer.decide(cluster, wanted)
        await follows(cluster, wanted)
        assert "withheld" not in admitter.readiness.details()


async def test_what_is_preempted_while_levels_stand_is_counted_and_told_apart_and_a_pause_keeps_them(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    await stated(bus, KUEUE)
    await give_leave(bus, "boost")
    uids = await cluster.put("a", "b")
    async with run_admitter() as admitter:
        await scorer.decide(cluster, uids[::-1])
        await follows(cluster, uids[::-1])
        await say(bus, Mode.PAUSED)
        await stated(bus, UNSAFE)
        await says(admitter, "they could stop running jobs: queue main has withinClusterQueue LowerPriority")
        await says(admitter, "levels that stand: 1")
        assert sample(admitter, "levels_left", pool=POOL) == 1
        await evicted(bus, uids[0], datetime.now(UTC))
        await says(admitter, "running jobs that the frontend stopped while levels stood: 1")
        await say(bus, Mode.ACTIVE)
        await eventually(lambda: cluster.levels() == {}, on=cluster.changed, what="no level is left")
        await eventually(lambda: sample(admitter, "levels_left", pool=POOL) == 0)
        await evicted(bus, uids[0], datetime.now(UTC))
        await eventually(lambda: sample(admitter, "preemptions_by_left_levels_total", pool=POOL) == 2)
        # Kueue preempts by the priorities that Workloads have of their own, too: long after, it is not by our levels.
        await evicted(bus, uids[0], datetime.now(UTC) + timedelta(minutes=1))
        await evicted(bus, uids[0], datetime.now(UTC))
        await eventually(lambda: sample(admitter, "preemptions_by_left_levels_total", pool=POOL) == 3)

        async def told() -> bool:
            """Whether the admitter tells it by its lease, to whoever answers `fairlead queue`."""
            entry = await Bucket(bus, topology.MEMBERS).get(subjects.leader_key("admitter", CLUSTER))
            lease = None if entry is None else LEADER_LEASE.decode(entry.value)
            return lease is not None and lease.preemptions_by_left_levels == {POOL: 3}

        await eventually(told, what="the lease says it")
        assert sample(admitter, "preemptions_seen_total", pool=POOL) == 0


async def test_levels_go_when_leave_is_taken_back_and_stand_where_it_is_merely_gone(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    await stated(bus, KUEUE)
    await give_leave(bus, "boost")
    uids = await cluster.put("a", "b", "c")
    async with run_admitter() as admitter:
        await scorer.decide(cluster, uids[::-1])
        await follows(cluster, uids[::-1])
        standing = cluster.levels()
        await Bucket(bus, topology.POLICY).delete(CLEARANCE_KEY)
        await says(admitter, "not cleared")
        assert cluster.levels() == standing
        word = Revocation(cluster=CLUSTER, lever="boost", at=datetime.now(UTC), by="ann")
        await Bucket(bus, topology.POLICY).put(subjects.revocation_key(CLUSTER), to_json(word))
        await says(admitter, "was taken back by ann")
        await eventually(lambda: cluster.levels() == {}, on=cluster.changed, what="no level is left")
        await give_leave(bus, "boost")
        await follows(cluster, uids[::-1])


async def test_a_job_above_its_class_is_lowered_and_each_class_keeps_its_band(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    await stated(bus, KUEUE)
    await stated(bus, a_class(name="urgent", value=3_000_000))
    await give_leave(bus, "boost")
    uids = await cluster.put("a", "b")
    # It names a class that its tenant was not granted.
    uids += await cluster.put("taken", requested_class="urgent", base=3_000_000, level=3_000_000)
    async with run_admitter() as admitter:
        await eventually(lambda: admitter.readiness.reasons().keys() <= {"decisions"})
        await scorer.decide(cluster, [uids[1], uids[0]])
        await follows(cluster, [uids[1], uids[0], uids[2]])
        assert cluster.jobs[uids[2]].level == 0
        await eventually(lambda: sample(admitter, "levels_written_total", pool=POOL, kind="out-of-band") == 1)


async def test_classes_that_stand_the_wrong_way_round_are_named(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    await stated(bus, KUEUE)
    await give_leave(bus, "boost")
    await stated(bus, a_class(name="urgent", value=5000))
    await stated(bus, a_class(name="approved", value=9000))
    uids = await cluster.put("a", "b")
    async with run_admitter() as admitter:
        await scorer.decide(cluster, uids[::-1])
        await says(admitter, "class urgent has its floor at 5000")
        assert cluster.writes == []
        await stated(bus, a_class(name="approved", value=2000))
        await follows(cluster, uids[::-1])
