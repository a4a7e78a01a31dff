"""Reserve mode on a real Kueue: a gang starts as promised under a stream of small jobs, and starves where gaps are filled."""

import asyncio
import contextlib
import itertools
import math
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from fairlead_bus import Bus, RetryableBusError
from fairlead_bus.ownership.leadership import Leadership
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.frontend.marks import WATCHDOG
from fairlead_contracts.messages.events import JobReserved, Reserving
from fairlead_contracts.messages.questions import EXPLAIN_REPLY, ExplainQuestion
from fairlead_contracts.policyfile.document import PolicyDocument, Reserve
from fairlead_testkit.chaos.audit import heard
from fairlead_testkit.fleets.kube_fleet import KUBE_CLUSTER, KubeFleet, fair_policy
from fairlead_testkit.kubelab import KubeLab
from fairlead_testkit.kueue.admissions import AdmissionLog, AdmissionStep
from fairlead_testkit.kueue.namespace_fixture import NamespaceFixture
from fairlead_testkit.timing.awaiting import eventually
from fairlead_testkit.timing.in_hand import beside

pytestmark = [pytest.mark.kube, pytest.mark.timeout(480)]

GPUS = 8
SMALL, LARGE, LONG, LENGTHY = "small", "large", "long", "lengthy"
LIMIT, LASTS, EVERY = 15, 5.0, 0.3
"""Seconds of small jobs: how long they may run, how long they do, and how long until the next one comes."""
LONG_LIMIT = 300
"""A promise counts with the limits; what lies between these and the ends is for a machine that stands still meanwhile."""
RESERVE = Reserve(reaction_seconds=5, grace_seconds=5, rest_seconds=10)


class Stream:
    """The stream of more small jobs than fit, each ended when its time is over; and of a long one, ended as the test says.

    Args:
        fixture: the fixture, with tenants SMALL, LARGE and LONG.
        log: log of its admissions.
        refilled: a job that is over ends only when another has started in place of the last that ended. What starts
            then is Kueue's choice alone; a machine that stands still for seconds empties the pool otherwise. Nor has a job
            a limit then: Kueue evicts what exceeds its own.
    """

    def __init__(self, fixture: NamespaceFixture, log: AdmissionLog, *, refilled: bool = False) -> None:
        self._fixture = fixture
        self._log = log
        self._refilled = refilled
        self._ended: set[str] = set()
        self.long_is_over = False

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._come())
            group.create_task(self._go())

    async def _come(self) -> None:
        for number in itertools.count():
            limit = None if self._refilled else LIMIT
            await asyncio.to_thread(self._fixture.workload, SMALL, f"{SMALL}-{number}", limit=limit)
            await asyncio.sleep(EVERY)

    async def _go(self) -> None:
        while True:
            now = time.monotonic()
            for step in list(self._log.steps):
                over = self.long_is_over if step.name == LONG else step.at + LASTS <= now
                if over and step.what == "admitted" and step.name not in self._ended:
                    self._ended.add(step.name)
                    await self._end(step)
            await asyncio.sleep(0.1)

    async def _end(self, step: AdmissionStep) -> None:
        before = len(self._log.admitted)
        await asyncio.to_thread(self._fixture.finish, step.tenant, step.name)
        if self._refilled:
            await eventually(lambda: len(self._log.admitted) > before, 60, what="another starts in its place")


