"""The doctor on a real Kubernetes with a real Kueue, whole and broken on purpose."""

import asyncio
import dataclasses
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead_bus import Bucket, Bus, ConnectionSettings, connect
from fairlead_bus.server.provision import provision
from fairlead_cli.client import leave
from fairlead_cli.errors import ClusterError, InputError
from fairlead_cli.findings import Severity
from fairlead_cli.kueue.clusters import KubeTarget, target
from fairlead_cli.kueue.doctor.doctor_run import OwnStart, look, run_doctor
from fairlead_cli.kueue.doctor.verdict import DoctorReport
from fairlead_cli.kueue.flags import DoctorFlags
from fairlead_contracts import topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.state import PoolState
from fairlead_contracts.subjects import revocation_key, state
from fairlead_policy.levels.operators import OperatorWords, revocation_of
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.kubelab import (
    ADMIN,
    GPU,
    GPU_PRODUCT,
    OPERATOR,
    POD,
    WATCHER,
    WORKLOADS_ALONE,
    Kit,
    KubeLab,
    KubeObject,
    LabOptions,
    NodeShape,
    gpu_nodes,
    things,
)
from fairlead_testkit.kubelab.toolsets import OLDER
from fairlead_testkit.processes.command import fairlead
from fairlead_testkit.pytest_plugin.kubelab_fixtures import LabFactory

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]


NODES = (
    gpu_nodes("gpu", 2, "zone-a"),
    gpu_nodes("far", 1, "zone-b"),
    NodeShape(
        "kept", gpus=4, gpu_product="KEPT", taints=({"key": "kept", "value": "yes", "effect": "NoSchedule"},)
    ),
)
NODE_POOL: KubeObject = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "on-demand"},
    "spec": {
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
                ],
            }
        }
    },
}


def flags(**more: object) -> DoctorFlags:
    return DoctorFlags(by="tester", **more)  # type: ignore[arg-type] # flags of every type


def at(lab: KubeLab, user: str = ADMIN, cluster: str = "lab") -> KubeTarget:
    return target(kubeconfig=str(lab.kubeconfig(user)), context=None, cluster=cluster)


async def found_on(lab: KubeLab, user: str = ADMIN, **more: object) -> DoctorReport:
    return await look(at(lab, user), flags(**more), None)


def subjects(report: DoctorReport) -> set[tuple[str, str]]:
    return {(one.name, one.subject) for one in report.findings if one.severity is not Severity.OK}


def names(report: DoctorReport) -> set[str]:
    return {name for name, _ in subjects(report)}


def sound(api_namespace: str) -> list[KubeObject]:
    """Objects of a sound cluster: a flavor, a queue within what the nodes have, a LocalQueue."""
    return [
        things.namespace(api_namespace),
        things.flavor("a100", {GPU_PRODUCT: "NVIDIA-A100-SXM4-80GB"}),
        things.cluster_queue("gpus", {GPU: 16, "cpu": 64}, flavor="a100"),
        things.local_queue("main", api_namespace, "gpus"),
    ]


def broken_queues() -> list[KubeObject]:
    afs = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    parked = things.local_queue("parked", "team-a", "gpus")
    parked["spec"]["stopPolicy"] = "Hold"
    return [
        things.flavor("ghost", {GPU_PRODUCT: "H100"}),
        things.flavor("kept", {GPU_PRODUCT: "KEPT"}),
        things.flavor("spot", {"karpenter.sh/capacity-type": "spot"}),
        things.cluster_queue("ghosts", {GPU: 8}, flavor="ghost"),
        things.cluster_queue(
            "keeps", {GPU: 4}, flavor="kept", preemption={"withinClusterQueue": "LowerPriority"}
        ),
        things.cluster_queue("spots", {GPU: 4}, flavor="spot", strategy="StrictFIFO"),
        things.cluster_queue("big", {GPU: 100}, flavor="a100", cohort="all", admissionScope=afs),
        things.cluster_queue("small", {GPU: 1}, flavor="a100", cohort="all", stopPolicy="Hold"),
        things.cluster_queue("lost", {GPU: 1}, flavor="no-such-flavor"),
        things.local_queue("astray", "team-a", "no-such-queue"),
        parked,
        things.priority_class("urgent", 100),
        things.priority_class("approved", 50),
        things.priority_class("gold", 1000),
    ]


