"""Workloads that ask for thousands of resources: they are held with a fault, and what is stated of them stays small."""

import msgspec
import pytest

from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.messages.state import JobShape, JobState, Phase
from fairlead_kube.kinds.workloads import Workload
from fairlead_kube.reflector import Key
from fairlead_testkit.kubelab import KubeObject, things
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.objects.quota import QueueFacts, Quota, QuotaKey
from fairlead_watcher.objects.workload_context import LocalQueueFacts
from fairlead_watcher.objects.workload_facts import workload_facts

T0 = 1_800_000_000 * SECOND


def many(resources: int) -> dict[str, str]:
    return {f"example.com/r-{number}": "1" for number in range(resources)}


def job_of(item: KubeObject, counted: dict[str, str] | None) -> JobState:
    """The job that a Workload is, where Kueue says that it counts so much of it; None: it has not looked at it yet."""
    if counted is not None:
        item["status"] = {"resourceRequests": [{"name": "main", "resources": counted}]}
    view = ClusterView("c1", ended_stay=SECOND)
    view.local_queue(Key("team-a", "main"), LocalQueueFacts(queue="cq"))
    quotas = {QuotaKey("f", "cpu"): Quota(nominal=64_000)}
    view.cluster_queue(Key("", "cq"), QueueFacts(name="cq", quotas=quotas))
    view.workload(Key("team-a", "one"), workload_facts(msgspec.convert(item, Workload)))
    view.settle(T0)
    [job] = view.jobs()
    return job


def asking_for(requests: dict[str, str]) -> KubeObject:
    return things.workload("one", "team-a", "main", requests)


def test_what_asks_for_more_resources_than_a_queue_can_have_is_held_with_a_fault() -> None:
    job = job_of(asking_for(many(18_000)), many(18_000))
    assert (job.phase, job.demand, job.shapes) == (Phase.HELD, {}, ())
    assert job.held_by == "asks for 18000 resources; a ClusterQueue can have quota of 1024"
    [fault] = job.faults
    assert (fault.field, fault.value) == ("spec.podSets resources", "18000 resources")
    assert fault.remedy.endswith("so Kueue never admits it")
    assert len(job_of(asking_for(many(1024)), many(1024)).demand) == 1024


def test_kueue_may_be_told_to_leave_resources_out_and_says_so_when_it_looks() -> None:
    asked = asking_for({"cpu": "2"} | many(1100))
    before = job_of(asked, None)
    assert before.phase is Phase.HELD
    assert before.faults[0].remedy.endswith(
        "never admits it unless its configuration leaves some of them out (resources.excludeResourcePrefixes)"
    )
    assert job_of(asked, {"cpu": "2"}).phase is Phase.WAITING


@pytest.mark.parametrize("asked", ["resources", "selector", "pod sets"])
def test_what_kueue_does_not_count_of_pods_is_left_out_where_they_ask_for_thousands(asked: str) -> None:
    item = asking_for({"cpu": "2"} | many(1100 if asked == "resources" else 200))
    [one] = item["spec"]["podSets"]
    one["template"]["spec"]["nodeSelector"] = many(1100) if asked == "selector" else {"gpu": "h100"}
    sets = 8 if asked == "pod sets" else 1
    item["spec"]["podSets"] = [one | {"name": f"set-{number}"} for number in range(sets)]
    job = job_of(item, {"cpu": "2"})
    assert (job.phase, job.demand) == (Phase.WAITING, {"cpu": 2000})
    several = tuple(JobShape(name=f"set-{number}", pods=1, demand={"cpu": 2000}) for number in range(8))
    assert job.shapes == (several if asked == "pod sets" else ())


def test_containers_that_ask_for_cards_by_hundreds_are_not_stated_one_by_one() -> None:
    item = asking_for({"cpu": "2"})
    [container] = item["spec"]["podSets"][0]["template"]["spec"]["containers"]
    container["resources"]["limits"] = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1"}
    item["spec"]["podSets"][0]["template"]["spec"]["containers"] = [container] * 600
    job = job_of(item, {"cpu": "1200", "nvidia.com/gpu": "600"})
    assert job.shapes == ()
