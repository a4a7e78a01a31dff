"""The pod of a job: its content, whatever users write, and its refusals."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.frontend.observed import Toleration
from fairlead_kube.kinds.pods import Pod
from fairlead_slurm.batch.pods import LONGEST_SCRIPT
from fairlead_slurm.errors import PodCommentError
from fairlead_slurm.pod_comment import Claim, PodWords, pod_words
from fairlead_slurm_bridge.errors import PodRefusedError
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.gate.kube_facts import JobPod, pod_facts
from fairlead_slurm_bridge.pods.manifest import PodRules, claim_manifest, digest_of, pod_manifest
from fairlead_slurm_bridge.pods.requests import MARK, Payload, PodJob, payload, pod_job
from fairlead_slurm_bridge.pods.results import ResultPlan, ResultRules, encoded, planned, result_plan
from fairlead_testkit.inputs.slurm_builders import a_slurm_job
from fairlead_testkit.kubelab import KubeObject

RULES = PodRules(cluster="hpc", namespace="slurm", image="busybox")
HOOK = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_UID": "1000",
    "SLURM_JOB_GID": "100",
    "SLURM_JOB_USER": "ann",
    "SLURM_JOB_PARTITION": "pods",
    "SLURM_JOB_WORK_DIR": "/data/ann/run",
}
HOSTILE = 'it\'s "$(rm -rf ~)" `id`;\nJobId=1 UserId=root(0) \x1b[0m ü 日本 $HOME ${X} $$'
NOTHING = PodWords()
PROGRAM = Payload(script="#!/bin/sh\ntrue\n")


def job(**changes: object) -> PodJob:
    found = pod_job(HOOK, a_slurm_job("7", resources={"cpu": 4000, "mem": 2**30, "gres/gpu": 2000}))
    return msgspec.structs.replace(found, **changes)


def spec_of(
    the_job: PodJob,
    wanted: PodWords = NOTHING,
    program: Payload = PROGRAM,
    rules: PodRules = RULES,
) -> tuple[KubeObject, KubeObject]:
    """The pod's spec and its container, as JSON has them."""
    manifest = msgspec.json.decode(msgspec.json.encode(pod_manifest(the_job, wanted, program, rules)))
    return manifest["spec"], manifest["spec"]["containers"][0]


def test_a_pod_asks_for_what_its_job_was_given() -> None:
    spec, container = spec_of(job())
    wanted = {"cpu": "4000m", "memory": str(2**30), "nvidia.com/gpu": "2"}
    assert container["resources"] == {"requests": wanted, "limits": wanted}
    assert spec["securityContext"]["runAsUser"] == 1000
    assert spec["securityContext"]["runAsGroup"] == 100
    assert spec["restartPolicy"] == "Never"
    assert spec["automountServiceAccountToken"] is False


def test_parts_of_gpus_are_asked_for_as_hami_has_them() -> None:
    _, container = spec_of(job(), pod_words("gpu-memory=8000 gpu-cores=30"))
    assert container["resources"]["limits"]["nvidia.com/gpumem"] == "8000"
    assert container["resources"]["limits"]["nvidia.com/gpucores"] == "30"
    with pytest.raises(PodRefusedError, match="gres"):
        spec_of(job(gpus=0), pod_words("gpu-memory=8000"))


