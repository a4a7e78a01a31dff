"""Containers of a manifest as plain processes: the lab has no kubelet, and what a Deployment says is to be tried all the same.

Done as a kubelet does: the command with its `$(NAMES)`, the environment from ConfigMaps and values, ConfigMaps and
Secrets as files. Not done, since a process on this machine is no container: users, security contexts, limits, images.
"""

import base64
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairlead_testkit.kubelab.api import Api, KubeObject

_NAMED = re.compile(r"\$\((\w+)\)")
_PROGRAMS = Path(sys.executable).parent


@dataclass(frozen=True)
class ContainerRun:
    """A container of a pod, as its pod template tells it to run, with paths of this machine.

    Attributes:
        command: program and arguments.
        environ: environment with nothing of ours in it, but where programs are.
        probes: path by kind, of those that ask over HTTP.
        account: the service account of its pod.
    """

    command: list[str]
    environ: dict[str, str]
    probes: dict[str, str]
    account: str


def read_container(
    api: Api, namespace: str, pod: KubeObject, container: KubeObject, folder: Path, **instead: str
) -> ContainerRun:
    """Reads a container of a pod template.

    Args:
        api: the API server with the ConfigMaps and Secrets that the container names.
        pod: the pod's `spec`.
        folder: folder for files of its volumes; paths in the command and the environment lead there.
        instead: variables with another value here, such as addresses.
    """
    mounts = _mount(api, namespace, pod, container, folder)
    told = {name: _here(value, mounts) for name, value in _environment(api, namespace, container).items()}
    given = told | instead
    command = [
        _here(_NAMED.sub(lambda found: given[found[1]], word), mounts) for word in container["command"]
    ]
    program = sys.executable if command[0] == "python" else str(_PROGRAMS / command[0])
    return ContainerRun(
        command=[program, *command[1:]],
        environ={"PATH": os.environ["PATH"], "HOME": str(folder), **given},
        probes={
            kind: container[kind]["httpGet"]["path"]
            for kind in ("startupProbe", "livenessProbe", "readinessProbe")
            if kind in container
        },
        account=pod["serviceAccountName"],
    )


def _environment(api: Api, namespace: str, container: KubeObject) -> dict[str, str]:
    found: dict[str, str] = {}
    for source in container.get("envFrom", []):
        found |= api.get(f"/api/v1/namespaces/{namespace}/configmaps/{source['configMapRef']['name']}")[
            "data"
        ]
    for one in container.get("env", []):
        if "value" in one:
            found[one["name"]] = one["value"]
        else:
            told = one["valueFrom"]["configMapKeyRef"]
            path = f"/api/v1/namespaces/{namespace}/configmaps/{told['name']}"
            found[one["name"]] = api.get(path)["data"][told["key"]]
    return found


def _mount(
    api: Api, namespace: str, pod: KubeObject, container: KubeObject, folder: Path
) -> Mapping[str, Path]:
    """Folders of this machine by the paths at which the container has them."""
    volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
    found = {}
    for mount in container.get("volumeMounts", []):
        place = folder / container["name"] / mount["name"]
        place.mkdir(parents=True, exist_ok=True)
        for name, content in _files(api, namespace, volumes.get(mount["name"], {})).items():
            (place / name).touch(mode=0o600)
            (place / name).write_bytes(content)
        found[mount["mountPath"]] = place
    return found


def _files(api: Api, namespace: str, volume: KubeObject) -> dict[str, bytes]:
    root = f"/api/v1/namespaces/{namespace}"
    if "secret" in volume:
        data = api.get(f"{root}/secrets/{volume['secret']['secretName']}")["data"]
        content = {name: base64.b64decode(value) for name, value in data.items()}
        items = volume["secret"].get("items")
        return content if items is None else {item["path"]: content[item["key"]] for item in items}
    if "configMap" in volume:
        data = api.get(f"{root}/configmaps/{volume['configMap']['name']}")["data"]
        return {name: value.encode() for name, value in data.items()}
    return {}


def _here(text: str, mounts: Mapping[str, Path]) -> str:
    for path, place in mounts.items():
        if text == path or text.startswith(f"{path}/"):
            return str(place) + text.removeprefix(path)
    return text
