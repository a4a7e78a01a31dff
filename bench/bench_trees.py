"""Trees of tenants: the order of many jobs, and one event among them."""

import time
from dataclasses import replace
from fractions import Fraction

from bench_lines import quantile, say
from bench_order import NOW, TENANTS, a_job, best, loaded, rules

from fairlead_policy import PoolRules, WaitingJob
from fairlead_policy.entitlements import Weights, in_relation

ORGANISATIONS = 20
EVENTS = 120


def tree(turn: int = 0) -> PoolRules:
    """The flat bench's tenants, ten below each organisation."""
    flat = rules(turn)
    organisations = {f"org-{n}": Fraction(1 + n % 3) for n in range(ORGANISATIONS)}
    teams = {f"team-{n}": Fraction(1 + (n + turn) % 5) for n in range(TENANTS)}
    parents = {f"team-{n}": f"org-{n % ORGANISATIONS}" for n in range(TENANTS)}
    weights = Weights(listed={**teams, **organisations}, parents=parents)
    return replace(flat, entitlements=in_relation(weights).listed, parents=parents)


async def trees() -> None:
    """Order 15 k and 100 k jobs of a tree from changed weights, and the front after one event."""
    for count in (15_000, 100_000):
        pool, rng = loaded(count)

        def anew(turn: int) -> None:
            pool.set_rules(tree(turn + 1))  # noqa: B023 # called at once
            pool.uids(NOW)  # noqa: B023

        seconds = best(anew)
        shard = [f"team-{n}" for n in range(TENANTS) if n % ORGANISATIONS == 0]
        pool.front(NOW, 100, shard)
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
            pool.front(NOW, 100, shard)
            taken.append(time.perf_counter() - start)
        events = {"event_p50_ms": quantile(taken, 0.5) * 1e3, "event_p99_ms": quantile(taken, 0.99) * 1e3}
        say("trees", jobs=count, ms=seconds * 1e3, **events)
