"""Reserve mode on a real Kueue: a gang starts as promised under a stream of small jobs, and starves where gaps are filled."""

import asyncio
import contextlib
import itertools
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from fairlead_bus import Bus, Follower, Leadership
from fairlead_contracts import subjects, topology
from fairlead_contracts.codec import to_json
from fairlead_contracts.document import PolicyDocument, Reserve
from fairlead_contracts.events import EVENT, JobReserved, Reserving
from fairlead_contracts.marks import WATCHDOG
from fairlead_contracts.questions import EXPLAIN_REPLY, ExplainQuestion
from fairlead_testkit.admissions import AdmissionLog, Step
from fairlead_testkit.awaiting import eventually
from fairlead_testkit.estate import Estate
from fairlead_testkit.kube_fleet import KUBE_CLUSTER, KubeFleet, fair_policy
from fairlead_testkit.kubelab import KubeLab

pytestmark = [pytest.mark.kube, pytest.mark.timeout(180)]

GPUS = 8
SMALL, LARGE, LONG = "small", "large", "long"
LIMIT, LASTS, EVERY = 6, 3.0, 0.3
"""Of small jobs, seconds: how long they may run, how long they do, and how long until the next one comes."""
LONG_LIMIT, LONG_LASTS = 26, 23
"""A promise counts with the limits; seconds between these and the ends are for a machine that stands still meanwhile."""
RESERVE = Reserve(reaction_seconds=2, grace_seconds=2, rest_seconds=10)


class Stream:
    """More small jobs than fit, each ended when its time is over; and one long one.

    Args:
        estate: with tenants SMALL, LARGE and LONG.
        log: of its admissions.
        refilled: a job that is over ends only when another has started in place of the last that ended. What starts
            then is Kueue's choice alone; a machine that stands still for seconds empties the pool otherwise. Nor has a job
            a limit then: Kueue evicts what exceeds its own.
    """

    def __init__(self, estate: Estate, log: AdmissionLog, *, refilled: bool = False) -> None:
        self._estate = estate
        self._log = log
        self._refilled = refilled
        self._ended: set[str] = set()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._come())
            group.create_task(self._go())

    async def _come(self) -> None:
        for number in itertools.count():
            limit = None if self._refilled else LIMIT
            await asyncio.to_thread(self._estate.workload, SMALL, f"{SMALL}-{number}", limit=limit)
            await asyncio.sleep(EVERY)

    async def _go(self) -> None:
        while True:
            now = time.monotonic()
            for step in list(self._log.steps):
                lasts = LONG_LASTS if step.name == LONG else LASTS
                over = step.what == "admitted" and step.at + lasts <= now
                if over and step.name not in self._ended:
                    self._ended.add(step.name)
                    await self._end(step)
            await asyncio.sleep(0.1)

    async def _end(self, step: Step) -> None:
        before = len(self._log.admitted)
        await asyncio.to_thread(self._estate.finish, step.tenant, step.name)
        if self._refilled:
            await eventually(lambda: len(self._log.admitted) > before, 30, what="another starts in its place")


