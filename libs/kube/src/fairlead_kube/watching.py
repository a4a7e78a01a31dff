"""The protocol of a Kubernetes watch: one JSON event a line.

Source: Kubernetes API concepts, "Efficient detection of changes"; streaming lists: KEP-3157.
"""

import random

import msgspec

from fairlead_kube.errors import ExpiredError, KubeError, MalformedAnswerError, Status, error_of
from fairlead_kube.kinds.objects import ApiObject, KubeStruct, ObjectMeta

SHORTEST_WATCH, LONGEST_WATCH = 240, 300
"""Seconds after which the server ends a watch. Jittered, so that a fleet does not come back in step."""
INITIAL_END = "k8s.io/initial-events-end"
"""Annotation of a bookmark, "true" where everything that stood at the start was shown."""
_TOO_LARGE = "ResourceVersionTooLarge"


class WatchEvent(KubeStruct, frozen=True, kw_only=True):
    """An event of a watch, of one line."""

    type: str
    """Type of the event: `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`."""
    object: msgspec.Raw


_EVENT = msgspec.json.Decoder(WatchEvent)
_HEAD = msgspec.json.Decoder(ApiObject)
_STATUS = msgspec.json.Decoder(Status)


def read_event(line: bytes) -> WatchEvent:
    """The event in the line.

    Raises:
        MalformedAnswerError: there is none.
    """
    try:
        return _EVENT.decode(line)
    except msgspec.DecodeError as error:
        raise MalformedAnswerError(f"a watch said what is not an event: {error}") from error


def read_head(raw: msgspec.Raw) -> ObjectMeta:
    """The metadata of an object, whatever else is wrong with it.

    Raises:
        MalformedAnswerError: the object has none.
    """
    try:
        return _HEAD.decode(raw).metadata
    except msgspec.DecodeError as error:
        raise MalformedAnswerError(f"a watch showed an object without metadata: {error}") from error


def error_in_band(raw: msgspec.Raw) -> KubeError:
    """The error that an `ERROR` event carries.

    A revision that the server has not reached (an etcd restored from a backup, a replica that lags) leads nowhere,
    like one that it has forgotten.
    """
    try:
        status = _STATUS.decode(raw)
    except msgspec.DecodeError as error:
        return MalformedAnswerError(f"a watch ended with what is not a Status: {error}")
    if any(cause.reason == _TOO_LARGE for cause in status.causes):
        return ExpiredError(status, "watch")
    return error_of(status, "watch")


def watch_query(version: str, *, initial: bool) -> dict[str, str]:
    """The query of a watch from `version` on; `initial`: the server first shows all that stands now."""
    seconds = random.randint(SHORTEST_WATCH, LONGEST_WATCH)  # noqa: S311 - not a secret
    query = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
    if initial:
        # Without a version: as fresh as etcd. A cached list (version 0) can be older than what we have seen.
        return query | {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    return query | {"resourceVersion": version}
