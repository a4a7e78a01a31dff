"""The pod of an attempt, from the job. Pure: the same job gives the same pod, whoever makes it."""

import hashlib
import re
from collections.abc import Mapping

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.frontend.cards import CARD_CORES, CARD_MEMORY, VGPUS
from fairlead_contracts.frontend.observed import Toleration
from fairlead_kube.reflector import Key
from fairlead_slurm.pod_comment import Claim, PodWords
from fairlead_slurm_bridge.errors import PodRefusedError
from fairlead_slurm_bridge.gate.attempts import LABEL_CLUSTER, LABEL_JOB, LABEL_RESTARTS, Attempt
from fairlead_slurm_bridge.gate.kube_facts import (
    ANNOTATION_BEGAN,
    ANNOTATION_DIGEST,
    ANNOTATION_HANDED_ON,
    ANNOTATION_PROGRAM,
    ANNOTATION_RESULTS,
    ANNOTATION_SUBMITTED,
    ANNOTATION_USER,
    CONTAINER,
    RUNS,
    WAITS,
)
from fairlead_slurm_bridge.pods.requests import Payload, PodJob
from fairlead_slurm_bridge.pods.results import ResultRules, encoded, result_plan

type Manifest = dict[str, object]

ANNOTATION_SCRIPT = "slurm.fairlead.dev/script"
LABEL_ACCOUNT = "slurm.fairlead.dev/account"
_FOLDER = "/fairlead"
_SHELL = "/bin/sh"
_WAITING = f"""\
trap 'exit 143' TERM
while read -r word <{_FOLDER}/program; [ "$word" != {RUNS} ]; do sleep 0.2 2>/dev/null || sleep 1 || exit 127; done
trap - TERM
exec "$@"
"""
"""Script of a container before its program: it waits until the kubelet has written that the job's process has
come.

The first process of a container ignores SIGTERM unless it says otherwise; and not each `sleep` knows parts of seconds.
"""
_SCRATCH = "/scratch"
_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_FIRST_CHOICE = 100


class PodRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules of a site for all pods."""

    cluster: str
    namespace: str
    namespaces: Mapping[str, str] = {}
    """Namespace by account, for accounts whose pods have another one."""
    image: str
    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    claims: tuple[Claim, ...] = ()
    """Volumes that every pod mounts: shared storage."""
    priority_classes: Mapping[str, str] = {}
    """PriorityClass of Kubernetes by QOS."""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    stop_seconds: int = 30
    results: ResultRules = ResultRules()

    def namespace_of(self, account: str) -> str:
        """The namespace of an account's pods."""
        return self.namespaces.get(account, self.namespace)

    def pod_key(self, account: str, attempt: Attempt) -> Key:
        """The key of an attempt's pod, and of the claim that is made for it."""
        return Key(self.namespace_of(account), attempt.pod_name(self.cluster))


def pod_manifest(job: PodJob, asked: PodWords, payload: Payload, rules: PodRules) -> Manifest:
    """The Pod of an attempt, as the API server takes it.

    Raises:
        PodRefusedError: parts of no GPU, two volumes at one path, or results that nobody can reach.
    """
    claims = (*rules.claims, *asked.claims)
    places = [claim.path for claim in claims] + ([_SCRATCH] if asked.scratch else [])
    if len(set(places)) < len(places):
        raise PodRefusedError("two volumes would lie at the same path of the pod")
    name = job.attempt.pod_name(rules.cluster)
    spec: dict[str, object] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": rules.stop_seconds,
        "securityContext": _user(job),
        "containers": [_container(job, asked, payload, rules, claims)],
        "volumes": _volumes(claims, asked, name),
        "nodeSelector": dict(rules.node_selector),
        "tolerations": [_toleration(one) for one in rules.tolerations],
    }
    priority = rules.priority_classes.get(job.qos)
    if priority is not None:
        spec["priorityClassName"] = priority
    return {"metadata": _metadata(job, asked, payload, rules, name), "spec": spec}