@contextlib.asynccontextmanager
async def stream(estate: Estate, log: AdmissionLog, *, refilled: bool = False) -> AsyncIterator[None]:
    """A long job of a quarter of the pool, and the stream beside it, for the time of the block."""
    estate.workload(LONG, LONG, GPUS // 4, limit=None if refilled else LONG_LIMIT)
    log.wait(1)
    task = asyncio.create_task(Stream(estate, log, refilled=refilled).run())
    try:
        await eventually(lambda: len(estate.admitted()) > GPUS // 2, 30, what="the pool is nearly full")
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def told(bus: Bus) -> AsyncIterator[list[JobReserved]]:
    """What happens to promises and passes, as events tell it, for the time of the block."""
    follower = Follower(bus, stream=topology.EVENT, filter=subjects.event_filter(KUBE_CLUSTER), since=0)
    events: list[JobReserved] = []

    async def listen() -> None:
        async for delivery in follower:
            event = EVENT.decode(delivery.payload)
            if isinstance(event, JobReserved):
                events.append(event)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(listen())
        try:
            yield events
        finally:
            task.cancel()


def started(log: AdmissionLog, name: str) -> float | None:
    """When a job was admitted, in monotonic seconds."""
    return next((step.at for step in log.steps if step.what == "admitted" and step.name == name), None)


def started_between(steps: Sequence[Step], since: float, until: float) -> int:
    """How many small jobs were admitted."""
    return sum(step.what == "admitted" and since < step.at < until for step in steps)


def happened(events: Sequence[JobReserved], what: Reserving, job: str) -> list[JobReserved]:
    """The events of one kind about one job."""
    return [one for one in events if one.what is what and one.job == job]


def reserve_policy(estate: Estate, pool: str) -> PolicyDocument:
    weights = dict.fromkeys(estate.namespaces, 1.0)
    return fair_policy(estate, weights, pool, mode="reserve", reserve=RESERVE)


async def test_a_gang_starts_by_its_promise_while_small_jobs_pass(kube_lab: KubeLab, tmp_path: Path) -> None:
    with Estate(kube_lab, [SMALL, LARGE, LONG]) as estate, AdmissionLog(estate) as log:
        pool = estate.queue("strict", GPUS, strategy="StrictFIFO")
        fleet = KubeFleet(tmp_path, kube_lab, policy=reserve_policy(estate, pool), scorers=1)
        async with fleet.running() as bus, told(bus) as events, stream(estate, log):
            estate.workload(LARGE, LARGE, GPUS, limit=5)

            async def explained() -> bool:
                question = to_json(ExplainQuestion(job=LARGE))
                reply = EXPLAIN_REPLY.decode(await bus.request(subjects.ask("explain"), question, timeout=5))
                said = [reason for found in reply.found for reason in found.reasons]
                return any("heads its line, and starts by" in reason for reason in said)

            await eventually(explained, 30, what="`fairlead explain` says by when it starts")
            await eventually(lambda: happened(events, Reserving.KEPT, LARGE), 50, what="a promise is kept")
        clock = time.time() - time.monotonic()
        at = started(log, LARGE)
        promised = happened(events, Reserving.PROMISED, LARGE)
        assert at is not None
        assert all(one.by is not None and at + clock <= one.by.timestamp() for one in promised)
        assert not [one for one in events if one.what is Reserving.BROKEN]
        passed = started_between(log.steps, promised[0].at.timestamp() - clock, at)
        assert passed >= GPUS, "small jobs went on"
        assert len([one for one in events if one.what is Reserving.TAKEN]) >= passed // 2


async def test_where_gaps_are_filled_the_gang_starves(kube_lab: KubeLab) -> None:
    """The same stream without Fairlead, for longer than the promise took: Kueue's own order puts the gang first."""
    with Estate(kube_lab, [SMALL, LARGE, LONG]) as estate, AdmissionLog(estate) as log:
        estate.queue("filling", GPUS)
        async with stream(estate, log, refilled=True):
            estate.workload(LARGE, LARGE, GPUS, limit=5)
            before = len(log.admitted)
            until = time.monotonic() + LONG_LIMIT
            await eventually(
                lambda: time.monotonic() > until and len(log.admitted) > before + 5 * GPUS,
                LONG_LIMIT + 30,
                what="many small jobs have started, and the long one's end has passed",
            )
        assert started(log, LARGE) is None, log.steps


@contextlib.asynccontextmanager
async def watchdog(lab: KubeLab, nats: str, queue: str) -> AsyncIterator[Process]:
    """The command, impatient, for the time of the block."""
    words = ["watchdog", queue, "--after", "2", "--back-after", "2", "--every", "0.5", "--nats", nats]
    where = ["--kubeconfig", str(lab.kubeconfig()), "--cluster", KUBE_CLUSTER]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fairlead_cli", *words, *where, stdout=DEVNULL, stderr=DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()
        await process.wait()


async def test_with_fairlead_killed_the_promise_holds_and_the_watchdog_acts(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    with Estate(kube_lab, [SMALL, LARGE, LONG]) as estate, AdmissionLog(estate) as log:
        pool = estate.queue("strict", GPUS, strategy="StrictFIFO")
        fleet = KubeFleet(tmp_path, kube_lab, policy=reserve_policy(estate, pool), scorers=1)
        async with fleet.running() as bus, told(bus) as events:
            async with stream(estate, log):
                estate.workload(LARGE, LARGE, GPUS, limit=5)
                await eventually(
                    lambda: (
                        happened(events, Reserving.PROMISED, LARGE)
                        and [one for one in events if one.what is Reserving.PASSED]
                    ),
                    40,
                    what="a start is promised, and somebody passes",
                )
                for service in fleet.services.values():
                    service.kill()
                await eventually(lambda: started(log, LARGE) is not None, 60, what="the gang starts")
            clock = time.time() - time.monotonic()
            at = started(log, LARGE)
            promised = happened(events, Reserving.PROMISED, LARGE)
            assert at is not None
            assert all(one.by is not None and at + clock <= one.by.timestamp() for one in promised)
            await the_watchdog_acts(kube_lab, bus, fleet.server.url, pool)


async def the_watchdog_acts(lab: KubeLab, bus: Bus, nats: str, queue: str) -> None:
    """It lets go of the queue while nobody leads, and takes it back when somebody does."""
    path = f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{queue}"

    def stands() -> tuple[str, bool]:
        item = lab.api.get(path)
        return item["spec"]["queueingStrategy"], WATCHDOG in (item["metadata"].get("annotations") or {})

    async with watchdog(lab, nats, queue):
        await eventually(lambda: stands() == ("BestEffortFIFO", True), 30, what="the queue fills its gaps")
        leadership = Leadership(
            bus, role="admitter", cluster=KUBE_CLUSTER, replica="back-again", wake=asyncio.Event()
        )
        task = asyncio.create_task(leadership.run())
        try:
            await eventually(lambda: stands() == ("StrictFIFO", False), 30, what="the queue is strict again")
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
