"""Kueue as a local process: its configuration, its webhooks on loopback, and the mount namespace that it needs."""

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from fairlead_testkit.kubelab.api import KubeObject
from fairlead_testkit.kubelab.certificates import LOOPBACK
from fairlead_testkit.kubelab.errors import NotMountableError
from fairlead_testkit.kubelab.options import LabOptions

NAMESPACE = "kueue-system"
_INSTALLED = frozenset({"workloads", "clusterqueues", "cohorts", "resourceflavors", "jobs", "pods"})
# The kinds whose versions differ in more than their name, as config/components/crd/kustomization.yaml of Kueue has them.
_CONVERTED = frozenset({"workloads", "clusterqueues", "localqueues", "cohorts", "multikueueclusters"})
_SYSTEM_NAMESPACES = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]}
    ]
}


def configuration(
    options: LabOptions, *, gates: Mapping[str, bool], webhook: int, metrics: int, health: int, pair: Path
) -> KubeObject:
    """Kueue's configuration file.

    Args:
        gates: the feature gates of this start.
        webhook: port.
        metrics: port.
        health: port.
        pair: folder of the key pair that its servers show.
    """
    base: KubeObject = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {"host": LOOPBACK, "port": webhook, "certDir": str(pair)},
        "metrics": {"bindAddress": f"{LOOPBACK}:{metrics}", "enableClusterQueueResources": True},
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{health}"},
        "clientConnection": {"qps": 300, "burst": 450},
        "manageJobsWithoutQueueName": False,
        "integrations": {"frameworks": list(options.frameworks)},
        # The visibility server would want certificates and an APIService of its own.
        "featureGates": {"VisibilityOnDemand": False} | dict(gates),
    }
    return merged(base, options.kueue_config)


def merged(base: KubeObject, more: Mapping[str, object]) -> KubeObject:
    """The object laid over another, field by field; lists and values are replaced."""
    result = dict(base)
    for key, value in more.items():
        inner = result.get(key)
        if isinstance(inner, dict) and isinstance(value, Mapping):
            result[key] = merged(inner, value)
        else:
            result[key] = value
    return result


def on_loopback(
    configurations: Iterable[KubeObject], *, port: int, bundle: str, options: LabOptions
) -> Iterator[KubeObject]:
    """Kueue's webhook configurations, pointed at a local process instead of a Service.

    Webhooks of kinds that the lab does not install are left out: Kueue serves none of them. The namespaces are those
    that Kueue's own manifests select.
    """
    wanted = _INSTALLED | ({"pytorchjobs"} if options.pytorchjobs else set())
    for found in configurations:
        hooks = [hook for hook in found["webhooks"] if set(hook["rules"][0]["resources"]) & wanted]
        for hook in hooks:
            path = hook["clientConfig"]["service"]["path"]
            hook["clientConfig"] = {"url": f"https://{LOOPBACK}:{port}{path}", "caBundle": bundle}
            if hook["rules"][0]["apiGroups"] != ["kueue.x-k8s.io"]:
                hook["namespaceSelector"] = _SYSTEM_NAMESPACES
        name = f"kueue-{found['metadata']['name']}"
        yield {**found, "metadata": {"name": name}, "webhooks": hooks}


def converted(kind: KubeObject, *, port: int, bundle: str) -> KubeObject:
    """A kind of Kueue's, its versions converted by Kueue's webhook, where they need that."""
    if kind["spec"]["names"]["plural"] not in _CONVERTED:
        return kind
    client = {"url": f"https://{LOOPBACK}:{port}/convert", "caBundle": bundle}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    return {**kind, "spec": {**kind["spec"], "conversion": {"strategy": "Webhook", "webhook": webhook}}}


def with_certificates(command: list[str], pair: Path, folder: Path) -> list[str]:
    """The command line under which Kueue finds a key pair where its code has it: in /etc/kueue/metrics/certs.

    The process gets a mount namespace of its own, in which a small folder is its /etc. Nothing is written to the
    machine's /etc, and labs do not see each other's. Without root it is a user namespace, too.

    Args:
        command: Kueue and its arguments.
        pair: folder of `tls.crt` and `tls.key`.
        folder: a place for what becomes /etc.

    Raises:
        NotMountableError: this machine allows neither.
    """
    certificates = folder / "kueue" / "metrics" / "certs"
    certificates.mkdir(parents=True, exist_ok=True)
    for name in ("tls.crt", "tls.key"):
        (certificates / name).write_bytes((pair / name).read_bytes())
    script = 'mount --bind "$0" /etc && exec "$@"'
    return [*_namespace(folder), "/bin/sh", "-c", script, str(folder), *command]


def _namespace(folder: Path) -> list[str]:
    """Command that begins a mount namespace in which that folder can be /etc."""
    own = ["unshare", "--mount"]
    in_user_namespace = ["unshare", "--user", "--map-root-user", "--mount"]
    tries = [own, in_user_namespace] if os.geteuid() == 0 else [in_user_namespace]
    said = ""
    for prefix in tries:
        probe = [*prefix, "/bin/sh", "-c", 'mount --bind "$0" /etc', str(folder)]
        try:
            done = subprocess.run(probe, capture_output=True, text=True, check=False)  # noqa: S603 # our own words
        except FileNotFoundError as error:
            raise NotMountableError("`unshare` of util-linux is missing") from error
        if done.returncode == 0:
            return prefix
        said = done.stderr.strip()
    raise NotMountableError(
        f"Kueue reads a key pair from /etc/kueue/metrics/certs, so it runs in a mount namespace of its own, which was "
        f"refused here ({said}); run as root, or allow user namespaces (`sysctl kernel.unprivileged_userns_clone=1`, "
        "on Ubuntu `sysctl kernel.apparmor_restrict_unprivileged_userns=0`)"
    )