@contextlib.asynccontextmanager
async def stream(
    fixture: NamespaceFixture, log: AdmissionLog, *, refilled: bool = False
) -> AsyncIterator[Stream]:
    """A long job of a quarter of the pool, and the stream beside it, for the time of the block."""
    fixture.workload(LONG, LONG, GPUS // 4, limit=None if refilled else LONG_LIMIT)
    log.wait(1)
    flowing = Stream(fixture, log, refilled=refilled)
    async with beside(flowing.run()):
        await eventually(lambda: len(fixture.admitted()) > GPUS // 2, 60, what="the pool is nearly full")
        yield flowing


def started(log: AdmissionLog, name: str) -> float | None:
    """Monotonic second at which a job was admitted; None where it was not."""
    return next((step.at for step in log.steps if step.what == "admitted" and step.name == name), None)


def passed(log: AdmissionLog, events: Sequence[JobReserved]) -> int:
    """Number of jobs that were admitted since the gang was promised its start."""
    promised = happened(events, Reserving.PROMISED, LARGE)
    since = promised[0].at.timestamp() - time.time() + time.monotonic() if promised else math.inf
    return sum(step.what == "admitted" and step.at > since for step in log.steps)


def of_kind(events: Sequence[JobReserved], what: Reserving) -> list[JobReserved]:
    """The events of one kind."""
    return [one for one in events if one.what is what]


def happened(events: Sequence[JobReserved], what: Reserving, job: str) -> list[JobReserved]:
    """The events of one kind about one job."""
    return [one for one in of_kind(events, what) if one.job == job]


def by_its_promise(log: AdmissionLog, events: Sequence[JobReserved]) -> None:
    """The gang has started, by every time that was promised to it."""
    clock = time.time() - time.monotonic()
    at = started(log, LARGE)
    promised = happened(events, Reserving.PROMISED, LARGE)
    assert at is not None
    assert all(one.by is not None and at + clock <= one.by.timestamp() for one in promised)


def reserve_policy(fixture: NamespaceFixture, pool: str) -> PolicyDocument:
    weights = dict.fromkeys(fixture.namespaces, 1.0)
    return fair_policy(fixture, weights, pool, mode="reserve", reserve=RESERVE)


async def test_a_gang_starts_by_its_promise_while_small_jobs_pass(kube_lab: KubeLab, tmp_path: Path) -> None:
    with NamespaceFixture(kube_lab, [SMALL, LARGE, LONG]) as fixture, AdmissionLog(fixture) as log:
        pool = fixture.queue("strict", GPUS, strategy="StrictFIFO")
        fleet = KubeFleet(tmp_path, kube_lab, policy=reserve_policy(fixture, pool), scorers=1)
        async with (
            fleet.running() as bus,
            heard(bus, KUBE_CLUSTER, JobReserved) as events,
            stream(fixture, log) as flowing,
        ):
            fixture.workload(LARGE, LARGE, GPUS, limit=LIMIT)

            async def explained() -> bool:
                question = to_json(ExplainQuestion(job=LARGE))
                try:
                    reply = EXPLAIN_REPLY.decode(
                        await bus.request(subjects.ask("explain"), question, timeout=5)
                    )
                except RetryableBusError:
                    return False
                said = [reason for found in reply.found for reason in found.reasons]
                return any("the first that does not fit, and starts by" in reason for reason in said)

            await eventually(explained, 60, what="`fairlead explain` says by when it starts")
            # The next after the gang, by what its tenant has; it may not pass, as it might not have ended by then.
            fixture.workload(LONG, LENGTHY, limit=2 * LONG_LIMIT)
            await eventually(lambda: passed(log, events) >= GPUS, 60, what="small jobs go on")
            await eventually(
                lambda: len(of_kind(events, Reserving.TAKEN)) >= passed(log, events) // 2,
                60,
                what="by passes",
            )
            flowing.long_is_over = True
            await eventually(lambda: happened(events, Reserving.KEPT, LARGE), 60, what="a promise is kept")
        by_its_promise(log, events)
        assert LENGTHY not in log.admitted[: log.admitted.index(LARGE)]
        assert not of_kind(events, Reserving.BROKEN)


@pytest.mark.deep  # it shows what Kueue does alone
async def test_where_gaps_are_filled_the_gang_starves(kube_lab: KubeLab) -> None:
    """The same stream without Fairlead, and for longer: Kueue's own order puts the gang first."""
    with NamespaceFixture(kube_lab, [SMALL, LARGE, LONG]) as fixture, AdmissionLog(fixture) as log:
        fixture.queue("filling", GPUS)
        async with stream(fixture, log, refilled=True) as flowing:
            fixture.workload(LARGE, LARGE, GPUS, limit=LIMIT)
            before = len(log.admitted)
            await eventually(lambda: len(log.admitted) > before + GPUS, 60, what="small jobs start")
            flowing.long_is_over = True
            await eventually(lambda: len(log.admitted) > before + 5 * GPUS, 240, what="many more do")
            await eventually(lambda: LONG not in fixture.admitted(), 60, what="the long one has ended")
        assert started(log, LARGE) is None, log.steps


@contextlib.asynccontextmanager
async def watchdog(lab: KubeLab, fleet: KubeFleet, queue: str) -> AsyncIterator[Process]:
    """The command, impatient, for the time of the block."""
    words = ["watchdog", queue, "--after", "2", "--back-after", "2", "--every", "0.5"]
    where = ["--kubeconfig", str(lab.kubeconfig()), "--cluster", KUBE_CLUSTER]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli", *words, *where),
        stdout=DEVNULL,
        stderr=DEVNULL,
        env=fleet.person("watchdog"),
    )
    try:
        yield process
    finally:
        process.terminate()
        await process.wait()


async def test_with_fairlead_killed_the_promise_holds_and_the_watchdog_acts(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    with NamespaceFixture(kube_lab, [SMALL, LARGE, LONG]) as fixture, AdmissionLog(fixture) as log:
        pool = fixture.queue("strict", GPUS, strategy="StrictFIFO")
        fleet = KubeFleet(tmp_path, kube_lab, policy=reserve_policy(fixture, pool), scorers=1)
        async with fleet.running() as bus, heard(bus, KUBE_CLUSTER, JobReserved) as events:
            async with stream(fixture, log) as flowing:
                fixture.workload(LARGE, LARGE, GPUS, limit=LIMIT)
                await eventually(
                    lambda: happened(events, Reserving.PROMISED, LARGE) and of_kind(events, Reserving.PASSED),
                    60,
                    what="a start is promised, and somebody passes",
                )
                for service in fleet.services.values():
                    service.kill()
                flowing.long_is_over = True
                await eventually(lambda: started(log, LARGE) is not None, 60, what="the gang starts")
            by_its_promise(log, events)
            await the_watchdog_acts(kube_lab, bus, fleet, pool)


async def the_watchdog_acts(lab: KubeLab, bus: Bus, fleet: KubeFleet, queue: str) -> None:
    """Checks the watchdog: it lets go of the queue while nobody leads, and takes it back when somebody does."""
    path = f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{queue}"

    def stands() -> tuple[str, bool]:
        item = lab.api.get(path)
        return item["spec"]["queueingStrategy"], WATCHDOG in (item["metadata"].get("annotations") or {})

    async with watchdog(lab, fleet, queue):
        await eventually(lambda: stands() == ("BestEffortFIFO", True), 60, what="the queue fills its gaps")
        leadership = Leadership(
            bus, role="admitter", cluster=KUBE_CLUSTER, replica="back-again", wake=asyncio.Event()
        )
        async with beside(leadership.run()):
            await eventually(lambda: stands() == ("StrictFIFO", False), 60, what="the queue is strict again")
