"""Number of queued jobs, by pool and class: counted when it is scraped."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import override

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_admitter.observe.policy_view import PolicyView


@dataclass(eq=False)
class QueueMetrics(Collector):
    """Gauges of a cluster's queued jobs."""

    facts: ClusterFacts
    policy: PolicyView
    """Says which queues make a pool."""

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Families without samples: without this method the registry would collect all series to learn their names."""
        return [_queued()]

    @override
    def collect(self) -> Iterator[GaugeMetricFamily]:
        found: Counter[tuple[str, str, str]] = Counter()
        for pool, queues in self.policy.queues_by_pool(self.facts.cluster, self.facts.queues).items():
            for queue in queues:
                for job_class, jobs in self.facts.queued(queue).items():
                    found[pool, job_class, "waiting"] += sum(map(len, jobs.waiting.values()))
                    found[pool, job_class, "held"] += sum(map(len, jobs.held.values()))
        family = _queued()
        for labels, number in found.items():
            family.add_metric(labels, number)
        yield family


def _queued() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "fairlead_admitter_queued_jobs",
        "Jobs that wait, or are held, by pool and class.",
        labels=["pool", "class", "phase"],
    )
