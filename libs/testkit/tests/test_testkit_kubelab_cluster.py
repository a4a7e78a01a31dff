"""The lab is a faithful cluster: Kueue admits, pods run and end, rights and the audit log name who did what."""

import contextlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlead_testkit.kubelab import (
    ADMITTER,
    GPU,
    GPU_PRODUCT,
    WATCHER,
    ApiError,
    ApiUnreachableError,
    AuditLine,
    KubectlError,
    KubeLab,
    KubeObject,
    things,
)
from fairlead_testkit.pytest_plugin import kubelab_fixtures

pytestmark = pytest.mark.kube

WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads"
KIND_OF_BODY = {
    "PATCH": "application/merge-patch+json",
    "POST": "application/json",
    "DELETE": "application/json",
}
JOBS = "/apis/batch/v1/namespaces/{}/jobs"


@pytest.fixture
def tenant(kube_lab: KubeLab) -> Iterator[str]:
    """A namespace with a LocalQueue `main`, over a ClusterQueue of eight GPUs; all of one name."""
    name = f"tenant-{uuid.uuid4().hex[:8]}"
    kube_lab.api.apply(
        things.namespace(name),
        things.flavor(name, {GPU_PRODUCT: "NVIDIA-A100-SXM4-80GB"}),
        things.cluster_queue(name, {GPU: 8}, flavor=name),
        things.local_queue("main", name, name),
    )
    yield name
    # The namespace takes its time to go, and other tests' sweeps would find what is boosted in it.
    kube_lab.api.delete(WORKLOADS.format(name))
    kube_lab.api.delete(f"/api/v1/namespaces/{name}")


def workloads(lab: KubeLab, namespace: str) -> list[KubeObject]:
    return lab.api.items(WORKLOADS.format(namespace))


def admitted(lab: KubeLab, namespace: str) -> list[str]:
    found = (item for item in workloads(lab, namespace) if things.condition(item, "Admitted"))
    return sorted(item["metadata"]["name"] for item in found)


def put_aside(lab: KubeLab, queue: str) -> int:
    """Number of Workloads that wait and that Kueue has found no room for."""
    start = "kueue_pending_workloads{"
    lines = [
        line
        for line in lab.kueue_metrics().splitlines()
        if line.startswith(start) and f'"{queue}"' in line and 'status="inadmissible"' in line
    ]
    return sum(int(float(line.rpartition(" ")[2])) for line in lines)


def test_a_job_is_suspended_admitted_run_for_its_time_and_finished(kube_lab: KubeLab, tenant: str) -> None:
    made = kube_lab.api.create(things.job("short", tenant, "main", {GPU: 4}, pods=2, seconds=2))
    assert made["spec"]["suspend"]  # by Kueue's webhook, before anything else could see it

    path = f"{JOBS.format(tenant)}/short"
    kube_lab.until(lambda: things.condition(kube_lab.api.get(path), "Complete"), 90, "the Job is complete")
    pods = kube_lab.api.items(f"/api/v1/namespaces/{tenant}/pods")
    terminated = [pod["status"]["containerStatuses"][0]["state"]["terminated"] for pod in pods]
    assert len(pods) == 2
    assert {pod["spec"]["nodeName"].rsplit("-", 1)[0] for pod in pods} <= {"gpu-a", "gpu-b"}
    assert all(state["finishedAt"] > state["startedAt"] for state in terminated)
    kube_lab.until(
        lambda: all(things.condition(item, "Finished") for item in workloads(kube_lab, tenant)),
        60,
        "finished",
    )


def test_a_gang_of_pods_is_admitted_whole_and_runs(kube_lab: KubeLab, tenant: str) -> None:
    for pod in things.pod_group("gang", tenant, "main", {GPU: 2}, pods=3, seconds=0.5):
        kube_lab.api.create(pod)

    def phases() -> list[str]:
        return [pod["status"]["phase"] for pod in kube_lab.api.items(f"/api/v1/namespaces/{tenant}/pods")]

    kube_lab.until(lambda: phases() == ["Succeeded"] * 3, 90, "the three pods succeed")
    assert admitted(kube_lab, tenant) == ["gang"]


