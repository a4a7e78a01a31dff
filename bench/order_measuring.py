"""Single figures: an order, one event, the levels of a window."""

import random
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle

import msgspec
from order_heap import PlainPool, order_by_heap
from order_pools import NOW, MadeJobs, MadePool, uid_of

from fairlead_contracts.base.instants import HOUR
from fairlead_policy.levels.plan import LabelledJob, plan_levels
from fairlead_policy.order.order import Order
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.order.pool_snapshot import PoolSnapshot
from fairlead_policy.order.positions import Positions
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.snapshot.levels import PLAIN_BAND
from fairlead_policy.tenants.sorted_jobs import OwnLines

TURNS = 3
EVENTS = 300
SHARDS = 16
HEADS = 100
LATER = 999
"""Number of a thousand jobs that stand labelled already when levels are planned."""


@dataclass(frozen=True, kw_only=True)
class OrderFigures:
    """An order and the same by a heap."""

    seconds: float
    """Seconds from arrays in memory to the order, the best of some turns."""
    peak_megabytes: float
    """Peak of the whole process once the order stood, the interpreter and the arrays among it."""
    heap_seconds: float
    differ: int
    """Number of ranks that are another job's by the heap: none."""


def measure_order(pool: MadePool) -> OrderFigures:
    """Put the pool in order, and again by a heap."""
    seconds, whole = _best(lambda: _ordered(pool))
    peak = _peak_megabytes()
    plain = PlainPool.of(pool)
    start = time.perf_counter()
    by_heap = order_by_heap(plain)
    heap_seconds = time.perf_counter() - start
    differ = sum(job.uid != uid_of(other) for job, other in zip(whole.jobs(), by_heap, strict=True))
    return OrderFigures(seconds=seconds, peak_megabytes=peak, heap_seconds=heap_seconds, differ=differ)


def _ordered(pool: MadePool) -> Positions:
    nobody = PoolSnapshot.of_nobody(pool.rules)
    lines = OwnLines.of_columns(pool.columns, pool.tenant, MadeJobs(pool), pool.tenants, nobody.measure)
    return Order(nobody.with_lines(lines), NOW).positions()


def measure_events(pool: MadePool) -> list[float]:
    """Seconds of arrivals, starts and ends among the jobs, each with what its shard's decision is made from."""
    order, dice = PoolFacts(pool.rules), random.Random(len(pool.tenant))  # figures, no secrets
    jobs = list(MadeJobs(pool))
    order.wait_all(jobs)
    names = list(pool.rules.entitlements)
    shard = names[::SHARDS]
    _decide(order, shard)
    own = [job for job in jobs if job.tenant in set(shard)] or jobs
    taken = []
    for turn, kind in zip(range(EVENTS), cycle((_arrive, _start, _end)), strict=False):
        job = msgspec.structs.replace(dice.choice(own), uid=uid_of(len(jobs) + turn - turn % 3))
        start = time.perf_counter()
        kind(order, job)
        _decide(order, shard)
        taken.append(time.perf_counter() - start)
    return taken


def _decide(order: PoolFacts, shard: Sequence[str]) -> None:
    order.at(NOW).queue_heads(HEADS, shard)
    order.snapshot.standings(shard)


def _arrive(order: PoolFacts, job: WaitingJob) -> None:
    order.wait(job)


def _start(order: PoolFacts, job: WaitingJob) -> None:
    order.run(job.uid, job.tenant, job.demand)


def _end(order: PoolFacts, job: WaitingJob) -> None:
    order.forget(job.uid)


def measure_levels(window: int) -> float:
    """Seconds to plan the levels of a window, most of it labelled already."""
    dice = random.Random(window)  # figures, no secrets
    jobs = [
        LabelledJob(
            uid=uid_of(number),
            level=PLAIN_BAND.highest // 2 - 40 * number if dice.randrange(1000) < LATER else 0,
            tie=(NOW - dice.randrange(HOUR), uid_of(number)),
        )
        for number in range(window)
    ]
    seconds, _ = _best(lambda: plan_levels(jobs, [], PLAIN_BAND))
    return seconds


def quantile(values: Sequence[float], fraction: float) -> float:
    """The nearest-rank quantile."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, round(fraction * len(ordered) + 0.5) - 1))]


def _best[T](work: Callable[[], T]) -> tuple[float, T]:
    """The seconds of the fastest of some turns, and what the first one gave."""
    seconds, found = _timed(work)
    return min(seconds, *(_timed(work)[0] for _ in range(TURNS - 1))), found


def _timed[T](work: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def _peak_megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