def broken_jobs() -> list[KubeObject]:
    booster = {"containers": [{"name": "main", "image": "example.org/kueue-priority-booster:v0.19"}]}
    labels = {"app": "booster"}
    return [
        things.job("round-the-queue", "team-a", None, {"cpu": 1}, seconds=600),
        things.workload("too-large", "team-a", "main", {GPU: 9}),
        things.workload("wide", "team-a", "main", {GPU: 8}, pods=3),
        things.workload("boosted", "team-a", "main", {GPU: 100}, boost=5),
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "booster", "namespace": "team-a"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": booster},
            },
        },
    ]


async def test_everything_that_is_broken_is_found_and_nothing_that_is_whole(
    kube_labs: LabFactory, tmp_path: Path
) -> None:
    lab = await asyncio.to_thread(kube_labs, LabOptions(nodes=NODES))
    lab.api.apply(*sound("team-a"))
    await eventually_active(lab, "gpus")
    before = await found_on(lab)
    assert before.passed
    assert before.exit_code == 0, subjects(before)
    assert names(before) == {"kueue-version-unknown", "queue-without-tenant"}

    lab.api.apply(*broken_queues())
    await eventually_active(lab, "keeps")
    await eventually_active(lab, "lost", status="False")
    for item in broken_jobs():
        lab.api.create(item)
    policy = tmp_path / "policy.yaml"
    policy.write_text("unlisted_weight: 1\ntenants: [{name: team-a}, {name: team-q}]\n")
    report = await found_on(lab, policy=policy)
    assert report.exit_code == 2
    assert {
        ("flavor-without-nodes", "ResourceFlavor/ghost"),
        ("flavor-taint", "ResourceFlavor/kept"),
        ("flavor-missing", "ClusterQueue/lost"),
        ("quota-above-capacity", "ResourceFlavor/a100"),
        ("preempting-queue", "ClusterQueue/keeps"),
        ("strict-fifo", "ClusterQueue/spots"),
        ("admission-fair-sharing", "ClusterQueue/big"),
        ("own-quota", "Cohort/all"),
        ("queue-stopped", "ClusterQueue/small"),
        ("queue-stopped", "LocalQueue/team-a/parked"),
        ("queue-inactive", "ClusterQueue/lost"),
        ("local-queue-dangling", "LocalQueue/team-a/astray"),
        ("tenant-without-queue", "Tenant/team-q"),
        ("narrow-band", "WorkloadPriorityClass/urgent"),
        ("class-unlisted", "WorkloadPriorityClass/gold"),
        ("class-ungranted", "WorkloadPriorityClass/approved"),
        ("job-without-queue", "Job/team-a/round-the-queue"),
        ("gang-fits-nowhere", "Workload/team-a/too-large"),
        ("gang-across-zones", "Workload/team-a/wide"),
        ("other-writer", "Workload/team-a/boosted"),
        ("priority-booster", "Deployment/team-a/booster"),
    } <= subjects(report)
    assert not any(subject.endswith("/gpus") for _, subject in subjects(report))

    lab.api.create(NODE_POOL)
    later = subjects(await found_on(lab, policy=policy))
    assert ("nodepool-cannot-make", "ResourceFlavor/spot") in later
    await the_remedies_mend(lab, policy)


async def the_remedies_mend(lab: KubeLab, policy: Path) -> None:
    """The commands of some findings, as a shell runs them."""
    wanted = {
        "preempting-queue",
        "strict-fifo",
        "flavor-taint",
        "queue-stopped",
        "narrow-band",
        "admission-fair-sharing",
    }
    binary = lab.kit.binary("kubectl").parent
    for finding in (await found_on(lab, policy=policy)).findings:
        if finding.name in wanted:
            await asyncio.to_thread(
                subprocess.run,
                ["/bin/sh", "-ec", finding.mend],
                check=True,
                env={
                    "PATH": f"{binary}:/usr/bin:/bin",
                    "KUBECONFIG": str(lab.kubeconfig()),
                    "HOME": str(
                        lab.kubeconfig().parent
                    ),  # kubectl keeps its cache there, else in the repository
                },
                stdout=subprocess.DEVNULL,
            )
    left = await found_on(lab, policy=policy)
    assert not names(left) & wanted, [one for one in left.findings if one.name in wanted]


