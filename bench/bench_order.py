"""The order of many jobs, and one event among many."""

import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from bench_lines import quantile, say
from order_measuring import measure_events, measure_levels, measure_order
from order_pools import Size, made_pool

from fairlead_contracts.base.instants import DAY
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.snapshot.types import Snapshot, SnapshotJob, SnapshotPool, SnapshotTenant
from fairlead_contracts.snapshot.write import encode_snapshot
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.entitlements import in_relation
from fairlead_policy.rules.jobs import JobQueue, WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules

TENANTS = 200
NOW = 1_760_000_000_000_000
GIB = 2**30
CAPACITY = {"cpu": 64_000 * 500, "memory": 512 * GIB * 500, "nvidia.com/gpu": 8_000 * 500}
REPEATS = 7


def weights(turn: int = 0) -> dict[str, Fraction]:
    """Weights of the tenants; other ones each turn."""
    return {f"team-{n}": Fraction(1 + (n + turn) % 5) for n in range(TENANTS)}


def rules(turn: int = 0) -> PoolRules:
    """A pool of 4,000 cards; each turn's weights differ, so that nothing computed before can serve again."""
    return PoolRules(
        capacity=CAPACITY,
        classes=("urgent", "approved", "normal"),
        rate=Fraction(1, 10) / DAY,
        cap=14 * DAY,
        entitlements=in_relation(weights(turn), {}).listed,
    )


def a_job(number: int, rng: random.Random) -> WaitingJob:
    """A waiting job of some tenant, submitted within the last month."""
    gpus = rng.choice((0, 1, 1, 1, 2, 4, 8))
    return WaitingJob(
        uid=f"uid-{number:09d}",
        scope="ns",
        id=f"job-{number}",
        tenant=f"team-{rng.randrange(TENANTS)}",
        job_class=rng.choice(("urgent", "approved", "normal", "normal", "normal", "normal")),
        submitted=NOW - rng.randrange(30 * 86_400_000_000),
        demand={
            "cpu": rng.randrange(1000, 64_000),
            "memory": rng.randrange(1, 256) * GIB,
            "nvidia.com/gpu": gpus * 1000,
        },
        queue=JobQueue("c1", f"queue-{number % 4}"),
    )


def loaded(count: int) -> tuple[PoolFacts, random.Random]:
    """A pool with so many waiting jobs, some more that run, and everything scored once."""
    rng = random.Random(count)
    pool = PoolFacts(rules())
    for number in range(count):
        pool.wait(a_job(number, rng))
    for number in range(min(count // 10, 5000)):
        pool.run(
            f"run-{number}",
            f"team-{number % TENANTS}",
            {"nvidia.com/gpu": 1000, "cpu": 4000, "memory": 16 * GIB},
        )
    pool.at(NOW).uids()
    return pool, rng


def best(work: Callable[[int], object]) -> float:
    """The median of some runs, in seconds."""
    taken = []
    for turn in range(REPEATS):
        start = time.perf_counter()
        work(turn)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


async def order() -> None:
    """Order made-up pools from arrays in memory, as `bench/order.py` does; beside them a plain heap."""
    for size, aim in (
        (Size(jobs=15_000, tenants=200, resources=3), 5),
        (Size(jobs=100_000, tenants=1_000, resources=5), 45),
        (Size(jobs=1_000_000, tenants=10_000, resources=5), 600),
    ):
        found = measure_order(made_pool(size))
        say(
            "order",
            jobs=size.jobs,
            tenants=size.tenants,
            resources=size.resources,
            ms=found.seconds * 1e3,
            aim_ms=aim,
            peak_mb=found.peak_megabytes,
            heap_ms=found.heap_seconds * 1e3,
            ratio=found.heap_seconds / found.seconds,
            differ=found.differ,
        )


async def anew() -> None:
    """Order a scorer's pool of 100 k jobs from changed weights, lane by lane."""
    pool, _ = loaded(100_000)

    def changed(turn: int) -> None:
        pool.set_rules(rules(turn + 1))
        pool.at(NOW).uids()

    say("anew", jobs=100_000, ms=best(changed) * 1e3)


async def event() -> None:
    """Measures one arrival, start or end among 100 k waiting jobs, and the heads and standings that follow from it."""
    for tenants in (200, 10_000):
        taken = measure_events(made_pool(Size(jobs=100_000, tenants=tenants, resources=3)))
        say(
            "event",
            jobs=100_000,
            tenants=tenants,
            p50_ms=quantile(taken, 0.5) * 1e3,
            p99_ms=quantile(taken, 0.99) * 1e3,
            aim_ms=5,
        )


async def levels() -> None:
    """The levels of a window of ten thousand jobs, most of it labelled already."""
    say("levels", window=10_000, ms=measure_levels(10_000) * 1e3, aim_ms=10)


async def snapshot() -> None:
    """`fairlead order` on a file of 100 k jobs, both forms: seconds of the processor and peak memory."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.json"
        path.write_bytes(encode_snapshot(made_snapshot(100_000)))
        for form in ("json", "table"):
            seconds, peak = _cost(path, form)
            say("snapshot", form=form, jobs=100_000, cpu_s=seconds, peak_mb=peak)


def _cost(path: Path, form: str) -> tuple[float, float]:
    """Seconds of the processor and megabytes of `fairlead order` on a file."""
    command = [sys.executable, "-m", "fairlead_cli", "order", str(path), "-o", form]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)  # noqa: S603 # our own command
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, after.ru_maxrss / 2**10


def made_snapshot(count: int) -> Snapshot:
    """The jobs of the scorers' benches as a snapshot."""
    dice = random.Random(count)
    jobs = [a_job(number, dice) for number in range(count)]
    return Snapshot(
        now=NOW,
        policy=PolicyDocument(),
        pools=[SnapshotPool(name="gpu", capacity=CAPACITY)],
        tenants=[SnapshotTenant(name=name, weight=float(weight)) for name, weight in weights().items()],
        jobs=[
            SnapshotJob(
                id=job.id,
                uid=job.id,
                tenant=job.tenant,
                pool="gpu",
                job_class=job.job_class,
                demand=job.demand,
                submitted=job.submitted,
                queue_time=job.submitted,
                frontend="kueue",
                queue=job.queue.name,
            )
            for job in jobs
        ],
    )
