"""Fairness as metrics: what each tenant of our shards has, may have and waits for, and what there is to do.

It is worked out when it is scraped, and not at each pass.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import override

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from fairlead_contracts.base.instants import Micros, to_seconds
from fairlead_contracts.messages.decisions import Position, TenantShare
from fairlead_scorer.decide.decision import DecisionContent
from fairlead_scorer.decide.shard_ownership import ShardName
from fairlead_scorer.state.pool import ScoredPool

_LABELLED_POOLS = 50
"""Pools with a label of their own; the waiting jobs of further ones are summed under `other`."""
_OTHER = "other"
LABELLED_TENANTS = 200
"""Tenants of a scorer with labels of their own, those that hold most first; the others are counted."""
_TENANT = ("pool", "tenant")
_NOTHING, _SHARE = "nothing", "share"


@dataclass(eq=False)
class FairnessMetrics(Collector):
    """Series of the shards that this replica owns; a shard that goes to another takes its series along."""

    owned: Callable[[], Iterable[ShardName]]
    """Our shards."""
    decided: Callable[[], Iterable[tuple[ShardName, DecisionContent]]]
    """The last published content of each of them."""
    dirty: Callable[[], int]
    """The number of them that wait to be decided."""
    _: KW_ONLY
    pools: Callable[[], Mapping[str, ScoredPool]]
    """The pools by name."""
    clock: Callable[[], Micros]

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Families without samples: without this method the registry would collect all series to learn their names."""
        return (_tenant_families() | _shard_families()).values()

    @override
    def collect(self) -> Iterator[GaugeMetricFamily]:
        found = _tenant_families() | _shard_families()
        decided = list(self.decided())
        for pool in {shard.pool for shard, _ in decided} | self.pools().keys():
            contents = [content for shard, content in decided if shard.pool == pool]
            found["pool_owned_shards"].add_metric([pool], len(contents))
            known = self.pools().get(pool)
            if known is not None:
                found["pool_shards"].add_metric([pool], known.shards)
            self._tell_heads(found["heads"], pool, contents)
        self._tell_tenants(found, decided)
        self._tell_shards(found)
        yield from found.values()

    def _tell_shards(self, found: Mapping[str, GaugeMetricFamily]) -> None:
        pools, owned = self.pools(), list(self.owned())
        found["owned"].add_metric([], len(owned))
        found["dirty"].add_metric([], self.dirty())
        past = sum(pools[shard.pool].remembered(shard.number) for shard in owned if shard.pool in pools)
        found["past"].add_metric([], past)
        waiting: dict[str, int] = {}
        for pool in pools.values():
            label = pool.name if len(waiting) < _LABELLED_POOLS else _OTHER
            waiting[label] = waiting.get(label, 0) + pool.waiting
        for label, jobs in waiting.items():
            found["waiting"].add_metric([label], jobs)

    def _tell_tenants(
        self, found: Mapping[str, GaugeMetricFamily], decided: Iterable[tuple[ShardName, DecisionContent]]
    ) -> None:
        standings = [
            (shard.pool, standing, content) for shard, content in decided for standing in content.standings
        ]
        standings.sort(key=lambda told: (-told[1].share, -told[1].waiting, told[1].tenant))
        for pool, standing, content in standings[:LABELLED_TENANTS]:
            self._tell_tenant_share(found, pool, standing)
            self._tell_waits(found, pool, standing.tenant, content)
        found["tenants_left_out"].add_metric([], max(0, len(standings) - LABELLED_TENANTS))

    def _tell_tenant_share(
        self, found: Mapping[str, GaugeMetricFamily], pool: str, standing: TenantShare
    ) -> None:
        labels = [pool, standing.tenant]
        found["tenant_share"].add_metric(labels, standing.share)
        found["tenant_entitlement"].add_metric(labels, standing.entitled)
        found["tenant_waiting"].add_metric(labels, standing.waiting)
        found["tenant_running"].add_metric(labels, standing.running)
        found["tenant_dominant"].add_metric([*labels, standing.dominant or _NOTHING], standing.share)

    def _tell_waits(
        self, found: Mapping[str, GaugeMetricFamily], pool: str, tenant: str, content: DecisionContent
    ) -> None:
        positions = [
            position
            for heads in content.queue_heads
            for position in heads.positions
            if position.tenant == tenant
        ]
        if not positions:
            return
        now = self.clock()
        longest = max(now - position.submitted for position in positions)
        found["longest_wait"].add_metric([pool, tenant], to_seconds(max(0, longest)))
        known = self.pools().get(pool)
        beyond = [
            past_bound(position, float(known.rules.rate), now) for position in positions if known is not None
        ]
        found["past_bound"].add_metric([pool, tenant], to_seconds(max(beyond, default=0)))

    def _tell_heads(self, family: GaugeMetricFamily, pool: str, contents: Iterable[DecisionContent]) -> None:
        held: dict[str, int] = dict.fromkeys((_SHARE, "saturated", "weight", "held", "asked", "beyond"), 0)
        for content in contents:
            for heads in content.startable_heads:
                for head in heads.positions[:1]:
                    held[hindrance(head)] += 1
        for why, number in held.items():
            family.add_metric([pool, why], number)