def claim_manifest(job: PodJob, size: str, rules: PodRules) -> Manifest:
    """The claim that is made for an attempt and goes with it, of its pod's name."""
    return {
        "metadata": {
            "name": job.attempt.pod_name(rules.cluster),
            "namespace": rules.namespace_of(job.account),
            "labels": _own_labels(job, rules),
        },
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
    }


def on_node(manifest: Manifest, node: str) -> Manifest:
    """The pod with a preference for the node where room was kept for it; the scheduler may do otherwise."""
    expression = {"key": "metadata.name", "operator": "In", "values": [node]}
    term = {"weight": _FIRST_CHOICE, "preference": {"matchFields": [expression]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    spec = manifest["spec"]
    assert isinstance(spec, dict)  # noqa: S101 # made here
    return {**manifest, "spec": {**spec, "affinity": affinity}}


def digest_of(job: PodJob, payload: Payload) -> str:
    """Digest of all that a job's pods are made from, alike for its attempts.

    A job's identity is this with its number and its submit time. The number alone is none: after a loss of its state
    Slurm counts from the beginning again.
    """
    same = msgspec.structs.replace(job, attempt=Attempt(job.attempt.job, 0), submitted=0)
    return hashlib.sha256(msgspec.json.encode((same, payload))).hexdigest()[:32]


def handed_to(attempt: Attempt, submitted: Micros | None) -> Manifest:
    """A merge patch that makes a pod another attempt's.

    Args:
        attempt: another attempt of the same job.
        submitted: instant of its submission; None where slurmctld has still to send it back into the queue.
    """
    waits = submitted is None
    annotations = {
        ANNOTATION_SUBMITTED: None if waits else str(submitted),
        ANNOTATION_HANDED_ON: "true" if waits else None,
        ANNOTATION_BEGAN: None,
    }
    return {"metadata": {"labels": {LABEL_RESTARTS: str(attempt.restarts)}, "annotations": annotations}}


def begun(uid: str) -> Manifest:
    """A merge patch for this pod alone: a process of its attempt has come, so its program may begin."""
    return {"metadata": {"uid": uid, "annotations": {ANNOTATION_BEGAN: "true", ANNOTATION_PROGRAM: RUNS}}}


def _metadata(job: PodJob, asked: PodWords, payload: Payload, rules: PodRules, name: str) -> Manifest:
    account = {LABEL_ACCOUNT: job.account} if _VALUE.fullmatch(job.account) else {}
    annotations = {
        ANNOTATION_USER: str(job.uid),
        ANNOTATION_DIGEST: digest_of(job, payload),
        ANNOTATION_SUBMITTED: str(job.submitted),
        ANNOTATION_SCRIPT: payload.script,
        ANNOTATION_PROGRAM: WAITS,
        "slurm.fairlead.dev/name": job.name,
        "slurm.fairlead.dev/user": job.user,
    }
    if asked.traceparent:
        annotations["fairlead.dev/traceparent"] = asked.traceparent
    plan = result_plan(job, asked.results, (*rules.claims, *asked.claims), rules.results)
    if plan is not None:
        annotations[ANNOTATION_RESULTS] = encoded(plan)
    return {
        "name": name,
        "namespace": rules.namespace_of(job.account),
        "labels": {**rules.labels, **account, **_own_labels(job, rules)},
        "annotations": {**rules.annotations, **annotations},
    }


def _own_labels(job: PodJob, rules: PodRules) -> dict[str, str]:
    return {
        LABEL_CLUSTER: rules.cluster,
        LABEL_JOB: str(job.attempt.job),
        LABEL_RESTARTS: str(job.attempt.restarts),
    }


def _user(job: PodJob) -> Manifest:
    return {
        "runAsUser": job.uid,
        "runAsGroup": job.gid,
        "fsGroup": job.gid,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _container(
    job: PodJob, asked: PodWords, payload: Payload, rules: PodRules, claims: tuple[Claim, ...]
) -> Manifest:
    resources = _resources(job, asked)
    mounts: list[dict[str, object]] = [{"name": "fairlead", "mountPath": _FOLDER, "readOnly": True}]
    mounts += [
        {"name": f"claim-{number}", "mountPath": claim.path, "readOnly": claim.read_only}
        for number, claim in enumerate(claims)
    ]
    if asked.scratch:
        mounts.append({"name": "scratch", "mountPath": _SCRATCH})
    container: dict[str, object] = {
        "name": CONTAINER,
        "image": asked.image or rules.image,
        "command": [
            _SHELL,
            "-c",
            _literal(_WAITING),
            "fairlead",
            f"{_FOLDER}/script",
            *map(_literal, payload.arguments),
        ],
        "env": [
            {"name": name, "value": _literal(value)}
            for name, value in _variables(job, asked, payload).items()
        ],
        "resources": {"requests": resources, "limits": resources},
        "volumeMounts": mounts,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    if any(_is_under(job.work_dir, claim.path) for claim in claims):
        container["workingDir"] = job.work_dir
    return container


def _literal(value: str) -> str:
    """The value with each dollar doubled, as Kubernetes replaces `$(NAME)` by another variable."""
    return value.replace("$", "$$")


def _variables(job: PodJob, asked: PodWords, payload: Payload) -> dict[str, str]:
    found = {
        **payload.variables,
        "SLURM_JOB_ID": str(job.attempt.job),
        "SLURM_JOBID": str(job.attempt.job),
        "SLURM_JOB_NAME": job.name,
        "SLURM_JOB_USER": job.user,
        "SLURM_JOB_ACCOUNT": job.account,
        "SLURM_JOB_PARTITION": job.partition,
        "SLURM_SUBMIT_DIR": job.work_dir,
        "SLURM_RESTART_COUNT": str(job.attempt.restarts),
        "SLURM_CPUS_ON_NODE": str(max(job.cpu // 1000, 1)),
        "SLURM_GPUS_ON_NODE": str(job.gpus),
    }
    if job.array is not None:
        found |= {"SLURM_ARRAY_JOB_ID": job.array[0], "SLURM_ARRAY_TASK_ID": job.array[1]}
    if asked.traceparent:
        found["TRACEPARENT"] = asked.traceparent
    return found


def _resources(job: PodJob, asked: PodWords) -> dict[str, str]:
    if (asked.gpu_memory or asked.gpu_cores) and not job.gpus:
        raise PodRefusedError("the comment asks for a part of each GPU, and the job for none: --gres=gpu:1")
    found = {
        "cpu": f"{job.cpu}m",
        "memory": str(job.memory) if job.memory else None,
        VGPUS: str(job.gpus) if job.gpus else None,
        CARD_MEMORY: str(asked.gpu_memory) if asked.gpu_memory else None,
        CARD_CORES: str(asked.gpu_cores) if asked.gpu_cores else None,
    }
    return {name: amount for name, amount in found.items() if amount is not None}


def _volumes(claims: tuple[Claim, ...], asked: PodWords, own_claim: str) -> list[Manifest]:
    files = [
        _annotation_file("script", ANNOTATION_SCRIPT, 0o555),
        _annotation_file("program", ANNOTATION_PROGRAM, 0o444),
    ]
    volumes: list[Manifest] = [{"name": "fairlead", "downwardAPI": {"items": files}}]
    volumes += [
        {
            "name": f"claim-{number}",
            "persistentVolumeClaim": {"claimName": claim.name, "readOnly": claim.read_only},
        }
        for number, claim in enumerate(claims)
    ]
    if asked.scratch:
        volumes.append({"name": "scratch", "persistentVolumeClaim": {"claimName": own_claim}})
    return volumes


def _annotation_file(path: str, annotation: str, mode: int) -> Manifest:
    return {"path": path, "mode": mode, "fieldRef": {"fieldPath": f"metadata.annotations['{annotation}']"}}


def _toleration(one: Toleration) -> Manifest:
    found = {"key": one.key, "operator": one.operator, "value": one.value, "effect": one.effect}
    return {name: value for name, value in found.items() if value}


def _is_under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
