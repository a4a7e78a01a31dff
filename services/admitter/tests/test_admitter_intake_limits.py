"""Floods of one tenant, or of all: refused clearly, and the neighbour does not notice."""

import asyncio
import re
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_admitter.intake.limits import IntakeLimits, LimitExceeded, TenantLimits
from fairlead_bus import Bus, Delivery
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.messages.submissions import Accepted, AnyAnswer, Refused
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_testkit import eventually
from fairlead_testkit.by_hand.bus_harness import sample
from fairlead_testkit.by_hand.fake_cluster import CLUSTER, FakeCluster, RunAdmitter
from fairlead_testkit.by_hand.people import submit
from fairlead_testkit.inputs.builders import NOW, a_body
from fairlead_testkit.nats_servers.streams import change_stream, stream_info
from fairlead_testkit.timing.in_hand import ManualClock

pytestmark = pytest.mark.timeout(180)


def a_delivery(seq: int, *, seconds: float = 0.0, tenant: str = "a") -> Delivery:
    return Delivery(
        subject=subjects.submit(CLUSTER, tenant),
        payload=b"",
        headers={},
        stream_seq=seq,
        deliveries=1,
        at=NOW + int(seconds * SECOND),
    )


def limits_of(
    *, a_second: float = 1, burst: int = 2, waiting: int = 100, counted: int = 0, full: str | None = None
) -> IntakeLimits:
    of_each = TenantLimits(a_second=a_second, burst=burst, waiting=waiting)
    return IntakeLimits(CLUSTER, of_each, waiting=lambda _: counted, full=lambda: full)


def label(objection: LimitExceeded | None) -> str | None:
    return None if objection is None else objection.label


def test_a_burst_passes_and_then_as_many_as_a_second_allows() -> None:
    limits = limits_of()
    moments = [0, 0, 0, 0.5, 1.0, 1.5, 2.0, 9.0, 9.0, 9.0]
    found = [label(limits.objection("a", a_delivery(seq, seconds=at))) for seq, at in enumerate(moments)]
    assert found == [None, None, "rate", "rate", None, "rate", None, None, None, "rate"]
    assert limits.objection("b", a_delivery(99)) is None, "another tenant has its own"


def test_one_that_is_handled_again_is_counted_once() -> None:
    limits = limits_of(burst=1)
    for _ in range(5):
        assert limits.objection("a", a_delivery(1)) is None
    assert label(limits.objection("a", a_delivery(2))) == "rate"


def test_it_is_known_for_two_minutes_after_it_was_handled_last() -> None:
    """The memory is that of the last two minutes, however many were taken in before."""
    clock = ManualClock()
    of_each = TenantLimits(a_second=1, burst=1000, waiting=100)
    limits = IntakeLimits(CLUSTER, of_each, waiting=lambda _: 0, full=lambda: None, clock=clock)
    parked = a_delivery(10_000)
    for second in range(600):
        clock.now = second
        assert limits.objection("a", a_delivery(second)) is None
        assert limits.objection("a", parked) is None
    assert len(limits._let_through) == 122
    spent = limits_of(burst=1)
    assert [label(spent.objection("a", parked)) for _ in range(3)] == [None] * 3


@given(
    moments=st.lists(st.integers(0, 60), max_size=60),
    a_second=st.sampled_from([0.25, 1.0, 3.0]),
    burst=st.integers(1, 9),
)
def test_never_more_pass_than_the_limits_say(moments: list[int], a_second: float, burst: int) -> None:
    """Submissions pass, in whatever order they come: at most a burst in any stretch of time, and what its seconds allow."""
    limits = limits_of(a_second=a_second, burst=burst)
    passed = [
        at for seq, at in enumerate(moments) if limits.objection("a", a_delivery(seq, seconds=at)) is None
    ]
    if moments:
        assert len(passed) <= burst + (max(moments) - min(moments)) * a_second
        assert len(passed) >= min(len(moments), burst)


def test_too_many_waiting_jobs_and_a_full_server_are_told_as_such() -> None:
    objection = limits_of(waiting=7, counted=7).objection("a", a_delivery(1))
    assert objection is not None
    assert (objection.label, objection.error.field, objection.error.value) == ("backlog", "tenant", "a")
    assert objection.error.reason.startswith("has 7 jobs waiting in cluster c1")
    assert label(limits_of(full="too full").objection("a", a_delivery(1))) == "storage"


async def heard(answers: list[AnyAnswer], tenant: str, count: int) -> list[AnyAnswer]:
    def of_tenant() -> list[AnyAnswer]:
        return [answer for answer in answers if answer.tenant == tenant]

    await eventually(lambda: len(of_tenant()) >= count, 60, what=f"{count} answers to {tenant}")
    return of_tenant()


