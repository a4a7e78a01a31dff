"""Furniture of a fresh API server of the lab: kinds, webhooks, rights, nodes and examples."""

import functools
import subprocess
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from fairlead_testkit.kubelab import kueue_setup, things, users
from fairlead_testkit.kubelab.api import Api, KubeObject, documents, parse
from fairlead_testkit.kubelab.building import Kit
from fairlead_testkit.kubelab.errors import ApiError, KubectlError
from fairlead_testkit.kubelab.options import LabOptions
from fairlead_testkit.timing.awaiting import until

_SECONDS = 60.0
NODES = "/api/v1/nodes"
_PACKAGE = Path(str(files("fairlead_testkit.kubelab")))
REPOSITORY = Path(__file__).parents[5]
"""The lab works from a checkout: what may be done in a cluster is tested as it is shipped, from `deploy/`."""
RBAC = REPOSITORY / "deploy" / "kustomize" / "rbac"
TENANT = REPOSITORY / "deploy" / "kustomize" / "tenant"
GANG_FIT = REPOSITORY / "deploy" / "kustomize" / "gang-fit"
SLURM_PODS = REPOSITORY / "deploy" / "kustomize" / "slurm-pods"
SLURM_PODS_NAMESPACE = REPOSITORY / "deploy" / "kustomize" / "slurm-pods-namespace"


def kinds(kit: Kit, options: LabOptions, *, port: int, bundle: str) -> list[KubeObject]:
    """Kueue's kinds and those of the options; what Kueue converts between versions it converts here, too.

    Args:
        options: options of the lab, which say which of them.
        port: port of Kueue's webhooks.
        bundle: certificate of who signed that of the webhooks, in base64.
    """
    found = [
        kueue_setup.converted(kind, port=port, bundle=bundle)
        for kind in documents(*kit.manifests("kueue-crds"))
    ]
    paths = kit.manifests("pytorchjobs") if options.pytorchjobs else []
    paths += kit.manifests("nodepools") if options.nodepools else []
    return [*found, *documents(*paths, *options.crds)]


def await_kinds(api: Api, kinds: Iterable[KubeObject]) -> None:
    """Wait until the API server serves all of them: Kueue does not start where one is missing."""
    for kind in kinds:
        until(functools.partial(_is_served, api, kind), _SECONDS, f"{kind['metadata']['name']} is served")


def _is_served(api: Api, kind: KubeObject) -> bool:
    """Whether the kind is in what the server offers, and a list of it is answered: each takes its own moment."""
    plural = kind["spec"]["names"]["plural"]
    version = next(version["name"] for version in kind["spec"]["versions"] if version["storage"])
    path = f"/apis/{kind['spec']['group']}/{version}"
    try:
        offered = {resource["name"] for resource in api.get(path)["resources"]}
        api.get(f"{path}/{plural}", limit="1")
    except ApiError:
        return False
    return plural in offered


def register_webhooks(api: Api, kit: Kit, options: LabOptions, *, port: int, bundle: str) -> None:
    """Kueue's webhooks. While Kueue does not answer, what they watch over cannot be written, as in production."""
    found = documents(*kit.manifests("kueue-webhooks"))
    api.apply(*kueue_setup.on_loopback(found, port=port, bundle=bundle, options=options))


def answers_webhooks(api: Api) -> bool:
    """Whether Kueue's webhooks answer: asked with the dry run of a flavor."""
    flavor = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"generateName": "probe-"},
    }
    try:
        api.create(flavor, dryRun="All")
    except ApiError:
        return False
    return True


def nodes_ready(api: Api) -> bool:
    """Whether pods can be bound to every node."""
    taints = [taint["key"] for node in api.items(NODES) for taint in node["spec"].get("taints", [])]
    return not any(key.startswith("node.kubernetes.io/") for key in taints)


def write_stages(kit: Kit, path: Path) -> None:
    """KWOK's stages in one file: its own for nodes and for the start of pods, ours for their end."""
    parts = [*kit.manifests("stages"), *sorted((_PACKAGE / "stages").glob("*.yaml"))]
    path.write_text("\n---\n".join(part.read_text() for part in parts))


def examples() -> list[KubeObject]:
    """The example queues, in the order in which they are to be made."""
    return list(documents(*sorted((_PACKAGE / "example").glob("*.yaml"))))


def rights(kit: Kit) -> list[KubeObject]:
    """Rights of Fairlead, as they are shipped; the lab's token users get the same."""
    return [things.namespace(kueue_setup.NAMESPACE), *_with_token_users(_built(kit, RBAC))]


def gang_fit(kit: Kit) -> list[KubeObject]:
    """The check for gang fit and the rights of who answers it, as it is shipped."""
    return _with_token_users(_built(kit, GANG_FIT))


def submission_rights(kit: Kit, into: str) -> list[KubeObject]:
    """Rights in a tenant's namespace for submissions, as they are shipped."""
    return _moved(_with_token_users(_built(kit, TENANT)), into)


def slurm_pod_rights(kit: Kit, into: str) -> list[KubeObject]:
    """Rights of the bridge where Slurm's jobs run as pods, as they are shipped."""
    found = _with_token_users(_built(kit, SLURM_PODS))
    return [*found, *_moved(_with_token_users(_built(kit, SLURM_PODS_NAMESPACE)), into)]


def _moved(found: list[KubeObject], into: str) -> list[KubeObject]:
    for item in found:
        item["metadata"]["namespace"] = into
        for subject in item.get("subjects", []):
            if subject["kind"] == "ServiceAccount":
                subject.setdefault("namespace", into)
    return found


def _with_token_users(objects: list[KubeObject]) -> list[KubeObject]:
    """The objects with token users: what a service account of Fairlead is granted, its namesake of the token file is, too."""
    for item in objects:
        subjects = item.get("subjects", [])
        names = [subject["name"] for subject in subjects if subject["kind"] == "ServiceAccount"]
        subjects += [
            {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}
            for name in names
            if name in users.FAIRLEAD_USERS
        ]
    return objects


def _built(kit: Kit, folder: Path) -> list[KubeObject]:
    return list(parse(_kustomized(kit.binary("kubectl"), folder)))


@functools.cache
def _kustomized(kubectl: Path, folder: Path) -> str:
    """Manifests shipped in a folder, as text; asked for by each test that makes a namespace, the same for all of them."""
    built = subprocess.run(  # noqa: S603 # our own binary
        [str(kubectl), "kustomize", str(folder)], capture_output=True, text=True, check=False
    )
    if built.returncode != 0:
        raise KubectlError(f"kubectl kustomize {folder}: {built.stderr.strip()}")
    return built.stdout
