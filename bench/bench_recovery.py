"""100 k jobs wait and nats-server is killed: how soon each service is ready again, what it costs, and whose lease is lost."""

import asyncio
import os
import tempfile
import time
from pathlib import Path

from bench_lines import cpu_seconds, peak_resident, resident, say, watch_peak

from fairlead_contracts.base.instants import SECOND, from_seconds
from fairlead_contracts.frontend.verbs import CreateJob
from fairlead_sim.cluster import SimCluster
from fairlead_sim.config import load_cluster
from fairlead_sim.store import ClusterStore, batch_of
from fairlead_testkit.fleets.fleet import CLUSTER, Fleet, one_pool
from fairlead_testkit.processes.process import ServiceProcess
from fairlead_testkit.timing.awaiting import eventually

WAITING = int(os.environ.get("FAIRLEAD_BENCH_WAITING", "100000"))
KILLS = int(os.environ.get("FAIRLEAD_BENCH_KILLS", "3"))
SETTLE_SECONDS = 15.0
READY_WITHIN_SECONDS = 120.0
READY_AIM_SECONDS, MEMORY_AIM = 15.0, 1.5
TENANTS = [f"team-{number}" for number in range(20)]
POLICY = one_pool(TENANTS)
LOST = frozenset({"leadership.lost", "owner.lost"})
MISSED = frozenset({"leadership.missed", "membership.missed"})


async def recovery() -> None:
    """A day's backlog stands in the simulated cluster; the server is killed and comes back on the same store."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder), policy=POLICY, gpus=8, nodes=2)
        _fill(fleet, Path(folder))
        async with fleet.running():
            await _settled(fleet)
            resting = {service.name: resident(service.pid) for service in fleet.services.values()}
            say("resting", waiting=WAITING, **resting)
            for _ in range(KILLS):
                await _kill_and_recover(fleet, resting)
                await _settled(fleet)


def _fill(fleet: Fleet, folder: Path) -> None:
    """Straight into the cluster's file: how fast jobs are taken in is another figure."""
    now = from_seconds(time.time())
    store = ClusterStore(fleet.store, CLUSTER)
    cluster = SimCluster(CLUSTER, load_cluster(str(folder / "cluster.json")), uid_prefix=store.identity)
    for number in range(WAITING):
        wanted = CreateJob(
            scope=TENANTS[number % len(TENANTS)],
            id=f"job-{number:06d}",
            digest=f"{number:064x}",
            queue=None,
            pods=1,
            requested_class=None,
            submission=f"job-{number:06d}",
            demand={"nvidia.com/gpu": 1000},
            submitted=now + number,
            run=36_000 * SECOND,
        )
        cluster.create(wanted, now + number)
    changes = cluster.take_changes()
    changes.events.clear()  # told long ago
    store.commit(batch_of(changes, cluster.counters, []))
    store.close()


async def _settled(fleet: Fleet) -> None:
    """Waits until every service has used little of the processor for a while."""
    await asyncio.sleep(SETTLE_SECONDS / 3)

    async def quiet() -> bool:
        before = {service.pid: cpu_seconds(service.pid) for service in fleet.services.values()}
        await asyncio.sleep(SETTLE_SECONDS / 3)
        return all(cpu_seconds(pid) - used < SETTLE_SECONDS / 30 for pid, used in before.items())

    await eventually(quiet, READY_WITHIN_SECONDS, what="the services rest")


async def _kill_and_recover(fleet: Fleet, resting: dict[str, float]) -> None:
    services = list(fleet.services.values())
    for service in services:
        watch_peak(service.pid)
    used = {service.pid: cpu_seconds(service.pid) for service in services}
    said = {service.pid: len(service.events()) for service in services}
    start = time.perf_counter()
    fleet.server.kill()
    await asyncio.to_thread(fleet.server.start)
    away = time.perf_counter() - start
    took = dict(
        zip(services, await asyncio.gather(*(_ready_after(service) for service in services)), strict=True)
    )
    await asyncio.sleep(SETTLE_SECONDS / 5)
    for service, seconds in took.items():
        events = service.events()[said[service.pid] :]
        told = [str(event["event"]) for event in events]
        say(
            "recovery",
            service=service.name,
            waiting=WAITING,
            away_seconds=away,
            ready_seconds=seconds,
            aim_seconds=READY_AIM_SECONDS,
            cpu_seconds=cpu_seconds(service.pid) - used[service.pid],
            leases_lost=sum(event in LOST for event in told),
            shards_given_up=sum(_length(event.get("given_up")) for event in events),
            renewals_missed=sum(event in MISSED for event in told),
            replays_begun_again=told.count("mirror.rebuild"),
            memory_ratio=peak_resident(service.pid) / resting[service.name],
            aim_memory_ratio=MEMORY_AIM,
        )


def _length(found: object) -> int:
    return len(found) if isinstance(found, list) else 0


async def _ready_after(service: ServiceProcess) -> float:
    """Seconds from now; a service that has not noticed the loss yet is not ready."""
    start = time.perf_counter()

    async def noticed() -> bool:
        return not (await service.health()).ready

    async def ready() -> bool:
        return (await service.health()).ready

    await asyncio.wait([asyncio.create_task(eventually(noticed, 1.0, what="it notices"))])
    await eventually(ready, READY_WITHIN_SECONDS, what=f"{service.name} is ready")
    return time.perf_counter() - start
