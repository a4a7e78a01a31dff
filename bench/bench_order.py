"""The order of many jobs, one event among many, and what a second scorer's processor brings."""

import multiprocessing
import random
import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from multiprocessing.synchronize import Barrier

import numpy as np
from bench_lines import quantile, say

from fairlead_policy import PoolOrder, PoolRules, WaitingJob

TENANTS = 200
NOW = 1_760_000_000_000_000
GIB = 2**30
CAPACITY = {"cpu": 64_000 * 500, "memory": 512 * GIB * 500, "nvidia.com/gpu": 8_000 * 500}
REPEATS = 7
SHARDS = 16


def rules(turn: int = 0) -> PoolRules:
    """A pool of 4,000 cards; each turn's weights differ, so that nothing computed before can serve again."""
    return PoolRules(
        capacity=CAPACITY,
        classes=("urgent", "approved", "normal"),
        rate=Fraction(6, 100) / 3_600_000_000,
        cap=336 * 3_600_000_000,
        weights={f"team-{n}": Fraction(1 + (n + turn) % 5) for n in range(TENANTS)},
    )


def a_job(number: int, rng: random.Random) -> WaitingJob:
    """A waiting job of some tenant, submitted within the last month."""
    gpus = rng.choice((0, 1, 1, 1, 2, 4, 8))
    return WaitingJob(
        uid=f"uid-{number:09d}",
        scope="ns",
        id=f"job-{number}",
        tenant=f"team-{rng.randrange(TENANTS)}",
        urgency=rng.choice(("urgent", "approved", "normal", "normal", "normal", "normal")),
        submitted=NOW - rng.randrange(30 * 86_400_000_000),
        demand={
            "cpu": rng.randrange(1000, 64_000),
            "memory": rng.randrange(1, 256) * GIB,
            "nvidia.com/gpu": gpus * 1000,
        },
        queue=("c1", f"queue-{number % 4}"),
    )


def loaded(count: int) -> tuple[PoolOrder, random.Random]:
    """A pool with so many waiting jobs, some more that run, and everything scored once."""
    rng = random.Random(count)
    pool = PoolOrder(rules())
    for number in range(count):
        pool.wait(a_job(number, rng))
    for number in range(min(count // 10, 5000)):
        pool.run(
            f"run-{number}",
            f"team-{number % TENANTS}",
            {"nvidia.com/gpu": 1000, "cpu": 4000, "memory": 16 * GIB},
        )
    pool.uids(NOW)
    return pool, rng


def lexsort_seconds(count: int) -> float:
    """A bare NumPy lexsort of keys of the same kind: the floor under any order of so many jobs."""
    generator = np.random.default_rng(count)
    submitted = NOW - generator.integers(0, 30 * 86_400_000_000, count)
    key = generator.random(count) + submitted * 1e-13
    urgency = generator.integers(0, 3, count)
    return best(lambda _: np.lexsort((submitted, key, urgency)))


def best(work: Callable[[int], object]) -> float:
    """The median of some runs, in seconds."""
    taken = []
    for turn in range(REPEATS):
        start = time.perf_counter()
        work(turn)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


async def order() -> None:
    """Order 15 k, 100 k and 1 M jobs from changed weights: every score and the whole sort."""
    for count in (15_000, 100_000, 1_000_000):
        pool, _ = loaded(count)

        def anew(turn: int, pool: PoolOrder = pool) -> None:
            pool.set_rules(rules(turn + 1))
            pool.uids(NOW)

        seconds, floor = best(anew), lexsort_seconds(count)
        say("order", jobs=count, ms=seconds * 1e3, lexsort_ms=floor * 1e3, ratio=seconds / floor)


async def event() -> None:
    """One arrival, start or end among 100 k waiting jobs, and the fronts that follow from it."""
    pool, rng = loaded(100_000)
    shard = [f"team-{n}" for n in range(0, TENANTS, SHARDS)]
    pool.front(NOW, 100, shard)
    taken = []
    for number in range(300):
        job = a_job(1_000_000 + number, rng)
        changed = WaitingJob(
            **{**{f: getattr(job, f) for f in job.__struct_fields__}, "tenant": shard[number % len(shard)]}
        )
        start = time.perf_counter()
        match number % 3:
            case 0:
                pool.wait(changed)
            case 1:
                pool.run(changed.uid, changed.tenant, changed.demand)
            case _:
                pool.forget(f"uid-{rng.randrange(100_000):09d}")
        pool.front(NOW, 100, shard)
        taken.append(time.perf_counter() - start)
    say(
        "event", jobs=100_000, p50_ms=quantile(taken, 0.5) * 1e3, p99_ms=quantile(taken, 0.99) * 1e3, aim_ms=5
    )


def _rescore(share: int, of: int, barrier: Barrier, found: "multiprocessing.Queue[float]") -> None:
    pool, _ = loaded(100_000)
    mine = [
        [f"team-{n}" for n in range(TENANTS) if n % SHARDS == s] for s in range(SHARDS) if s % of == share
    ]
    taken = []
    for turn in range(REPEATS):
        barrier.wait()
        start = time.perf_counter()
        pool.set_rules(rules(turn + 1))
        for tenants in mine:
            pool.front(NOW, 10_000, tenants)
        taken.append(time.perf_counter() - start)
    found.put(statistics.median(taken))


async def scaling() -> None:
    """Re-scoring 100 k jobs on loaded mirrors, by one process and by two that share the shards."""
    seconds = {}
    for replicas in (1, 2):
        barrier = multiprocessing.Barrier(replicas)
        found: multiprocessing.Queue[float] = multiprocessing.Queue()
        workers = [
            multiprocessing.Process(target=_rescore, args=(share, replicas, barrier, found))
            for share in range(replicas)
        ]
        for worker in workers:
            worker.start()
        seconds[replicas] = max(found.get() for _ in workers)
        for worker in workers:
            worker.join()
    say(
        "scaling",
        jobs=100_000,
        one_ms=seconds[1] * 1e3,
        two_ms=seconds[2] * 1e3,
        times=seconds[1] / seconds[2],
        aim=1.7,
    )
