"""Kueue's own load on a real Kueue, without and with Fairlead: saturated, at its own pace, short of room, with CPU to spare."""

import asyncio
import contextlib
import heapq
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bench_kueue import OPTIONS
from bench_lines import pids_of, quantile, say, use_of

from fairlead_contracts.policyfile.document import PolicyDocument, Tenant
from fairlead_testkit.fleets.kube_fleet import KubeFleet
from fairlead_testkit.kubelab import ADMITTER, KubeLab
from fairlead_testkit.kueue.admissions import AdmissionLog, AdmissionStep
from fairlead_testkit.kueue.namespace_fixture import NamespaceFixture

COHORTS, QUEUES, QUOTA = 5, 6, 20
type Shapes = Sequence[tuple[str, int, int, float]]
SHAPES: Shapes = (("large", 2, 20, 1.0), ("medium", 5, 5, 0.5), ("small", 35, 1, 0.2))
"""Name, how many a queue, GPUs, seconds: Kueue's performance test (test/performance/scheduler/configs/baseline), its
numbers a tenth, and cards instead of cores."""
AIM_MS = 2.5
"""CPU of all of Fairlead for an admission: 15 % of a core at 60 a second."""
GAUGE = ("etcd", "kueue", "bench")
"""Processes that do the same for an admission with Fairlead and without, nearly: what they take tells the host's speed."""
TURNS = 3
"""Number of turns without and with Fairlead, each."""
SETTLE_SECONDS, REST_SECONDS = 5.0, 10.0
"""Seconds until all have started, and seconds for which it is then looked what they use anyway."""

PACE = 43.0
"""Workloads a second that come where Kueue is not to be saturated: as many as its own performance test admits."""
LONGER = 4.0
"""Factor of the run times where room comes free one by one: at that pace they hold some half of the quota, large ones
all of a queue."""
ALIKE: Shapes = (("short", 12, 5, 0.31), ("middling", 12, 5, 0.47), ("long", 12, 5, 0.73))
"""Shapes of one size, so that no order packs better than another: what is gained then is gained by who starts sooner."""
FOR_SPARE = 12.0
"""Factor of the run times in one cohort: four Workloads a second start, and Kubernetes and Kueue use a third of two
cores."""
FOR_ROOM = 20.0
"""Factor of the run times where all wait for room: some 20 Workloads a second start then, and Kueue alone leaves CPU
to spare."""


class KueueLoad(NamedTuple):
    """The way in which the Workloads come."""

    name: str
    per_second: float | None = None
    """Workloads a second; None for as fast as they can be made."""
    longer: float = 1.0
    """Factor of the run times in Kueue's test."""
    cohorts: int = COHORTS
    shapes: Shapes = SHAPES


class LoadOutcome(NamedTuple):
    """The outcome of a load."""

    per_second: float
    """Admissions, from the first creation to the last of them."""
    waits: dict[str, list[float]]
    """Seconds from a Workload's creation to its admission, by class."""
    in_use: float
    """The part of all GPUs that was held from the first admission to the last: all that time somebody waits."""


class LoadTurn(NamedTuple):
    """A single time through the load."""

    outcome: LoadOutcome
    cpu: dict[str, float]
    """Milliseconds for an admission, by process: of Kubernetes, of Kueue, of Fairlead's services, and of this bench.
    Beyond what each uses anyway: on a busy machine a turn takes longer, and that would be most of it."""
    at_rest: dict[str, float]
    """Cores in use before the first Workload came, by process."""
    writes: int
    """Levels that the admitter wrote."""


async def kueue_load() -> None:
    """Kueue's own load, without and with Fairlead, saturated; the ratio of both."""
    await _compare(KueueLoad("kueue_load"))


async def kueue_pace() -> None:
    """Kueue's own load at the pace of Kueue's own test."""
    await _compare(KueueLoad("kueue_pace", PACE, LONGER))


async def kueue_room() -> None:
    """A backlog of the same Workloads, that run so long that Kueue alone is short of room, not of CPU: each release lets somebody start."""
    await _compare(KueueLoad("kueue_room", longer=FOR_ROOM))


