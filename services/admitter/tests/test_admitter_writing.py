"""Levels on a real nats-server: written once, repaired, paused, released, and only by who may."""

import asyncio
from pathlib import Path

import pytest

from fairlead_admitter.intake.leader_consumers import DurableConsumer, LeaderConsumers
from fairlead_bus import Bucket, Bus, Delivery, Follower
from fairlead_bus.server.provision import provision
from fairlead_bus.streams.bucket import bucket_stream
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json, to_packed
from fairlead_contracts.messages.control import Mode
from fairlead_contracts.messages.events import EVENT, LevelWritten
from fairlead_contracts.messages.members import MEMBER_LEASE, LeaderLease
from fairlead_contracts.messages.state import Phase
from fairlead_contracts.subjects import kv_subject, leader_key, member_key
from fairlead_contracts.topology import MEMBERS
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_testkit import NatsServer, ServiceProcess, eventually
from fairlead_testkit.by_hand.bus_harness import sample
from fairlead_testkit.by_hand.fake_cluster import CLUSTER, POOL, FakeCluster, FakeScorer, RunAdmitter
from fairlead_testkit.by_hand.people import say, submit
from fairlead_testkit.inputs.builders import NOW, a_body
from fairlead_testkit.timing.in_hand import beside

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


async def follows(cluster: FakeCluster, wanted: list[str]) -> None:
    """The frontend's order becomes the wanted one."""
    await eventually(lambda: cluster.order() == wanted, on=cluster.changed, what=f"the order {wanted}")


async def turns(admitter: Lifecycle, count: int = 3) -> None:
    """The admitter has decided some more times: what it was to do, it has done."""
    before = sample(admitter, "pass_seconds_count", pool=POOL)
    await eventually(lambda: sample(admitter, "pass_seconds_count", pool=POOL) >= before + count)


