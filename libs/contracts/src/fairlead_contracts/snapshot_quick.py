"""The jobs of a large snapshot, read at once where nothing is wrong with them.

A job that is right in every respect takes two microseconds here. Any other is left to the checks that say what is wrong,
with its place: the outcome is the same, only slower.
"""

from collections.abc import Collection, Mapping

from fairlead_contracts.instants import SECOND
from fairlead_contracts.snapshot_parts import SnapshotJob, WrittenJob

_PARSED_ONCE = (int, str)
"""Kinds of quantities of which each value was parsed at its first sight. True is no 1 here."""


class QuickJobs:
    """Takes jobs that are right beyond doubt.

    Args:
        pool_of: by tenant that may have jobs, the pool that they stand in.
        classes: that the policy has; the last is everybody's.
        resources: by pool, those that it has.
        quantities: in base units by (resource, as written), of those that were parsed; it grows meanwhile.
        names: of queues and clusters that were found good; it grows meanwhile.
        frontends: that there are.
        times: the first and the last second that can be named.
    """

    def __init__(
        self,
        *,
        pool_of: Mapping[str, str],
        classes: Collection[str],
        resources: Mapping[str, Collection[str]],
        quantities: Mapping[tuple[str, int | str], int],
        names: Collection[str | None],
        frontends: Collection[str | None],
        times: tuple[int, int],
    ) -> None:
        self._pool_of = pool_of
        self._classes: dict[str | None, str] = {name: name for name in classes}
        self._classes[None] = list(classes)[-1] if classes else ""
        self._resources = {pool: frozenset(found) for pool, found in resources.items()}
        self._quantities = quantities
        self._names = names
        self._frontends = frontends
        self._first, self._last = times

    def take(self, job: WrittenJob) -> SnapshotJob | None:
        """The job; None where somebody has to look closer."""
        pool, urgency = self._pool_of.get(job.tenant), self._classes.get(job.urgency)
        submitted, limit = job.submitted, job.runtime_limit
        if (
            pool is None
            or not urgency
            or type(submitted) is not int
            or not self._first <= submitted <= self._last
            or not (limit is None or (type(limit) is int and 0 <= limit <= self._last))
            or not self._is_plain(job)
        ):
            return None
        demand = self._demand(job.demand, pool)
        if demand is None:
            return None
        since = submitted * SECOND
        return SnapshotJob(
            id=job.id,
            uid=job.id,
            tenant=job.tenant,
            pool=pool,
            urgency=urgency,
            demand=demand,
            submitted=since,
            queue_time=since,
            cluster=job.cluster or "",
            frontend=job.frontend or "",
            queue=job.queue or "",
            runtime_limit=None if limit is None else limit * SECOND,
        )

    def _is_plain(self, job: WrittenJob) -> bool:
        """Whether what most jobs leave out is left out, and the names are known to be good."""
        names = self._names
        return (
            job.pool is None
            and job.uid is None
            and job.gang is None
            and job.annotations is None
            and job.queue_time is None
            and job.priority_override is None
            and job.level is None
            and job.queue in names
            and job.frontend in self._frontends
            and job.cluster in names
        )

    def _demand(self, found: Mapping[str, object], pool: str) -> dict[str, int] | None:
        """In base units; None where something was not parsed before, or is no resource of the pool."""
        if not found.keys() <= self._resources[pool]:
            return None
        quantities = self._quantities
        demand: dict[str, int] = {}
        for resource, value in found.items():
            if type(value) not in _PARSED_ONCE:
                return None
            amount = quantities.get((resource, value))  # type: ignore[arg-type] # mypy does not narrow by type()
            if amount is None:
                return None
            if amount:
                demand[resource] = amount
        return demand
