"""Verdicts that follow from findings, what Kueue's own settings tell, and which cluster is meant."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
import yaml

from fairlead_cli.client.phrases import counted, listed
from fairlead_cli.errors import InputError
from fairlead_cli.findings import EXIT_ERRORS, EXIT_WARNINGS, Finding, Severity, exit_code
from fairlead_cli.kueue.clusters import KubeTarget, target, targets
from fairlead_cli.kueue.doctor.doctor_run import look
from fairlead_cli.kueue.doctor.kinds import ConfigMap, Deployment
from fairlead_cli.kueue.doctor.kueue_config import KueueRelease, seen
from fairlead_cli.kueue.doctor.survey import Survey
from fairlead_cli.kueue.doctor.verdict import acceptance, closing, judge
from fairlead_cli.kueue.flags import DoctorFlags
from fairlead_cli.local.dry_run import LogTail, write_in_words
from fairlead_contracts.messages.leave import Leave
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_kube.kinds.queues import ClusterQueue, Cohort
from fairlead_kube.lever import Lever, LeverProbe
from fairlead_testkit.kubelab import things

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
LEAVE = Leave(cluster="lab", lever="boost", at=AT, by="ann", accepted=["multikueue"])


def survey(lever: Lever = Lever.BOOST, leave: Leave | None = None) -> Survey:
    return Survey(cluster="lab", policy=PolicyDocument(), probe=LeverProbe(lever, "asked"), leave=leave)


def finding(name: str, severity: Severity) -> Finding:
    return Finding(name=name, severity=severity, subject="x/y", what="it is so")


ERROR, WARNING = finding("multikueue", Severity.ERROR), finding("strict-fifo", Severity.WARNING)
INFO, OK = finding("own-quota", Severity.INFO), finding("bands", Severity.OK)


@pytest.mark.parametrize(
    ("findings", "accept", "code", "passed"),
    [
        ([OK, INFO], [], 0, True),
        ([WARNING, INFO], [], EXIT_WARNINGS, True),
        ([WARNING, ERROR], [], EXIT_ERRORS, False),
        ([WARNING, ERROR], ["multikueue"], EXIT_WARNINGS, True),
        ([WARNING, ERROR], ["multikueue", "strict-fifo"], 0, True),
        ([ERROR], ["strict-fifo"], EXIT_ERRORS, False),
    ],
)
def test_the_worst_that_is_open_decides(
    findings: list[Finding], accept: list[str], code: int, *, passed: bool
) -> None:
    verdict = judge(survey(), findings, accept)
    assert (exit_code(verdict.findings, passed=verdict.passed), verdict.passed) == (code, passed)
    assert (verdict.leave(survey(), by="ann", at=AT) is not None) == passed


def test_findings_come_worst_first_and_accepted_ones_are_recorded() -> None:
    verdict = judge(survey(), [OK, INFO, WARNING, ERROR], ["multikueue", "fair-sharing"])
    assert [one.severity for one in verdict.findings] == list(Severity)
    assert verdict.leave(survey(), by="ann", at=AT) == LEAVE
    assert verdict.needless == ["fair-sharing"]


def test_what_was_accepted_before_stays_accepted() -> None:
    assert judge(survey(leave=LEAVE), [ERROR], []).passed
    assert not judge(survey(leave=LEAVE), [finding("other-writer", Severity.ERROR)], []).passed


def test_a_leave_says_by_which_lever_levels_may_still_stand() -> None:
    by_priority = msgspec.structs.replace(survey(leave=LEAVE), probe=LeverProbe(Lever.PRIORITY, "asked"))
    leave = judge(by_priority, [], []).leave(by_priority, by="ann", at=AT)
    assert leave is not None
    assert (leave.lever, leave.replaced) == ("priority", "boost")
    again = msgspec.structs.replace(by_priority, leave=leave)
    same = judge(again, [], []).leave(again, by="ann", at=AT)
    assert same is not None
    assert same.replaced == "boost"


def test_without_a_lever_there_is_no_leave_whatever_was_accepted() -> None:
    unknown = survey(Lever.UNKNOWN)
    verdict = judge(unknown, [finding("lever-unknown", Severity.ERROR)], ["lever-unknown"])
    assert not verdict.passed
    assert verdict.leave(unknown, by="", at=AT) is None
    assert "--lever boost|priority" in acceptance(unknown, verdict)


def test_the_closing_words_count_what_is_open() -> None:
    assert closing(survey(), judge(survey(), [ERROR, WARNING, WARNING], [])) == (
        "lab does not pass (1 error, 2 warnings)"
    )
    assert closing(survey(), judge(survey(), [ERROR], ["multikueue"])) == (
        "lab passes (nothing is open; accepted: multikueue)"
    )


def deployment(image: str, *args: str) -> Deployment:
    pod = {"containers": [{"image": image, "args": list(args)}]}
    return msgspec.convert({"spec": {"template": {"spec": pod}}}, Deployment)


def config(text: str) -> ConfigMap:
    return ConfigMap(data={"controller_manager_config.yaml": text})


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("registry.k8s.io/kueue/kueue:v0.19.2", KueueRelease(0, 19, 2)),
        ("localhost:5000/kueue:0.17", KueueRelease(0, 17, 0)),
        ("example.org/kueue:v0.18.6-gke.1@sha256:abc", KueueRelease(0, 18, 6)),
        ("example.org/kueue@sha256:abc", None),
        ("example.org/kueue:main", None),
    ],
)
def test_the_release_is_that_of_the_image(image: str, release: KueueRelease | None) -> None:
    found = seen(["v1beta2"], deployment(image), None)
    assert (found.release, found.deployed) == (release, True)
    assert not seen(["v1beta2"], None, None).deployed


def test_gates_and_sharing_are_read_from_configuration_and_arguments() -> None:
    text = """
