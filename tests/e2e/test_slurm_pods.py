"""Slurm jobs that run as pods, on a real slurmctld and a real Kubernetes: never more than there is room for, and nothing left.

KWOK plays the kubelet: pods start and end as their variables say, and print nothing.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fairlead_testkit.awaiting import eventually
from fairlead_testkit.kubelab import KubeLab
from fairlead_testkit.pod_fleet import PodFleet, PodSite

pytestmark = [pytest.mark.kube, pytest.mark.slurm, pytest.mark.timeout(300)]

GPUS = 8
HELD = ("JobHeld", "launch_failed", "requeued_in_held")


@pytest.fixture(scope="module")
def site(kube_lab: KubeLab, slurm_programs: None) -> Iterator[PodSite]:
    del slurm_programs
    with PodSite(kube_lab, gpus=GPUS).running() as found:
        yield found


class Watch:
    """Looks all the time: how many GPUs were in use at most, and whether a job was held or a node drained."""

    def __init__(self, site: PodSite) -> None:
        self._site = site
        self.most_gpus = 0
        self.harm: list[str] = []

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self.most_gpus = max(self.most_gpus, await asyncio.to_thread(self._site.gpus_in_use))
            jobs = await asyncio.to_thread(self._site.waiting)
            self.harm += [line for line in jobs if any(word in line for word in HELD)]
            nodes = (
                await asyncio.to_thread(self._site.lab.run, "sinfo", "-h", "-N", "-o", "%N %T %E")
            ).splitlines()
            self.harm += [line for line in nodes if "drain" in line or "down" in line]
            await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def watched(site: PodSite) -> AsyncIterator[Watch]:
    watch = Watch(site)
    looking = asyncio.create_task(watch.run())
    try:
        yield watch
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def all_ended(site: PodSite, seconds: float = 90) -> None:
    async def ended() -> bool:
        return not await asyncio.to_thread(site.waiting)

    await eventually(ended, seconds, what="all jobs have ended")


async def nothing_left(site: PodSite) -> None:
    async def empty() -> bool:
        return not await asyncio.to_thread(site.pods)

    await eventually(empty, 30, what="no pod is left")


async def test_more_jobs_than_there_is_room_for(site: PodSite, tmp_path: Path) -> None:
    async with PodFleet(tmp_path, site).running(), watched(site) as watch:
        codes = [0, 3, 0, 7] * 5
        jobs = [site.submit(gpus=2, seconds=1, code=code) for code in codes]
        await all_ended(site)
        ends = [site.state(job) for job in jobs]
        assert ends == [("COMPLETED", "0:0") if code == 0 else ("FAILED", f"{code}:0") for code in codes]
        await nothing_left(site)
    assert 0 < watch.most_gpus <= GPUS
    assert watch.harm == []
