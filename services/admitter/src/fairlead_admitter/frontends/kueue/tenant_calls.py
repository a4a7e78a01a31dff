"""Calls in a tenant's namespace, made as its own service account, and what their refusals mean to a sender."""

import contextlib
from collections.abc import AsyncIterator

from fairlead_admitter.errors import FrontendBalkedError, FrontendDownError
from fairlead_admitter.frontends.kueue.calls import is_about
from fairlead_admitter.frontends.kueue.pods import PodDocument
from fairlead_admitter.frontends.kueue.rights import AccessRight, FreshRefusals
from fairlead_admitter.intake.creation import JobRefusedError
from fairlead_contracts.base.errors import FieldError
from fairlead_kube.client import KubeClient, service_account
from fairlead_kube.discovery import can_i, pick_version
from fairlead_kube.errors import (
    AlreadyExistsError,
    ForbiddenError,
    InvalidError,
    KubeError,
    NotFoundError,
    RetryableKubeError,
    ServerError,
    StatusError,
    TimedOutError,
    UnauthorizedError,
)
from fairlead_kube.kinds.objects import PartialObject
from fairlead_kube.kinds.resources import WORKLOADS, Resource

type AnyResource = Resource[PartialObject]
"""A kind of which only metadata is read."""

_MANAGER = "fairlead-admitter"
_IMPERSONATED = "serviceaccounts"
"""The kind that a refusal to impersonate names, instead of the object's."""
_FIELDS = {
    "containers[0].image": "template.image",
    "containers[0].env": "template.env",
    "containers[0].command": "template.command",
    "containers[0].args": "template.args",
    "containers[0].workingDir": "template.working_dir",
    "containers[0].resources": "demand",
    "nodeSelector": "template.node_selector",
    "metadata.annotations": "template.annotations",
    "metadata.labels": "labels",
    "metadata.name": "id",
    "completions": "pods",
    "parallelism": "pods",
}
"""Names of the submission's fields, by a part of the path of the object's field."""


class _UnseenError(Exception):
    """The object that was asked for may not be seen."""