async def eventually_active(lab: KubeLab, queue: str, *, status: str = "True") -> None:
    path = f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{queue}"

    def said() -> bool:
        conditions = lab.api.get(path).get("status", {}).get("conditions") or []
        return any((one["type"], one["status"]) == ("Active", status) for one in conditions)

    await asyncio.to_thread(lab.until, said, 60, f"{queue} is active: {status}")


async def test_without_webhooks_the_lever_must_be_named_and_jobs_are_not_held_back(
    bare_lab: KubeLab,
) -> None:
    lab = bare_lab
    await asyncio.to_thread(lab.restart_kueue, config={"integrations": {"frameworks": [POD]}})
    lab.remove_webhooks()
    lab.api.apply(*sound("team-a"))
    await eventually_active(lab, "gpus")
    jobs = [
        things.job("eager", "team-a", "main", {"cpu": 1}, seconds=600),
        things.pytorch_job("torch", "team-a", "main", {GPU: 1}),
    ]
    for job in jobs:
        lab.api.create(job)
    try:
        await the_lever_is_unknown_and_jobs_are_not_held_back(lab)
    finally:
        for job in jobs:
            lab.api.delete(f"{lab.api.collection(job)}/{job['metadata']['name']}")
        lab.register_webhooks()
        await asyncio.to_thread(lab.restart_kueue)


async def the_lever_is_unknown_and_jobs_are_not_held_back(lab: KubeLab) -> None:
    report = await found_on(lab)
    assert not report.passed
    assert report.lever is None
    assert {
        ("lever-unknown", "Cluster/lab"),
        ("webhook-missing", "Cluster/lab"),
        ("job-webhook-missing", "Cluster/lab"),
        ("job-not-suspended", "Job/team-a/eager"),
        ("job-not-suspended", "PyTorchJob/team-a/torch"),
    } <= subjects(report)
    stated = await found_on(lab, lever="boost")
    assert stated.passed
    assert stated.lever == "boost"
    accepted = await found_on(lab, accept=["lever-unknown"])
    assert not accepted.passed, "accepting does not tell what to write"


async def test_rights_are_those_of_whoever_will_run_the_services(kube_lab: KubeLab) -> None:
    assert "rights-missing" not in names(await found_on(kube_lab, OPERATOR, service_accounts="fairlead"))
    watcher = await found_on(kube_lab, WATCHER)
    [missing] = [one for one in watcher.findings if one.name == "rights-missing"]
    assert "patch workloads.kueue.x-k8s.io" in missing.what
    assert "you may not do what the admitter has to" in missing.what
    nobody = await found_on(kube_lab, OPERATOR, service_accounts="no-such-namespace")
    assert len([one for one in nobody.findings if one.name == "rights-missing"]) == 2


async def test_the_checkers_rights_are_looked_at_where_a_check_is_its_own(kube_lab: KubeLab) -> None:
    missing = "checker-rights-missing"
    nobody = "no-such-namespace"
    assert missing not in names(await found_on(kube_lab, OPERATOR, service_accounts=nobody))
    kube_lab.offer_gang_fit()
    try:
        assert missing not in names(await found_on(kube_lab, OPERATOR, service_accounts="fairlead"))
        report = await found_on(kube_lab, OPERATOR, service_accounts=nobody)
        [found] = [one for one in report.findings if one.name == missing]
        assert "patch the status of workloads.kueue.x-k8s.io" in found.what
        assert "queues that name gang-fit" in found.why
    finally:
        kube_lab.api.delete("/apis/kueue.x-k8s.io/v1beta2/admissionchecks/gang-fit")


