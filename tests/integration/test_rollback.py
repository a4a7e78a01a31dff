"""An older release, this one over it, and the older one again, on one NATS: beside a simulated cluster, and beside a real Kueue.

Run by `make rollback OLDER=<commit>`: the older one's code comes from git, and what it imports from this one's environment.
"""

import asyncio
import io
import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from fairlead_bus import Bus, RemoteError, RetryableBusError
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.questions import QUEUE_REPLY, QueueQuestion
from fairlead_contracts.policyfile.document import Aging
from fairlead_testkit.chaos.audit import stated_job
from fairlead_testkit.fleets.fleet import CLUSTER, Fleet, equal_jobs, one_pool, submit_all
from fairlead_testkit.fleets.kube_fleet import KUBE_CLUSTER, KubeFleet, fair_policy, heads_stand, levels
from fairlead_testkit.fleets.process_fleet import ProcessFleet
from fairlead_testkit.kubelab import ADMITTER, KubeLab
from fairlead_testkit.kueue.namespace_fixture import NamespaceFixture
from fairlead_testkit.processes.process import ServiceProcess
from fairlead_testkit.timing.awaiting import eventually
from fairlead_testkit.timing.in_hand import beside

ROOT = Path(__file__).parents[2]
OLDER = os.environ.get("FAIRLEAD_OLDER", "")
WEIGHTS = {"team-a": 3.0, "team-b": 2.0, "team-c": 1.0}
POOL = "gpu"
MOST_SECONDS_AWAY = 10.0
"""Most seconds without an order on a busy machine. Nobody dies, so that no lease has to expire: the figure printed
tells."""
LOOK_SECONDS = 0.1
UNLABELLED = 0
"""Level of a job that nobody labelled, in both frontends."""

