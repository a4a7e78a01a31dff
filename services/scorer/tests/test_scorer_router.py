"""The router on a real server: one cluster each, the same way again, clear refusals."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Bucket, Delivery, Follower, NotYetError
from fairlead_bus.server.provision import provision
from fairlead_bus.work.worker import Worker
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.submissions import ANSWER, DEAD_LETTER, AnyAnswer, Refused, read_submission
from fairlead_contracts.topology import MEMBERS, ROUTES, SUBMIT, Topology, submit_durable, topology
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_runtime.metrics import Metrics
from fairlead_scorer import ScorerSettings, main
from fairlead_scorer.report.record import ScorerRecord
from fairlead_scorer.route.router import Router, TenantPace
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.by_hand import people
from fairlead_testkit.by_hand.bus_harness import BusHarness
from fairlead_testkit.inputs.builders import (
    a_body,
    a_cancellation,
    a_document,
    a_leader,
    a_pool,
    a_queue,
    a_tenant_state,
)
from fairlead_testkit.nats_servers.streams import change_stream, stream_info

pytestmark = pytest.mark.integration


@asynccontextmanager
async def scored(nats_server: NatsServer, tmp_path: Path, **settings: object) -> AsyncIterator[BusHarness]:
    """One scorer over two clusters that both have a queue of team-a and team-b."""
    async with BusHarness.open(nats_server, tmp_path) as opened:
        await over_both(opened)
        async with opened.serving(main, ScorerSettings, "s1", **settings):
            yield opened


async def over_both(harness: BusHarness) -> None:
    """A policy, and two clusters that both have a queue of team-a and team-b."""
    await harness.policy(a_document(shards=2))
    for cluster in ("c1", "c2"):
        await harness.state(
            a_pool(cluster=cluster),
            a_queue(cluster=cluster),
            a_tenant_state(cluster=cluster),
            a_tenant_state(cluster=cluster, name="team-b", scope="team-b"),
        )
    await harness.mark("c1", "c2")


@pytest.fixture
async def harness(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[BusHarness]:
    async with scored(nats_server, tmp_path) as opened:
        yield opened


class Clusters:
    """The two clusters, as far as they take submissions."""

    def __init__(self) -> None:
        self._taken: asyncio.Queue[tuple[str, Delivery]] = asyncio.Queue()

    async def take(self, delivery: Delivery) -> None:
        await self._taken.put((delivery.subject.split(".")[3], delivery))

    async def next(self) -> tuple[str, Delivery]:
        """The next submission, and the cluster that it was sent to."""
        async with asyncio.timeout(40):
            return await self._taken.get()


@pytest.fixture
async def clusters(harness: BusHarness) -> AsyncIterator[Clusters]:
    taken = Clusters()
    workers = [
        Worker(harness.bus, stream=SUBMIT, durable=submit_durable(cluster), handle=taken.take)
        for cluster in ("c1", "c2")
    ]
    async with asyncio.TaskGroup() as group:
        for worker in workers:
            group.create_task(worker.run())
        yield taken
        for worker in workers:
            worker.stop()


async def next_answer(follower: Follower) -> AnyAnswer:
    async with asyncio.timeout(40):
        async for delivery in follower:
            return ANSWER.decode(delivery.payload)
    raise AssertionError("the follower ended")


async def submit(
    harness: BusHarness, payload: bytes, *, tenant: str = "team-a", msg_id: str | None = None
) -> int:
    return await people.submit(harness.bus, payload, cluster="any", tenant=tenant, msg_id=msg_id)


async def test_a_submission_is_sent_to_one_cluster_under_its_id(
    harness: BusHarness, clusters: Clusters
) -> None:
    body = a_body(id="train-1")
    await submit(harness, body)
    cluster, delivery = await clusters.next()
    assert (cluster, delivery.payload) == ("c1", body)


async def test_the_clients_own_msg_id_is_the_id_and_does_not_swallow_the_copy(
    harness: BusHarness, clusters: Clusters
) -> None:
    """The copy carries the id in its body, under no Msg-Id at all."""
    await submit(harness, a_body(id=None), msg_id="by-header")
    _, delivery = await clusters.next()
    assert read_submission(delivery.payload, tenant="team-a", fallback_id="none").id == "by-header"
    seq = await submit(harness, a_body(id=None))
    _, delivery = await clusters.next()
    assert read_submission(delivery.payload, tenant="team-a", fallback_id="none").id == f"seq-{seq}"


async def test_several_submissions_are_spread_before_they_show_in_the_state(
    harness: BusHarness, clusters: Clusters
) -> None:
    for number in range(4):
        await submit(harness, a_body(id=f"train-{number}"))
    found = [(await clusters.next())[0] for _ in range(4)]
    assert sorted(found) == ["c1", "c1", "c2", "c2"]


async def test_a_cluster_that_nobody_leads_any_more_gets_none_of_them(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    """A cluster's facts outlast its services: every second job went there, and waited for ever."""
    async with BusHarness.open(nats_server, tmp_path) as harness:
        lease = a_leader(cluster="c2")
        await Bucket(harness.bus, MEMBERS).create(
            subjects.leader_key(lease.role, lease.cluster), to_json(lease)
        )
        await over_both(harness)
        async with harness.serving(main, ScorerSettings, "s1"):
            for number in range(4):
                await submit(harness, a_body(id=f"train-{number}"))
            for number in range(4):
                assert await eventually(partial(route_of, harness, f"train-{number}")) == b"c2"