def test_a_pytorchjob_is_admitted_whole(kube_lab: KubeLab, tenant: str) -> None:
    made = kube_lab.api.create(things.pytorch_job("train", tenant, "main", {GPU: 2}))
    assert made["spec"]["runPolicy"]["suspend"]
    [name] = kube_lab.until(lambda: admitted(kube_lab, tenant), 60, "the PyTorchJob's Workload is admitted")
    sets = kube_lab.api.get(f"{WORKLOADS.format(tenant)}/{name}")["spec"]["podSets"]
    assert {(each["name"], each["count"]) for each in sets} == {("master", 1), ("worker", 2)}


def test_a_boost_decides_who_is_next(kube_lab: KubeLab, tenant: str) -> None:
    kube_lab.api.create(things.workload("holder", tenant, "main", {GPU: 8}))
    kube_lab.until(lambda: admitted(kube_lab, tenant) == ["holder"], 60, "the holder is admitted")
    for name in ("first", "second", "third"):
        kube_lab.api.create(things.workload(name, tenant, "main", {GPU: 8}))
    # Who is just being tried when quota comes free takes it, whatever its position is.
    kube_lab.until(lambda: put_aside(kube_lab, tenant) == 3, 60, "Kueue has tried all")
    boosted = {"metadata": {"annotations": {things.PRIORITY_BOOST: "10"}}}
    kube_lab.api.patch(f"{WORKLOADS.format(tenant)}/third", boosted)

    kube_lab.api.delete(f"{WORKLOADS.format(tenant)}/holder")
    # What is deleted may stand for a while yet.
    found = kube_lab.until(lambda: set(admitted(kube_lab, tenant)) - {"holder"}, 60, "the next is admitted")
    assert found == {"third"}


def test_a_raw_workload_can_be_finished_by_hand(kube_lab: KubeLab, tenant: str) -> None:
    kube_lab.api.create(things.workload("one", tenant, "main", {GPU: 8}))
    kube_lab.until(lambda: admitted(kube_lab, tenant) == ["one"], 60, "the first is admitted")
    kube_lab.api.create(things.workload("two", tenant, "main", {GPU: 8}))
    kube_lab.api.patch(f"{WORKLOADS.format(tenant)}/one/status", things.finished("2026-01-31T12:00:00Z"))
    kube_lab.until(lambda: "two" in admitted(kube_lab, tenant), 60, "the second is admitted")


def test_versions_are_converted_by_kueue(kube_lab: KubeLab, tenant: str) -> None:
    queue = things.cluster_queue(f"{tenant}-old", {GPU: 1}, flavor=tenant, cohort=tenant)
    kube_lab.api.create(queue)
    old = kube_lab.api.get(f"/apis/kueue.x-k8s.io/v1beta1/clusterqueues/{tenant}-old")
    assert old["spec"]["cohort"] == queue["spec"]["cohortName"]  # the field's name in each version


def test_the_probe_is_refused_by_kueue_where_boosts_are_read(kube_lab: KubeLab) -> None:
    with pytest.raises(ApiError) as refusal:
        kube_lab.api_as(ADMITTER).create(
            things.workload("probe", "fairlead", "none", {}, boost="x"), dryRun="All"
        )
    assert "must be a valid signed integer" in str(refusal.value)


def test_each_user_may_do_what_the_shipped_rights_say_and_no_more(kube_lab: KubeLab, tenant: str) -> None:
    item = things.workload("mine", tenant, "main", {GPU: 1})
    kube_lab.api.create(item)
    path = f"{WORKLOADS.format(tenant)}/mine"
    change: KubeObject = {"metadata": {"annotations": {things.PRIORITY_BOOST: "3"}}}
    assert kube_lab.api_as(WATCHER).get(path)["metadata"]["name"] == "mine"
    kube_lab.api_as(ADMITTER).patch(path, change)
    for refused in (
        (WATCHER, "PATCH", path, change),
        (ADMITTER, "DELETE", path, None),
        (ADMITTER, "POST", WORKLOADS.format(tenant), things.workload("other", tenant, "main", {})),
        (ADMITTER, "POST", JOBS.format(tenant), things.job("own", tenant, "main", {GPU: 1})),
    ):
        user, method, where, body = refused
        with pytest.raises(ApiError, match="forbidden"):
            kube_lab.api_as(user).request(method, where, body, content_type=KIND_OF_BODY[method])