@pytest.mark.integration
async def test_a_tenant_with_too_many_waiting_jobs_is_refused_and_its_neighbour_is_not(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    await cluster.put("old-1", "old-2", scope="team-a")
    async with run_admitter(tenant_waiting_jobs=3):
        await submit(bus, a_body(id="x"))
        assert isinstance((await heard(answers, "team-a", 1))[0], Accepted)
        refused = await _until_refused(bus, answers)
        assert (refused.field, refused.value) == ("tenant", '"team-a"')
        # Some pass between the third and its being counted, so the number told may be larger than the limit.
        assert re.match(r"has ([3-9]|\d\d) jobs waiting in cluster c1", refused.reason)
        await submit(bus, a_body(id="b"), tenant="team-b")
        assert isinstance((await heard(answers, "team-b", 1))[0], Accepted)
        # A repeat adds no job, so it is answered as ever.
        before = len(answers)
        await submit(bus, a_body(id="x"))
        await eventually(lambda: len(answers) > before)
        assert isinstance(answers[-1], Accepted)


async def _until_refused(bus: Bus, answers: list[AnyAnswer]) -> Refused:
    """Jobs are counted as the cluster states them, a moment after they are accepted."""
    for number in range(50):
        before = len(answers)
        await submit(bus, a_body(id=f"more-{number}"))
        await eventually(lambda before=before: len(answers) > before)  # type: ignore[misc] # binds the loop's
        if isinstance(answers[-1], Refused):
            return answers[-1]
        await asyncio.sleep(0.1)
    raise AssertionError("never refused")


@pytest.mark.integration
async def test_a_tenant_that_submits_too_fast_is_refused_and_every_submission_is_answered(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    del cluster
    async with run_admitter(tenant_submits_per_second=0.01, tenant_submits_burst=5) as admitter:
        for number in range(40):
            await submit(bus, a_body(id=f"a{number}"))
        await submit(bus, a_body(id="b"), tenant="team-b")
        assert isinstance((await heard(answers, "team-b", 1))[0], Accepted)
        found = await heard(answers, "team-a", 40)
        assert sum(isinstance(answer, Accepted) for answer in found) == 5
        assert len({answer.id for answer in found}) == 40
        # The last refusal is counted once its answer is stored: who hears it may be sooner.
        await eventually(lambda: sample(admitter, "submissions_refused_total", reason="rate") == 35)


@pytest.mark.integration
async def test_submissions_are_refused_before_the_facts_of_their_jobs_find_no_room(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    del cluster
    async with run_admitter() as admitter:
        await submit(bus, a_body(id="before"))
        await heard(answers, "team-a", 1)
        await limit(bus, topology.STATE, used=0.85)
        await eventually(lambda: "85% full" in admitter.readiness.reasons().get("intake", ""))
        await submit(bus, a_body(id="x"))
        refused = (await heard(answers, "team-a", 2))[1]
        assert isinstance(refused, Refused)
        assert refused.field == "cluster"
        assert "stream state of NATS is 85% full" in refused.reason
        await limit(bus, topology.STATE, used=0.5)
        await eventually(lambda: "intake" not in admitter.readiness.reasons())
        assert admitter.readiness.details()["nats"] == "stream state of NATS is 50% full"
        await submit(bus, a_body(id="x"))
        assert isinstance((await heard(answers, "team-a", 3))[2], Accepted)


async def limit(bus: Bus, stream: str, *, used: float) -> None:
    """Gives the stream a limit of which so much is used."""
    most = int((await stream_info(bus, stream))["state"]["bytes"] / used)
    await change_stream(bus, stream, max_bytes=most, discard="new")


@pytest.mark.integration
async def test_an_admitter_that_gets_nothing_of_what_waits_is_not_ready(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    del cluster
    durable = f"{topology.SUBMIT}.{topology.submit_durable(CLUSTER)}"

    def gauge(admitter: Lifecycle, name: str) -> float | None:
        return admitter.metrics.registry.get_sample_value(f"fairlead_admitter_intake_{name}_messages")

    async with run_admitter(stale_after_seconds=1) as admitter:
        await submit(bus, a_body(id="x"))
        await heard(answers, "team-a", 1)
        await bus.jetstream.call(f"CONSUMER.PAUSE.{durable}", {"pause_until": "2099-01-01T00:00:00Z"})
        await submit(bus, a_body(id="y"))
        await eventually(lambda: "submissions wait" in admitter.readiness.reasons().get("intake", ""), 30)
        assert gauge(admitter, "pending") == 1
        await bus.jetstream.call(f"CONSUMER.PAUSE.{durable}", {})
        await heard(answers, "team-a", 2)
        await eventually(lambda: "intake" not in admitter.readiness.reasons(), 30)
        await eventually(lambda: gauge(admitter, "pending") == 0, 30)


@pytest.mark.integration
async def test_one_tenants_trouble_makes_no_admitter_unready(
    bus: Bus, cluster: FakeCluster, run_admitter: RunAdmitter
) -> None:
    cluster.deaf_to["team-a"] = asyncio.Event()
    async with run_admitter(stale_after_seconds=1, frontend_timeout_seconds=30) as admitter:
        for number in range(100):
            await submit(bus, a_body(id=f"a{number}"))
        oldest = partial(sample, admitter, "intake_oldest_seconds")
        await eventually(lambda: oldest() > 4, 40, what="two looks later than its patience")
        assert "intake" not in admitter.readiness.reasons()
        cluster.deaf_to.pop("team-a").set()
        await eventually(lambda: oldest() == 0, 40)
