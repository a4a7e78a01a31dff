"""Typed calls on one API server."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping

import msgspec

from fairlead_contracts.base.observer import SILENT, LibraryObserver
from fairlead_kube.connection.kubeconfig import find_access
from fairlead_kube.connection.throttle import Throttle
from fairlead_kube.connection.transport import APPLY_PATCH, JSON, MERGE_PATCH, Transport, open_transport
from fairlead_kube.errors import ExpiredError, MalformedAnswerError
from fairlead_kube.kinds.objects import KubeStruct
from fairlead_kube.kinds.resources import PODS, Resource
from fairlead_kube.settings import KubeSettings

PAGE = 500
"""Number of objects in a page of a list, as kubectl asks for."""
_METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1,application/json"

type ApiDocument = Mapping[str, object]
"""An object, or a part of one, as JSON has it."""


class ListMeta(KubeStruct, frozen=True, kw_only=True):
    """The metadata of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class RawPage(KubeStruct, frozen=True, kw_only=True):
    """A page of a list, its objects still undecoded."""

    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


_PAGE = msgspec.json.Decoder(RawPage)


class KubeClient:
    """A client of one API server: reads freely, and writes through a token bucket."""

    def __init__(self, transport: Transport, *, writes: Throttle, observer: LibraryObserver = SILENT) -> None:
        self.transport = transport
        self.request = transport.request
        """A raw call, not held back by `writes`."""
        self.writes = writes
        """Token bucket that holds back mutating calls, dry runs included."""
        self.observer = observer
        self.server = transport.server
        """The URL of the API server."""

    async def get[T](
        self,
        resource: Resource[T],
        name: str,
        namespace: str | None = None,
        *,
        impersonate: str | None = None,
    ) -> T:
        """Read one object.

        Raises:
            NotFoundError: there is no such object.
        """
        path = resource.path(namespace, name)
        answer = await self.request("GET", path, accept=accepted(resource), impersonate=impersonate)
        return _decode(resource, answer, path)

    async def list[T](
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = PAGE,
        impersonate: str | None = None,
    ) -> list[T]:
        """List the objects of one namespace or of all, `limit` of them in each request.

        An expired list (410: it took longer than the server keeps history) is begun again.
        """
        query = selectors(label_selector, field_selector)
        path = resource.path(namespace)
        while True:
            found: list[T] = []
            try:
                async for page in self.pages(
                    resource, path, {**query, "limit": str(limit)}, impersonate=impersonate
                ):
                    found += [_decode(resource, item, path) for item in page.items or ()]
            except ExpiredError:
                self.observer.count("list.expired")
            else:
                return found

    async def pages[T](
        self,
        resource: Resource[T],
        path: str,
        query: Mapping[str, str],
        *,
        impersonate: str | None = None,
    ) -> AsyncIterator[RawPage]:
        """Read the pages of a list, one after the other."""
        asked = dict(query)
        while True:
            body = await self.request(
                "GET", path, query=asked, accept=accepted(resource, "List"), impersonate=impersonate
            )
            try:
                page = _PAGE.decode(body)
            except msgspec.DecodeError as error:
                raise MalformedAnswerError(f"GET {path}: {error}") from error
            yield page
            if not page.metadata.continue_:
                return
            # A token carries its revision: the server refuses one beside it.
            asked = {key: value for key, value in asked.items() if not key.startswith("resourceVersion")}
            asked["continue"] = page.metadata.continue_

    async def create[T](
        self,
        resource: Resource[T],
        body: ApiDocument,
        namespace: str | None = None,
        *,
        dry_run: bool = False,
        impersonate: str | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Make an object; returns it as the server made it.

        `apiVersion` and `kind` are filled in; the namespace is that of the body's metadata where none is given.

        Raises:
            AlreadyExistsError: there is one of this name.
            InvalidError: `causes` says which fields.
            ForbiddenError: no right to, or an admission webhook said no.
        """
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        own = _metadata_of(body).get("namespace")
        path = resource.path(namespace or (own if isinstance(own, str) else None))
        query = _options(dry_run=dry_run, field_manager=field_manager)
        return await self._write("POST", resource, path, whole, query=query, impersonate=impersonate)

    async def merge_patch[T](
        self,
        resource: Resource[T],
        name: str,
        patch: ApiDocument,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Patch an object; returns it as patched (RFC 7396: None removes a field, a list is replaced).

        Raises:
            ConflictError: `resource_version` is given, and the object is not at it any more.
            NotFoundError: there is no such object.
        """
        whole = dict(patch)
        if resource_version is not None:
            whole["metadata"] = {**_metadata_of(patch), "resourceVersion": resource_version}
        path = resource.path(namespace, name, subresource)
        query = _options(field_manager=field_manager)
        return await self._write("PATCH", resource, path, whole, content_type=MERGE_PATCH, query=query)

    async def apply[T](
        self,
        resource: Resource[T],
        name: str,
        body: ApiDocument,
        namespace: str | None = None,
        *,
        field_manager: str,
        subresource: str | None = None,
    ) -> T:
        """Apply an object server-side; returns it. `body` has all fields of this manager, and no others."""
        whole = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            **body,
            "metadata": {**_metadata_of(body), "name": name},
        }
        path = resource.path(namespace, name, subresource)
        query = _options(field_manager=field_manager) | {"force": "true"}
        return await self._write("PATCH", resource, path, whole, content_type=APPLY_PATCH, query=query)

    async def delete[T](
        self,
        resource: Resource[T],
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        impersonate: str | None = None,
    ) -> None:
        """Delete the object.

        Args:
            namespace: namespace of the object; None for one of the whole cluster.
            uid: UID of the object; None where another that took its name may go, too.
            resource_version: version of the object, as which alone it goes; None for any.
            impersonate: user to do it as; None for our own.

        Raises:
            NotFoundError: the object is gone already.
            ConflictError: another object has the name now, or it has changed.
        """
        options: dict[str, object] = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
        }
        wanted = {"uid": uid, "resourceVersion": resource_version}
        if preconditions := {field: value for field, value in wanted.items() if value is not None}:
            options["preconditions"] = preconditions
        await self.writes.acquire()
        path = resource.path(namespace, name)
        await self.request("DELETE", path, body=msgspec.json.encode(options), impersonate=impersonate)

    @contextlib.asynccontextmanager
    async def pod_log(
        self, name: str, namespace: str, *, container: str, follow: bool
    ) -> AsyncGenerator[AsyncIterator[bytes]]:
        """A container's output from its beginning, in pieces; with `follow` until the container ends.

        Raises:
            StatusError: there is no such pod, the container has not begun, or its kubelet does not answer.
        """
        query = {"container": container} | ({"follow": "true"} if follow else {})
        async with self.transport.octets(PODS.path(namespace, name, "log"), query=query) as pieces:
            yield pieces

    async def _write[T](
        self,
        method: str,
        resource: Resource[T],
        path: str,
        body: ApiDocument,
        *,
        query: Mapping[str, str],
        impersonate: str | None = None,
        content_type: str = JSON,
    ) -> T:
        await self.writes.acquire()
        answer = await self.request(
            method,
            path,
            query=query,
            body=msgspec.json.encode(body),
            content_type=content_type,
            accept=accepted(resource),
            impersonate=impersonate,
        )
        return _decode(resource, answer, path)


