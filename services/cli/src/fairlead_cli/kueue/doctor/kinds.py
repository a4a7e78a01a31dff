"""Kinds that only the doctor reads: Kueue's own configuration, deployments, and who wrote which field."""

import msgspec

from fairlead_kube.kinds.objects import ApiObject, KubeStruct
from fairlead_kube.kinds.resources import Resource

KUEUE_NAMESPACE = "kueue-system"
"""Namespace in which Kueue's manifests and charts install it."""
KUEUE_CONFIG = "kueue-manager-config"
KUEUE_DEPLOYMENT = "kueue-controller-manager"


class ConfigMap(ApiObject, frozen=True, kw_only=True):
    """Texts by name."""

    data: dict[str, str] | None = None


class DeployedContainer(KubeStruct, frozen=True, kw_only=True):
    """A container and its command line."""

    image: str = ""
    args: list[str] | None = None


class DeployedPod(KubeStruct, frozen=True, kw_only=True):
    """The containers of a deployment's pods."""

    containers: list[DeployedContainer] | None = None


class DeployedTemplate(KubeStruct, frozen=True, kw_only=True):
    """The template of a deployment's pods."""

    spec: DeployedPod = DeployedPod()


class DeploymentSpec(KubeStruct, frozen=True, kw_only=True):
    """The template of a Deployment's pods."""

    template: DeployedTemplate = DeployedTemplate()


class Deployment(ApiObject, frozen=True, kw_only=True):
    """A deployment."""

    spec: DeploymentSpec = DeploymentSpec()

    @property
    def containers(self) -> list[DeployedContainer]:
        """The containers of each of its pods."""
        return self.spec.template.spec.containers or []


class FieldsEntry(KubeStruct, frozen=True, kw_only=True):
    """Fields of an object that one writer set last (`metadata.managedFields`)."""

    manager: str = ""
    operation: str = ""
    fields_v1: dict[str, msgspec.Raw] | None = msgspec.field(default=None, name="fieldsV1")


class WrittenMeta(KubeStruct, frozen=True, kw_only=True):
    """Metadata with its writers."""

    name: str = ""
    namespace: str = ""
    managed_fields: list[FieldsEntry] | None = None


class ManagedObject(KubeStruct, frozen=True, kw_only=True):
    """An object as far as its writers are concerned."""

    metadata: WrittenMeta = WrittenMeta()

    def writers(self, *path: str) -> list[str]:
        """The managers that set the field; path as in `fieldsV1`, such as `f:spec`, `f:priority`."""
        return sorted(
            {one.manager for one in self.metadata.managed_fields or () if _has(one.fields_v1 or {}, path)}
        )


def _has(fields: dict[str, msgspec.Raw], path: tuple[str, ...]) -> bool:
    first, *rest = path
    inner = fields.get(first)
    if inner is None or not rest:
        return inner is not None
    return _has(msgspec.json.decode(inner, type=dict[str, msgspec.Raw]), tuple(rest))


CONFIG_MAPS = Resource(
    group="", version="v1", plural="configmaps", kind="ConfigMap", namespaced=True, shape=ConfigMap
)
DEPLOYMENTS = Resource(
    group="apps", version="v1", plural="deployments", kind="Deployment", namespaced=True, shape=Deployment
)