def test_a_sites_rules_hold_for_every_pod() -> None:
    rules = msgspec.structs.replace(
        RULES,
        namespaces={"vision": "team-vision"},
        node_selector={"pool": "gpu"},
        tolerations=(Toleration(key="gpu", operator="Exists", effect="NoSchedule"),),
        claims=(Claim("data", "/data"),),
        priority_classes={"urgent": "slurm-urgent"},
        labels={"app": "slurm"},
    )
    manifest = msgspec.convert(pod_manifest(job(qos="urgent"), PodWords(), PROGRAM, rules), Pod)
    assert manifest.metadata.namespace == "team-vision"
    assert manifest.metadata.label("app") == "slurm"
    assert manifest.spec.priority_class_name == "slurm-urgent"
    assert manifest.spec.node_selector == {"pool": "gpu"}
    spec, container = spec_of(job(), rules=rules)
    assert container["workingDir"] == "/data/ann/run", "it lies on a volume that the pod has"
    assert spec["tolerations"] == [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert "workingDir" not in spec_of(job())[1]


def test_a_scratch_claim_is_named_as_its_pod() -> None:
    wanted = pod_words("scratch=10Gi")
    claim = msgspec.json.decode(msgspec.json.encode(claim_manifest(job(), "10Gi", RULES)))
    spec, _ = spec_of(job(), wanted)
    assert claim["metadata"]["name"] == "slurm-hpc-7-r0"
    assert spec["volumes"][-1]["persistentVolumeClaim"]["claimName"] == "slurm-hpc-7-r0"


def test_two_volumes_at_one_place_are_refused() -> None:
    with pytest.raises(PodRefusedError, match="same path"):
        spec_of(job(), pod_words("claim=a:/data claim=b:/data"))


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200))
def test_whatever_users_write_stays_what_it_is(text: str) -> None:
    """A job's name, a variable, an argument and the script arrive as they were written; nothing is a command's or a shell's."""
    program = Payload(script=text, arguments=(text,), variables={"X": text})
    manifest = msgspec.json.decode(
        msgspec.json.encode(pod_manifest(job(name=text), PodWords(), program, RULES))
    )
    container = manifest["spec"]["containers"][0]
    variables = {one["name"]: one["value"] for one in container["env"]}
    assert manifest["metadata"]["annotations"]["slurm.fairlead.dev/script"] == text
    assert variables["X"] == text.replace("$", "$$"), (
        "Kubernetes makes one dollar of two, and replaces $(NAME)"
    )
    assert variables["SLURM_JOB_NAME"] == text.replace("$", "$$")
    assert container["command"][-2:] == ["/fairlead/script", text.replace("$", "$$")]


def test_an_account_that_is_no_label_is_left_out_of_the_labels() -> None:
    manifest = msgspec.convert(pod_manifest(job(account=HOSTILE), PodWords(), PROGRAM, RULES), Pod)
    assert manifest.metadata.label("slurm.fairlead.dev/account") is None


def test_another_job_of_the_same_number_has_another_digest() -> None:
    assert digest_of(job(), PROGRAM) == digest_of(job(), PROGRAM)
    assert digest_of(job(), PROGRAM) != digest_of(job(), Payload(script="#!/bin/sh\nfalse\n"))
    assert digest_of(job(), PROGRAM) != digest_of(job(uid=1001), PROGRAM)
    again = job(attempt=Attempt(7, 1), submitted=0)
    assert digest_of(job(), PROGRAM) == digest_of(again, PROGRAM), "of one job's attempts it is the same"


def test_a_comment_says_what_the_pod_is_to_have() -> None:
    found = pod_words(
        "fairlead=abc image=registry.example:5000/train@sha256:00ff claim=home:/home/ann claim=in:/in:ro hello"
    )
    assert found.image == "registry.example:5000/train@sha256:00ff"
    assert found.claims == (Claim("home", "/home/ann"), Claim("in", "/in", read_only=True))


@pytest.mark.parametrize(
    "comment",
    ["results=data", "results=/a/../b", "results=/", "image=", "image=a;b", "image=$(id)", "claim=../x:/data", "claim=x:data", "scratch=much", "gpu-cores=101", "gpu-memory=-1", "traceparent=x",
     "env=A-B", "env=1A"],
)  # fmt: skip
def test_a_word_that_cannot_be_read_is_refused(comment: str) -> None:
    with pytest.raises(PodCommentError):
        pod_words(comment)


