"""The effective request of pods against a plain restatement of the rule, and Workloads as Kueue counts them."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.errors import FieldError
from fairlead_kube.kinds.demand import (
    pod_demand,
    pod_set_demand,
    pods_kept,
    workload_charges,
    workload_demand,
)
from fairlead_kube.kinds.objects import RawAmounts
from fairlead_kube.kinds.pods import Container, PodSpec, PodTemplate, ResourceRequirements
from fairlead_kube.kinds.workloads import PodSet, Workload

GI = 2**30


def container(
    more: RawAmounts | None = None,
    *,
    limits: RawAmounts | None = None,
    sidecar: bool = False,
    **requests: str,
) -> Container:
    return Container(
        resources=ResourceRequirements(requests={**requests, **(more or {})}, limits=limits),
        restart_policy="Always" if sidecar else None,
    )


def test_containers_add_up() -> None:
    spec = PodSpec(containers=[container(cpu="500m", memory="1Gi"), container(cpu="1"), Container()])
    assert pod_demand(spec) == {"cpu": 1500, "memory": GI}


def test_a_limit_without_a_request_is_a_request() -> None:
    spec = PodSpec(containers=[container(cpu="1", limits={"cpu": "2", "nvidia.com/gpu": "1"})])
    assert pod_demand(spec) == {"cpu": 1000, "nvidia.com/gpu": 1000}


def test_a_large_init_container_counts_while_it_is_larger() -> None:
    spec = PodSpec(
        containers=[container(cpu="1", memory="4Gi")], init_containers=[container(cpu="3", memory="1Gi")]
    )
    assert pod_demand(spec) == {"cpu": 3000, "memory": 4 * GI}


def test_sidecars_count_beside_the_containers_and_the_later_init_containers() -> None:
    spec = PodSpec(
        containers=[container(cpu="2")],
        init_containers=[container(cpu="4"), container(cpu="1", sidecar=True), container(cpu="4")],
    )
    assert pod_demand(spec) == {"cpu": 5000}  # the last init container beside the sidecar
    early = PodSpec(
        containers=[container(cpu="2")],
        init_containers=[container(cpu="4"), container(cpu="1", sidecar=True)],
    )
    assert pod_demand(early) == {"cpu": 4000}


def test_pod_level_requests_take_the_place_of_the_sum_and_overhead_is_added() -> None:
    spec = PodSpec(
        containers=[container(cpu="1", memory="1Gi"), container({"nvidia.com/gpu": "2"})],
        resources=ResourceRequirements(requests={"cpu": "5", "nvidia.com/gpu": "9"}),
        overhead={"cpu": "250m"},
    )
    assert pod_demand(spec) == {"cpu": 5250, "memory": GI, "nvidia.com/gpu": 2000}


def test_fractions_are_rounded_up_after_the_sum_not_before() -> None:
    spec = PodSpec(containers=[container(cpu="0.0004", memory="0.5") for _ in range(2)])
    assert pod_demand(spec) == {"cpu": 1, "memory": 1}


def test_what_is_below_zero_counts_as_none() -> None:
    assert pod_demand(PodSpec(containers=[container(cpu="-1")])) == {"cpu": 0}


def test_a_quantity_that_cannot_be_read_is_named() -> None:
    pod_set = PodSet(template=PodTemplate(spec=PodSpec(containers=[Container(), container(cpu="lots")])))
    with pytest.raises(FieldError) as caught:
        workload_demand(Workload(spec=msgspec.structs.replace(Workload().spec, pod_sets=[pod_set])))
    assert caught.value.field == "spec.podSets[0].template.spec.containers[1].resources.requests[cpu]"


AMOUNTS = st.fixed_dictionaries(
    {}, optional={"cpu": st.integers(0, 64_000), "memory": st.integers(0, 10**12)}
)
CONTAINERS = st.lists(AMOUNTS, max_size=4)
INIT_CONTAINERS = st.lists(st.tuples(AMOUNTS, st.booleans()), max_size=5)


def made(amounts: dict[str, int], *, sidecar: bool = False) -> Container:
    asked: RawAmounts = {name: f"{amount}m" if name == "cpu" else amount for name, amount in amounts.items()}
    return container(asked, sidecar=sidecar)


@settings(max_examples=200, deadline=None)
@given(CONTAINERS, INIT_CONTAINERS, st.integers(0, 50))
def test_the_effective_request_is_the_most_that_runs_at_once(
    containers: list[dict[str, int]], init_containers: list[tuple[dict[str, int], bool]], count: int
) -> None:
    # What runs at each moment of the pod's life, one after the other.
    moments: list[Counter[str]] = []
    sidecars = Counter[str]()
    for amounts, sidecar in init_containers:
        moments.append(sidecars + Counter(amounts))
        if sidecar:
            sidecars += Counter(amounts)
    steady = Counter(sidecars)
    for amounts in containers:
        steady += Counter(amounts)
    moments.append(steady)
    spec = PodSpec(
        containers=[made(amounts) for amounts in containers],
        init_containers=[made(amounts, sidecar=sidecar) for amounts, sidecar in init_containers],
    )
    found = pod_demand(spec)
    for resource in ("cpu", "memory"):
        assert found.get(resource, 0) == max(moment[resource] for moment in moments)
    pod_set = PodSet(count=count, template=PodTemplate(spec=spec))
    assert pod_set_demand(pod_set) == {resource: amount * count for resource, amount in found.items()}


WORKLOAD = b"""{
 "metadata": {"name": "train", "namespace": "a"},
 "spec": {"podSets": [
   {"name": "master", "count": 1, "template": {"spec": {"containers": [{"name": "c", "resources":
      {"requests": {"cpu": "2", "nvidia.com/gpu": 1}}}]}}},
   {"name": "worker", "count": 4, "template": {"spec": {"containers": [{"name": "c", "resources":
      {"requests": {"cpu": "1500m"}, "limits": {"nvidia.com/gpu": "2"}}}]}}}]},
 "status": %s}"""


def workload(status: str = "{}") -> Workload:
    return msgspec.json.decode(WORKLOAD % status.encode(), type=Workload)


def test_a_waiting_workload_asks_for_all_its_pod_sets() -> None:
    assert workload_demand(workload()) == {"cpu": 8000, "nvidia.com/gpu": 9000}
    assert sum(pods_kept(workload()).values()) == 5


def test_what_kueue_computed_goes_before_what_we_would_compute() -> None:
    status = '{"resourceRequests": [{"name": "master", "resources": {"cpu": "3"}}, {"name": "worker", "resources": {"cpu": "9"}}]}'
    assert workload_demand(workload(status)) == {"cpu": 12_000}


def test_pods_that_ended_are_left_out() -> None:
    found = workload('{"reclaimablePods": [{"name": "worker", "count": 3}, {"name": "master", "count": 7}]}')
    assert workload_demand(found) == {"cpu": 1500, "nvidia.com/gpu": 2000}
    assert sum(pods_kept(found).values()) == 1


def test_what_may_be_admitted_in_part_asks_for_the_fewest_pods_that_it_starts_with() -> None:
    """What Kueue computed is of all pods, the ended ones left out."""
    counted = '{"resourceRequests": [{"name": "master", "resources": {"cpu": "3"}}, {"name": "worker", "resources": {"cpu": "6001m"}}]%s}'
    ended = ', "reclaimablePods": [{"name": "worker", "count": %d}]'
    for status, cpu, gpus in (
        ("{}", 5000, 5000),
        (counted % "", 3000 + 6001 // 4 * 2, 0),
        (counted % (ended % 1), 3000 + 6001 // 3 * 2, 0),
        (counted % (ended % 3), 3000 + 6001, 0),
    ):
        found = workload(status)
        assert found.spec.pod_sets is not None
        master, worker = found.spec.pod_sets
        pod_sets = [master, msgspec.structs.replace(worker, min_count=2)]
        partly = msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, pod_sets=pod_sets))
        demand = workload_demand(partly)
        assert (demand["cpu"], demand.get("nvidia.com/gpu", 0)) == (cpu, gpus)
        assert sum(pods_kept(partly).values()) == (2 if "3}" in status else 3)


ADMITTED = """{"admission": {"clusterQueue": "q", "podSetAssignments": [
  {"name": "master", "count": 1, "resourceUsage": {"cpu": "2", "nvidia.com/gpu": "1"}},
  {"name": "worker", "count": %d, "resourceUsage": {"cpu": "%s"}}]}, "reclaimablePods": %s}"""


def test_an_admitted_workload_holds_what_its_admission_says() -> None:
    assert workload_demand(workload(ADMITTED % (4, "6", "null"))) == {"cpu": 8000, "nvidia.com/gpu": 1000}


def test_a_partial_admission_holds_less_and_is_not_scaled() -> None:
    found = workload(ADMITTED % (2, "3", "[]"))
    assert workload_demand(found)["cpu"] == 5000
    assert sum(pods_kept(found).values()) == 3


def test_reclaimed_pods_free_their_part_of_an_admission_as_kueue_rounds_it() -> None:
    found = workload(ADMITTED % (4, "6001m", '[{"name": "worker", "count": 1}]'))
    assert workload_demand(found)["cpu"] == 2000 + 6001 // 4 * 3


def test_an_admission_says_which_flavors_quota_is_held() -> None:
    status = """{"admission": {"clusterQueue": "q", "podSetAssignments": [
      {"name": "master", "count": 1, "flavors": {"cpu": "x86", "nvidia.com/gpu": "a100"},
       "resourceUsage": {"cpu": "2", "nvidia.com/gpu": "1"}},
      {"name": "worker", "count": 4, "flavors": {"cpu": "x86"}, "resourceUsage": {"cpu": "8"}}]},
      "reclaimablePods": [{"name": "worker", "count": 1}]}"""
    assert workload_charges(workload(status)) == {"x86": {"cpu": 8000}, "a100": {"nvidia.com/gpu": 1000}}


def test_no_flavor_is_charged_where_none_is_told() -> None:
    assert workload_charges(workload(ADMITTED % (4, "6", "null"))) == {}
    assert workload_charges(workload("{}")) == {}
