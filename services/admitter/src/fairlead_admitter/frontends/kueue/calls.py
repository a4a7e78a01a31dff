"""Calls on the Workloads of a cluster, and what its refusals mean to the admitter."""

import contextlib
from collections.abc import Iterator, Mapping

import msgspec

from fairlead_admitter.errors import (
    FrontendBalkedError,
    FrontendDownError,
    FrontendForbiddenError,
    FrontendForbiddenHereError,
    FrontendRefusedError,
)
from fairlead_contracts.frontend.marks import LEVEL_WRITER
from fairlead_kube.client import KubeClient
from fairlead_kube.discovery import pick_version
from fairlead_kube.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    KubeError,
    NotFoundError,
    RetryableKubeError,
    ServerError,
    ThrottledError,
    TimedOutError,
    UnauthorizedError,
)
from fairlead_kube.kinds.objects import PartialObject
from fairlead_kube.kinds.resources import WORKLOADS, Resource
from fairlead_kube.kinds.workloads import Workload

_UID = "metadata.uid"
_NAMESPACES = "namespaces"


@contextlib.contextmanager
def telling(what: str) -> Iterator[None]:
    """Errors of the API server as the admitter's own.

    Raises:
        FrontendDownError: the API server cannot be reached, or wants to be left alone; it may work later.
        FrontendBalkedError: a webhook of one namespace is in the way; it may work later. Kueue's own is in the way
            of every write (failurePolicy Fail), so a restart of Kueue looks like this too, everywhere at once.
        FrontendForbiddenError: the API server does not know who we are, and lets us do nothing at all.
        FrontendForbiddenHereError: the right is missing: in this namespace, by an admission policy, or anywhere. An API
            server that has just started answers so, too, to everybody.
        FrontendRefusedError: the API server will not take this.
    """
    try:
        yield
    except ThrottledError as error:
        raise FrontendDownError(f"{what}: {error}", retry_after=error.retry_after) from error
    except ServerError as error:
        raise FrontendBalkedError(f"{what}: {error}", retry_after=error.retry_after) from error
    except TimedOutError as error:
        raise FrontendBalkedError(f"{what}: {error}") from error
    except RetryableKubeError as error:
        raise FrontendDownError(f"{what}: {error}") from error
    except UnauthorizedError as error:
        raise FrontendForbiddenError(f"{what}: {error}") from error
    except ForbiddenError as error:
        if error.by_webhook:
            raise FrontendRefusedError(f"{what}: {error}") from error
        raise FrontendForbiddenHereError(f"{what}: {error}") from error
    except KubeError as error:
        raise FrontendRefusedError(f"{what}: {error}") from error


def is_about(error: NotFoundError, namespace: str, name: str) -> bool:
    """Whether this object is what is not found, or its namespace; else it is the kind, which is not served.

    A kind is not served for a moment while its definition is replaced: nothing of that kind is gone.
    """
    details = error.status.details
    if details is None:
        return False
    return details.name == (namespace if details.kind == _NAMESPACES else name)


class KueueCalls:
    """Workloads by name and uid, in the version that the cluster serves."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._workloads: Resource[Workload] | None = None

    async def workloads(self) -> Resource[Workload]:
        """The kind, in the version to use: v1beta1 refuses patches of admitted Workloads in some versions."""
        if self._workloads is None:
            with telling("Workloads"):
                self._workloads = await pick_version(self._client, WORKLOADS)
        if self._workloads is None:
            raise FrontendDownError("the cluster serves no Workloads: Kueue is not installed there")
        return self._workloads

    async def list_metadata(self) -> list[PartialObject]:
        """Lists all Workloads of the cluster, as far as their metadata tells."""
        resource = (await self.workloads()).metadata()
        with telling("list Workloads"):
            try:
                return await self._client.list(resource)
            except NotFoundError as error:
                raise self._unserved(error) from error

    async def look(self, namespace: str, name: str, uid: str) -> Workload | None:
        """The Workload as it is; None where it is gone, or another one has its name."""
        resource = await self.workloads()
        with telling(f"get Workload {namespace}/{name}"):
            try:
                found = await self._client.get(resource, name, namespace)
            except NotFoundError as error:
                self._check_gone(error, namespace, name)
                return None
        return found if found.metadata.uid == uid else None

    async def patch(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        annotations: Mapping[str, str | None],
        priority: int | msgspec.UnsetType | None = msgspec.UNSET,
    ) -> Workload | None:
        """The Workload after the patch; None where it is gone, or another one has its name.

        The uid goes with the patch: it cannot be changed, so the API server refuses the patch of another object that
        took the name. There is no resourceVersion in it: Kueue writes to waiting Workloads all the time, and what
        we write is ours alone, so there is no change by somebody else that it could undo.
        """
        resource = await self.workloads()
        body: dict[str, object] = {"metadata": {"uid": uid, "annotations": dict(annotations)}}
        if priority is not msgspec.UNSET:  # None takes it away
            body["spec"] = {"priority": priority}
        with telling(f"patch Workload {namespace}/{name}"):
            try:
                return await self._client.merge_patch(
                    resource, name, body, namespace, field_manager=LEVEL_WRITER
                )
            except NotFoundError as error:
                self._check_gone(error, namespace, name)
            except InvalidError as error:
                if all(one.field != _UID for one in error.causes):
                    raise
            except ConflictError:
                # Either the uid, or too many writes by others at once: only a look can tell.
                if await self.look(namespace, name, uid) is not None:
                    raise
        return None

    def _check_gone(self, cause: NotFoundError, namespace: str, name: str) -> None:
        """Checks that it is the Workload itself that is not found.

        Raises:
            FrontendDownError: the kind is not found: the cluster does not serve it now.
        """
        if not is_about(cause, namespace, name):
            raise self._unserved(cause) from cause

    def _unserved(self, cause: NotFoundError) -> FrontendDownError:
        """The error of a kind that is not found. The served API versions are discovered again at the next call."""
        self._workloads = None
        return FrontendDownError(f"the cluster does not serve Workloads just now: {cause}")