def test_jobs_that_cannot_be_pods_are_refused() -> None:
    with pytest.raises(PodRefusedError, match="nodes"):
        pod_job(HOOK, a_slurm_job("7", nodes=2))
    with pytest.raises(PodRefusedError, match="root"):
        pod_job(HOOK | {"SLURM_JOB_UID": "0"}, a_slurm_job("7"))


def test_a_script_comes_back_as_it_was_submitted() -> None:
    head = f"#!/bin/sh\n#fairlead-env SEED={b'42'.hex()}\n#fairlead-arg {HOSTILE.encode().hex()}\nexec x body\nexit 75\n{MARK}\n"
    found = payload(head + HOSTILE)
    assert found == Payload(script=HOSTILE, arguments=(HOSTILE,), variables={"SEED": "42"})
    counted = payload(head.replace("exec x", "#fairlead-gpus 2\nexec x") + HOSTILE)
    assert counted is not None
    assert counted.wants_gpus
    assert payload("#!/bin/sh\ntrue\n") is None, "job_submit.lua has not seen it"
    with pytest.raises(PodRefusedError, match="longer"):
        payload(head + "x" * (LONGEST_SCRIPT + 1))


def test_how_a_pod_ended_is_read_from_its_container() -> None:
    manifest = msgspec.json.decode(msgspec.json.encode(pod_manifest(job(), PodWords(), PROGRAM, RULES)))
    manifest["metadata"]["uid"] = "u"
    manifest["spec"]["nodeName"] = "a"
    manifest["status"] = {
        "phase": "Failed",
        "containerStatuses": [
            {"name": "job", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
        ],
    }
    facts = pod_facts(msgspec.convert(manifest, Pod), "hpc")
    assert facts is not None
    assert facts.job is not None
    assert facts.use is None, "it is over, and holds nothing"
    assert (facts.job.attempt, facts.job.user) == (Attempt(7, 0), 1000)
    assert (facts.job.over, facts.job.exit_code, facts.job.reason) == (True, 137, "OOMKilled")
    assert pod_facts(msgspec.convert(manifest, Pod), "another") is None


RESULTS = ResultRules(hosts={"data": "/mnt/data/"})


def test_results_go_from_where_the_hosts_have_them_to_a_folder_of_the_job() -> None:
    claims = (Claim("home", "/home"), Claim("data", "/data"))
    plan = result_plan(job(work_dir="/data/ann"), "/data/run/7", claims, RESULTS)
    assert plan == ResultPlan(source="/mnt/data/run/7", target="/data/ann/results-7")
    rules = msgspec.structs.replace(RESULTS, folder="/results/{account}/{user}/{job}")
    again = job(attempt=Attempt(7, 2), user="ann", account="vision")
    assert result_plan(again, None, claims, rules) == ResultPlan(target="/results/vision/ann/7-r2")
    assert result_plan(job(), None, claims, RESULTS) is None, "nobody asks for it"


@pytest.mark.parametrize("folder", ["/home/ann", "/data", "/database/x"])
def test_results_that_slurms_hosts_cannot_reach_are_refused(folder: str) -> None:
    with pytest.raises(PodRefusedError, match="they have: data"):
        result_plan(job(), folder, (Claim("home", "/home"), Claim("data", "/data")), RESULTS)


@pytest.mark.parametrize(("changes", "due"), [({}, True), ({"phase": "Running"}, False), ({"leaving": True}, False), ({"results": "{"}, False)])  # fmt: skip
def test_only_what_ended_by_itself_leaves_results(changes: dict[str, object], due: bool) -> None:
    text = encoded(ResultPlan(source="/a", target="/b"))
    pod = JobPod(
        attempt=Attempt(7, 0), uid="u", phase="Failed", ready=False, node="a", leaving=False, exit_code=3, reason="", message="", user=1000, digest="", results=text,
    )  # fmt: skip
    plan = planned(msgspec.structs.replace(pod, **changes))
    assert plan == (ResultPlan(source="/a", target="/b") if due else None)
