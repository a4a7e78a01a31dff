"""Backups as docs/deploy.md tells them: a snapshot of NATS' disk brings back what was in it, lost disks cost what it names."""

import shutil
from functools import partial
from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_contracts import subjects, topology
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.read import encode_document
from fairlead_testkit import eventually
from fairlead_testkit.chaos.audit import stated_job
from fairlead_testkit.fleets.fleet import CLUSTER, Fleet, equal_jobs, one_pool, submit_all, whole_queue
from fairlead_testkit.fleets.what_stood import explained
from fairlead_testkit.processes.process import ServiceProcess

GPUS = 2
HOLDS, WAITS = "team-a", "team-b"
LATE = ["late-0000", "late-0001"]
WAITING = {"long-0002", *LATE}

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def policy(*, waits: float) -> PolicyDocument:
    """The policy with this weight of the tenant who has nothing; the other holds the whole pool, and another job of it waits.

    Whose first job is next does not depend on it, for nothing over any weight is nothing; its second job's position does.
    """
    return one_pool({HOLDS: 1.0, WAITS: waits})


async def test_a_snapshot_brings_all_back_and_lost_disks_take_neither_jobs_nor_the_order(
    tmp_path: Path,
) -> None:
    fleet = Fleet(tmp_path, policy=policy(waits=1), gpus=GPUS, scorers=1)
    disk, snapshot = fleet.server.directory / "store", tmp_path / "snapshot"
    async with fleet.running() as bus:
        await submit_all(bus, HOLDS, equal_jobs("long", GPUS + 1, run_seconds=3600))
        await eventually(partial(wait, bus, {"long-0002"}), 60, what="the pool is full")
        [admitter] = fleet.named("admitter")
        await admitter.stop()
        await submit_all(bus, WAITS, equal_jobs("late", len(LATE), run_seconds=3600))
        with fleet.server.paused():  # as a snapshot of a volume: of one moment, and of a server that runs
            shutil.copytree(disk, snapshot)

        # It goes on: submissions are taken in, another policy holds, and leaders follow one another.
        await started(admitter)
        await eventually(partial(wait, bus, WAITING), 60, what="they are taken in")
        await fleet.apply(bus, policy(waits=1 / 64))
        for _ in range(3):
            admitter.kill()
            await started(admitter)

        await put_back(bus, fleet, snapshot)
        stored = await bus.last(
            f"KV_{topology.POLICY}", subjects.kv_subject(topology.POLICY, subjects.DOCUMENT_KEY)
        )
        assert stored is not None
        assert stored.payload == encode_document(policy(waits=1))
        await check_order_goes_on(bus, fleet)

        await put_back(bus, fleet, None)
        await check_order_goes_on(bus, fleet)
        assert await run(bus) == {"long-0000", "long-0001"}, "nothing that came twice runs twice"


async def test_services_that_run_while_a_snapshot_is_put_back_follow_who_leads_after_it(
    tmp_path: Path,
) -> None:
    """Epochs are sequences of NATS: all that they remember of who led since is above whoever leads from then on."""
    fleet = Fleet(tmp_path, policy=policy(waits=1), gpus=GPUS)
    snapshot = tmp_path / "snapshot"
    async with fleet.running() as bus:
        await submit_all(bus, HOLDS, equal_jobs("long", GPUS + 1, run_seconds=3600))
        await submit_all(bus, WAITS, equal_jobs("late", len(LATE), run_seconds=3600))
        await eventually(partial(wait, bus, WAITING), 60, what="they are taken in")
        with fleet.server.paused():
            shutil.copytree(fleet.server.directory / "store", snapshot)
        for service in fleet.services.values():  # others lead, and others own
            service.kill()
            await started(service)
        server_on(fleet, snapshot)
        async with explained(fleet, bus):
            await check_order_goes_on(bus, fleet)


def server_on(fleet: Fleet, snapshot: Path | None) -> None:
    """Has the server start again on the snapshot, or on an empty disk."""
    fleet.server.kill()
    shutil.rmtree(fleet.server.directory / "store")
    if snapshot is not None:
        shutil.copytree(snapshot, fleet.server.directory / "store")
    fleet.server.start()


async def put_back(bus: Bus, fleet: Fleet, snapshot: Path | None) -> None:
    """Ends everything; the server starts again on the snapshot, or on an empty disk that is set up anew; services follow."""
    for service in fleet.services.values():
        await service.stop()
    server_on(fleet, snapshot)
    if snapshot is None:
        await fleet.prepare(bus)
    await started(*fleet.services.values())


async def started(*services: ServiceProcess) -> None:
    for service in services:
        service.start()
    for service in services:
        await service.ready()


async def check_order_goes_on(bus: Bus, fleet: Fleet) -> None:
    """Checks that all that waited waits, each job once, and that levels follow the policy to and fro."""
    await eventually(partial(wait, bus, WAITING), 60, what="all that waited waits")
    for first, weight in ((HOLDS, 1 / 64), (WAITS, 1.0)):
        await fleet.apply(bus, policy(waits=weight))
        await eventually(
            partial(is_first, bus, first), 60, what=f"{first} is first, by levels that were written"
        )


async def wait(bus: Bus, jobs: set[str]) -> bool:
    found = [one.position.id for one in (await whole_queue(bus, "gpu")).positions]
    return sorted(found) == sorted(jobs)


async def is_first(bus: Bus, tenant: str) -> bool:
    ours, theirs = await level(bus, HOLDS, "long-0002"), await level(bus, WAITS, LATE[1])
    return ours >= theirs if tenant == HOLDS else theirs > ours  # of equal levels the older job is first


async def level(bus: Bus, tenant: str, job: str) -> int:
    found = await stated_job(bus, CLUSTER, tenant, job)
    assert found is not None
    return found.level or 0


async def run(bus: Bus) -> set[str]:
    jobs = [(HOLDS, f"long-{number:04d}") for number in range(GPUS + 1)] + [(WAITS, job) for job in LATE]
    found = [(job, await stated_job(bus, CLUSTER, tenant, job)) for tenant, job in jobs]
    assert all(state is not None for _, state in found)
    return {job for job, state in found if state is not None and state.started is not None}
