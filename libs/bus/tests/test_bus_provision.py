import asyncio

import msgspec
import pytest

from fairlead_bus import (
    Bus,
    Delivery,
    JetStreamRefusedError,
    Mirror,
    NoStreamError,
    NotProvisionedError,
    RetryableBusError,
)
from fairlead_bus.server.provision import find_changes, provision, require_durables
from fairlead_bus.work.worker import Worker
from fairlead_contracts import subjects
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.messages.state import STATE
from fairlead_contracts.topology import NO_LIMIT, Retention, cluster_of, limited, submit_durable, topology
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.nats_servers.streams import change_stream, stream_info

pytestmark = pytest.mark.integration


async def config(bus: Bus, stream: str) -> dict[str, object]:
    found: dict[str, object] = (await stream_info(bus, stream))["config"]
    return found


async def test_a_second_time_changes_nothing(bus: Bus) -> None:
    assert await provision(bus, topology(["c1"])) == []


async def test_a_server_that_does_not_answer_for_a_while_is_asked_again(
    bus: Bus, nats_server: NatsServer
) -> None:
    with nats_server.paused():
        making = asyncio.create_task(provision(bus, topology(["c2"])))
        await asyncio.sleep(0)  # it has asked
        with pytest.raises(RetryableBusError):  # asked after it: once this is given up, so is that
            await bus.jetstream.call("STREAM.INFO.submit")
    assert "durable submit/submit-c2: created" in await making


async def test_a_new_cluster_is_added_and_the_known_ones_stay(bus: Bus) -> None:
    await bus.publish(subjects.submit("c1", "team-a"), b"waiting")
    changes = await provision(bus, topology(["c2"]))
    assert [change.split(":")[0] for change in changes] == [
        "stream submit",
        "durable submit/submit-c2",
        "durable event/answers-c2",
    ]
    for cluster in ("c1", "c2", "any"):
        await bus.publish(subjects.submit(cluster, "team-a"), b"x")
    with pytest.raises(NoStreamError):
        await bus.publish(subjects.submit("c3", "team-a"), b"x")


async def test_streams_are_as_the_design_has_them(bus: Bus) -> None:
    state = await config(bus, "state")
    assert (state["max_msgs_per_subject"], state["storage"], state["allow_msg_ttl"]) == (1, "file", True)
    assert "subject_delete_marker_ttl" not in state
    members = await config(bus, "KV_members")
    assert (members["max_age"], members["subject_delete_marker_ttl"]) == (3_000_000_000, 1_000_000_000)
    assert (await config(bus, "submit"))["retention"] == "workqueue"


async def test_what_an_operator_set_beside_us_stays(bus: Bus) -> None:
    await change_stream(bus, "state", description="mine", duplicate_window=1_000_000_000)
    assert await provision(bus, topology(["c1"])) == [
        "stream state: duplicate_window 1000000000 -> 120000000000"
    ]
    assert (await config(bus, "state"))["description"] == "mine"


async def test_submissions_of_two_tenants_are_stored_under_one_msg_id(bus: Bus) -> None:
    """The tenants share the stream, and whoever publishes chooses the header."""
    for tenant in ("team-a", "team-b"):
        ack = await bus.publish(subjects.submit("c1", tenant), b"x", msg_id="nightly")
        assert not ack.duplicate
    assert "duplicate_window" not in await config(bus, "submit")


async def test_an_older_stream_loses_its_duplicate_window(bus: Bus) -> None:
    """What one tenant sent before the update takes no id from another after it: of many updates, after none."""
    for number in range(100):
        found = await config(bus, "submit")
        del found["sources"]
        await bus.jetstream.call("STREAM.UPDATE.submit", {**found, "duplicate_window": 600_000_000_000})
        await bus.publish(subjects.submit("c1", "team-a"), b"x", msg_id=f"m{number}")
        [change] = await provision(bus, topology(["c1"]))
        assert "duplicate_window 600000000000 -> 0" in change

        async def stored(msg_id: str = f"m{number}") -> bool:
            return not (await bus.publish(subjects.submit("c1", "team-b"), b"x", msg_id=msg_id)).duplicate

        await eventually(stored, what="the id is free")  # some 0.1 s after the answer


async def test_a_server_that_cannot_do_without_gets_the_shortest_window(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(bus.connection), "server_release", (2, 12))
    await bus.jetstream.call("STREAM.DELETE.submit")
    await provision(bus, topology(["c1"]))
    assert (await config(bus, "submit"))["duplicate_window"] == 100_000_000
    assert await provision(bus, topology(["c1"])) == []


async def test_limits_are_an_operators_and_stay_when_they_are_not_named(bus: Bus) -> None:
    limits = limited(
        topology(["c1"]),
        max_bytes={"event": 1_000_000, "state": 2_000_000, "policy": 3_000_000},
        max_age_seconds={"event": 86_400.0},
    )
    assert len(await provision(bus, limits)) == 3
    assert await provision(bus, limits) == []
    assert await provision(bus, topology(["c1"])) == []
    event, state, policy = [await config(bus, name) for name in ("event", "state", "KV_policy")]
    assert (event["max_bytes"], event["discard"], event["max_age"]) == (1_000_000, "old", 86_400 * 10**9)
    assert (state["max_bytes"], state["discard"]) == (2_000_000, "new")
    assert (policy["max_bytes"], policy["discard"]) == (3_000_000, "new")
    freed = limited(topology(["c1"]), max_bytes={"state": NO_LIMIT, "policy": NO_LIMIT}, max_age_seconds={})
    assert len(await provision(bus, freed)) == 2
    assert await provision(bus, freed) == await provision(bus, topology(["c1"])) == []
    assert [(await config(bus, name))["max_bytes"] for name in ("event", "state")] == [1_000_000, -1]
    for wrong in ({"nothing": 1}, {"event": 0}, {"event": -2}):
        with pytest.raises(FieldError):
            limited(topology(["c1"]), max_bytes=wrong, max_age_seconds={})
    for name, seconds in (("state", 3600.0), ("nothing", 3600.0), ("event", 1.0)):
        with pytest.raises(FieldError):
            limited(topology(["c1"]), max_bytes={}, max_age_seconds={name: seconds})