pytestmark = [
    pytest.mark.integration,
    pytest.mark.deep,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not OLDER, reason="no older release is named: make rollback OLDER=<commit>"),
]


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Folders with the older release's code."""
    folder = tmp_path_factory.mktemp("older")
    words = ["git", "-C", str(ROOT), "archive", OLDER, "libs", "services"]
    archive = subprocess.run(words, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as told:
        told.extractall(folder, filter="data")
    return sorted(folder.glob("*/*/src"))


@dataclass
class UpgradedSite:
    """A cluster whose Fairlead is upgraded, and goes back."""

    fleet: ProcessFleet
    bus: Bus
    older: Sequence[Path]
    levels: Callable[[], Awaitable[dict[str, int]]]
    """Levels of the jobs that wait, as they stand in the frontend."""
    labelled_anew: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The jobs whose levels changed in the last replacing: before, and after."""

    async def started(self, services: Sequence[str], sources: Sequence[Path]) -> list[ServiceProcess]:
        """Starts these services and waits until they are ready."""
        return [await self.fleet.another(service, sources=sources) for service in services]

    async def replaced(
        self, running: Sequence[ServiceProcess], sources: Sequence[Path]
    ) -> list[ServiceProcess]:
        """Replaces services one by one: a new one is ready, and the old one ends. The order stays, and no level moves.

        A new leader may label more or fewer positions: it has seen no job start yet (see the admitter's `pace`).
        """
        stood = await self.levels()
        new = []
        async with self._watched() as away:
            for process in running:
                new.append(await self.fleet.another(process.service, sources=sources))
                assert await process.stop() == 0, process.log[-3000:]
            await eventually(partial(is_whole, self.bus), 30, what="the order is there")
        print(f"the order was away for {max(away):.2f} s at most, asked each {LOOK_SECONDS} s")  # noqa: T201 # the figure
        assert max(away) < MOST_SECONDS_AWAY
        self.labelled_anew = changed_levels(stood, await self.levels())
        moved = {job: both for job, both in self.labelled_anew.items() if UNLABELLED not in both}
        assert not moved, "a label is given or taken at the window's end; one that stands does not move"
        return new

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[list[float]]:
        """Gives how many seconds lay between any two looks that had the whole order."""
        away: list[float] = []

        async def watch() -> None:
            heard = time.monotonic()
            while True:
                if await is_whole(self.bus):
                    away.append(time.monotonic() - heard)
                    heard = time.monotonic()
                await asyncio.sleep(LOOK_SECONDS)

        async with beside(watch()):
            yield away

    async def check_order(self, jobs: int) -> None:
        """Checks that so many wait, and that the commands of both releases show the same order."""
        await eventually(partial(self._as_many, jobs), 60, what=f"{jobs} jobs wait")
        of_older, of_this = [
            (await asyncio.to_thread(self._said, sources, "queue", "--limit=0", "--output=name")).splitlines()
            for sources in (self.older, ())
        ]
        assert of_older == of_this
        assert len(of_this) == jobs

    async def _as_many(self, jobs: int) -> bool:
        return len(await self.levels()) == jobs

    def _said(self, sources: Sequence[Path], *words: str) -> str:
        code = {"PYTHONPATH": os.pathsep.join(map(str, sources))} if sources else {}
        inherited = {"PATH": os.environ["PATH"], "HOME": str(self.fleet.directory)}
        done = subprocess.run(
            [sys.executable, "-m", "fairlead_cli", *words],
            env={**inherited, **self.fleet.person(), **code},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def check_logs(self) -> None:
        """Checks that nobody met anything that could not be read."""
        for process in self.fleet.services.values():
            lines = [json.loads(line) for line in process.log.splitlines() if line.startswith("{")]
            wrong = [line for line in lines if line["level"] in {"warning", "error"}]
            assert not wrong, (process.name, wrong[:5])


def changed_levels(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """The jobs whose level is not what it was: before, and after."""
    assert before.keys() == after.keys()
    return {job: (level, after[job]) for job, level in before.items() if after[job] != level}


_READS_STILL = 503
"""Code of a scorer's answer while it still reads the state."""


async def is_whole(bus: Bus) -> bool:
    """Whether every shard answers."""
    question = to_json(QueueQuestion(pool=POOL, limit=0))
    try:
        reply = QUEUE_REPLY.decode(await bus.request(subjects.ask("queue"), question, timeout=1.0))
    except RetryableBusError:
        return False
    except RemoteError as error:
        if error.code != _READS_STILL:
            raise
        return False
    return any(found.pool == POOL and not found.silent_shards for found in reply.pools)


async def test_beside_a_simulated_cluster_a_release_follows_the_one_before_and_the_other_way_round(
    tmp_path: Path, older: list[Path]
) -> None:
    policy = one_pool(WEIGHTS, aging=Aging(entitlement_per_day=0.0))
    fleet = Fleet(tmp_path, policy=policy, gpus=2, sims=0, scorers=0, admitters=0)

    submitted: list[tuple[str, str]] = []

    async def stand() -> dict[str, int]:
        found = [await stated_job(bus, CLUSTER, *job) for job in submitted]
        return {job.id: job.level or 0 for job in found if job is not None and job.started is None}

    async with fleet.running() as bus:
        site = UpgradedSite(fleet, bus, older, stand)
        await fleet.another(
            "sim"
        )  # the cluster, which no release of ours brings, and whose file an older one need not read
        running = await site.started(("scorer", "scorer", "admitter", "admitter"), older)
        await submit_all(bus, "team-a", equal_jobs("long", 2, run_seconds=3600))
        for number, sources in enumerate((older, (), older)):
            if number:
                running = await site.replaced(running, sources)
                assert not site.labelled_anew
                await site.check_order(9 * number)
            for tenant in WEIGHTS:
                jobs = equal_jobs(f"{tenant}-{number}", 3, run_seconds=3600)
                submitted += [(tenant, job) for job in await submit_all(bus, tenant, jobs)]
            await site.check_order(9 * (number + 1))
        site.check_logs()


@pytest.mark.kube
async def test_beside_kueue_a_release_follows_the_one_before_and_the_other_way_round(
    kube_lab: KubeLab, tmp_path: Path, older: list[Path]
) -> None:
    with NamespaceFixture(kube_lab, list(WEIGHTS)) as fixture:
        pool = fixture.queue("shared", 2)
        for namespace in fixture.namespaces.values():
            kube_lab.open_to_submissions(namespace)
        policy = fair_policy(fixture, WEIGHTS, pool)
        fleet = KubeFleet(tmp_path, kube_lab, policy=policy, watchers=0, scorers=0, admitters=0)

        async def stand() -> dict[str, int]:
            return await asyncio.to_thread(levels, fixture)

        async with fleet.running() as bus:
            site = UpgradedSite(fleet, bus, older, stand)
            services = ("watcher", "watcher", "scorer", "scorer", "admitter", "admitter")
            running = await site.started(services, older)
            for number in range(2):
                fixture.workload("team-a", f"long-{number}")
            await eventually(lambda: len(fixture.admitted()) == 2, 60, what="the pool is full")
            for number, sources in enumerate((older, (), older)):
                if number:
                    mark = kube_lab.audit_mark()
                    running = await site.replaced(running, sources)
                    written = kube_lab.audit_lines(
                        user=ADMITTER, verb="patch", resource="workloads", after=mark
                    )
                    landed = [line for line in written if line.code == 200]
                    assert len(landed) == len(site.labelled_anew), "nothing is written twice"
                    await site.check_order(9 * number)
                for tenant, namespace in fixture.namespaces.items():
                    for one in range(2):
                        fixture.workload(tenant, f"{tenant}-of-kubectl-{number}-{one}")
                    body = {"id": f"{tenant}-{number}", "demand": {"nvidia.com/gpu": 1}, "template": {"image": "busybox"}}  # fmt: skip
                    await submit_all(bus, namespace, [body], cluster=KUBE_CLUSTER)
                await site.check_order(9 * (number + 1))
                # How many more are labelled depends on how fast jobs end, and here none does.
                await heads_stand(bus, fixture)
            site.check_logs()