fairSharing: {preemptionStrategies: [LessThanInitialShare]}
manageJobsWithoutQueueName: true
featureGates: {PriorityBoost: false, Other: true}
"""
    arguments = ("--config=/x", "--feature-gates=PriorityBoost=true,Third=false")
    kueue = seen(["v1beta2"], deployment("k:v0.19.0", *arguments), config(text))
    assert kueue.gates == {"PriorityBoost": True, "Other": True, "Third": False}
    assert (kueue.fair_sharing, kueue.manages_all_jobs) == (True, True)
    assert not seen(["v1beta2"], None, config("fairSharing: {enable: false}")).fair_sharing


@pytest.mark.parametrize(
    ("said", "awaits"),
    [
        ("{timeout: 5m}", False),
        ("{timeout: 5m, blockAdmission: true}", True),
        ("{enable: true}", True),
        ("{enable: true, blockAdmission: false}", False),
        ("{enable: false, blockAdmission: true}", False),
    ],
)
def test_whether_kueue_waits_for_pods_is_read_as_each_version_of_its_configuration_means_it(
    said: str, *, awaits: bool
) -> None:
    assert seen(["v1beta2"], None, config(f"waitForPodsReady: {said}")).awaits_pods is awaits


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "line 2, column 1: "),
        ("- 1", "Expected `object`, got `array`"),
        ("featureGates: 3", "$.featureGates"),
        ("fairSharing: {}\nfairSharing: {}", "is given in line 1 already"),
    ],
)
def test_a_configuration_that_cannot_be_read_tells_nothing_but_why(text: str, problem: str) -> None:
    found = seen(["v1beta2"], None, config(text))
    assert problem in found.config_problem
    assert msgspec.structs.replace(found, config_problem="") == seen(["v1beta2"], None, None)


def kubeconfig(directory: Path, *contexts: str) -> str:
    path = directory / "config"
    document = {
        "current-context": contexts[0],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in contexts],
    }
    path.write_text(yaml.safe_dump(document))
    return str(path)


def test_a_cluster_is_named_after_its_context(tmp_path: Path) -> None:
    arn = "arn:aws:eks:eu-1:12:cluster/prod"
    path = kubeconfig(tmp_path, "lab", arn)
    assert target(kubeconfig=path, context=None, cluster=None).cluster == "lab"
    assert target(kubeconfig=path, context=None, cluster="mine").cluster == "mine"
    assert target(kubeconfig=path, context=arn, cluster=None).cluster == "arn-aws-eks-eu-1-12-cluster-prod"
    assert target(kubeconfig=path, context=arn, cluster=None).context == arn
    with pytest.raises(InputError, match="has no slash"):
        target(kubeconfig=path, context=None, cluster="a/b")


def test_several_contexts_are_several_clusters(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "a", "b", "b!")
    found = targets(kubeconfig=path, contexts=["a", "b"], cluster=None)
    assert [(one.cluster, one.context) for one in found] == [("a", "a"), ("b", "b")]
    with pytest.raises(InputError, match="both be cluster b"):
        targets(kubeconfig=path, contexts=["b", "b!"], cluster=None)
    with pytest.raises(InputError, match="several contexts"):
        targets(kubeconfig=path, contexts=["a", "b"], cluster="one")


def test_a_dry_run_is_told_line_by_line(tmp_path: Path) -> None:
    log = tmp_path / "admitter.log"
    tail = LogTail(log)
    assert tail.lines() == []
    line = b'{"event":"would write","scope":"a","job":"j","before":0,"to":7,"because":"position 0","level":"info"}'
    log.write_bytes(line + b'\n{"event":"start')
    [first] = tail.lines()
    assert write_in_words(first) == "would write a/j: level 0 -> 7 (position 0)"
    log.write_bytes(log.read_bytes() + b'ed"}\nTraceback\n')
    assert [write_in_words(one) for one in tail.lines()] == [None, None]
    assert LogTail(log).lines() == [], "what was said before is not said again"


def test_counts_and_lists_are_in_words() -> None:
    assert counted(1, "queue") == "1 queue"
    assert counted(2, "entry", "entries") == "2 entries"
    assert listed("abcdefg") == "a, b, c, d, e and 2 more"


@pytest.mark.parametrize(
    ("name", "hint"),
    [("strict-fiffo", "Did you mean strict-fifo?"), ("everything", "Names are admission-fair-sharing, ")],
)
async def test_a_name_to_accept_that_nothing_has_is_answered_with_the_one_that_was_meant(
    name: str, hint: str
) -> None:
    with pytest.raises(InputError, match="no finding has this name") as refused:
        await look(KubeTarget(cluster="lab"), DoctorFlags(accept=[name]), None)
    assert refused.value.hint.startswith(hint)


def test_pools_are_root_cohorts() -> None:
    inner = things.cohort("inner") | {"spec": {"parentName": "root"}}
    inside = things.cluster_queue("gpus", {"nvidia.com/gpu": 16}, flavor="a100", cohort="inner")
    found = msgspec.structs.replace(
        survey(),
        cohorts=msgspec.convert([inner, things.cohort("root")], list[Cohort]),
        cluster_queues=[msgspec.convert(inside, ClusterQueue)],
    )
    assert list(found.pools()) == ["root"]
