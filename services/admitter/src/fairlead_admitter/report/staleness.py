"""The time for which pools have lacked an order that may be followed, and when to say so."""

import time
from collections.abc import Callable, Collection

import msgspec
import structlog

from fairlead_admitter.observe.decision_gate import UnsettledPool
from fairlead_runtime.metrics import Metrics


class _Lack(msgspec.Struct):
    since: float
    found: UnsettledPool
    said: bool = False


class Staleness:
    """Metrics and log of pools without an order. Nothing is written for them. Labels are pools.

    It says once that a pool is stale, when it has been unsettled for longer than `stale_after` seconds.
    """

    def __init__(
        self,
        metrics: Metrics,
        cluster: str,
        stale_after: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stale_after = stale_after
        self._clock = clock
        self._lacks: dict[str, _Lack] = {}
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger().bind(cluster=cluster)
        self._unsettled = metrics.gauge(
            "pool_unsettled", "1 while the pool lacks an order that may be followed.", labels=["pool"]
        )
        self._stale = metrics.gauge(
            "pool_stale",
            "1 while the pool has been unsettled for longer than stale_after_seconds.",
            labels=["pool"],
        )

    def lack(self, pool: str, found: UnsettledPool) -> None:
        """Notes that the pool has no order that may be followed now."""
        now = self._clock()
        told = {"pool": pool, "doubt": found.doubt.value, "shard": found.shard, "owner": found.owner}
        lack = self._lacks.get(pool)
        if lack is None:
            lack = self._lacks[pool] = _Lack(now, found)
            self._unsettled.labels(pool).set(1)
            self._log.info("pool unsettled", **told)
        lack.found = found
        if now - lack.since > self._stale_after and not lack.said:
            lack.said = True
            self._stale.labels(pool).set(1)
            self._log.error(
                "pool stale: its levels stay as they are until its decisions can be followed again",
                seconds=round(now - lack.since, 1),
                **told,
            )

    def satisfy(self, pool: str) -> None:
        """Notes that the pool has an order."""
        lack = self._forget(pool)
        if lack is not None:
            seconds = round(self._clock() - lack.since, 3)
            self._log.info("pool settled", pool=pool, after_seconds=seconds)

    def excuse(self, pool: str) -> None:
        """Notes that the pool needs no order now: it is paused or released, or another replica leads."""
        self._forget(pool)

    def keep(self, pools: Collection[str]) -> None:
        """Excuses the lack of pools that are not there any more."""
        for pool in self._lacks.keys() - set(pools):
            self.excuse(pool)

    def _forget(self, pool: str) -> _Lack | None:
        lack = self._lacks.pop(pool, None)
        if lack is not None:
            self._unsettled.labels(pool).set(0)
            self._stale.labels(pool).set(0)
        return lack

    def by_pool(self) -> dict[str, str]:
        """The stale pools, and why there is no order to follow."""
        return {
            pool: f"{lack.found.doubt.value}"
            + (f" (shard {lack.found.shard})" if lack.found.shard is not None else "")
            + f" for {self._clock() - lack.since:.0f} s"
            for pool, lack in sorted(self._lacks.items())
            if lack.said
        }

    def stale(self) -> str | None:
        """The stale pools and why, for people; None if there are none."""
        return "; ".join(f"{pool}: {why}" for pool, why in self.by_pool().items()) or None
