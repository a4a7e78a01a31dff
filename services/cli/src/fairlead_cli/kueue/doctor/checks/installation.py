"""Kueue itself: installed, which version, its webhooks; and what could not be read."""

from collections.abc import Iterator

from fairlead_cli.client.phrases import listed
from fairlead_cli.findings import Finding, error, info, warning
from fairlead_cli.kueue.doctor.kueue_config import HASHING, KueueRelease, KueueSeen
from fairlead_cli.kueue.doctor.rights import binding
from fairlead_cli.kueue.doctor.survey import Survey, check
from fairlead_kube.kinds.resources import KUEUE
from fairlead_kube.lever import Lever

CURRENT_API = "v1beta2"
OLDEST_TESTED, NEWEST_TESTED = KueueRelease(0, 18), KueueRelease(0, 19, 99)
"""Releases under which Fairlead's own tests saw the order kept."""
OPTIONAL = frozenset({"deployments"})
"""Kinds that an operator need not be allowed to read: a booster also shows by what it writes."""
REVERTING = (0, 12)
"""Release of Kueue that writes spec.priority back on every reconcile of a job with a Pod PriorityClass
(jobframework/reconciler)."""


@check("kueue", "kueue-absent", fine="Kueue is installed")
def absent(survey: Survey) -> Iterator[Finding]:
    """Find a cluster without Kueue, of which nothing else can be told."""
    if not survey.kueue.served:
        yield error(
            f"Cluster/{survey.cluster}",
            f"{survey.server} does not serve {KUEUE}",
            why="there is no queue to steer",
            mend="kubectl apply --server-side -f "
            "https://github.com/kubernetes-sigs/kueue/releases/download/v0.19.2/manifests.yaml",
        )


@check("name", "cluster-unknown", fine="no Fairlead is known to call its clusters otherwise")
def _named(survey: Survey) -> Iterator[Finding]:
    if survey.told_of:
        yield warning(
            f"Cluster/{survey.cluster}",
            f"no Fairlead serves {survey.cluster}; there is {listed(survey.told_of)}",
            why="leave is by name: under a name that no watcher and admitter have, nothing is written",
            mend="name the cluster as its services do: --cluster NAME; or start its services",
        )


def _why_unknown(kueue: KueueSeen) -> str:
    if kueue.deployed:
        return "its image names no version"
    return (
        "it was not found, or may not be read, and its image names the release. Kueue as a plain process, as in Fairlead's lab, "
        "has no Deployment"
    )


@check(
    "version",
    "kueue-old",
    "kueue-untested",
    "kueue-version-unknown",
    "kueue-reverts",
    fine="Kueue's release is one that Fairlead is tested with",
)
def _version(survey: Survey) -> Iterator[Finding]:
    kueue = survey.kueue
    if CURRENT_API not in kueue.served:
        yield warning(
            f"Cluster/{survey.cluster}",
            f"Kueue serves {', '.join(kueue.served)} and not {CURRENT_API}",
            why="it is older than 0.15; Fairlead reads it, but is not tested on it",
            mend="upgrade Kueue to 0.19",
            name="kueue-old",
        )
    release = kueue.release
    if release is None:
        yield info(
            "Deployment/kueue-system/kueue-controller-manager",
            _why_unknown(kueue),
            why="known faults of old releases cannot be ruled out",
            name="kueue-version-unknown",
        )
        return
    if not OLDEST_TESTED <= release <= NEWEST_TESTED:
        yield info(
            "Deployment/kueue-system/kueue-controller-manager",
            f"Kueue {release}; Fairlead is tested with {OLDEST_TESTED.major}.{OLDEST_TESTED.minor} to "
            f"{NEWEST_TESTED.major}.{NEWEST_TESTED.minor}",
            why="ordering and levers are known to differ between releases",
            name="kueue-untested",
        )
    if (release.major, release.minor) == REVERTING and survey.probe.lever is not Lever.BOOST:
        yield error(
            "Deployment/kueue-system/kueue-controller-manager",
            f"Kueue {release} writes spec.priority back whenever it looks at a job with a Pod PriorityClass",
            why="each level would be overwritten and written again for as long as the job waits",
            mend="upgrade Kueue to 0.13 or later",
            name="kueue-reverts",
        )


@check("configuration", "kueue-config-unread", fine="what Kueue's configuration says can be read")
def _configuration(survey: Survey) -> Iterator[Finding]:
    if survey.kueue.config_problem:
        yield warning(
            "ConfigMap/kueue-system/kueue-manager-config",
            f"cannot be read: {survey.kueue.config_problem}",
            why="fair sharing, gates and Jobs without a queue name are judged as in a Kueue that has no configuration",
            mend="kubectl -n kueue-system get configmap kueue-manager-config -o yaml",
        )


@check("batches", "parked-one-by-one", fine="Kueue tries equal jobs together")
def _batches(survey: Survey) -> Iterator[Finding]:
    if survey.kueue.tries_one_by_one:
        yield warning(
            "Deployment/kueue-system/kueue-controller-manager",
            f"its feature gate {HASHING} is off",
            why="after each release it tries all jobs that wait, one by one, and what comes free meanwhile goes to whoever "
            "is tried next: one admission in five misses the order",
            mend=f"start Kueue with {HASHING}=true, the default since 0.18",
        )


@check("pods", "pods-awaited", fine="Kueue is not known to wait for pods before it starts the next job")
def _pods(survey: Survey) -> Iterator[Finding]:
    if survey.kueue.awaits_pods:
        yield warning(
            "ConfigMap/kueue-system/kueue-manager-config",
            "waitForPodsReady.blockAdmission is on",
            why="while the pods of one job are not ready, or its admission check is open, Kueue starts no other in any queue: "
            "room idles, and `fairlead explain` says that jobs fit. Which job starts then was settled before, whatever "
            "the order is by then",
            mend="set `waitForPodsReady: {blockAdmission: false}` beside your timeout, and restart Kueue",
        )


@check(
    "webhooks",
    "webhook-missing",
    "job-webhook-missing",
    fine="Kueue's webhooks look at Workloads and at Jobs",
    needs=("validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
)
def _webhooks(survey: Survey) -> Iterator[Finding]:
    seen = [hook for found in survey.webhooks for hook in found.webhooks or ()]
    if not any(hook.sees(KUEUE, "workloads", "UPDATE") for hook in seen):
        yield warning(
            f"Cluster/{survey.cluster}",
            "no webhook looks at changes of Workloads",
            why="nothing refuses an unparsable level, and the probe cannot tell which lever Kueue obeys",
            mend="install Kueue's webhooks (they are in its manifests), or name the lever: --lever boost|priority",
            name="webhook-missing",
        )
    if not any(hook.sees("batch", "jobs", "CREATE") for hook in seen):
        yield warning(
            f"Cluster/{survey.cluster}",
            "no webhook looks at new Jobs",
            why="a Job with a queue name is not suspended when it is created: its pods may start before Kueue sees it",
            mend="install Kueue's webhooks, or create every Job with spec.suspend: true",
            name="job-webhook-missing",
        )


@check("reading", "cannot-read", fine="everything could be read")
def _unread(survey: Survey) -> Iterator[Finding]:
    refused = {kind: reason for kind, reason in sorted(survey.unread.items()) if kind not in OPTIONAL}
    if refused:
        first = next(iter(refused))
        yield warning(
            first,
            f"{survey.user or 'our user'} may not list {listed(refused, most=len(refused))}; of {first}: {refused[first]}",
            why="the doctor did not check them, and something may be wrong with them",
            mend=binding(survey.user),
        )