async def kueue_spare() -> None:
    """A backlog in one cohort of that test, of jobs of one size: the machine has CPU to spare."""
    await _compare(KueueLoad("kueue_spare", longer=FOR_SPARE, cohorts=1, shapes=ALIKE))


async def _compare(load: KueueLoad) -> None:
    """Compares by turns on one lab, so that whatever else runs on the machine harms both alike.

    A fresh lab is often faster than ever after, so its first turn counts for nobody.
    """
    turns: dict[bool, list[LoadTurn]] = {False: [], True: []}
    with KubeLab(OPTIONS) as lab:
        with tempfile.TemporaryDirectory() as folder:
            await _run(lab, Path(folder), load, steered=False)
        for number in range(TURNS):
            for steered in (False, True) if number % 2 == 0 else (True, False):
                with tempfile.TemporaryDirectory() as folder:
                    turn = await _run(lab, Path(folder), load, steered=steered)
                turns[steered].append(turn)
                _say_turn(load, turn, number, steered=steered)
    _say_ratio(load, turns[False], turns[True])


def _say_turn(load: KueueLoad, turn: LoadTurn, number: int, *, steered: bool) -> None:
    busy = os.getloadavg()[0]
    say(
        load.name,
        fairlead=steered,
        turn=number,
        machine_load=busy,
        admissions_per_second=turn.outcome.per_second,
        in_use=turn.outcome.in_use,
        levels=turn.writes,
    )
    for shape, waits in turn.outcome.waits.items():
        p50, p95 = quantile(waits, 0.5), quantile(waits, 0.95)
        say(f"{load.name}_wait", fairlead=steered, turn=number, shape=shape, p50_seconds=p50, p95_seconds=p95)
    say(
        f"{load.name}_cpu",
        fairlead=steered,
        turn=number,
        **{f"{name}_ms": ms for name, ms in turn.cpu.items()},
    )
    cores = {f"{name}_cores": used for name, used in turn.at_rest.items()}
    say(f"{load.name}_at_rest", fairlead=steered, turn=number, **cores)


def _say_ratio(load: KueueLoad, without: Sequence[LoadTurn], beside: Sequence[LoadTurn]) -> None:
    """Medians of all turns. Those of CPU are of all processes: where nothing else counts, they are the ratio of admissions.

    `ratio_by_gauge` measures each turn's CPU by that of `GAUGE`, so that a host whose speed changes from turn to turn,
    as virtual ones do, harms nobody.
    """
    others = without[0].cpu.keys()

    def fixture(turn: LoadTurn) -> float:
        return sum(ms for name, ms in turn.cpu.items() if name not in others)

    def ratio(figure: Callable[[LoadTurn], float]) -> float:
        return statistics.median(map(figure, beside)) / statistics.median(map(figure, without))

    def wait_of(shape: str) -> Callable[[LoadTurn], float]:
        return lambda turn: quantile(turn.outcome.waits[shape], 0.5)

    say(
        f"{load.name}_ratio",
        turns=len(beside),
        ratio=ratio(lambda turn: turn.outcome.per_second),
        ratio_in_use=ratio(lambda turn: turn.outcome.in_use),
        ratio_by_cpu=1 / ratio(lambda turn: sum(turn.cpu.values())),
        ratio_by_gauge=1 / ratio(lambda turn: sum(turn.cpu.values()) / sum(turn.cpu[name] for name in GAUGE)),
        ms_per_admission=statistics.median(map(fixture, beside)),
        least_ms=min(map(fixture, beside)),
        most_ms=max(map(fixture, beside)),
        aim_ms_per_admission=AIM_MS,
        **{f"{shape}_wait": ratio(wait_of(shape)) for shape, *_ in load.shapes},
    )


