"""The plan for a job's results: their place on Slurm's hosts, and the folder that they move to. Pure.

It is written down in an annotation when the pod is made, so that a bridge that starts later knows it; carried out by the
epilog, as the job's own user (`fairlead_slurm.hooks.results`).
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import msgspec

from fairlead_kube.reflector import Key
from fairlead_slurm.pod_comment import Claim
from fairlead_slurm_bridge.errors import PodRefusedError
from fairlead_slurm_bridge.gate.kube_facts import JobPod
from fairlead_slurm_bridge.pods.requests import PodJob

_BESIDE = "{workdir}/results-{job}"
"""Folder for results that a job asks for, on a site whose rules name none."""


class ResultRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules of a site for results."""

    hosts: Mapping[str, str] = {}
    """Folders in which Slurm's hosts have the same storage, by volume claim."""
    folder: str | None = None
    """Folder of each job's results, with `{job}`, `{user}`, `{account}` and `{workdir}` in it; None: only
    jobs that ask have one."""


class ResultPlan(msgspec.Struct, frozen=True, kw_only=True, rename={"source": "from", "target": "to"}):
    """The epilog's task: a folder whose content it moves, and the one that it moves it into."""

    source: str = ""
    """Folder of the results on Slurm's hosts; empty where only a summary is written."""
    target: str


def result_plan(
    job: PodJob, results: str | None, claims: Iterable[Claim], rules: ResultRules
) -> ResultPlan | None:
    """The plan of a job; None where neither the job nor the site asks for one.

    Args:
        job: the attempt.
        results: folder of the pod, from the job's comment.
        claims: volume claims that the pod mounts.
        rules: rules of the site.

    Raises:
        PodRefusedError: the folder lies on no volume that Slurm's hosts have, too.
    """
    if results is None and rules.folder is None:
        return None
    number = f"{job.attempt.job}-r{job.attempt.restarts}" if job.attempt.restarts else str(job.attempt.job)
    words = {"{job}": number, "{user}": job.user, "{account}": job.account, "{workdir}": job.work_dir}
    target = rules.folder or _BESIDE
    for word, value in words.items():
        target = target.replace(word, value)
    return ResultPlan(source="" if results is None else _on_hosts(results, claims, rules), target=target)


def _on_hosts(results: str, claims: Iterable[Claim], rules: ResultRules) -> str:
    for claim in claims:
        inside = results.removeprefix(claim.path.rstrip("/") + "/")
        if claim.name in rules.hosts and inside != results:
            return f"{rules.hosts[claim.name].rstrip('/')}/{inside}"
    known = ", ".join(sorted(rules.hosts)) or "none"
    raise PodRefusedError(
        f"the comment's results={results} has to lie below a claim of the job that Slurm's hosts have, too; they have: {known}"
    )


def encoded(plan: ResultPlan) -> str:
    """The plan as the annotation has it."""
    return msgspec.json.encode(plan).decode()


def planned(pod: JobPod) -> ResultPlan | None:
    """The plan of a pod that is over; None without one, and for a pod that somebody ended."""
    if not (pod.results and pod.over and not pod.leaving):
        return None
    try:
        return msgspec.json.decode(pod.results, type=ResultPlan)
    except msgspec.DecodeError:
        return None


def summary(key: Key, pod: JobPod, now: datetime) -> dict[str, object]:
    """The summary of an attempt, for whoever looks at its results later."""
    return {
        "job": pod.attempt.job,
        "restarts": pod.attempt.restarts,
        "pod": key.name,
        "namespace": key.namespace,
        "node": pod.node,
        "phase": pod.phase,
        "exit_code": pod.exit_code,
        "reason": pod.reason,
        "message": pod.message,
        "written": now.astimezone(UTC).isoformat(timespec="seconds"),
    }
