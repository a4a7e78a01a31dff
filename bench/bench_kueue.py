"""Fairlead beside a real Kueue: 15 k waiting Workloads, and Kueue's own load with Fairlead on and off in one run."""

import asyncio
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from http import HTTPStatus
from pathlib import Path

from bench_lines import pids_of, quantile, resident, say, use_of

from fairlead_contracts.policyfile.document import Grant
from fairlead_testkit.fleets.fleet import all_wait
from fairlead_testkit.fleets.kube_fleet import POOL, KubeFleet, fair_policy
from fairlead_testkit.kubelab import ADMITTER, KubeLab, LabOptions
from fairlead_testkit.kubelab.audit import AuditLine
from fairlead_testkit.kueue.namespace_fixture import NamespaceFixture
from fairlead_testkit.timing.awaiting import eventually

WAITING = 15_000
IDLE_WAITING = 5_000
IDLE_ROUNDS = 3
IDLE_SECONDS = 20.0
TENANTS = [f"team-{number}" for number in range(20)]
URGENT = "on-call"
SAMPLES = 200
ARRIVALS_PER_SECOND = 20
QUIET_SECONDS = 10.0
OPTIONS = LabOptions(
    workers=False,
    nodes=(),
    pytorchjobs=False,
    nodepools=False,
    requests_in_flight=5000,
    garbage_percent=100,  # what admissions cost the API server is measured
)


async def kueue() -> None:
    """15 k Workloads wait behind a full ClusterQueue on the real API server."""
    with (
        tempfile.TemporaryDirectory() as folder,
        KubeLab(OPTIONS) as lab,
        NamespaceFixture(lab, [*TENANTS, URGENT, "keeper"]) as fixture,
    ):
        pool = fixture.queue("shared", 64)
        fixture.workload("keeper", "keeper", 64)
        fill(fixture)
        urgent = fixture.namespaces[URGENT]
        weights = dict.fromkeys([*TENANTS, URGENT], 1.0)
        policy = fair_policy(fixture, weights, pool, grants=[Grant(tenant=urgent, classes=["urgent"])])
        fleet = KubeFleet(Path(folder), lab, policy=policy)
        async with fleet.running() as bus:
            await all_wait(bus, POOL, WAITING, 120, or_more=True)
            await starts_of_the_watcher(fleet)
            tell_memory(fleet)
            await asyncio.sleep(QUIET_SECONDS)  # the levels of the first heads are written
            await cpu(fleet, "idle", 0)
            await event_to_level(lab, fixture)
            await cpu(fleet, "arrivals", ARRIVALS_PER_SECOND, fixture)


async def kueue_idle() -> None:
    """5 k Workloads wait behind a full ClusterQueue, and nothing happens: what each service costs, and Kueue itself."""
    with (
        tempfile.TemporaryDirectory() as folder,
        KubeLab(OPTIONS) as lab,
        NamespaceFixture(lab, [*TENANTS, "keeper"]) as fixture,
    ):
        pool = fixture.queue("shared", 64)
        fixture.workload("keeper", "keeper", 64)
        fill(fixture, IDLE_WAITING)
        fleet = KubeFleet(Path(folder), lab, policy=fair_policy(fixture, dict.fromkeys(TENANTS, 1.0), pool))
        async with fleet.running() as bus:
            await all_wait(bus, POOL, IDLE_WAITING, 240, or_more=True)
            await asyncio.sleep(QUIET_SECONDS)  # the levels of the first heads are written
            pids = {**pids_of(fleet), "kueue": lab.pids()["kueue"]}
            for number in range(IDLE_ROUNDS):
                _, cores = await use_of(pids, asyncio.sleep(IDLE_SECONDS))
                say("kueue_idle", waiting=IDLE_WAITING, number=number, aim_admitter=0.01, **cores)


def fill(fixture: NamespaceFixture, waiting: int = WAITING) -> None:
    """The backlog, made by eight threads."""
    start = time.perf_counter()
    names = [(tenant, f"w-{number}") for number in range(waiting // len(TENANTS)) for tenant in TENANTS]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: fixture.workload(*name), names))
    say("kueue_filled", workloads=waiting, per_second=waiting / (time.perf_counter() - start))


async def starts_of_the_watcher(fleet: KubeFleet) -> None:
    """Measures from the start of the process to a state on NATS that is complete and marked."""
    watcher = fleet.named("watcher")[0]
    await watcher.stop()
    start = time.perf_counter()
    watcher.start()
    await watcher.ready(120)
    say("kueue_watcher_start", waiting=WAITING, seconds=time.perf_counter() - start)


def tell_memory(fleet: KubeFleet) -> None:
    """Tells the memory of each service."""
    for service in fleet.services.values():
        say("kueue_memory", service=service.name, waiting=WAITING, rss_mib=resident(service.pid))


async def cpu(fleet: KubeFleet, what: str, per_second: int, fixture: NamespaceFixture | None = None) -> None:
    """Cores in use by each service over a while, with so many arrivals a second."""
    start = time.perf_counter()

    async def arrive() -> None:
        for number in range(int(per_second * QUIET_SECONDS)):
            if fixture is not None:
                await asyncio.to_thread(fixture.workload, TENANTS[number % len(TENANTS)], f"late-{number}")
            await asyncio.sleep(max(0.0, start + (number + 1) / per_second - time.perf_counter()))
        await asyncio.sleep(max(0.0, start + QUIET_SECONDS - time.perf_counter()))

    _, used = await use_of(pids_of(fleet), arrive())
    for name, cores in used.items():
        say("kueue_cpu", when=what, per_second=per_second, service=name, cores=cores)


async def event_to_level(lab: KubeLab, fixture: NamespaceFixture) -> None:
    """An urgent Workload appears behind 15 k others: until its level is written, by the API server's own clock."""
    created: dict[str, AuditLine] = {}
    levels: dict[str, AuditLine] = {}
    for number in range(SAMPLES):
        name, mark = f"u-{number}", lab.audit_mark()
        await asyncio.to_thread(fixture.workload, URGENT, name, annotations={"wdrf.x-k8s.io/urgent": "true"})
        levels[name] = await told(lab, "patch", name, mark)
        created[name] = await told(lab, "create", name, mark)
        path = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{fixture.namespaces[URGENT]}/workloads/{name}"
        await asyncio.to_thread(lab.api.delete, path)
    whole = [(answered(line) - answered(created[name])).total_seconds() for name, line in levels.items()]
    server = [line.took.total_seconds() for line in levels.values()]
    for what, seconds in (("kueue_event_to_level", whole), ("kueue_event_to_level_apiserver_part", server)):
        say(
            what,
            waiting=WAITING,
            samples=len(seconds),
            p50_ms=1000 * quantile(seconds, 0.5),
            p99_ms=1000 * quantile(seconds, 0.99),
        )


async def told(lab: KubeLab, verb: str, name: str, after: int) -> AuditLine:
    """Wait for the first such request about the Workload."""
    return await eventually(lambda: line_of(lab, verb, name, after), 30, what=f"{verb} of {name}")


def line_of(lab: KubeLab, verb: str, name: str, after: int) -> AuditLine | None:
    """The first such request about the Workload that the API server took; None while there is none."""
    user = ADMITTER if verb == "patch" else None
    lines = lab.audit_lines(user=user, verb=verb, resource="workloads", after=after)
    taken = (line for line in lines if line.name == name and line.code < HTTPStatus.BAD_REQUEST)
    return next((line for line in taken if line.subresource == ""), None)


def answered(line: AuditLine) -> datetime:
    """Moment at which the API server was done with a request."""
    return line.received + line.took