async def test_the_oldest_events_make_room_and_a_full_stream_of_facts_says_so(bus: Bus) -> None:
    await provision(
        bus, limited(topology(["c1"]), max_bytes={"event": 10_000, "state": 10_000}, max_age_seconds={})
    )
    for number in range(20):
        await bus.publish(subjects.event("team-a", "c1", f"j{number}"), b"x" * 1000)
    assert await bus.last("event", subjects.event("team-a", "c1", "j0")) is None
    assert await bus.last("event", subjects.event("team-a", "c1", "j19")) is not None
    await bus.publish(subjects.state("c1", "node", "n1"), b"x" * 8000)
    with pytest.raises(RetryableBusError, match="maximum bytes exceeded"):
        await bus.publish(subjects.state("c1", "node", "n2"), b"x" * 8000)


async def test_a_tenant_that_fills_its_part_of_the_stream_is_refused_and_no_other_is(bus: Bus) -> None:
    wanted = topology(["c1"])
    streams = [
        msgspec.structs.replace(one, most_of_a_subject=3) if one.name == "submit" else one
        for one in wanted.streams
    ]
    await provision(bus, msgspec.structs.replace(wanted, streams=streams))
    for number in range(3):
        await bus.publish(subjects.submit("c1", "team-a"), b"%d" % number)
    with pytest.raises(RetryableBusError, match="maximum messages per subject exceeded"):
        await bus.publish(subjects.submit("c1", "team-a"), b"one too many")
    await bus.publish(subjects.submit("c1", "team-b"), b"x")
    first = await bus.jetstream.next_of("submit", subjects.submit("c1", "team-a"), 1)
    assert first is not None
    assert first.payload == b"0", "the oldest are still there"


async def test_a_changed_durable_is_updated(bus: Bus) -> None:
    wanted = topology(["c1"])
    durables = [msgspec.structs.replace(one, ack_wait_seconds=7, max_deliver=3) for one in wanted.durables]
    changes = await provision(bus, msgspec.structs.replace(wanted, durables=durables))
    assert len(changes) == len(durables)
    assert "ack_wait 10000000000 -> 7000000000" in changes[0]
    assert await provision(bus, msgspec.structs.replace(wanted, durables=durables)) == []


async def test_what_the_server_cannot_change_is_an_error(bus: Bus) -> None:
    wanted = topology(["c1"])
    streams = [
        msgspec.structs.replace(one, retention=Retention.WORK_QUEUE) if one.name == "event" else one
        for one in wanted.streams
    ]
    with pytest.raises(JetStreamRefusedError):
        await provision(bus, msgspec.structs.replace(wanted, streams=streams))


async def test_looking_for_changes_makes_none(bus: Bus) -> None:
    wanted = topology(["c1", "c2"])
    first = [change.sentence("missing") for change in await find_changes(bus, wanted)]
    assert first[0].startswith("stream submit: subjects [")
    assert first[1:] == ["durable submit/submit-c2: missing", "durable event/answers-c2: missing"]
    assert [change.sentence("missing") for change in await find_changes(bus, wanted)] == first


async def test_copies_are_one_of_the_differences(bus: Bus) -> None:
    differing = await find_changes(bus, topology(["c1"]), replicas=3)
    assert [change.what for change in differing if not change.is_durable] == [
        change.what for change in differing
    ]
    assert len(differing) == len(topology([]).streams) + len(topology([]).buckets)
    assert all(change.differing == ["num_replicas 1 -> 3"] for change in differing)
    assert await find_changes(bus, topology(["c1"]), replicas=1) == []


async def test_what_is_missing_is_told_with_the_command_that_makes_it(bus: Bus) -> None:
    async def handle(delivery: Delivery) -> None:
        raise AssertionError(delivery)

    worker = Worker(bus, stream="submit", durable=submit_durable("gpu.west"), handle=handle)
    with pytest.raises(
        NotProvisionedError, match=r"no durable submit/submit-gpu=2Ewest: `fairlead nats provision gpu\.west`"
    ):
        await worker.run()
    await require_durables(bus, ("submit", submit_durable("c1")))
    with pytest.raises(NotProvisionedError, match="`fairlead nats provision c2`"):
        await require_durables(bus, ("submit", submit_durable("c1")), ("submit", submit_durable("c2")))
    mirror = Mirror(bus, stream="nothing", filter=subjects.state_filter(), codec=STATE, wake=asyncio.Event())
    with pytest.raises(
        NotProvisionedError, match=r"no stream nothing: `fairlead nats provision CLUSTER\.\.\.`"
    ):
        await mirror.run()


def test_a_durable_tells_its_cluster() -> None:
    assert [cluster_of(one.name) for one in topology(["a-b", "c.d"]).durables] == [
        "a-b",
        "c.d",
        None,
        "a-b",
        "c.d",
    ]
