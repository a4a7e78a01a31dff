"""How things stand as metrics: shards, what waits, past use; worked out when it is scraped, not at each pass."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import override

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from fairlead_scorer.decide.shard_ownership import ShardName
from fairlead_scorer.state.pool import ScoredPool

_LABELLED_POOLS = 50
"""Pools with a label of their own; the waiting jobs of further ones are summed under `other`."""
_OTHER = "other"


class ShardMetrics(Collector):
    """The shards that this replica owns, and what it has to do, as metrics.

    Args:
        owned: our shards.
        dirty: how many of them wait to be decided.
        pools: by name.
    """

    def __init__(
        self,
        owned: Callable[[], Iterable[ShardName]],
        dirty: Callable[[], int],
        pools: Callable[[], Mapping[str, ScoredPool]],
    ) -> None:
        self._owned = owned
        self._dirty = dirty
        self._pools = pools

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """See `Collector`; without it the registry would collect to learn the names."""
        return _families().values()

    @override
    def collect(self) -> Iterator[GaugeMetricFamily]:
        found, pools, owned = _families(), self._pools(), list(self._owned())
        found["owned"].add_metric([], len(owned))
        found["dirty"].add_metric([], self._dirty())
        past = sum(pools[shard.pool].remembered(shard.number) for shard in owned if shard.pool in pools)
        found["past"].add_metric([], past)
        waiting: dict[str, int] = {}
        for pool in pools.values():
            label = pool.name if len(waiting) < _LABELLED_POOLS else _OTHER
            waiting[label] = waiting.get(label, 0) + pool.waiting
        for label, jobs in waiting.items():
            found["waiting"].add_metric([label], jobs)
        yield from found.values()


def _families() -> dict[str, GaugeMetricFamily]:
    def family(name: str, text: str, labels: Iterable[str] = ()) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"fairlead_scorer_{name}", text, labels=list(labels))

    return {
        "owned": family("owned_shards", "Shards owned."),
        "dirty": family("dirty_shards", "Owned shards that wait to be decided."),
        "past": family("past_tenants", "Tenants of owned shards that have past use."),
        "waiting": family("waiting_jobs", "Jobs that wait.", ("pool",)),
    }