async def test_a_decision_becomes_levels_once_and_an_event_each(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    uids = await cluster.put("a", "b")
    follower = Follower(bus, stream=topology.EVENT, filter=subjects.event_filter(CLUSTER), since=0)
    async with run_admitter() as admitter:
        await eventually(lambda: admitter.readiness.reasons() == {})
        uids += await cluster.put("c", "d")
        wanted = [uids[2], uids[0], uids[1], uids[3]]
        await scorer.decide(cluster, wanted)
        await follows(cluster, wanted)
        await turns(admitter)
        assert [uid for uid, _ in cluster.writes] == [uids[2]]
        event = EVENT.decode((await anext(aiter(follower))).payload)
        assert isinstance(event, LevelWritten)
        assert (event.uid, event.level, event.rank, event.pool) == (
            uids[2],
            *cluster.levels().values(),
            0,
            POOL,
        )
        assert event.epoch > 0
        assert sample(admitter, "levels_written_total", pool=POOL, kind="raised") == 1
        assert sample(admitter, "event_to_level_seconds_count") == 1
        await cluster.start(uids[2])
        await eventually(lambda: sample(admitter, "admissions_total") == 1)


async def test_a_level_that_the_state_does_not_show_yet_is_not_written_again(
    cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    uids = await cluster.put("a", "b", "c")
    cluster.shows_levels = False
    async with run_admitter() as admitter:
        await scorer.decide(cluster, [uids[2], uids[0], uids[1]])
        await eventually(lambda: cluster.writes, on=cluster.changed)
        await turns(admitter)
        assert len(cluster.writes) == 1


async def test_drift_is_repaired_and_a_fight_is_ended(
    cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    uids = await cluster.put("a", "b", "c")
    wanted = [uids[2], uids[0], uids[1]]
    async with run_admitter() as admitter:
        await scorer.decide(cluster, wanted)
        for round_ in range(1, 5):
            await follows(cluster, wanted)
            await cluster.state(cluster.jobs[uids[2]], level=0)
            await eventually(lambda round_=round_: sample(admitter, "drift_seen_total") == round_)  # type: ignore[misc] # binds the loop's value
        assert sample(admitter, "drift_repaired_total") == 3
        assert sample(admitter, "fights_total") == 1
        await eventually(lambda: sample(admitter, "left_alone") == 1)
        written = len(cluster.writes)
        await turns(admitter)
        assert len(cluster.writes) == written


async def test_a_dead_owner_stops_the_writes_and_it_is_said(
    bus: Bus, cluster: FakeCluster, policy: int, run_admitter: RunAdmitter
) -> None:
    uids = await cluster.put("a", "b", "c")
    async with run_admitter(stale_after_seconds=0.3) as admitter:
        async with FakeScorer(bus, "scorer-1", policy).alive() as scorer:
            await scorer.decide(cluster, [uids[2], uids[0], uids[1]])
            await follows(cluster, [uids[2], uids[0], uids[1]])
        # The scorer left; its last decision still stands in the stream.
        await eventually(lambda: "decisions" in admitter.readiness.reasons(), what="stale is said")
        assert "owner-gone" in admitter.readiness.reasons()["decisions"]
        assert sample(admitter, "pool_stale", pool=POOL) == 1
        await cluster.state(cluster.jobs[uids[2]], level=0)
        await turns(admitter)
        assert len(cluster.writes) == 1
        async with FakeScorer(bus, "scorer-2", policy).alive() as scorer:
            await scorer.decide(cluster, [uids[1], uids[0], uids[2]])
            await follows(cluster, [uids[1], uids[0], uids[2]])
        assert sample(admitter, "pool_stale", pool=POOL) == 0


async def test_an_owner_whose_state_is_not_current_is_not_followed(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    uids = await cluster.put("a", "b")
    await scorer.decide(cluster, uids[::-1])
    scorer.current = False
    scorer.membership.renew_soon()
    members = Bucket(bus, MEMBERS)

    async def said() -> bool:
        found = await members.get(member_key("scorer", scorer.replica))
        return found is not None and not any(
            holding.current for holding in MEMBER_LEASE.decode(found.value).holdings
        )

    await eventually(said, what="the lease says so")
    # Now: a decision may overtake the lease on its way to an admitter that runs already.
    async with run_admitter() as admitter:
        await turns(admitter, 5)
        assert cluster.writes == []
        scorer.current = True
        scorer.membership.renew_soon()
        await follows(cluster, uids[::-1])


async def test_a_decision_of_an_old_epoch_on_the_stream_is_not_applied(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    uids = await cluster.put("a", "b", "c")
    await scorer.claim()
    old = scorer.decision(0, [uids[1], uids[0], uids[2]])
    await scorer.claim()
    async with run_admitter() as admitter:
        await scorer.decide(cluster, [uids[2], uids[0], uids[1]])
        await follows(cluster, [uids[2], uids[0], uids[1]])
        # As an old owner would that goes around the compare-and-swap.
        await bus.publish(subjects.decision(POOL, 0), to_packed(old))
        await eventually(lambda: sample(admitter, "decisions_total", verdict="lower-epoch") == 1)
        await turns(admitter)
        assert cluster.order() == [uids[2], uids[0], uids[1]]
        assert len(cluster.writes) == 1


async def test_a_decision_stream_that_was_made_anew_is_believed(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, policy: int, run_admitter: RunAdmitter
) -> None:
    uids = await cluster.put("a", "b", "c")
    for _ in range(5):
        await scorer.claim()
    async with run_admitter() as admitter:
        await scorer.decide(cluster, [uids[2], uids[0], uids[1]])
        await follows(cluster, [uids[2], uids[0], uids[1]])
        await bus.jetstream.call(f"STREAM.DELETE.{topology.DECISION}")
        await provision(bus, topology.topology([CLUSTER]))
        scorer = FakeScorer(bus, "scorer-1", policy)
        await scorer.decide(cluster, uids[::-1])  # under a lower epoch than before
        await follows(cluster, uids[::-1])
        assert sample(admitter, "decisions_total", verdict="lower-epoch") == 0


async def test_a_claimed_shard_is_not_followed_until_its_new_owner_decides(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, policy: int, run_admitter: RunAdmitter
) -> None:
    uids = await cluster.put("a", "b", "c")
    async with (
        run_admitter() as admitter,
        FakeScorer(bus, "scorer-2", policy, shards=[1]).alive() as other,
    ):
        await scorer.decide(cluster, uids)

        def unsettled() -> float:
            return sample(admitter, "pool_unsettled", pool=POOL)

        # Nobody but the first owner's claims were seen before: this one is known when there is no order any more.
        await eventually(lambda: sample(admitter, "decisions_total", verdict="taken") >= 2)
        await eventually(lambda: unsettled() == 0, what="there is an order")
        await other.claim()
        await eventually(lambda: unsettled() == 1, what="the claim is seen")
        await cluster.state(cluster.jobs[uids[1]], level=9)  # now something is to be written
        await turns(admitter)
        assert cluster.writes == []
        await other.decide(cluster, [])
        await follows(cluster, uids)


async def test_pause_resume_and_release(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    uids = await cluster.put("a", "b", "c")
    await say(bus, Mode.PAUSED, POOL)
    async with run_admitter() as admitter:
        await scorer.decide(cluster, uids[::-1])
        await eventually(lambda: sample(admitter, "leading") == 1)
        await eventually(lambda: admitter.readiness.reasons() == {})
        assert cluster.writes == []
        await say(bus, Mode.ACTIVE, POOL)
        await follows(cluster, uids[::-1])
        # A held job keeps its level over a pause and loses it by a release.
        await cluster.state(cluster.jobs[uids[1]], phase=Phase.HELD)
        await say(bus, Mode.RELEASED)
        await eventually(lambda: set(cluster.levels()) <= {uids[1]}, on=cluster.changed)
        await cluster.state(cluster.jobs[uids[1]], phase=Phase.WAITING)
        await eventually(lambda: cluster.levels() == {}, on=cluster.changed)
        written = len(cluster.writes)
        await scorer.decide(cluster, uids[::-1])
        assert len(cluster.writes) == written
        await say(bus, Mode.ACTIVE)
        await follows(cluster, uids[::-1])


async def test_levels_are_released_although_no_policy_is_valid_any_more(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    uids = await cluster.put("a", "b", "c")
    async with run_admitter():
        await scorer.decide(cluster, uids[::-1])
        await follows(cluster, uids[::-1])
    bucket = Bucket(bus, topology.POLICY)
    await bucket.delete(subjects.DOCUMENT_KEY)  # what stood before it holds no more
    await bucket.put(subjects.DOCUMENT_KEY, b'{"shards": 0}')
    async with run_admitter(tick_seconds=0.05) as admitter:
        await eventually(lambda: sample(admitter, "pool_unsettled", pool=POOL) == 1)
        assert "no valid document" in admitter.readiness.reasons()["knowledge"]
        written = len(cluster.writes)
        await turns(admitter)
        assert len(cluster.writes) == written
        await say(bus, Mode.RELEASED)
        await eventually(lambda: cluster.levels() == {}, on=cluster.changed)


async def test_a_standby_takes_over_when_the_leader_leaves(
    cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    uids = await cluster.put("a", "b", "c")
    async with run_admitter() as first:
        await eventually(lambda: sample(first, "leading") == 1)
        async with run_admitter() as second:
            await eventually(lambda: second.readiness.reasons() == {})
            assert sample(second, "leading") == 0
            assert second.readiness.details() == {"role": "standby"}
            assert first.readiness.details() == {"role": "leader"}
            await scorer.decide(cluster, [uids[2], uids[0], uids[1]])
            await follows(cluster, [uids[2], uids[0], uids[1]])
            first.ask_stop("the test says so")
            await eventually(lambda: sample(second, "leading") == 1)
            await scorer.decide(cluster, uids[::-1])
            await follows(cluster, uids[::-1])
            await eventually(lambda: sample(second, "levels_written_total", pool=POOL, kind="raised") > 0)


async def test_a_dry_run_says_what_it_would_write_beside_a_leader(
    cluster: FakeCluster,
    scorer: FakeScorer,
    run_admitter: RunAdmitter,
    capsys: pytest.CaptureFixture[str],
) -> None:
    uids = await cluster.put("a", "b", "c")
    async with run_admitter(dry_run=True) as admitter:
        await scorer.decide(cluster, [uids[2], uids[0], uids[1]])
        said: list[str] = []

        def told() -> int:
            said.append(capsys.readouterr().out)
            return "".join(said).count("would write")

        await eventually(told, what="the order is known")
        await turns(admitter)
        assert told() == 1
        assert cluster.writes == []


async def test_writes_stop_when_the_frontend_is_down_and_go_on_when_it_is_back(
    cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    uids = await cluster.put("a", "b", "c")
    await cluster.go_down()
    async with run_admitter(frontend_timeout_seconds=0.2) as admitter:
        await scorer.decide(cluster, uids[::-1])
        await eventually(lambda: sample(admitter, "writes_failed_total") > 0)
        await cluster.come_up()
        await follows(cluster, uids[::-1])


async def test_a_leader_that_was_paused_past_its_lease_writes_nothing_when_it_goes_on(
    cluster: FakeCluster,
    scorer: FakeScorer,
    run_admitter: RunAdmitter,
    nats_server: NatsServer,
    tmp_path: Path,
) -> None:
    uids = await cluster.put("a", "b", "c")
    settings = {"cluster": CLUSTER, "nats_url": nats_server.url, "log_level": "debug"}
    with ServiceProcess("admitter", tmp_path, settings) as first:
        await first.ready()
        await scorer.decide(cluster, [uids[2], uids[0], uids[1]])
        await follows(cluster, [uids[2], uids[0], uids[1]])
        async with run_admitter() as second:
            await first.logged("level")
            first.pause()
            await eventually(lambda: sample(second, "leading") == 1)
            await scorer.decide(cluster, uids[::-1])
            await follows(cluster, uids[::-1])
            await turns(second)
            written = len(cluster.writes)
            first.resume()
            await first.logged("leadership.lost")
            await turns(second)
            assert len(cluster.writes) == written
            assert sample(second, "drift_seen_total") == 0


async def test_a_leader_whose_frontend_remembers_a_later_one_takes_the_lead_anew(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    """As where NATS was put back to a snapshot: the stream that epochs count by knows nothing of that leader."""
    uids = await cluster.put("a", "b", "c")
    async with run_admitter() as admitter:
        await eventually(lambda: sample(admitter, "leading") == 1)
        lease = await bus.last(bucket_stream(MEMBERS), kv_subject(MEMBERS, leader_key("admitter", CLUSTER)))
        assert lease is not None
        cluster.obeyed = lease.seq + 1
        await scorer.decide(cluster, uids[::-1])
        await follows(cluster, uids[::-1])


async def test_who_leads_no_more_lets_go_at_once_of_what_hangs_in_the_frontend(bus: Bus, policy: int) -> None:
    """Its worker would wait for the frontend's answer, and the next lead of this replica for the worker."""
    assert policy
    led, taken, epochs = asyncio.Event(), asyncio.Event(), [1]

    async def hang(_: Delivery) -> None:
        taken.set()
        await asyncio.Event().wait()

    durable = topology.submit_durable(CLUSTER)
    consumer = DurableConsumer(bus, stream=topology.SUBMIT, durable=durable, handle=hang, parallel=4)
    consumers = LeaderConsumers(
        [consumer], begin=taken.clear, lead=lambda: epochs[-1], led=led, wake=asyncio.Event()
    )
    await submit(bus, a_body(id="x"))
    async with beside(consumers.run()):
        await taken.wait()
        epochs.append(2)
        led.set()
        await eventually(lambda: not taken.is_set(), 5, what="the next lead begins")


async def test_what_failed_while_leading_is_no_trouble_of_a_standby(
    bus: Bus, cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    uids = await cluster.put("a", "b", "c")
    async with run_admitter(stale_after_seconds=0.3, frontend_timeout_seconds=0.2) as admitter:
        await eventually(lambda: admitter.readiness.reasons() == {})
        await cluster.go_down()
        await scorer.decide(cluster, [uids[2], uids[0], uids[1]])
        await eventually(lambda: "levels" in admitter.readiness.reasons(), what="failed writes are said")
        # As after a pause longer than the lease: the key is another's before the old leader knows.
        lease = LeaderLease(role="admitter", cluster=CLUSTER, replica="other", epoch=0, renewed=NOW)
        await bus.publish(kv_subject(MEMBERS, leader_key("admitter", CLUSTER)), to_json(lease))
        await eventually(lambda: admitter.readiness.reasons() == {}, what="a standby is ready")
        assert admitter.readiness.details()["role"] == "standby"


async def test_failed_writes_that_nobody_wants_any_more_are_no_trouble(
    cluster: FakeCluster, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    uids = await cluster.put("a", "b", "c")
    async with run_admitter(stale_after_seconds=0.3, frontend_timeout_seconds=0.2) as admitter:
        await cluster.go_down()
        await scorer.decide(cluster, [uids[2], uids[0], uids[1]])
        await eventually(lambda: "levels" in admitter.readiness.reasons(), what="failed writes are said")
        await cluster.start(uids[2])
        await eventually(lambda: admitter.readiness.reasons() == {}, what="nothing is to be written")
