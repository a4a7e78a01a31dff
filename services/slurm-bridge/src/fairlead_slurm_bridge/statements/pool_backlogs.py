"""The partition that a job is ranked in, where it lists partitions of several pools. Pure.

A SiteFactor is one number for all partitions that a job lists. Ranked in a pool where few wait, the job would have a high
level in the others, too, and pass whoever waits there. So it is ranked in the pool in which others wait for most.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from fairlead_contracts.messages.state import JobState, Phase
from fairlead_slurm import SlurmJob, whole_job
from fairlead_slurm_bridge.statements.partition_pools import PartitionPool

_STAYS = 1.25
"""Times that others must wait more for another pool, before a job is ranked there: about equal ones would take turns."""


class PoolBacklogs:
    """Backlogs of a cluster's pools, by account, as parts of each pool's capacity.

    Args:
        pools: the cluster's pools.
    """

    def __init__(self, pools: Iterable[PartitionPool]) -> None:
        self._capacity: dict[str, Mapping[str, int]] = {}
        self._pool_of: dict[str, str] = {}
        for pool in pools:
            self._capacity[pool.name] = pool.capacity
            self._pool_of |= dict.fromkeys(pool.partitions, pool.name)
        self._wanted: dict[str, dict[str, float]] = {}
        self._whole: dict[str, float] = {}
        """Sum of what waits, by pool."""

    def by_pool(self, job: SlurmJob) -> list[SlurmJob]:
        """The job; a heterogeneous one whose parts are of several pools as one job in each, which has what it asks for there."""
        pools: dict[str | None, list[SlurmJob]] = {}
        for part in job.parts:
            pools.setdefault(self._pool_of.get(part.partitions[0]), []).append(part)
        if len(pools) < 2:  # noqa: PLR2004 # of one pool, or of no parts
            return [job]
        return [
            msgspec.structs.replace(whole_job(parts), dependency=job.dependency) for parts in pools.values()
        ]

    def spans(self, job: JobState) -> bool:
        """Whether the job lists partitions of several pools."""
        return bool(job.queues) and len({self._pool_of.get(partition) for partition in job.queues}) > 1

    def count(self, jobs: Iterable[JobState]) -> None:
        """Counts the waiting jobs of one reading anew. Who lists several pools makes none of them fuller: none may be its."""
        self._wanted = defaultdict(lambda: defaultdict(float))
        for job in jobs:
            pool = self._pool_of.get(job.queue)
            if pool is not None and job.phase is Phase.WAITING and not self.spans(job):
                tasks = 1 if job.array is None else job.array.tasks
                self._wanted[pool][job.scope] += tasks * self._part(job, pool)
        self._whole = {pool: sum(wanted.values()) for pool, wanted in self._wanted.items()}

    def ranked_first(self, job: JobState, before: str | None) -> tuple[str, ...]:
        """The partitions that the job lists, the one that it is ranked in first.

        Args:
            job: a job that lists several.
            before: the partition that it was ranked in before: it stays there until another pool is clearly fuller.
        """

        def fullness(partition: str) -> tuple[bool, float]:
            waits = self._by_others(job, partition) * (_STAYS if partition == before else 1.0)
            return self._holds(job, partition), waits

        return tuple(sorted(job.queues, key=fullness, reverse=True))

    def _holds(self, job: JobState, partition: str) -> bool:
        """Whether the partition's pool has what the job asks for: it starts in no other."""
        capacity = self._capacity.get(self._pool_of.get(partition, ""), {})
        return all(amount <= capacity.get(name, 0) for name, amount in job.demand.items())

    def _part(self, job: JobState, pool: str) -> float:
        """The largest part of any resource of the pool that the job asks for; all of what the pool has none of."""
        capacity = self._capacity[pool]
        parts = (
            min(1.0, amount / max(1, capacity.get(name, 0))) for name, amount in job.demand.items() if amount
        )
        return max(parts, default=0.0)

    def _by_others(self, job: JobState, partition: str) -> float:
        pool = self._pool_of.get(partition, "")
        return self._whole.get(pool, 0.0) - self._wanted.get(pool, {}).get(job.scope, 0.0)
