"""One trace tells the life of a job that Kueue runs: the hop through Kubernetes is an annotation, or the job's uid."""

from pathlib import Path

import pytest

from fairlead_testkit import eventually
from fairlead_testkit.estate import Estate
from fairlead_testkit.fleet import submit_all
from fairlead_testkit.jaeger import Jaeger
from fairlead_testkit.job_stories import STAGES, check_connected, traces_of, whole_trace
from fairlead_testkit.kube_fleet import KUBE_CLUSTER, KubeFleet, fair_policy
from fairlead_testkit.kubelab import RUN_SECONDS, KubeLab

pytestmark = [pytest.mark.kube, pytest.mark.integration, pytest.mark.timeout(420)]

TEMPLATE = {"image": "busybox", "annotations": {RUN_SECONDS: "1"}}
OF_KUBECTL = frozenset({"submit", "observed", "admitted", "started", "ended"})
SENT_BY = {
    "submit": "fairlead-admitter",
    "observed": "fairlead-watcher",
    "scored": "fairlead-scorer",
    "level": "fairlead-admitter",
    "admitted": "fairlead-admitter",
    "started": "fairlead-watcher",
    "ended": "fairlead-watcher",
}


async def workload_of(estate: Estate, job: str) -> str:
    """The name of the Workload that Kueue makes of a Job."""

    def made() -> str | None:
        owners = {
            item["metadata"]["name"]: [owner["name"] for owner in item["metadata"].get("ownerReferences", [])]
            for item in estate.workloads()
        }
        return next((name for name, found in owners.items() if job in found), None)

    name = await eventually(made, 60, what="Kueue makes a Workload of the Job")
    assert name is not None
    return name


async def test_jobs_of_nats_and_of_kubectl_leave_one_connected_trace_each(
    kube_lab: KubeLab, tmp_path: Path, jaeger: Jaeger
) -> None:
    with Estate(kube_lab, ["team-a", "team-b"]) as estate:
        pool = estate.queue("shared", 1)
        for namespace in estate.namespaces.values():
            kube_lab.open_to_submissions(namespace)
        policy = fair_policy(estate, {"team-a": 1, "team-b": 1}, pool, preemption="never")
        settings = {"otel_endpoint": jaeger.endpoint, "otel_sample_ratio": 1}
        fleet = KubeFleet(tmp_path, kube_lab, policy=policy, scorers=1, settings=settings)
        async with fleet.running() as bus:
            jobs = []
            for tenant in estate.namespaces.values():
                bodies = [
                    {"id": f"{tenant}-{number}", "demand": {"nvidia.com/gpu": 1}, "template": TEMPLATE}
                    for number in range(3)
                ]
                jobs += await submit_all(bus, tenant, bodies, cluster=KUBE_CLUSTER)
            estate.job("team-a", "by-hand", seconds=1)
            by_hand = await workload_of(estate, "by-hand")
            traces = await traces_of(bus, KUBE_CLUSTER, [*jobs, by_hand], within=240)
            levelled = 0
            for job in jobs:
                found = await whole_trace(jaeger, traces[job], STAGES - {"level", "scored"})
                check_connected(found)
                levelled += found.names() >= STAGES
                for span in found.spans:
                    assert found.service(span) == SENT_BY[span.operation_name]
            assert levelled >= 1, "who waited was placed, and got a level"
            found = await whole_trace(jaeger, traces[by_hand], OF_KUBECTL)
            check_connected(found)
            [root] = [span for span in found.spans if span.operation_name == "submit"]
            assert found.service(root) == "fairlead-watcher", "whoever sees it first tells its root"