class TenantCalls:
    """Calls as one service account.

    All of them raise:
        FrontendDownError: the outcome is not known. So it is with credentials that are not accepted, too:
            that is no fault of a submission.
        FrontendBalkedError: the outcome is not known in this namespace; the API server answers others.
        JobRefusedError: the API server, Kueue or another webhook, or a quota of the namespace says no; or a right is
            missing, and which.

    Args:
        refusals: tells which refusals are believed.
    """

    def __init__(self, client: KubeClient, namespace: str, account: str, refusals: FreshRefusals) -> None:
        self._client = client
        self._namespace = namespace
        self._account = account
        self._user = service_account(namespace, account)
        self._refusals = refusals

    async def create(self, resource: AnyResource, manifest: PodDocument) -> PartialObject | None:
        """Make an object; None where there is one of its name."""
        async with self._telling("create", resource):
            try:
                return await self._client.create(
                    resource, manifest, self._namespace, impersonate=self._user, field_manager=_MANAGER
                )
            except AlreadyExistsError:
                return None

    async def get(self, resource: AnyResource, name: str) -> PartialObject | None:
        """The object; None where there is none."""
        async with self._telling("get", resource):
            try:
                return await self._client.get(resource, name, self._namespace, impersonate=self._user)
            except NotFoundError:
                return None

    async def glimpse(self, resource: AnyResource, name: str) -> PartialObject | None:
        """The object, as far as the account may see it: what it may not see, it has not made."""
        with contextlib.suppress(_UnseenError):
            async with self._telling("get", resource):
                try:
                    return await self._client.get(resource, name, self._namespace, impersonate=self._user)
                except NotFoundError:
                    return None
                except ForbiddenError as error:
                    # No right was granted by that: a refusal that lasts must be believed some day.
                    raise _UnseenError from error
        return None

    async def labelled(self, resource: AnyResource, selector: str) -> list[PartialObject]:
        """The objects with these labels."""
        async with self._telling("list", resource):
            return await self._client.list(
                resource, self._namespace, label_selector=selector, impersonate=self._user
            )

    async def delete(self, resource: AnyResource, item: PartialObject) -> None:
        """Delete this very object, if it is still there."""
        async with self._telling("delete", resource):
            with contextlib.suppress(NotFoundError):
                await self._client.delete(
                    resource,
                    item.metadata.name,
                    self._namespace,
                    uid=item.metadata.uid,
                    impersonate=self._user,
                )

    async def workload(self, name: str) -> PartialObject | None:
        """The Workload of that name. Asked as ourselves: the account has no right to see Workloads."""
        async with self._telling("get", WORKLOADS.metadata()):
            try:
                return await self._client.get(await self._workloads(), name, self._namespace)
            except NotFoundError as error:
                if is_about(error, self._namespace, name):
                    return None
                raise FrontendDownError(f"the cluster serves no Workloads just now: {error}") from error

    async def delete_workload(self, item: PartialObject) -> None:
        """Delete this very Workload, if it is still there."""
        await self.delete(await self._workloads(), item)

    async def _workloads(self) -> AnyResource:
        resource = await pick_version(self._client, WORKLOADS)
        if resource is None:
            raise FrontendDownError("the cluster serves no Workloads just now")
        return resource.metadata()

    @contextlib.asynccontextmanager
    async def _telling(self, verb: str, resource: AnyResource) -> AsyncIterator[None]:
        right = AccessRight(self._namespace, verb, resource.plural)
        try:
            try:
                yield
                self._refusals.granted(right)
            except ForbiddenError as error:
                if not error.by_webhook and not self._refusals.believe(right):
                    raise FrontendBalkedError(f"{verb} {resource.plural}: {error}, for now") from error
                raise JobRefusedError(await self._forbidden(verb, resource, error)) from error
            except NotFoundError as error:
                raise JobRefusedError(await self._not_found(resource)) from error
        except InvalidError as error:
            raise JobRefusedError(_invalid(error)) from error
        except (ServerError, TimedOutError) as error:  # a webhook of this namespace looks like this
            raise FrontendBalkedError(f"{verb} {resource.plural} in {self._namespace}: {error}") from error
        except (RetryableKubeError, UnauthorizedError) as error:
            raise FrontendDownError(f"{verb} {resource.plural} in {self._namespace}: {error}") from error
        except StatusError as error:
            raise JobRefusedError(FieldError("template", None, error.status.message or str(error))) from error
        except KubeError as error:
            raise FrontendDownError(f"{verb} {resource.plural} in {self._namespace}: {error}") from error

    async def _forbidden(self, verb: str, resource: AnyResource, error: ForbiddenError) -> FieldError:
        """The fault behind a refusal. The server is asked for the right, as a missing one looks like a quota that is used up."""
        details = error.status.details
        if details is not None and details.kind == _IMPERSONATED:
            return self._may_not_act()
        if not error.by_webhook:
            try:
                allowed = await can_i(
                    self._client, verb, resource, namespace=self._namespace, impersonate=self._user
                )
            except ForbiddenError:
                # Everybody may ask that for himself. An API server that constrains impersonation (KEP-5284) refuses to
                # impersonate in the name of what is done then, not of the account.
                return self._may_not_act()
            if not allowed:
                what = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
                return self._missing(
                    f"service account {self._account!r} of namespace {self._namespace} may not {verb} {what}"
                )
        return FieldError("template", None, error.status.message)

    def _may_not_act(self) -> FieldError:
        return self._missing(
            f"Fairlead may not act as service account {self._account!r} of namespace {self._namespace}"
        )

    def _missing(self, right: str) -> FieldError:
        return FieldError(
            "tenant",
            self._namespace,
            f"{right}; an operator grants it: `kubectl apply -n {self._namespace} -k deploy/kustomize/tenant`",
        )

    async def _not_found(self, resource: AnyResource) -> FieldError:
        if await pick_version(self._client, resource) is None:
            return FieldError("template.kind", resource.kind, "the cluster does not have this kind")
        return FieldError("tenant", self._namespace, "the cluster has no namespace of this name")


def _invalid(error: InvalidError) -> FieldError:
    """The fault that the API server finds, under the first field's name in a submission."""
    causes = error.causes
    if not causes:
        return FieldError("template", None, error.status.message)
    words = "; ".join(f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in causes)
    field = next((name for part, name in _FIELDS.items() if part in causes[0].field), "template")
    return FieldError(field, None, words)
