"""Sentences of the doctor in full: on gangs, cards, an unsafe queue and rights; findings on a terminal."""

import json
from collections.abc import Iterable

import msgspec
import pytest
from rich.console import Console, Group

from fairlead_cli.findings import Finding, Severity, findings_view, warning
from fairlead_cli.kueue.doctor.checks import examine
from fairlead_cli.kueue.doctor.kueue_config import KueueRelease, KueueSeen
from fairlead_cli.kueue.doctor.survey import NeededRight, Survey
from fairlead_cli.printing import print_answer
from fairlead_contracts.frontend.cards import CARD_CORES, CARD_MEMORY, REGISTER
from fairlead_contracts.frontend.marks import BASE_PRIORITY
from fairlead_contracts.policyfile.read import read_document
from fairlead_kube.kinds.core import Job, Node, NodePool
from fairlead_kube.kinds.queues import ClusterQueue, Cohort, LocalQueue, ResourceFlavor
from fairlead_kube.kinds.workloads import Workload
from fairlead_kube.lever import Lever, LeverProbe
from fairlead_testkit.kubelab import A100, GPU, GPU_PRODUCT, KubeObject, gpu_nodes, things

PLAIN = things.cluster_queue("gpus", {GPU: 16}, flavor="a100")


def surveyed(
    *workloads: KubeObject, queue: KubeObject = PLAIN, user: str = "", rights: Iterable[NeededRight] = ()
) -> Survey:
    """Two nodes of eight cards, one queue of all of them, and these waiting."""
    return Survey(
        cluster="lab",
        user=user,
        kueue=KueueSeen(served=("v1beta2", "v1beta1"), release=KueueRelease(0, 19, 2)),
        probe=LeverProbe(Lever.BOOST, "the webhook reads boosts"),
        rights=list(rights),
        policy=read_document({"unlisted_weight": 1}),
        cluster_queues=msgspec.convert([queue], list[ClusterQueue]),
        local_queues=msgspec.convert([things.local_queue("main", "team-a", "gpus")], list[LocalQueue]),
        flavors=msgspec.convert([things.flavor("a100", {GPU_PRODUCT: A100})], list[ResourceFlavor]),
        nodes=msgspec.convert(gpu_nodes("a", 2, "zone-a").nodes(), list[Node]),
        workloads=msgspec.json.decode(msgspec.json.encode(workloads), type=list[Workload]),
    )


def named(survey: Survey, name: str) -> list[Finding]:
    return [finding for finding in examine(survey) if finding.name == name]


def test_a_gang_that_its_quota_keeps_out_for_ever_is_not_said_to_be_admitted() -> None:
    """The queue has quota of GPUs alone: Kueue never admits what asks for more than these."""
    [covered] = named(surveyed(things.workload("w", "team-a", "main", {GPU: 9})), "gang-fits-nowhere")
    assert "Kueue admits it all the same" in covered.why
    asks = {GPU: 9, "example.com/fpga": 1}
    [finding] = named(surveyed(things.workload("w", "team-a", "main", asks)), "gang-fits-nowhere")
    assert "its ClusterQueue has no quota of example.com/fpga" in finding.why
    assert "admits it all the same" not in finding.why
    [beyond] = named(surveyed(things.workload("w", "team-a", "main", {GPU: 99})), finding.name)
    assert f"Kueue never admits it either: all quotas of its pool together are 16 {GPU}" in beyond.why


def odd(name: str, resources: int) -> KubeObject:
    return things.workload(
        name, "team-a", "main", {f"example.com/r-{number:05}": 1 for number in range(resources)}
    )


def test_a_job_of_thousands_of_resources_is_told_in_a_few_lines() -> None:
    found = surveyed(*(odd(f"odd-{number}", 2000) for number in range(8)))
    [finding] = named(found, "gang-fits-nowhere")
    assert finding.what.endswith(" 1995 more reasons.")
    assert len(finding.what + finding.why) < 1000
    [finding] = named(found, "job-too-many-resources")
    assert finding.subject == "Workload/team-a/odd-0"
    assert finding.what == (
        "8 Workloads of more than 1024 resources in team-a: "
        "odd-0 (2000), odd-1 (2000), odd-2 (2000), odd-3 (2000), odd-4 (2000) and 3 more"
    )
    assert "never admits such a one, unless its configuration leaves some of them out" in finding.why