async def test_namespaces_whose_submissions_nobody_may_make_are_told(kube_lab: KubeLab) -> None:
    # Other tests leave namespaces behind, and the words name the first few: these are among them.
    names_of = ["aa-submits-a", "aa-submits-b"]
    kube_lab.api.apply(*map(things.namespace, names_of))
    kube_lab.api.apply(*(things.local_queue("main", name, "no-such-queue") for name in names_of))
    kube_lab.open_to_submissions("aa-submits-a")

    async def told() -> str:
        """The rights that the doctor misses, once the API server knows of those that were given."""
        report = await found_on(kube_lab, OPERATOR, service_accounts="fairlead")
        [found] = [one for one in report.findings if one.name == "submit-rights-missing"]
        return "" if "aa-submits-a" in found.what else found.what

    assert "aa-submits-b" in await eventually(told, 60)
    for name in names_of:
        kube_lab.api.delete(f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{name}/localqueues/main")


async def test_a_doctor_changes_nothing_in_the_cluster(kube_lab: KubeLab) -> None:
    mark = kube_lab.audit_mark()
    await found_on(kube_lab, OPERATOR)
    lines = kube_lab.audit_lines(user=OPERATOR, after=mark)
    assert lines
    reviews = ("selfsubjectaccessreviews", "selfsubjectreviews")
    writes = [
        line
        for line in lines
        if line.verb not in ("get", "list", "watch") and line.resource not in reviews and not line.dry_run
    ]
    assert writes == []


@pytest.fixture(scope="module")
def bare_lab(kube_kit: Kit) -> Iterator[KubeLab]:
    """Queues and Kueue alone, of this module's own: tests write under names that everybody has, and leave what they wrote."""
    with KubeLab(dataclasses.replace(WORKLOADS_ALONE, pytorchjobs=True), kit=kube_kit) as found:
        yield found


@pytest.mark.integration
async def test_leave_is_given_when_it_passes_and_kept_until_it_is_taken_back(
    bare_lab: KubeLab, nats_server: NatsServer
) -> None:
    lab = bare_lab
    lab.api.apply(*sound("team-a"))
    await eventually_active(lab, "gpus")
    lab.api.create(things.workload("boosted", "team-a", "main", {GPU: 100}, boost=5))
    async with connect(ConnectionSettings(url=nats_server.url), name="test") as bus:
        await provision(bus, topology.topology(["lab"]))
        refused = await look(at(lab), flags(), bus)
        assert not refused.passed
        assert any("--accept other-writer" in line for line in refused.said)
        assert await leave.standing(bus, "lab") is None

        accepted = await look(at(lab), flags(accept=["other-writer", "strict-fifo"]), bus)
        assert accepted.passed
        assert "--accept strict-fifo: there is no such finding here" in accepted.said
        await _stands(bus, accepted=["other-writer"])
        again = await look(at(lab), flags(), bus)
        assert again.passed, "what was accepted stays accepted"

        lab.process("kueue").end()
        outage = await look(at(lab), flags(), bus)
        assert "webhook-unreachable" in names(outage)
        assert any("leave was given by tester" in line for line in outage.said)
        await _stands(bus, accepted=["other-writer"])

        assert await run_doctor(at(lab), flags(revoke=True), nats_server.url, form="table") == 0
        assert await leave.standing(bus, "lab") is None
        words = OperatorWords()
        entry = await Bucket(bus, topology.POLICY).get(revocation_key("lab"))
        assert entry is not None
        words.hear(revocation_of("lab"), entry.value)
        taken = words.revocation("lab")
        assert taken is not None
        assert (taken.lever, taken.by) == ("boost", "tester")

        await asyncio.to_thread(lab.restart_kueue)
        accepting = ["other-writer"]
        mere = await look(at(lab), flags(accept=accepting), bus)
        assert mere.passed
        assert mere.cleared is None, "a look alone does not go over who took it back"
        assert any("leave was taken back by tester" in line for line in mere.said)
        assert mere.said[-1] == "  fairlead doctor --cluster lab --give-leave"
        assert await leave.standing(bus, "lab") is None
        await look(at(lab), flags(accept=accepting, give_leave=True), bus)
        await _stands(bus, accepted=["other-writer"])
        await a_cluster_that_no_service_tells_of_gets_leave_by_insisting_alone(lab, bus)


async def a_cluster_that_no_service_tells_of_gets_leave_by_insisting_alone(lab: KubeLab, bus: Bus) -> None:
    """A misspelt name would get a leave that nobody uses."""
    stated = PoolState(cluster="lab", name="gpu", capacity={GPU: 8}, epoch=1, rev=1)
    await bus.publish(state("lab", "pool", "gpu"), to_json(stated))

    misspelt, accepting = at(lab, cluster="lap"), flags(accept=["other-writer"])
    found = await look(misspelt, accepting, bus)
    assert (found.passed, found.cleared) == (True, None)
    assert "no service of Fairlead has told of a cluster lap. Known are lab: --cluster NAME" in found.said[-2]
    assert found.said[-1] == "  fairlead doctor --cluster lap --give-leave"
    assert await leave.standing(bus, "lap") is None
    start = OwnStart(dry_run=False, checks_gangs=False)
    assert (await look(misspelt, accepting, bus, start)).cleared is not None, "whoever starts it names it"
    await leave.take_back(bus, "lap", by="tester")
    assert (await look(misspelt, replace(accepting, give_leave=True), bus)).cleared is not None


async def _stands(bus: Bus, *, accepted: list[str]) -> None:
    found = await leave.standing(bus, "lab")
    assert found is not None
    assert (found.lever, found.by, found.accepted) == ("boost", "tester", accepted)


@pytest.mark.parametrize(
    "kueue", [None, *(pytest.param(version, marks=pytest.mark.deep) for version in OLDER)]
)
async def test_with_the_gate_off_the_priority_is_the_lever_and_fair_sharing_is_said(
    bare_lab: KubeLab, kube_labs: LabFactory, kueue: str | None
) -> None:
    lab, gates = bare_lab, {"PriorityBoost": False}
    sharing = {"fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare"]}}
    if kueue is None:
        await asyncio.to_thread(lab.restart_kueue, gates=gates, config=sharing)
    else:
        options = LabOptions(
            kueue=kueue, gates=gates, kueue_config=sharing, workers=False, nodes=(), pytorchjobs=False
        )
        lab = await asyncio.to_thread(kube_labs, options)
    lab.api.apply(*sound("team-a"), things.cohort("pair"))
    lab.api.apply(things.cluster_queue("paired", {GPU: 1}, flavor="a100", cohort="pair"))
    await eventually_active(lab, "paired")

    async def said() -> DoctorReport | None:
        """Doctor's findings once Kueue's status, which comes after the objects, tells that queues share."""
        report = await found_on(lab)
        return report if {"lever-priority", "fair-sharing"} <= names(report) else None

    report = await eventually(said, 60)
    assert report.lever == "priority"
    refused = await found_on(lab, lever="boost")
    assert "lever-refused" in names(refused)
    assert not refused.passed


