"""The record of levels that are not written: withheld from a pool, or left to somebody else who changes a job's.

Of a pool whose levels are withheld it tells the marks that are taken off and the preemptions that are seen, too.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog

from fairlead_contracts.base.instants import Micros, Moment
from fairlead_contracts.messages.members import LeftAlone
from fairlead_policy.levels.withholding import LevelFate, Withholding
from fairlead_runtime.clock import wall_clock
from fairlead_runtime.metrics import Metrics

_TOLD_LATE = timedelta(seconds=2)
"""Longest time after the last level is gone in which a preemption counts as caused by it: the frontend tells it late."""
_JOBS_STATED = 100
"""Jobs of a pool that a lease names at most: it is written each second."""


@dataclass(eq=False)
class _WithheldPool:
    """A pool whose levels are withheld."""

    judged: Withholding
    standing: int = 0
    """Levels that stand, by the last plan."""
    stood_until: Moment | None = None
    """The moment at which the last level was gone; None while some stand."""
    preempted: int = 0
    """Running jobs that were stopped meanwhile."""

    @property
    def told(self) -> str:
        """The reason for which levels are withheld, and what stands of them, in words."""
        said = [self.judged.why]
        if self.standing and (self.judged.unsafe or self.judged.fate is LevelFate.GO):
            going = ", to be taken away" if self.judged.fate is LevelFate.GO else ""
            said.append(f"levels that stand: {self.standing}{going}")
        if self.preempted:
            said.append(f"running jobs that the frontend stopped while levels stood: {self.preempted}")
        return "; ".join(said)

    def covers(self, at: Moment) -> bool:
        """Whether levels that should be gone stood at that time, as far as anybody can tell."""
        return self.judged.unsafe and (self.stood_until is None or at <= self.stood_until + _TOLD_LATE)


class WithheldLevels:
    """Metrics and log of withheld levels. Labels are pools."""

    def __init__(self, metrics: Metrics, cluster: str) -> None:
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger().bind(cluster=cluster)
        self._pools: dict[str, _WithheldPool] = {}
        self._by_left_levels = Counter[str]()
        self._withheld = metrics.gauge(
            "pool_withheld",
            "1 while levels of the pool are withheld: paused, released, not cleared, not read, or they could preempt.",
            labels=["pool"],
        )
        self._preemptions = metrics.counter(
            "preemptions_seen",
            "Running jobs that the frontend stopped for others, in pools whose levels are written.",
            labels=["pool"],
        )
        self._left = metrics.gauge(
            "levels_left",
            "Queued jobs that still carry a level although the pool's levels are withheld.",
            labels=["pool"],
        )
        self._preemptions_by_left = metrics.counter(
            "preemptions_by_left_levels",
            "Running jobs that the frontend stopped for others while levels stood in a pool that had turned unsafe.",
            labels=["pool"],
        )
        self._swept = metrics.counter(
            "marks_swept", "Marks taken off jobs that were not queued any more, or that were not read."
        )

    def withheld(self, pool: str, judged: Withholding, *, standing: int) -> None:
        """Notes that the pool's levels are withheld while so many of them stand."""
        known = self._pools.get(pool)
        if known is None or known.judged.why != judged.why:
            self._withheld.labels(pool).set(1)
            preempted = 0 if known is None else known.preempted
            known = self._pools[pool] = _WithheldPool(judged, preempted=preempted)
            self._log.warning(
                "levels withheld", pool=pool, why=judged.why, levels=judged.fate.value, standing=standing
            )
        if standing:
            known.stood_until = None
        elif known.stood_until is None:
            known.stood_until = datetime.now(UTC)
            if known.standing:
                self._log.info("no level stands any more", pool=pool)
        known.standing = standing
        self._left.labels(pool).set(standing)

    def lifted(self, pool: str) -> None:
        """Notes that the pool's levels are written."""
        if self._pools.pop(pool, None) is not None:
            self._withheld.labels(pool).set(0)
            self._left.labels(pool).set(0)
            self._log.info("levels written again", pool=pool)

    def keep(self, pools: Collection[str]) -> None:
        """Forgets pools that are not there any more."""
        for pool in self._pools.keys() - set(pools):
            self.lifted(pool)

    def withholds(self, pool: str) -> bool:
        """Whether the pool's levels are withheld, as far as anybody noted."""
        return pool in self._pools

    def told(self) -> str | None:
        """The pools whose levels are withheld and why, for people; None if there are none."""
        return "; ".join(f"{pool}: {one.told}" for pool, one in sorted(self._pools.items())) or None

    def by_left_levels(self) -> dict[str, int]:
        """Running jobs that were stopped while levels stood that should have been gone, by pool."""
        return dict(self._by_left_levels)

    def preempted(self, pool: str, at: Moment) -> None:
        """Notes that a running job was stopped for another one, at that time."""
        restraint = self._pools.get(pool)
        if restraint is None:
            self._preemptions.labels(pool).inc()
        elif restraint.covers(at):
            restraint.preempted += 1
            self._by_left_levels[pool] += 1
            self._preemptions_by_left.labels(pool).inc()
            self._log.error(
                "a running job was stopped while levels stood that are being taken away",
                pool=pool,
                why=restraint.judged.why,
                so_far=restraint.preempted,
            )

    def swept(self, pool: str, cleaned: int) -> None:
        """Notes that no mark of ours is left in the pool."""
        self._swept.inc(cleaned)
        self._log.info("no mark of ours is left", pool=pool, cleaned=cleaned)

    def sweep_failed(self, pool: str, why: str) -> None:
        """Notes that marks are left; the sweep is tried again."""
        self._log.warning("marks are left", pool=pool, why=why)


class LeftAloneRecord:
    """Metric and statement of jobs that are left alone after a fight, and of those that are still contested."""

    def __init__(self, metrics: Metrics, clock: Callable[[], Micros] = wall_clock) -> None:
        self._clock = clock
        self._since: dict[str, Micros] = {}
        """Instants since when, by uid: who has been left alone longest comes first."""
        self._pools: Mapping[str, str] = {}
        self.contested: dict[str, int] = {}
        """Number of contested jobs, by pool, as the lease carries it."""
        self._jobs = metrics.gauge("left_alone", "Queued jobs that are left alone after a fight.")

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
