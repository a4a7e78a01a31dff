"""What the admitter tells of its restraint: levels that it withholds, marks that it takes off, preemptions it is told of."""

from collections.abc import Collection

import structlog
from prometheus_client import Counter, Gauge

from fairlead_runtime import Metrics


class Restraints:
    """Metrics and log. Labels are pools."""

    def __init__(self, metrics: Metrics, cluster: str) -> None:
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger().bind(cluster=cluster)
        self._why: dict[str, str] = {}
        self._withheld: Gauge = metrics.gauge(
            "pool_withheld",
            "1 while levels of the pool are withheld: paused, released, not cleared, or they could preempt.",
            labels=["pool"],
        )
        self._preemptions: Counter = metrics.counter(
            "preemptions_seen",
            "Running jobs that the frontend stopped for others, in pools whose levels are written.",
            labels=["pool"],
        )
        self._swept: Counter = metrics.counter(
            "marks_swept", "Marks taken off jobs that were not queued any more, at releases."
        )

    def withheld(self, pool: str, why: str) -> None:
        """Why the pool's levels are withheld; empty where they are written."""
        if self._why.get(pool, "") == why:
            return
        self._withheld.labels(pool).set(bool(why))
        if why:
            self._why[pool] = why
            self._log.warning("levels withheld", pool=pool, why=why)
        else:
            del self._why[pool]
            self._log.info("levels written again", pool=pool)

    def keep(self, pools: Collection[str]) -> None:
        """Only these pools are there at all."""
        for pool in self._why.keys() - set(pools):
            self.withheld(pool, "")

    def told(self) -> str | None:
        """The pools whose levels are withheld and why, for people; None if there are none."""
        return "; ".join(f"{pool}: {why}" for pool, why in sorted(self._why.items())) or None

    def preempted(self, pool: str) -> None:
        """A running job was stopped for another one. Counted where its levels are written."""
        if pool not in self._why:
            self._preemptions.labels(pool).inc()

    def swept(self, pool: str, cleaned: int) -> None:
        """No mark of ours is left in the pool."""
        self._swept.inc(cleaned)
        self._log.info("released without a trace", pool=pool, cleaned=cleaned)

    def sweep_failed(self, pool: str, why: str) -> None:
        """Marks are left; the sweep is tried again."""
        self._log.warning("release not complete", pool=pool, why=why)