async def test_a_repeat_goes_the_recorded_way_even_with_another_body(
    harness: BusHarness, clusters: Clusters
) -> None:
    """The cluster that has the first one can say that the second is another job; no other could."""
    await submit(harness, a_body(id="train-1"))
    first, _ = await clusters.next()
    await submit(harness, a_body(id="other"))
    assert (await clusters.next())[0] != first
    await submit(harness, a_body(id="train-1", pods=2))
    again, delivery = await clusters.next()
    assert again == first
    assert msgspec.json.decode(delivery.payload)["pods"] == 2
    routes = Bucket(harness.bus, ROUTES)
    entry = await routes.get(subjects.route_key("team-a", "train-1"))
    assert entry is not None
    assert entry.value.decode() == first


@pytest.mark.parametrize(
    ("payload", "tenant", "field", "value"),
    [
        (b"{nonsense", "team-a", "body", '"{nonsense"'),
        (b'{"v": 7, "id": "x", "demand": {"cpu": 1}}', "team-a", "v", "7"),
        (a_body(demand={"cpu": "-1"}), "team-a", "demand.cpu", '"-1"'),
        (a_body(demand={"quantum": 1}), "team-a", "demand.quantum", None),
        (a_body(demand={"nvidia.com/gpu": 17}), "team-a", "demand.nvidia.com/gpu", None),
        (a_body(class_="urgent"), "team-a", "class", '"urgent"'),
        (a_cancellation("x"), "team-a", "cancel", '"true"'),
        (a_body(), "stranger", "tenant", '"stranger"'),
        (a_body(), "team.b ü", "tenant", '"team.b ü"'),
    ],
)
async def test_what_no_cluster_can_take_is_answered(
    harness: BusHarness, payload: bytes, tenant: str, field: str, value: str | None
) -> None:
    since = time.time_ns() // 1000 - 60_000_000
    answers = Follower(harness.bus, stream="answer", filter=subjects.answer_filter(tenant), since=since)
    await submit(harness, payload, tenant=tenant, msg_id="by-header")
    answer = await next_answer(answers)
    assert isinstance(answer, Refused)
    assert (answer.cluster, answer.tenant, answer.field) == ("any", tenant, field)
    assert value in {None, answer.value}
    assert answer.reason


async def test_a_header_that_is_no_id_is_answered_under_the_place_in_the_stream(harness: BusHarness) -> None:
    answers = Follower(harness.bus, stream="answer", filter=subjects.answer_filter("team-a"), since=0)
    seq = await submit(harness, b"{nonsense", msg_id="x" * 2000)
    assert (await next_answer(answers)).id == f"seq-{seq}"


async def test_a_tenant_too_long_to_be_answered_is_put_aside_at_once(harness: BusHarness) -> None:
    # Tokens that were never encoded: short enough for the server, too long once they are.
    await harness.bus.publish(f"{subjects.ROOT}.submit.any.{'ü' * 400}", a_body())
    dead = Follower(harness.bus, stream="dead", filter=subjects.dead(">"), since=0)
    async with asyncio.timeout(40):
        letter = DEAD_LETTER.decode((await anext(aiter(dead))).payload)
    assert letter.deliveries == 1
    assert "cannot be answered" in letter.reason


