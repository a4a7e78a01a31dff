"""Elastic jobs, whose new slice takes the place of the one that runs (KEP-77): objects as Kueue 0.19 makes them."""

import msgspec

from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_kube.kinds.objects import instant
from fairlead_kube.kinds.workloads import Workload
from fairlead_kube.reflector import Key
from fairlead_testkit.kubelab import KubeObject, things
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.objects.quota import QueueFacts, Quota, QuotaKey
from fairlead_watcher.objects.workload_context import LocalQueueFacts
from fairlead_watcher.objects.workload_facts import REPLACES, workload_facts

AT = "2026-11-21T10:00:00Z"
RESERVED = {
    "type": "QuotaReserved",
    "status": "True",
    "reason": "QuotaReserved",
    "message": "",
    "lastTransitionTime": AT,
}
FINISHED = RESERVED | {"type": "Finished", "reason": "WorkloadSliceReplaced"}


def a_view() -> ClusterView:
    view = ClusterView("c1", ended_stay=600 * SECOND)
    view.local_queue(Key("team-a", "main"), LocalQueueFacts(queue="cq"))
    quotas = {QuotaKey("f", name): Quota(nominal=64_000) for name in ("gpu", "pods")}
    view.cluster_queue(Key("", "cq"), QueueFacts(name="cq", quotas=quotas))
    return view


def slice_of(
    pods: int, name: str, *conditions: KubeObject, replaces: str = "", queue: str = "cq"
) -> Workload:
    item = things.workload(name, "team-a", "main", {"gpu": 1}, pods=pods)
    item["metadata"] |= {
        "uid": name,
        "creationTimestamp": AT,
        "annotations": {REPLACES: replaces} if replaces else {},
    }
    item["status"] = {"conditions": list(conditions)}
    if RESERVED in conditions:
        usage = {"name": "main", "count": pods, "resourceUsage": {"gpu": str(pods)}}
        item["status"]["admission"] = {"clusterQueue": queue, "podSetAssignments": [usage]}
    return msgspec.convert(item, Workload)


def stated(view: ClusterView, *slices: Workload) -> dict[str, JobState]:
    for one in slices:
        view.workload(Key("team-a", one.metadata.name), workload_facts(one))
    view.settle(instant(AT))
    return {job.id: job for job in view.jobs()}


def test_a_new_slice_asks_for_what_is_more_and_holds_all_once_it_took_the_others_place() -> None:
    view, old = a_view(), slice_of(2, "old", RESERVED)
    found = stated(view, slice_of(6, "new", replaces="team-a/old"), old)
    assert found["old"].demand == {"gpu": 2000, "pods": 2000}
    assert (found["new"].demand, found["new"].phase) == ({"gpu": 4000, "pods": 4000}, Phase.WAITING)
    assert (found["new"].pods, found["new"].shapes) == (4, ())
    assert stated(view, slice_of(3, "old", RESERVED))["new"].demand == {"gpu": 3000, "pods": 3000}
    admitted = slice_of(6, "new", RESERVED, replaces="team-a/old")
    assert stated(view, slice_of(2, "old", RESERVED, FINISHED), admitted)["new"].demand == {
        "gpu": 6000,
        "pods": 6000,
    }


def test_a_slice_whose_predecessor_does_not_run_asks_for_all() -> None:
    elsewhere = slice_of(2, "old", RESERVED, queue="another")
    for others in ([], [slice_of(2, "old")], [slice_of(2, "old", RESERVED, FINISHED)], [elsewhere]):
        found = stated(a_view(), *others, slice_of(6, "new", replaces="team-a/old"))
        assert found["new"].demand == {"gpu": 6000, "pods": 6000}
