"""Jobs of which Kueue counts other resources than they ask for: it says so of the first of a shape alone."""

import msgspec
import pytest

from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_kube.kinds.objects import instant
from fairlead_kube.kinds.workloads import Workload
from fairlead_kube.reflector import Key
from fairlead_testkit.kubelab import KubeObject, things
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.objects.quota import QueueFacts, Quota, QuotaKey
from fairlead_watcher.objects.workload_context import LocalQueueFacts
from fairlead_watcher.objects.workload_facts import workload_facts

AT = "2026-11-21T10:00:00Z"
ASKED = {"cpu": 1, "nvidia.com/mig-1g.5gb": 1, "example.com/odd": 1}
COUNTED = {"cpu": "1", "example.org/gpumem": "5"}
"""What Kueue makes of it by `resources.transformations` and `resources.excludeResourcePrefixes`."""
STATED = {"cpu": 1000, "example.org/gpumem": 5000}
TRIED = {"resourceRequests": [{"name": "main", "resources": COUNTED}]}
ADMITTED = {
    "conditions": [{"type": "QuotaReserved", "status": "True", "lastTransitionTime": AT}],
    "admission": {
        "clusterQueue": "cq",
        "podSetAssignments": [{"name": "main", "resourceUsage": COUNTED, "count": 1}],
    },
}


class RecountedQueues:
    """A queue of two tenants, with quota of what Kueue counts."""

    def __init__(self) -> None:
        self.view = ClusterView("c1", ended_stay=600 * SECOND)
        quotas = {QuotaKey("base", resource): Quota(nominal=64_000) for resource in STATED}
        for queue, local_queue in (("cq", "main"), ("other", "side")):
            self.view.cluster_queue(Key("", queue), QueueFacts(name=queue, quotas=quotas))
            for tenant in ("team-a", "team-b"):
                self.view.local_queue(Key(tenant, local_queue), LocalQueueFacts(queue=queue))

    def put(
        self, tenant: str, name: str, status: KubeObject, *, queue: str = "main", min_count: int | None = None
    ) -> None:
        item = things.workload(name, tenant, queue, ASKED)
        item["metadata"] |= {"uid": name, "creationTimestamp": AT}
        item["spec"]["podSets"][0]["minCount"] = min_count
        item["status"] = status
        self.view.workload(Key(tenant, name), workload_facts(msgspec.convert(item, Workload)))

    def job(self, name: str) -> JobState:
        self.view.settle(instant(AT))
        return next(job for job in self.view.jobs() if job.id == name)


@pytest.mark.parametrize("told", [TRIED, ADMITTED])
def test_what_kueue_counts_of_one_job_it_counts_of_all_of_its_shape(told: KubeObject) -> None:
    watched = RecountedQueues()
    watched.put("team-b", "next", {})
    assert (watched.job("next").phase, watched.job("next").faults[0].value) == (Phase.HELD, "1")
    watched.put("team-a", "first", told)
    job = watched.job("next")
    assert (job.phase, job.demand, job.faults) == (Phase.WAITING, STATED, ())
    # Nodes are asked for what its pods ask for, all the same.
    [shape] = job.shapes
    assert shape.demand == {"cpu": 1000, "nvidia.com/mig-1g.5gb": 1000, "example.com/odd": 1000}
    watched.view.workload(Key("team-a", "first"), None)
    assert watched.job("next").phase is Phase.HELD, "nobody says it any more"


def test_it_is_counted_so_in_that_queue_and_for_as_many_pods_alone() -> None:
    watched = RecountedQueues()
    watched.put("team-a", "first", ADMITTED)
    watched.put("team-b", "elsewhere", {}, queue="side")
    watched.put("team-b", "in-part", {}, min_count=1)
    assert watched.job("elsewhere").phase is watched.job("in-part").phase is Phase.HELD
    watched.put("team-a", "part", ADMITTED, min_count=1)
    assert watched.job("in-part").phase is Phase.HELD, "it may hold fewer pods than this one starts with"


def test_the_devices_that_claims_ask_for_count_of_all_of_a_shape_in_a_namespace() -> None:
    """As Kueue 0.19.2 says it of the first of several Jobs with a ResourceClaimTemplate (`resources.deviceClassMappings`)."""
    counted = {"resourceRequests": [{"name": "main", "resources": COUNTED}]}
    claims = [{"name": "g", "resourceClaimTemplateName": "one-gpu"}]
    watched = RecountedQueues()
    for tenant, name, status in (
        ("team-a", "first", counted),
        ("team-a", "next", {}),
        ("team-b", "other", {}),
    ):
        item = things.workload(name, tenant, "main", {"cpu": 1})
        item["metadata"] |= {"uid": name, "creationTimestamp": AT}
        item["spec"]["podSets"][0]["template"]["spec"]["resourceClaims"] = claims
        item["status"] = status
        watched.view.workload(Key(tenant, name), workload_facts(msgspec.convert(item, Workload)))
    assert watched.job("next").demand == STATED
    assert watched.job("other").demand == {"cpu": 1000}, "its template may be another"
    [shape] = watched.job("next").shapes
    assert shape.demand == {"cpu": 1000}


@pytest.mark.parametrize(
    ("given", "stated"),
    [("memory", {"cpu": 1000}), ("nvidia.com/gpu", {"cpu": 1000, "nvidia.com/gpu": 5000})],
)
def test_what_a_limit_range_gives_pods_is_of_its_namespace_alone(given: str, stated: dict[str, int]) -> None:
    """A queue mostly has quota of memory, and Kueue says soon of each job what it counts; cards decide who is next."""
    watched = RecountedQueues()
    told = {"resourceRequests": [{"name": "main", "resources": {"cpu": "1", given: "5"}}]}
    for tenant, name, status in (("team-b", "other", {}), ("team-a", "next", {}), ("team-a", "first", told)):
        item = things.workload(name, tenant, "main", {"cpu": 1})
        item["metadata"] |= {"uid": name, "creationTimestamp": AT}
        item["status"] = status
        watched.view.workload(Key(tenant, name), workload_facts(msgspec.convert(item, Workload)))
        watched.view.settle(instant(AT))
    assert watched.job("other").demand == {"cpu": 1000}
    assert watched.job("next").demand == stated
    watched.view.workload(Key("team-a", "first"), None)
    assert watched.job("next").demand == {"cpu": 1000}, "nobody says it any more"


def test_of_pods_of_which_kueue_leaves_all_out_the_next_asks_for_nothing_either() -> None:
    watched = RecountedQueues()
    told = {"resourceRequests": [{"name": "main", "resources": {}}]}
    for tenant, name, status in (("team-b", "next", {}), ("team-a", "first", told), ("team-b", "later", {})):
        item = things.workload(name, tenant, "main", {"example.com/odd": 1})
        item["metadata"] |= {"uid": name, "creationTimestamp": AT}
        item["status"] = status
        watched.view.workload(Key(tenant, name), workload_facts(msgspec.convert(item, Workload)))
        watched.view.settle(instant(AT))
    for name in ("next", "later"):
        job = watched.job(name)
        assert (name, job.phase, job.demand, job.faults) == (name, Phase.WAITING, {}, ())