@contextlib.asynccontextmanager
async def connect(
    settings: KubeSettings, *, user_agent: str, observer: LibraryObserver = SILENT
) -> AsyncIterator[KubeClient]:
    """A client until the block ends. Nothing is sent yet: the first call shows whether the server is there.

    Raises:
        ConfigurationError: kubeconfig, context, certificates or credentials (see its subclasses).
    """
    access = find_access(settings)
    async with open_transport(access, settings, user_agent=user_agent) as transport:
        yield KubeClient(
            transport, writes=Throttle(settings.write_qps, settings.write_burst), observer=observer
        )


def accepted[T](resource: Resource[T], form: str = "") -> str:
    """The header `Accept` for objects (`form` "") or lists ("List") of the resource."""
    return _METADATA.format(form) if resource.metadata_only else JSON


def selectors(label_selector: str | None, field_selector: str | None) -> dict[str, str]:
    """The selectors as a query, where they are given."""
    given = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {name: value for name, value in given.items() if value}


def _options(*, dry_run: bool = False, field_manager: str | None) -> dict[str, str]:
    given = {"dryRun": "All" if dry_run else None, "fieldManager": field_manager}
    return {name: value for name, value in given.items() if value}


def service_account(namespace: str, name: str) -> str:
    """The user that a service account is, for `impersonate`; its groups follow from it."""
    return f"system:serviceaccount:{namespace}:{name}"


def _metadata_of(document: ApiDocument) -> Mapping[str, object]:
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _decode[T](resource: Resource[T], body: bytes | msgspec.Raw, path: str) -> T:
    try:
        return msgspec.json.decode(body, type=resource.shape)
    except msgspec.DecodeError as error:
        raise MalformedAnswerError(f"{resource.kind} at {path}: {error}") from error