async def test_what_cannot_be_accepted_or_reached_is_said(kube_lab: KubeLab, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no finding has this name"):
        await found_on(kube_lab, accept=["everything"])
    with pytest.raises(InputError, match="no kubeconfig"):
        target(kubeconfig=str(tmp_path / "none"), context=None, cluster=None)
    with pytest.raises(InputError, match="it has: kubelab"):
        target(kubeconfig=str(kube_lab.kubeconfig()), context="other", cluster=None)
    away = tmp_path / "away.yaml"
    away.write_text(kube_lab.kubeconfig().read_text().replace(kube_lab.server, "https://127.0.0.1:9"))
    with pytest.raises(ClusterError, match="cluster kubelab"):
        await look(target(kubeconfig=str(away), context=None, cluster=None), DoctorFlags(), None)


def test_the_command_prints_words_and_json_and_ends_with_the_worst(kube_lab: KubeLab, tmp_path: Path) -> None:
    command = ("doctor", "--kubeconfig", str(kube_lab.kubeconfig(WATCHER)))
    for words, wanted in (([], "✗ error    rights-missing"), (["-o", "json"], '"name":"rights-missing"')):
        ended = fairlead(*command, *words, environ={"XDG_STATE_HOME": str(tmp_path)})
        assert ended.returncode == 2, ended.stderr
        assert wanted in ended.stdout
        assert "Traceback" not in ended.stderr
