"""The record of jobs whose levels somebody else changes: those that are left alone after a fight, and those still contested."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from prometheus_client import Gauge

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.members import LeftAlone
from fairlead_runtime.clock import wall_clock
from fairlead_runtime.metrics import Metrics

_JOBS_STATED = 100
"""Jobs of a pool that a lease names at most: it is written each second."""


class LeftAloneRecord:
    """Metric and statement of jobs that are left alone.

    Args:
        metrics: the service's.
        clock: the time of day.
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], Micros] = wall_clock) -> None:
        self._clock = clock
        self._since: dict[str, Micros] = {}
        """Instants since when, by uid: who has been left alone longest comes first."""
        self._pools: Mapping[str, str] = {}
        self.contested: dict[str, int] = {}
        """Number of contested jobs, by pool, as the lease carries it."""
        self._jobs: Gauge = metrics.gauge("left_alone", "Queued jobs that are left alone after a fight.")

    def note(self, pools: Mapping[str, str], contested: Iterable[str] = ()) -> None:
        """Notes who is left alone now, and the pools of those who are contested.

        Args:
            pools: the pool of each job that is left alone, by uid; empty for a job in none.
            contested: the pool of each contested job.
        """
        self.contested = dict(Counter(filter(None, contested)))
        stay = {uid: since for uid, since in self._since.items() if uid in pools}
        new = dict.fromkeys(sorted(pools.keys() - stay.keys()), self._clock())
        self._since, self._pools = stay | new, pools
        self._jobs.set(len(pools))

    def stated(self) -> list[LeftAlone]:
        """The jobs for whoever shows the order or explains them, as the lease carries them."""
        by_pool: dict[str, list[str]] = {}
        for uid in self._since:
            by_pool.setdefault(self._pools[uid], []).append(uid)
        return [
            LeftAlone(pool=pool, jobs=len(uids), since={uid: self._since[uid] for uid in uids[:_JOBS_STATED]})
            for pool, uids in sorted(by_pool.items())
            if pool
        ]