async def _run(lab: KubeLab, folder: Path, load: KueueLoad, *, steered: bool) -> LoadTurn:
    """The whole load, on queues of its own."""
    names = [f"c{cohort}q{queue}" for cohort in range(load.cohorts) for queue in range(QUEUES)]
    with (
        NamespaceFixture(lab, names) as fixture,
        AdmissionLog(fixture) as log,
        Finisher(fixture, log, load),
    ):
        for name in names:
            preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "Never"}
            fixture.queue(name, QUOTA, tenants=[name], cohort=name[:2], preemption=preemption)
        pids = {**lab.pids(), "bench": os.getpid()}
        async with contextlib.AsyncExitStack() as running:
            if steered:
                policy = PolicyDocument(tenants=[Tenant(name=fixture.namespaces[name]) for name in names])
                fleet = KubeFleet(folder, lab, policy=policy)
                await running.enter_async_context(fleet.running())
                pids |= {**pids_of(fleet), "nats-server": fleet.server.pid}
            await asyncio.sleep(SETTLE_SECONDS)
            _, at_rest = await use_of(pids, asyncio.sleep(REST_SECONDS))
            mark, start = lab.audit_mark(), time.perf_counter()
            outcome, cores = await use_of(pids, asyncio.to_thread(admit, fixture, log, load, names))
            took = time.perf_counter() - start
        admissions = len(names) * sum(count for _, count, _, _ in load.shapes)
        writes = lab.audit_lines(user=ADMITTER, verb="patch", resource="workloads", after=mark)
        cpu = {name: 1e3 * (used - at_rest[name]) * took / admissions for name, used in cores.items()}
        return LoadTurn(outcome, cpu, at_rest, len(writes))


def admit(fixture: NamespaceFixture, log: AdmissionLog, load: KueueLoad, names: Iterable[str]) -> LoadOutcome:
    """Make all Workloads as the load has it, and wait until each is admitted."""
    start = time.perf_counter()
    wanted = list(workloads(load.shapes, names) if load.per_second is None else mixed(load.shapes, names))
    made: dict[tuple[str, str], float] = {}

    def make(number: int, wish: tuple[str, str, int]) -> None:
        tenant, name, gpus = wish
        if load.per_second is not None:
            time.sleep(max(0.0, start + number / load.per_second - time.perf_counter()))
        made[tenant, name] = time.monotonic()
        fixture.workload(tenant, name, gpus)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(make, range(len(wanted)), wanted))
    steps = log.wait(len(wanted), 600)
    per_second = len(wanted) / (time.perf_counter() - start)
    waits: dict[str, list[float]] = {shape: [] for shape, *_ in load.shapes}
    for step in steps:
        if step.what == "admitted" and (step.tenant, step.name) in made:
            waits[step.name.split("-")[0]].append(step.at - made.pop((step.tenant, step.name)))
    return LoadOutcome(per_second, waits, _in_use(steps, load))


def _in_use(steps: Sequence[AdmissionStep], load: KueueLoad) -> float:
    gpus = {shape: each for shape, _, each, _ in load.shapes}
    admitted = [step.at for step in steps if step.what == "admitted"]
    first, last = min(admitted), max(admitted)
    held = sum(
        (1 if step.what == "admitted" else -1) * gpus[step.name.split("-")[0]] * (last - min(step.at, last))
        for step in steps
    )
    return held / (last - first) / (load.cohorts * QUEUES * QUOTA)


def workloads(shapes: Shapes, names: Iterable[str]) -> Iterator[tuple[str, str, int]]:
    """Tenant, name and GPUs, interleaved over the queues as they come in."""
    queues = list(names)
    for shape, count, gpus, _ in shapes:
        for number in range(count):
            yield from ((queue, f"{shape}-{number}-{queue}", gpus) for queue in queues)


def mixed(shapes: Shapes, names: Iterable[str]) -> list[tuple[str, str, int]]:
    """Workloads with large ones among the small ones, each class evenly over the whole time."""
    counts = {shape: count for shape, count, _, _ in shapes}

    def at(workload: tuple[str, str, int]) -> float:
        shape, number, _ = workload[1].split("-")
        return (int(number) + 0.5) / counts[shape]

    return sorted(workloads(shapes, names), key=at)


class Finisher:
    """Ends each Workload when its time is over, as Kueue's own runner does.

    Args:
        fixture: the fixture with the Workloads.
        log: tells what was admitted.
        load: says how long they run.
    """

    def __init__(self, fixture: NamespaceFixture, log: AdmissionLog, load: KueueLoad) -> None:
        self._fixture = fixture
        self._log = log
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._seconds = {shape: seconds * load.longer for shape, _, _, seconds in load.shapes}

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
                    threads.submit(self._fixture.finish, tenant, name)