def past_bound(position: Position, rate: float, now: Micros) -> Micros:
    """The time for which no later job could pass this one any more by aging; 0 before that, or where no bound is.

    A job of tag t stands before all that came more than t / rate later: its tenant's own later jobs cannot raise its
    tag.
    """
    if rate <= 0 or position.unbounded or position.blocked:
        return 0
    return max(0, round(now - position.submitted - position.tag / rate))


def hindrance(head: Position) -> str:
    """The cause that keeps a queue's first job back, by its terms: its tenant's share, or what makes it stand behind all others."""
    if head.blocked:
        return "saturated"
    return (head.unbounded_by or "weight") if head.unbounded else _SHARE


def _tenant_families() -> dict[str, GaugeMetricFamily]:
    return {
        "tenant_share": family("tenant_share_ratio", "What a tenant has of its dominant resource.", *_TENANT),
        "tenant_entitlement": family(
            "tenant_entitlement_ratio", "The part of the pool that a tenant may have.", *_TENANT
        ),
        "tenant_dominant": family(
            "tenant_dominant_ratio",
            "The dominant share, with the resource that gives it.",
            *_TENANT,
            "resource",
        ),
        "tenant_waiting": family("tenant_waiting_jobs", "Jobs of a tenant that wait.", *_TENANT),
        "tenant_running": family("tenant_running_jobs", "Jobs of a tenant that run.", *_TENANT),
        "longest_wait": family(
            "tenant_longest_wait_seconds", "The longest wait of a tenant's jobs among the heads.", *_TENANT
        ),
        "past_bound": family(
            "tenant_past_bound_seconds",
            "For how long no later job could pass the tenant's job by aging; 0 before that.",
            *_TENANT,
        ),
        "tenants_left_out": family(
            "tenants_left_out", "Tenants without series of their own: there are too many."
        ),
    }


def _shard_families() -> dict[str, GaugeMetricFamily]:
    return {
        "heads": family("heads", "First jobs of queues, by what keeps them back.", "pool", "why"),
        "pool_shards": family("pool_shards", "Shards that the policy gives a pool.", "pool"),
        "pool_owned_shards": family("pool_owned_shards", "Shards of a pool that this replica owns.", "pool"),
        "owned": family("owned_shards", "Shards owned."),
        "dirty": family("dirty_shards", "Owned shards that wait to be decided."),
        "past": family("past_tenants", "Tenants of owned shards that have past use."),
        "waiting": family("waiting_jobs", "Jobs that wait.", "pool"),
    }


def family(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    """A family of the scorer's without samples."""
    return GaugeMetricFamily(f"fairlead_scorer_{name}", text, labels=labels)
