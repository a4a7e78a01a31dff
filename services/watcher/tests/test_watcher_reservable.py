"""Pools in which a start can be promised: one strict queue, alone on quota of one flavor a resource."""

import pytest

from fairlead_watcher.objects.quota import CohortFacts, Forest, QueueFacts, Quota, QuotaKey
from fairlead_watcher.statements.enforcement import why_not_reservable

GPU, OTHER, CPU = (
    QuotaKey("a100", "nvidia.com/gpu"),
    QuotaKey("t4", "nvidia.com/gpu"),
    QuotaKey("a100", "cpu"),
)


def a_queue(name: str = "a", *, strategy: str = "StrictFIFO", parent: str = "", **more: object) -> QueueFacts:
    fields: dict[str, object] = {"quotas": {GPU: Quota(nominal=8), CPU: Quota(nominal=64)}} | more
    return QueueFacts(name=name, strategy=strategy, parent=parent, **fields)  # type: ignore[arg-type] # passed on


def why(*queues: QueueFacts, cohorts: tuple[CohortFacts, ...] = ()) -> str:
    forest = Forest(queues, cohorts)
    [tree] = forest.trees()
    return why_not_reservable(tree, forest)


def test_one_strict_queue_can_keep_a_promise() -> None:
    assert why(a_queue()) == ""
    assert why(a_queue(parent="alone")) == ""
    lent = CohortFacts(name="alone", quotas={GPU: Quota(nominal=4)})
    assert why(a_queue(parent="alone"), cohorts=(lent,)) == ""


@pytest.mark.parametrize(
    ("queues", "word"),
    [
        ([a_queue(strategy="BestEffortFIFO")], "BestEffortFIFO"),
        ([a_queue(strategy="")], "unknown"),
        ([a_queue("a", parent="root"), a_queue("b", parent="root")], "2 ClusterQueues"),
        ([a_queue(usage_first=True)], "AdmissionFairSharing"),
        ([a_queue(quotas={GPU: Quota(nominal=8), OTHER: Quota(nominal=8)})], "several flavors"),
    ],
)
def test_why_a_pool_cannot(queues: list[QueueFacts], word: str) -> None:
    assert word in why(*queues)


def test_a_borrowing_limit_makes_the_pool_larger_than_what_its_queue_can_have() -> None:
    lent = CohortFacts(name="root", quotas={GPU: Quota(nominal=4)})
    queue = a_queue(parent="root", quotas={GPU: Quota(nominal=8, borrowing=2)})
    assert "borrowing limit" in why(queue, cohorts=(lent,))


def test_a_second_flavor_without_quota_is_no_second_flavor() -> None:
    assert why(a_queue(quotas={GPU: Quota(nominal=8), OTHER: Quota(nominal=0)})) == ""
