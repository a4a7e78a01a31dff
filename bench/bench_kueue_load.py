"""Kueue's own load on a real Kueue, without and with Fairlead, in one run."""

import asyncio
import heapq
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench_kueue import OPTIONS
from bench_lines import cpu_seconds, say

from fairlead_contracts.policyfile.document import PolicyDocument, Tenant
from fairlead_testkit.admissions import AdmissionLog
from fairlead_testkit.estate import Estate
from fairlead_testkit.kube_fleet import KubeFleet
from fairlead_testkit.kubelab import KubeLab

COHORTS, QUEUES = 5, 6
SHAPES = (("large", 2, 20, 1.0), ("medium", 5, 5, 0.5), ("small", 35, 1, 0.2))
"""Name, how many a queue, GPUs, seconds: Kueue's performance test (test/performance/scheduler/configs/baseline), its
numbers a tenth, and cards instead of cores."""
AIM_MS = 2.5
"""CPU of all of Fairlead for an admission: 15 % of a core at 60 a second."""


async def kueue_load() -> None:
    """Admissions a second of Kueue's own load, without and with Fairlead; the ratio of both."""
    rates = {}
    for steered in (False, True):
        with tempfile.TemporaryDirectory() as folder, KubeLab(OPTIONS) as lab:
            rates[steered] = await load(lab, Path(folder), steered=steered)
        say("kueue_load", fairlead=steered, admissions_per_second=rates[steered])
    say("kueue_load_ratio", ratio=rates[True] / rates[False])


async def load(lab: KubeLab, folder: Path, *, steered: bool) -> float:
    """Admissions a second of the whole load on a lab of its own."""
    names = [f"c{cohort}q{queue}" for cohort in range(COHORTS) for queue in range(QUEUES)]
    with Estate(lab, names) as estate, AdmissionLog(estate) as log, Finisher(estate, log):
        for name in names:
            preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "Never"}
            estate.queue(name, 20, tenants=[name], cohort=name[:2], preemption=preemption)
        policy = PolicyDocument(tenants=[Tenant(name=estate.namespaces[name]) for name in names])
        fleet = KubeFleet(folder, lab, policy=policy)
        if not steered:
            return await asyncio.to_thread(admissions_per_second, estate, log, names)
        async with fleet.running():
            pids = {service.name: service.pid for service in fleet.services.values()}
            pids["nats-server"] = fleet.server.pid
            before, kueue = _cpu(pids), cpu_seconds(lab.pids()["kueue"])
            rate = await asyncio.to_thread(admissions_per_second, estate, log, names)
            _say_cpu(before, _cpu(pids), cpu_seconds(lab.pids()["kueue"]) - kueue, len(names))
            return rate


def _cpu(pids: Mapping[str, int]) -> dict[str, float]:
    return {name: cpu_seconds(pid) for name, pid in pids.items()}


def _say_cpu(before: Mapping[str, float], after: Mapping[str, float], kueue: float, queues: int) -> None:
    """What Fairlead's services use for an admission, and of what Kueue itself uses: that ratio is one of any machine."""
    admissions = queues * sum(count for _, count, _, _ in SHAPES)
    used = {name: after[name] - before[name] for name in before}
    say(
        "kueue_load_cpu",
        aim_ms_per_admission=AIM_MS,
        ms_per_admission=1e3 * sum(used.values()) / admissions,
        of_kueues_own=sum(used.values()) / kueue,
        **{f"{name}_ms": 1e3 * seconds / admissions for name, seconds in used.items()},
    )


def admissions_per_second(estate: Estate, log: AdmissionLog, names: Iterable[str]) -> float:
    """From the first creation to the last admission."""
    start = time.perf_counter()
    wishes = list(workloads(names))
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda wish: estate.workload(wish[0], wish[1], wish[2]), wishes))
    log.wait(len(wishes), 600)
    return len(wishes) / (time.perf_counter() - start)


def workloads(names: Iterable[str]) -> Iterator[tuple[str, str, int]]:
    """Tenant, name and GPUs, interleaved over the queues as they come in."""
    queues = list(names)
    for shape, count, gpus, _ in SHAPES:
        for number in range(count):
            yield from ((queue, f"{shape}-{number}-{queue}", gpus) for queue in queues)


class Finisher:
    """Ends each Workload when its time is over, as Kueue's own runner does.

    Args:
        estate: whose Workloads.
        log: tells what was admitted.
    """

    def __init__(self, estate: Estate, log: AdmissionLog) -> None:
        self._estate = estate
        self._log = log
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._seconds = {shape: seconds for shape, _, _, seconds in SHAPES}

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)

    def _run(self) -> None:
        seen, due = 0, list[tuple[float, str, str]]()
        with ThreadPoolExecutor(4) as threads:
            while not self._over.wait(0.01):
                steps = self._log.steps
                for step in steps[seen:]:
                    if step.what == "admitted":
                        after = self._seconds[step.name.split("-")[0]]
                        heapq.heappush(due, (step.at + after, step.tenant, step.name))
                seen = len(steps)
                while due and due[0][0] <= time.monotonic():
                    _, tenant, name = heapq.heappop(due)
                    threads.submit(self._estate.finish, tenant, name)
