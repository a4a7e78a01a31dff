"""The API server's audit log: who asked for what, when, and what came of it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from fairlead_testkit.kubelab.api import KubeObject
from fairlead_testkit.kubelab.users import FAIRLEAD_GROUP

_WRITES = ["create", "update", "patch", "delete", "deletecollection"]

POLICY: KubeObject = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Request", "userGroups": [FAIRLEAD_GROUP], "verbs": _WRITES},  # with what was written
        {"level": "Metadata", "userGroups": [FAIRLEAD_GROUP]},
        {"level": "Metadata", "verbs": _WRITES},
        {"level": "None"},
    ],
}
"""Audit policy: every write of everybody, every read of Fairlead's users, and the bodies of what these write."""


class _User(msgspec.Struct):
    username: str


class _Object(msgspec.Struct):
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _Event(msgspec.Struct, rename="camel"):
    stage: str
    verb: str
    user: _User
    request_received_timestamp: datetime
    stage_timestamp: datetime
    request_u_r_i: str = msgspec.field(default="", name="requestURI")
    impersonated_user: _User | None = None
    object_ref: _Object = msgspec.field(default_factory=_Object)
    response_status: _Status = msgspec.field(default_factory=_Status)
    request_object: KubeObject | None = None


@dataclass(frozen=True)
class AuditLine:
    """An answered request.

    Attributes:
        user: name of the user who asked.
        acting_as: name of the user whom it impersonated, or None.
        verb: get, list, watch, create, update, patch, delete.
        resource: plural, as `workloads`.
        subresource: subresource, such as `status`; empty for none.
        namespace: namespace of the object; empty for none.
        name: name of the object; empty for none.
        dry_run: whether nothing was to be kept of it.
        code: the HTTP status.
        body: body of the request, for Fairlead's own writes.
        received: instant at which the API server had the request.
        took: seconds until it was answered: the server's own time, with etcd's and the webhooks'.
    """

    user: str
    acting_as: str | None
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    dry_run: bool
    code: int
    body: KubeObject | None
    received: datetime
    took: timedelta


_decoder = msgspec.json.Decoder(_Event)


def read(
    path: Path,
    *,
    user: str | None = None,
    verb: str | None = None,
    resource: str | None = None,
    after: int = 0,
) -> list[AuditLine]:
    """The answered requests in the log, in their order.

    Args:
        user: the only user whose requests count.
        verb: the only verb that counts.
        resource: the only resource that counts.
        after: byte at which to begin; a line that is still being written is left out.
    """
    if not path.exists():
        return []
    with path.open("rb") as log:
        log.seek(after)
        text = log.read()
    whole = text[: text.rfind(b"\n") + 1]
    events = (_decoder.decode(line) for line in whole.splitlines())
    lines = [
        _line(event) for event in events if event.stage != "ResponseStarted"
    ]  # of watches, which end later
    return [
        line
        for line in lines
        if user in {None, line.user} and verb in {None, line.verb} and resource in {None, line.resource}
    ]


def _line(event: _Event) -> AuditLine:
    target = event.object_ref
    return AuditLine(
        user=event.user.username,
        acting_as=None if event.impersonated_user is None else event.impersonated_user.username,
        verb=event.verb,
        resource=target.resource,
        subresource=target.subresource,
        namespace=target.namespace,
        name=target.name,
        dry_run="dryRun=" in event.request_u_r_i,
        code=event.response_status.code,
        body=event.request_object,
        received=event.request_received_timestamp,
        took=event.stage_timestamp - event.request_received_timestamp,
    )