def test_resources_that_kueue_was_told_to_leave_out_are_not_counted() -> None:
    asked = odd("odd", 2000)
    amounts = asked["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]
    for counted, found in ((amounts, True), ({"cpu": "1"}, False)):
        status = {"resourceRequests": [{"name": "main", "resources": counted}]}
        findings = named(surveyed({**asked, "status": status}), "job-too-many-resources")
        assert bool(findings) is found
        assert all("never admits such a one: a ClusterQueue" in one.why for one in findings)


def test_an_unsafe_queue_is_told_with_the_levels_that_still_stand_in_its_pool() -> None:
    unsafe: KubeObject = {
        **PLAIN,
        "spec": {**PLAIN["spec"], "preemption": {"withinClusterQueue": "LowerPriority"}},
    }
    runs = things.workload("runs", "team-a", "main", {GPU: 1}, boost=9)
    runs["status"] = {"conditions": [{"type": "QuotaReserved", "status": "True"}]}
    found = [
        things.workload("boosted", "team-a", "main", {GPU: 1}, boost=7),
        things.workload("noted", "team-a", "main", {GPU: 1}, annotations={BASE_PRIORITY: "0"}),
        things.workload("plain", "team-a", "main", {GPU: 1}),
        things.workload("elsewhere", "team-z", "main", {GPU: 1}, boost=7),
        runs,
    ]
    [finding] = named(surveyed(*found, queue=unsafe), "preempting-queue")
    assert "in pool lab/gpus (`preemption: never`), and levels that stand there are taken away" in finding.why
    assert "2 levels still stand there" in finding.why
    [clean] = named(surveyed(*found[2:], queue=unsafe), "preempting-queue")
    assert "None stands there" in clean.why


def test_gangs_that_are_alike_are_one_finding() -> None:
    found = [things.workload(f"w{n}", "team-a", "main", {GPU: 9}) for n in range(3)]
    [finding] = named(surveyed(*found), "gang-fits-nowhere")
    assert "and 2 more alike" in finding.what


@pytest.mark.parametrize("account", ["me", "system:serviceaccount:fairlead:fairlead-admitter"])
def test_what_only_the_user_was_asked_for_is_told_as_the_users_own(account: str) -> None:
    asked = [
        NeededRight(
            service="admitter", account=account, verb=verb, resource="x", namespace="team-a", allowed=True
        )
        for verb in ("patch", "impersonate")
    ]
    told = [
        one.what
        for one in examine(surveyed(user="me", rights=asked))
        if one.subject in ("rights", "submissions")
    ]
    assert len(told) == 2
    assert all(
        ("--service-accounts" in what and what.startswith("you may")) is (account == "me") for what in told
    )


@pytest.mark.parametrize("account", ["me", "system:serviceaccount:fairlead:fairlead-admitter"])
def test_a_right_that_only_the_user_lacks_is_not_said_to_lack_to_the_services(account: str) -> None:
    lacks = [
        NeededRight(
            service="admitter", account=account, verb=verb, resource="x", namespace="team-a", allowed=False
        )
        for verb in ("patch", "impersonate")
    ]
    survey = surveyed(user="me", rights=lacks)
    [rights] = named(survey, "rights-missing")
    [submissions] = named(survey, "submit-rights-missing")
    for found in (rights, submissions):
        assert found.what.startswith("you may not" if account == "me" else "the admitter may not")
    assert ("fairlead doctor --service-accounts" in rights.mend) is (account == "me")


@pytest.mark.parametrize(
    ("user", "subject"),
    [
        ("me@example.com", "--user=me@example.com"),
        ("system:serviceaccount:ops:joe", "--serviceaccount=ops:joe"),
    ],
)
def test_all_that_may_not_be_read_is_one_finding_with_the_commands_that_let_it(
    user: str, subject: str
) -> None:
    unread = {"pods": "pods is forbidden", "nodes": "nodes is forbidden"}
    survey = msgspec.structs.replace(surveyed(user=user), unread=unread)
    [found] = named(survey, "cannot-read")
    assert found.what == f"{user} may not list nodes, pods; of nodes: nodes is forbidden"
    for role in (
        "--clusterrole=fairlead-operator",
        "kueue-system create rolebinding",
        "--role=fairlead-probe",
    ):
        assert any(role in line and line.endswith(subject) for line in found.mend.splitlines())


@pytest.mark.parametrize("forbidden", [True, False])
def test_a_probe_that_the_user_may_not_send_is_told_with_the_right_that_it_takes(forbidden: bool) -> None:
    probe = LeverProbe(Lever.UNKNOWN, "refused", forbidden=forbidden)
    [found] = named(msgspec.structs.replace(surveyed(user="me"), probe=probe), "lever-unknown")
    assert ("--role=fairlead-probe --user=me" in found.mend) is forbidden
    assert "--lever boost" in found.mend


def test_a_job_in_a_namespace_without_any_local_queue_is_told_as_one_whose_queue_is_missing() -> None:
    """A job is suspended by Kueue for its label, and nobody ever tries it."""
    stray = things.job("train", "stray", "main", {GPU: 1})
    held = {**stray, "spec": {**stray["spec"], "suspend": True}}
    runs = {**stray, "spec": {**stray["spec"], "suspend": False}}

    def told(job: KubeObject) -> list[Finding]:
        return named(
            msgspec.structs.replace(surveyed(), jobs=msgspec.convert([job], list[Job])), "job-queue-missing"
        )

    [found] = told(held)
    assert "train names 'main', and there is none" in found.why
    assert "metadata: {name: main, namespace: stray}" in found.mend
    assert told(runs) == []


def test_a_command_that_mends_is_never_cut_at_the_edge(capsys: pytest.CaptureFixture[str]) -> None:
    mend = "kubectl patch " + "x" * 400
    found = warning("Kind/one", "it is so", name="name", why="that is bad", mend=mend)
    print_answer(found, "table", view=lambda _columns: Group(*findings_view([found])), names=["name"])
    assert mend in capsys.readouterr().out


def test_what_is_to_be_done_stands_behind_what_was_fine() -> None:
    fine = Finding(name="a", severity=Severity.OK, subject="quota", what="no quota goes first")
    found = [warning("Kind/one", "it is so", name="name", why="that is bad"), fine]
    console = Console(width=80)
    with console.capture() as said:
        console.print(Group(*findings_view(found)))
    lines = [line for line in said.get().splitlines() if line.strip()]
    assert lines[0].startswith("✓ quota")
    assert lines[-1].strip() == "that is bad"


MIB = 24_576
CARD = {"count": 10, "devmem": MIB, "devcore": 100, "type": "NVIDIA-A30", "mode": "hami-core", "health": True}


def told_of_cards(register: str, **quota: int) -> list[str]:
    """Findings of quotas above what one node has whose cards this register of HAMi's alone tells of."""
    [node] = gpu_nodes("a", 1, "zone-a").nodes()
    node["metadata"]["annotations"] = {REGISTER: register}
    amounts = {GPU: 8, CARD_MEMORY: quota["memory"], CARD_CORES: quota["cores"]}
    queue = things.cluster_queue("gpus", amounts, flavor="a100")
    survey = msgspec.structs.replace(surveyed(queue=queue), nodes=msgspec.convert([node], list[Node]))
    return [finding.what for finding in named(survey, "quota-above-capacity")]


def test_parts_of_cards_are_what_hami_registers() -> None:
    two = json.dumps([{"id": f"GPU-{number}", **CARD} for number in (1, 2)])
    assert told_of_cards(two, memory=2 * MIB, cores=200) == []
    assert told_of_cards(two, memory=2 * MIB + 1, cores=200) == [
        f"{CARD_MEMORY}: quota 49153, and its nodes have 49152 allocatable"
    ]


def test_quota_is_not_held_against_a_register_that_cannot_be_read() -> None:
    assert told_of_cards("GPU-1,ten,24576", memory=MIB, cores=100) == []


@pytest.mark.parametrize("amount", ["1e400", "abc", "1Ki5", "9" * 5000])
def test_an_amount_that_nobody_can_read_ends_no_check(amount: str) -> None:
    """Quota as people write it for no limit; amounts of nodes, of NodePools and of jobs."""
    [node] = gpu_nodes("odd", 1, "zone-a").nodes()
    node["status"]["allocatable"] = {GPU: amount}
    limited = {"metadata": {"name": "pool"}, "spec": {"limits": {GPU: amount}}}
    survey = surveyed(
        things.workload("w", "team-a", "main", {GPU: amount}),
        queue=things.cluster_queue("gpus", {GPU: amount}, flavor="a100"),
    )
    survey = msgspec.structs.replace(
        survey,
        cohorts=msgspec.convert([things.cohort("all", {GPU: amount}, flavor="a100")], list[Cohort]),
        nodes=[*survey.nodes, msgspec.convert(node, Node)],
        node_pools=msgspec.convert([limited], list[NodePool]),
    )
    [finding] = named(survey, "amount-unread")
    assert finding.subject == "Node/odd-0"
    assert named(survey, "nodepool-limit") == []
