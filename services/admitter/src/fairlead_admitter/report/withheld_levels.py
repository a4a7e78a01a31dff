"""The record of withheld levels: pools whose levels the admitter withholds, marks that it takes off, preemptions it is told of."""

from collections import Counter as Tally
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta

import structlog
from prometheus_client import Counter, Gauge

from fairlead_contracts.base.instants import Moment
from fairlead_policy.levels.withholding import LevelFate, Withholding
from fairlead_runtime.metrics import Metrics

_TOLD_LATE = timedelta(seconds=2)
"""Longest time after the last level is gone in which a preemption counts as caused by it: the frontend tells it late."""


class _WithheldPool:
    """A pool whose levels are withheld."""

    def __init__(self, judged: Withholding) -> None:
        self.judged = judged
        self.standing = 0
        """Levels that stand, by the last plan."""
        self.stood_until: Moment | None = None
        """The moment at which the last level was gone; None while some stand."""
        self.preempted = 0
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

    def __init__(
        self,
        metrics: Metrics,
        cluster: str,
        clock: Callable[[], Moment] = lambda: datetime.now(UTC),
    ) -> None:
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger().bind(cluster=cluster)
        self._clock = clock
        self._pools: dict[str, _WithheldPool] = {}
        self._by_left_levels = Tally[str]()
        self._withheld: Gauge = metrics.gauge(
            "pool_withheld",
            "1 while levels of the pool are withheld: paused, released, not cleared, not read, or they could preempt.",
            labels=["pool"],
        )
        self._preemptions: Counter = metrics.counter(
            "preemptions_seen",
            "Running jobs that the frontend stopped for others, in pools whose levels are written.",
            labels=["pool"],
        )
        self._left: Gauge = metrics.gauge(
            "levels_left",
            "Queued jobs that still carry a level although the pool's levels are withheld.",
            labels=["pool"],
        )
        self._preemptions_by_left: Counter = metrics.counter(
            "preemptions_by_left_levels",
            "Running jobs that the frontend stopped for others while levels stood in a pool that had turned unsafe.",
            labels=["pool"],
        )
        self._swept: Counter = metrics.counter(
            "marks_swept", "Marks taken off jobs that were not queued any more, or that were not read."
        )

    def withheld(self, pool: str, judged: Withholding, *, standing: int) -> None:
        """Notes that the pool's levels are withheld while so many of them stand."""
        known = self._pools.get(pool)
        if known is None or known.judged.why != judged.why:
            self._withheld.labels(pool).set(1)
            before, known = known, _WithheldPool(judged)
            known.preempted = before.preempted if before is not None else 0
            self._pools[pool] = known
            self._log.warning(
                "levels withheld", pool=pool, why=judged.why, levels=judged.fate.value, standing=standing
            )
        if standing:
            known.stood_until = None
        elif known.stood_until is None:
            known.stood_until = self._clock()
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
