"""Kueue's version, feature gates and configuration, as far as they can be read."""

import re

import msgspec

from fairlead_cli.kueue.doctor.kinds import ConfigMap, Deployment
from fairlead_contracts.base.yaml_text import YamlError, read_yaml

_FILE = "controller_manager_config.yaml"
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:[-+.].*)?")
_GATES = "--feature-gates="
HASHING = "SchedulingEquivalenceHashing"
"""Gate by which equal jobs are parked together, once the first of them was refused
(pkg/features/kube_features.go)."""
_HASHING_OFF = (0, 17)
"""The release in which equal jobs can be parked together and are not by default; they are since."""


class KueueRelease(msgspec.Struct, frozen=True, order=True):
    """A version of Kueue."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


class _KueueConfigFile(msgspec.Struct, frozen=True, rename="camel"):
    fair_sharing: dict[str, object] | None = None
    wait_for_pods_ready: dict[str, object] | None = None
    manage_jobs_without_queue_name: bool = False
    feature_gates: dict[str, bool] | None = None


class KueueSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The Kueue of a cluster."""

    served: tuple[str, ...] = ()
    """Versions of its API, the preferred one first; none where Kueue is not installed."""
    release: KueueRelease | None = None
    """Release of Kueue; None where its deployment cannot be read or its image names no version."""
    deployed: bool = False
    """Whether its Deployment was found and could be read."""
    gates: dict[str, bool] = {}
    """Feature gates that its configuration or its arguments name."""
    fair_sharing: bool = False
    awaits_pods: bool = False
    """Whether it starts nobody until the pods of all that it started are ready (`waitForPodsReady.blockAdmission`)."""
    manages_all_jobs: bool = False
    """Whether it takes Jobs without a queue name, too (`manageJobsWithoutQueueName`)."""
    config_problem: str = ""
    """The reason for which its configuration, though there, cannot be read; what it says counts as not said then."""

    @property
    def tries_one_by_one(self) -> bool:
        """Whether it is known to try parked jobs again one by one: its gate is off, as it is in 0.17 if nobody says more."""
        default = self.release is None or (self.release.major, self.release.minor) != _HASHING_OFF
        return not self.gates.get(HASHING, default)


def seen(served: list[str], deployment: Deployment | None, config: ConfigMap | None) -> KueueSeen:
    """Kueue as deployment and configuration tell; either may be missing."""
    text = ((config.data if config else None) or {}).get(_FILE, "")
    found, problem = _KueueConfigFile(), ""
    try:
        found = msgspec.convert(read_yaml(text) or {}, _KueueConfigFile)
    except (YamlError, msgspec.ValidationError) as error:
        problem = str(error)
    return KueueSeen(
        served=tuple(served),
        release=_release(deployment),
        deployed=deployment is not None,
        gates={**(found.feature_gates or {}), **_gates(deployment)},
        # Configurations up to v1beta1 have a switch in it; since v1beta2 its presence turns it on.
        fair_sharing=found.fair_sharing is not None and found.fair_sharing.get("enable") is not False,
        awaits_pods=_awaits_pods(found.wait_for_pods_ready),
        manages_all_jobs=found.manage_jobs_without_queue_name,
        config_problem=problem,
    )


def _awaits_pods(found: dict[str, object] | None) -> bool:
    """Whether `waitForPodsReady` blocks: up to v1beta1 it has a switch, and blocks unless it says otherwise; since v1beta2 if it says so."""
    if found is None or found.get("enable") is False:
        return False
    return found.get("blockAdmission", "enable" in found) is True


def _release(deployment: Deployment | None) -> KueueRelease | None:
    for container in deployment.containers if deployment else ():
        tag = container.image.partition("@")[0].rpartition("/")[2].partition(":")[2]
        if match := _VERSION.fullmatch(tag):
            return KueueRelease(int(match[1]), int(match[2]), int(match[3] or 0))
    return None


def _gates(deployment: Deployment | None) -> dict[str, bool]:
    """Gates of the command line."""
    containers = deployment.containers if deployment else []
    words = [word for container in containers for word in container.args or ()]
    pairs = [
        pair.partition("=")
        for word in words
        if word.startswith(_GATES)
        for pair in word.removeprefix(_GATES).split(",")
    ]
    return {name: value == "true" for name, _, value in pairs if name}
