"""The demand of jobs that start before another, resource by resource: also of resources that do not count.

A weight of 0 leaves a resource out of the shares; the room of the pool is taken up all the same.
"""

from collections import Counter
from collections.abc import Iterable

from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules, counted_amount


def leaves_out(rules: PoolRules) -> bool:
    """Whether some resource does not count: what jobs ask for of it is in no column, and has to be read from them."""
    return not all(map(rules.counts, rules.resource_weights))


def asked_in_turn(jobs: Iterable[WaitingJob], rules: PoolRules) -> Counter[str]:
    """The demand of jobs for every resource, without jobs that are larger than the pool: these never start."""
    asked: Counter[str] = Counter()
    for job in jobs:
        if _startable(job, rules):
            for name, amount in job.demand.items():
                asked[name] += counted_amount(amount)
    return asked


def _startable(job: WaitingJob, rules: PoolRules) -> bool:
    return all(amount <= max(0, rules.capacity.get(name, 0)) for name, amount in job.demand.items())