def test_the_admitter_acts_as_the_submitter_of_a_namespace_opened_to_it(
    kube_lab: KubeLab, tenant: str
) -> None:
    def create(user: str) -> str:
        account = f"--as=system:serviceaccount:{tenant}:{user}"
        return kube_lab.kubectl(
            "create", "job", "-n", tenant, account, "--image=busybox", user, user=ADMITTER
        )

    with pytest.raises(KubectlError, match="cannot impersonate"):
        create("fairlead-submitter")
    kube_lab.open_to_submissions(tenant)
    mark = kube_lab.audit_mark()
    kube_lab.until(lambda: _succeeds(lambda: create("fairlead-submitter")), 60, "the rights have arrived")
    with pytest.raises(KubectlError, match="cannot impersonate"):
        create("default")
    [made] = [
        line for line in kube_lab.audit_lines(resource="jobs", verb="create", after=mark) if line.code == 201
    ]
    assert made.user == ADMITTER
    assert made.acting_as == f"system:serviceaccount:{tenant}:fairlead-submitter"


def _succeeds(action: Callable[[], object]) -> bool:
    with contextlib.suppress(KubectlError):
        action()
        return True
    return False


def test_the_audit_log_says_who_wrote_what_and_how_long_it_took(kube_lab: KubeLab, tenant: str) -> None:
    kube_lab.api.create(things.workload("mine", tenant, "main", {GPU: 1}))
    mark = kube_lab.audit_mark()
    change: KubeObject = {"metadata": {"annotations": {things.PRIORITY_BOOST: "7"}}}
    kube_lab.api_as(ADMITTER).patch(f"{WORKLOADS.format(tenant)}/mine", change)
    kube_lab.api_as(ADMITTER).patch(f"{WORKLOADS.format(tenant)}/mine", change, dryRun="All")

    def patched() -> list[AuditLine]:
        """A long answer is on its way before its line is written."""
        found = kube_lab.audit_lines(user=ADMITTER, verb="patch", resource="workloads", after=mark)
        return found if len(found) > 1 else []

    lines = kube_lab.until(patched, 60, "both are in the log")
    assert [(line.name, line.code, line.dry_run, line.body) for line in lines] == [
        ("mine", 200, False, change),
        ("mine", 200, True, change),
    ]
    assert 0 < lines[0].took.total_seconds() < 60


def test_kueues_metrics_can_be_read(kube_lab: KubeLab, tenant: str) -> None:
    # One figure after the other: another of the queue's own may be there first.
    status = f'kueue_cluster_queue_status{{cluster_queue="{tenant}"'
    kube_lab.until(lambda: status in kube_lab.kueue_metrics(), 60, "the queue has metrics")


def test_it_rests_while_other_tests_run_and_goes_on_for_the_next(
    kube_lab: KubeLab, tenant: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelab_fixtures, "REST_AFTER_SECONDS", 0.0)
    stranger = pytest.Function.from_parent(request.node.parent, name="stranger", callobj=lambda: None)
    kubelab_fixtures.wake_or_rest(stranger)
    kubelab_fixtures.wake_or_rest(stranger)
    assert {state_of(pid) for pid in kube_lab.pids().values()} == {"T"}

    kubelab_fixtures.wake_or_rest(request.node)
    kube_lab.api.create(things.job("short", tenant, "main", {GPU: 4}, pods=2, seconds=1))
    path = f"{JOBS.format(tenant)}/short"
    kube_lab.until(lambda: things.condition(kube_lab.api.get(path), "Complete"), 90, "the Job is complete")


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_watch_that_is_not_opened_is_no_end_of_one(kube_lab: KubeLab) -> None:
    with pytest.raises(ApiUnreachableError, match="404"):
        list(kube_lab.api.watch("/apis/batch/v1/no-such-things", ""))


def test_kubectl_speaks_as_a_user(kube_lab: KubeLab) -> None:
    assert "fairlead-watcher" in kube_lab.kubectl("auth", "whoami", user=WATCHER)
    with pytest.raises(KubectlError):
        kube_lab.kubectl("get", "workload", "never-made")
