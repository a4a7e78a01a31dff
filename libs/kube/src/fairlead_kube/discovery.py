"""Discovery of a server: what it serves, who we are there and what we may do."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from fairlead_kube.client import KubeClient, service_account
from fairlead_kube.errors import MalformedAnswerError, NotFoundError
from fairlead_kube.kinds.objects import KubeStruct
from fairlead_kube.kinds.resources import Resource

_AUTHORIZATION = "authorization.k8s.io/v1"
_RIPENESS = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")


class Version(KubeStruct, frozen=True, kw_only=True):
    """The version of an API server."""

    git_version: str = ""
    """Full version, such as `v1.36.3`."""
    major: str = ""
    minor: str = ""
    """Minor version, behind which some providers put a `+`."""


class ServedKind(KubeStruct, frozen=True, kw_only=True):
    """A kind that is served."""

    name: str
    """Plural of the kind, as in paths."""
    kind: str
    namespaced: bool = False


class Whoami(KubeStruct, frozen=True, kw_only=True):
    """The user that the server knows us as."""

    username: str = ""


class _Kinds(KubeStruct, frozen=True, kw_only=True):
    resources: list[ServedKind] | None = None


class _GroupVersion(KubeStruct, frozen=True, kw_only=True):
    version: str


class _ApiGroup(KubeStruct, frozen=True, kw_only=True):
    versions: list[_GroupVersion] | None = None


class _Review(KubeStruct, frozen=True, kw_only=True):
    class AccessStatus(KubeStruct, frozen=True, kw_only=True):
        allowed: bool = False
        user_info: Whoami = Whoami()

    status: AccessStatus = AccessStatus()


async def server_version(client: KubeClient) -> Version:
    """The version of the server; needs no right but to be signed in."""
    return _read(await client.request("GET", "/version"), Version)


async def served(client: KubeClient, group: str) -> dict[str, dict[str, ServedKind]]:
    """The kinds of a group by version, the preferred one first, then by plural; empty without the group."""
    if not group:
        return {"v1": await _kinds(client, "/api/v1")}
    try:
        found = _read(await client.request("GET", f"/apis/{group}"), _ApiGroup)
        versions = [one.version for one in found.versions or ()]
        return {version: await _kinds(client, f"/apis/{group}/{version}") for version in versions}
    except NotFoundError:
        return {}


async def pick_version[T](client: KubeClient, resource: Resource[T]) -> Resource[T] | None:
    """The resource in its own version where that is served, else in the ripest that is; None where none is."""
    there = await served(client, resource.group)
    versions = [version for version, kinds in there.items() if resource.plural in kinds]
    if not versions or resource.version in versions:
        return resource if versions else None
    return resource.at(max(versions, key=_ripeness))


async def can_i[T](
    client: KubeClient,
    verb: str,
    resource: Resource[T],
    *,
    namespace: str | None = None,
    name: str | None = None,
    subresource: str | None = None,
    impersonate: str | None = None,
    account: tuple[str, str] | None = None,
) -> bool:
    """Whether we may do this, in one namespace or, without one, in all of them; or whether a service account may.

    Args:
        namespace: namespace of the request; None for all of them.
        name: name of the one object; None for any.
        subresource: part of the object, such as `status`; None for the object.
        impersonate: user as whom it is asked.
        account: namespace and name of a service account that is meant in our place, which takes no right to impersonate it.
    """
    attributes = {
        "verb": verb,
        "group": resource.group,
        "version": resource.version,
        "resource": resource.plural,
    }
    optional = {"namespace": namespace, "name": name, "subresource": subresource}
    attributes |= {key: value for key, value in optional.items() if value}
    kind, spec = "SelfSubjectAccessReview", dict[str, object](resourceAttributes=attributes)
    if account is not None:
        kind = "SubjectAccessReview"
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{account[0]}", "system:authenticated"]
        spec |= {"user": service_account(*account), "groups": groups}
    review = await _review(client, _AUTHORIZATION, kind, spec, impersonate)
    return review.status.allowed


async def whoami(client: KubeClient) -> Whoami:
    """The user that the server knows us as (SelfSubjectReview; Kubernetes 1.28)."""
    review = await _review(client, "authentication.k8s.io/v1", "SelfSubjectReview", None, None)
    return review.status.user_info


async def _review(
    client: KubeClient,
    api_version: str,
    kind: str,
    spec: Mapping[str, object] | None,
    impersonate: str | None,
) -> _Review:
    body: dict[str, object] = {"apiVersion": api_version, "kind": kind}
    if spec is not None:
        body["spec"] = spec
    path = f"/apis/{api_version}/{kind.lower()}s"
    answer = await client.request("POST", path, body=msgspec.json.encode(body), impersonate=impersonate)
    return _read(answer, _Review)


async def _kinds(client: KubeClient, path: str) -> dict[str, ServedKind]:
    """The kinds that a group's version serves, by plural; subresources are left out."""
    found = _read(await client.request("GET", path), _Kinds).resources or ()
    return {one.name: one for one in found if "/" not in one.name}


class _Ripeness(NamedTuple):
    stable: int
    """Stage of the version: 2 for stable, 1 for beta, 0 for alpha, -1 for one in another form."""
    major: int
    minor: int


def _ripeness(version: str) -> _Ripeness:
    """The rank of a version in the order in which Kubernetes prefers versions."""
    match = _RIPENESS.fullmatch(version)
    if match is None:
        return _Ripeness(-1, 0, 0)
    stage = {None: 2, "beta": 1, "alpha": 0}[match[2]]
    return _Ripeness(stage, int(match[1]), int(match[3] or 0))


def _read[T](body: bytes, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.DecodeError as error:
        raise MalformedAnswerError(f"not a {shape.__name__}: {error}") from error