async def test_a_full_stream_of_submissions_makes_no_dead_letters(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    """The copy has no room: the submission waits where it is, whatever attempts it may have."""
    async with BusHarness.open(nats_server, tmp_path) as harness:
        await provision(harness.bus, only_attempt(topology(["c1", "c2"])))
        full = await change_stream(harness.bus, SUBMIT, max_msgs=1, discard="new")
        await submit(harness, a_body(id="train-1"))
        await harness.policy(a_document(shards=2))
        await harness.state(a_pool(), a_queue(), a_tenant_state())
        await harness.mark("c1")
        async with harness.serving(main, ScorerSettings, "s1") as lifecycle:
            hindered = partial(counted, lifecycle, "worker.hindered")
            await eventually(lambda: hindered() >= 2)
            await harness.bus.jetstream.call(f"STREAM.UPDATE.{SUBMIT}", full)
            copy = await eventually(lambda: harness.bus.last(SUBMIT, subjects.submit("c1", "team-a")))
        assert copy.payload == a_body(id="train-1")
        assert await harness.bus.last("dead", subjects.dead(">")) is None


def only_attempt(wanted: Topology) -> Topology:
    durables = [msgspec.structs.replace(durable, max_deliver=1) for durable in wanted.durables]
    return msgspec.structs.replace(wanted, durables=durables)


def counted(lifecycle: Lifecycle, what: str) -> float:
    """The number of events that the service's bus counts under a name."""
    return lifecycle.metrics.registry.get_sample_value("fairlead_bus_events_total", {"what": what}) or 0.0


async def copies(harness: BusHarness) -> Counter[str]:
    """The number of submissions that were sent to a cluster and wait there, by tenant."""
    info = await stream_info(harness.bus, SUBMIT, subjects_filter=f"{subjects.ROOT}.submit.>")
    found = Counter[str]()
    for subject, count in (info["state"].get("subjects") or {}).items():
        *_, cluster, tenant = subject.split(".")
        found[tenant] += count if cluster != subjects.ANY_CLUSTER else 0
    return found


async def test_a_tenant_that_submits_for_any_cluster_too_fast_is_refused_and_its_neighbour_is_not(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    slow = {"tenant_submits_per_second": 0.001, "tenant_submits_burst": 3}
    async with scored(nats_server, tmp_path, **slow) as harness:
        answers = Follower(harness.bus, stream="answer", filter=subjects.answer_filter(), since=0)
        for number in range(5):
            await submit(harness, a_body(id=f"a-{number}"))
        for _ in range(2):
            answer = await next_answer(answers)
            assert isinstance(answer, Refused)
            assert (answer.tenant, answer.field) == ("team-a", "tenant")
            assert "more than the 0.001 jobs a second" in answer.reason
        await submit(harness, a_body(id="b-0"), tenant="team-b")
        await eventually(lambda: copies_are(harness, {"team-a": 3, "team-b": 1}))
        taken = [number for number in range(5) if await route_of(harness, f"a-{number}")]
        assert len(taken) == 3
        await submit(harness, a_body(id=f"a-{taken[0]}"))  # a repeat is no more work for a cluster
        await eventually(lambda: copies_are(harness, {"team-a": 4, "team-b": 1}))


async def copies_are(harness: BusHarness, wanted: dict[str, int]) -> bool:
    return await copies(harness) == wanted


async def route_of(harness: BusHarness, submission: str) -> bytes | None:
    entry = await Bucket(harness.bus, ROUTES).get(subjects.route_key("team-a", submission))
    return None if entry is None else entry.value


async def test_without_a_policy_a_submission_waits_and_has_all_its_attempts(harness: BusHarness) -> None:
    record, pace = ScorerRecord(Metrics("scorer")), TenantPace(1, 1)
    router = Router(harness.bus, ClusterCache(), record, lambda: 0, pace=pace, led=tuple)
    delivery = Delivery(
        subject=subjects.submit("any", "team-a"),
        payload=a_body(id="train-1"),
        headers={},
        stream_seq=1,
        deliveries=1,
        at=0,
    )
    with pytest.raises(NotYetError, match="no policy"):
        await router.handle(delivery)
