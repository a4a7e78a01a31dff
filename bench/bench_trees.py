"""Trees of tenants: the order of many jobs, and one event among them."""

import random
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import msgspec
from bench_lines import quantile, say
from bench_order import NOW, TENANTS, a_job, best, loaded, rules

from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.entitlements import in_relation
from fairlead_policy.rules.jobs import JobQueue, WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules

ORGANISATIONS = 20
EVENTS = 120
HDRF_HEADS = 32


def tree(turn: int = 0) -> PoolRules:
    """The flat bench's tenants, ten below each organisation."""
    flat = rules(turn)
    organisations = {f"org-{n}": Fraction(1 + n % 3) for n in range(ORGANISATIONS)}
    teams = {f"team-{n}": Fraction(1 + (n + turn) % 5) for n in range(TENANTS)}
    parents = {f"team-{n}": f"org-{n % ORGANISATIONS}" for n in range(TENANTS)}
    weights = {**teams, **organisations}
    return replace(flat, entitlements=in_relation(weights, parents).listed, parents=parents)


def complementary(count: int, teams: int) -> tuple[PoolFacts, Callable[[int], WaitingJob]]:
    """An organisation after H-DRF, whose teams want cards with CPUs, or CPUs alone; and what makes more jobs of it."""
    rng = random.Random(count)
    names = [f"team-{n}" for n in range(teams)]
    parents = dict.fromkeys(names, "org")
    listed = {"org": Fraction(1), **{name: Fraction(1 + n % 3) for n, name in enumerate(names)}}
    parts = in_relation(listed, parents).listed
    pool = PoolFacts(replace(rules(0), entitlements=parts, parents=parents, rescaled=True))

    def a_job_of(number: int) -> WaitingJob:
        job = a_job(number, rng)
        demand = job.demand if rng.random() < 0.6 else {"cpu": rng.choice([1000, 4000])}  # noqa: PLR2004
        return msgspec.structs.replace(job, tenant=rng.choice(names), demand=demand, queue=JobQueue("c", "q"))

    pool.wait_all([a_job_of(number) for number in range(count)])
    for number in range(30):
        job = a_job_of(2_000_000 + number)
        pool.run(job.uid, job.tenant, job.demand)
    return pool, a_job_of


async def hdrf() -> None:
    """H-DRF in one organisation: the first 32 heads after one event, and the order of all."""
    for count, teams in ((1_000, 10), (5_000, 10), (20_000, 10), (20_000, 1_000)):
        pool, a_job_of = complementary(count, teams)
        pool.at(NOW).queue_heads(HDRF_HEADS)
        taken = []
        for number in range(EVENTS):
            job = a_job_of(1_000_000 + number)
            start = time.perf_counter()
            pool.wait(job)
            pool.at(NOW).queue_heads(HDRF_HEADS)
            taken.append(time.perf_counter() - start)
        start = time.perf_counter()
        pool.at(NOW).uids()
        whole = {"ms": (time.perf_counter() - start) * 1e3}
        events = {"event_p50_ms": quantile(taken, 0.5) * 1e3, "event_p99_ms": quantile(taken, 0.99) * 1e3}
        say("hdrf", jobs=count, teams=teams, **whole, **events)


async def trees() -> None:
    """Order 15 k and 100 k jobs of a tree from changed weights, and the heads after one event."""
    for count in (15_000, 100_000):
        pool, rng = loaded(count)

        def anew(turn: int) -> None:
            pool.set_rules(tree(turn + 1))  # noqa: B023 # called at once
            pool.at(NOW).uids()  # noqa: B023

        seconds = best(anew)
        shard = [f"team-{n}" for n in range(TENANTS) if n % ORGANISATIONS == 0]
        pool.at(NOW).queue_heads(100, shard)
        taken = []
        for number in range(EVENTS):
            job = a_job(1_000_000 + number, rng)
            moved = WaitingJob(
                **{
                    **{f: getattr(job, f) for f in job.__struct_fields__},
                    "tenant": shard[number % len(shard)],
                }
            )
            start = time.perf_counter()
            pool.wait(moved)
            pool.at(NOW).queue_heads(100, shard)
            taken.append(time.perf_counter() - start)
        events = {"event_p50_ms": quantile(taken, 0.5) * 1e3, "event_p99_ms": quantile(taken, 0.99) * 1e3}
        say("trees", jobs=count, ms=seconds * 1e3, **events)
