"""The share of a tenant: what waits for its turn takes no place of the others, and has it in the end."""

import asyncio
from collections import Counter
from contextlib import suppress

import pytest

from fairlead_admitter.errors import FrontendBalkedError, FrontendDownError, FrontendSlowError
from fairlead_admitter.intake.creation import CreatedJob, Creation, JobOrder, Removal, RetryingCreator
from fairlead_bus import ConnectionSettings, Delivery, NotYetError, connect
from fairlead_bus.work.worker import Worker
from fairlead_contracts import subjects
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.submissions import Cancellation, Submission
from fairlead_contracts.topology import submit_durable
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.by_hand.fake_cluster import CLUSTER, set_up

SHARE, PLACES = 4, 16


def order(scope: str, number: int) -> JobOrder:
    return JobOrder(
        submission=Submission(id=f"{scope}{number}", tenant=scope, demand={"cpu": 1}), submitted=0
    )


def nobody(scope: str, why: str, *, new: bool) -> None:
    """Hears of troubles in tests that have none."""
    raise AssertionError(f"{scope}: {why} ({new})")


class Creating:
    """A part of a frontend that only makes jobs."""

    keeps_names = True

    async def cancel(self, wanted: Cancellation, before: Micros) -> Removal:
        raise AssertionError(f"nobody cancels {wanted} of {before} here")


class Failing(Creating):
    """Fails each order as the scope says."""

    def __init__(self, **errors: FrontendDownError | None) -> None:
        self.errors = errors
        self.begun_anew = 0

    def begin_anew(self) -> None:
        self.begun_anew += 1

    async def create(self, order: JobOrder) -> CreatedJob:
        error = self.errors.get(order.scope)
        if error is not None:
            raise error
        return CreatedJob(outcome=Creation.CREATED)


async def test_a_new_lead_begins_without_what_earlier_orders_met_here_and_in_the_frontend() -> None:
    failing = Failing(a=FrontendDownError("away"))
    heard: list[str] = []

    def troubled(scope: str, why: str, *, new: bool) -> None:
        heard.append(f"{scope}: {why} ({new})")

    creator = RetryingCreator(failing, share=2, troubled=troubled)
    with pytest.raises(NotYetError):
        await creator.create(order("a", 1))
    assert (heard, creator.told()) == (["a: away (True)"], "a: away")
    creator.begin_anew()
    assert (failing.begun_anew, creator.told()) == (1, None)


async def test_one_tenants_trouble_is_told_and_counted_and_the_frontend_is_not_called_down() -> None:
    heard: list[tuple[str, str, bool]] = []
    now = 0.0

    def troubled(scope: str, why: str, *, new: bool) -> None:
        heard.append((scope, why, new))

    failing = Failing(a=FrontendBalkedError("no right, for now"))
    creator = RetryingCreator(failing, share=4, troubled=troubled, clock=lambda: now)
    for number in range(2):
        with pytest.raises(NotYetError):
            await creator.create(order("a", number))
        now += 60
    assert heard == [("a", "no right, for now", True), ("a", "no right, for now", False)]
    assert creator.told() == "a: no right, for now"
    assert [creator.down] == [False], "nobody else submits, and it answered"
    failing.errors["b"] = FrontendDownError("connection refused")
    with pytest.raises(NotYetError):
        await creator.create(order("b", 0))
    assert [creator.down] == [True]
    failing.errors["b"] = None
    now += 60
    await creator.create(order("b", 0))
    assert [creator.down] == [False]


async def test_a_frontend_that_lets_everybody_wait_is_down_and_one_that_is_slow_to_one_is_not() -> None:
    now = 0.0
    failing = Failing(a=FrontendSlowError("no answer within 2 s"))
    creator = RetryingCreator(failing, share=4, troubled=lambda *_, **__: None, clock=lambda: now)

    async def ask(scope: str) -> None:
        with suppress(NotYetError):
            await creator.create(order(scope, 0))

    for _ in range(4):
        await ask("a")
        await ask("b")  # it is answered
        now += 5
    assert not creator.down
    failing.errors["b"] = FrontendSlowError("no answer within 2 s")
    told = []
    for _ in range(4):
        await ask("a")
        await ask("b")
        told.append(creator.down)
        now += 5
    assert told == [False, False, True, True]
    failing.errors["b"] = FrontendBalkedError("no right, for now")
    await ask("b")
    assert not creator.down, "it answers"


class Slow(Creating):
    """Carries out nothing until it may, and one after the other from then on."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.now = Counter[str]()
        self.most = Counter[str]()
        self.go = asyncio.Event()

    def begin_anew(self) -> None:
        """Has nothing to forget."""

    async def create(self, order: JobOrder) -> CreatedJob:
        self.begun.append(order.id)
        self.now[order.scope] += 1
        self.most |= self.now
        try:
            if order.scope == "a":
                await self.go.wait()
            await asyncio.sleep(0)
        finally:
            self.now[order.scope] -= 1
        return CreatedJob(outcome=Creation.CREATED)


async def test_who_finds_no_place_is_called_in_the_order_of_asking() -> None:
    slow = Slow()
    creator = RetryingCreator(slow, share=1, troubled=nobody)
    async with asyncio.TaskGroup() as group:
        group.create_task(creator.create(order("a", 0)))
        await eventually(lambda: slow.begun)
        called: list[asyncio.Future[None]] = []
        for number in range(1, 4):
            with pytest.raises(NotYetError) as caught:
                await creator.create(order("a", number))
            assert caught.value.sooner is not None
            called.append(caught.value.sooner)
        assert creator.told() == "a: 3 wait for their turn, 1 at once"
        await creator.create(order("b", 0))
        called[0].cancel()  # it was handed back
        slow.go.set()
    assert [one.done() and not one.cancelled() for one in called] == [False, True, False]
    await creator.create(order("a", 2))
    await called[2]
    await creator.create(order("a", 3))
    assert creator.told() is None


@pytest.mark.integration
@pytest.mark.timeout(180)
@pytest.mark.parametrize("burst", [200, 1200])
async def test_a_burst_of_one_tenant_keeps_no_other_waiting(nats_server: NatsServer, burst: int) -> None:
    slow = Slow()
    creator = RetryingCreator(slow, share=SHARE, troubled=nobody)
    done = Counter[str]()

    async def handle(delivery: Delivery) -> None:
        scope = delivery.subject.rpartition(".")[2]
        await creator.create(order(scope, delivery.stream_seq))
        done[scope] += 1

    async with connect(ConnectionSettings(url=nats_server.url), name="test") as bus:
        await set_up(bus)
        for _ in range(burst):
            await bus.publish(subjects.submit(CLUSTER, "a"), b"")
        await bus.publish(subjects.submit(CLUSTER, "b"), b"")
        worker = Worker(bus, stream="submit", durable=submit_durable(CLUSTER), handle=handle, parallel=PLACES)
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.run())
            await eventually(lambda: done["b"] == 1, 60, what="the other tenant's is done")
            assert done["a"] == 0
            slow.go.set()
            await eventually(lambda: done["a"] == burst, 60, what="the burst is done")
            worker.stop()
    assert slow.most["a"] == SHARE
    assert len(slow.begun) == burst + 1
    assert creator.told() is None
