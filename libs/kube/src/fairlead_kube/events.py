"""Kubernetes Events: what a person finds with `kubectl describe`.

Core v1 Events with a count, as that command shows them. The same reason and message about the same object are one
Event. Takes the rights to create and to patch Events, as client-go's recorder does.
"""

import asyncio
import contextlib
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from fairlead_kube.client import KubeClient
from fairlead_kube.core import ObjectReference
from fairlead_kube.errors import (
    AlreadyExistsError,
    FatalKubeError,
    KubeError,
    NotFoundError,
    RetryableKubeError,
)
from fairlead_kube.objects import ObjectMeta
from fairlead_kube.observer import SILENT, KubeObserver
from fairlead_kube.resources import EVENTS, Resource
from fairlead_kube.throttle import Throttle
from fairlead_kube.watching import BackOff

HOLD_SECONDS = 300.0
"""A repeated Event is written no oftener; in between it is counted. As client-go's spam filter: one in five minutes."""
_QPS, _BURST = 5.0, 25
_TRIES = 5
_REMEMBERED = 4096
_LONGEST_MESSAGE = 1024
_LONGEST_NAME = 200
_DIGEST_BYTES = 8


class _Key(NamedTuple):
    uid: str
    reason: str
    message: str


class _Occurrence(msgspec.Struct, kw_only=True):
    """What happened, and how often in all."""

    involved: ObjectReference
    reason: str
    message: str
    warning: bool
    action: str
    first: float
    last: float
    count: int = 1
    stands: bool = False
    """Whether it was written before, under `name`."""

    @property
    def key(self) -> _Key:
        """What makes two of them the same."""
        return _Key(self.involved.uid, self.reason, self.message)

    @property
    def name(self) -> str:
        """The Event's own name: another one after a restart of ours, when the count begins again."""
        told = "\0".join([*self.key, str(self.first)])
        digest = hashlib.blake2b(told.encode(), digest_size=_DIGEST_BYTES).hexdigest()
        return f"{self.involved.name[:_LONGEST_NAME]}.{digest}"

    @property
    def namespace(self) -> str:
        """Events about objects of the whole cluster stand in `default`."""
        return self.involved.namespace or "default"


class EventRecorder:
    """Writes Events, at a pace of its own; never blocks whoever records, and counts what it drops.

    Args:
        client: of the cluster that the objects are in.
        component: who says it, such as `fairlead-admitter`.
        observer: hears `events.recorded`, `.written`, `.held`, `.dropped` (no room) and `.lost` (refused, or no answer).
        capacity: how many different Events may wait to be written.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        component: str,
        observer: KubeObserver = SILENT,
        capacity: int = 1000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        # Its own bucket: a wave of Events must not hold back levels.
        self._client = KubeClient(client.transport, writes=Throttle(_QPS, _BURST), observer=observer)
        self._component = component
        self._observer = observer
        self._capacity = capacity
        self._clock = clock
        self._waiting: OrderedDict[_Key, _Occurrence] = OrderedDict()
        self._written: OrderedDict[_Key, _Occurrence] = OrderedDict()
        """What was written, with what was counted since."""
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def record[T](
        self,
        resource: Resource[T],
        metadata: ObjectMeta,
        reason: str,
        message: str,
        *,
        warning: bool = False,
        action: str = "",
    ) -> None:
        """Notes that something happened to the object.

        Args:
            resource: the object's kind.
            metadata: of the object.
            reason: one word in CamelCase, of a small fixed set.
            message: a sentence for people; what is beyond 1024 characters is cut off.
            warning: shown as `Warning`, not as `Normal`.
            action: what was done about it, one word in CamelCase.
        """
        now = self._clock()
        occurrence = _Occurrence(
            involved=ObjectReference(
                api_version=resource.api_version,
                kind=resource.kind,
                name=metadata.name,
                namespace=metadata.namespace,
                uid=metadata.uid,
            ),
            reason=reason,
            message=message[:_LONGEST_MESSAGE],
            warning=warning,
            action=action,
            first=now,
            last=now,
        )
        self._observer.count("events.recorded")
        self._take_in(occurrence)

    def _take_in(self, new: _Occurrence) -> None:
        known = self._waiting.get(new.key) or self._written.get(new.key)
        if known is None:
            self._queue(new)
            return
        known.count += 1
        if new.key in self._waiting or new.last - known.last < HOLD_SECONDS:
            self._observer.count("events.held")
        else:
            self._queue(known)
        if new.key in self._waiting:
            known.last = new.last

    def _queue(self, occurrence: _Occurrence) -> None:
        if len(self._waiting) >= self._capacity:
            self._observer.count("events.dropped")
            return
        self._waiting[occurrence.key] = occurrence
        self._idle.clear()
        self._wake.set()

    async def run(self) -> None:
        """Writes what was recorded until cancelled."""
        while True:
            while self._waiting:
                _, occurrence = self._waiting.popitem(last=False)
                self._remember(occurrence)
                await self._try_to_write(occurrence)
            self._idle.set()
            await self._wake.wait()
            self._wake.clear()

    async def flush(self) -> None:
        """Returns when everything recorded so far is written or given up; `run` must be running."""
        await self._idle.wait()

    def _remember(self, occurrence: _Occurrence) -> None:
        self._written[occurrence.key] = occurrence
        self._written.move_to_end(occurrence.key)
        if len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)

    async def _try_to_write(self, occurrence: _Occurrence) -> None:
        pauses = BackOff()
        last_error: KubeError | None = None
        for _ in range(_TRIES):
            try:
                await self._write(occurrence)
            except RetryableKubeError as error:
                last_error = error
                await asyncio.sleep(pauses.next())
            except FatalKubeError as error:
                last_error = error
                break
            else:
                self._observer.count("events.written")
                return
        self._observer.count("events.lost")
        self._observer.note("events.lost", event=occurrence.name, error=str(last_error))

    async def _write(self, occurrence: _Occurrence) -> None:
        """Counts up what stands, else writes anew: servers forget Events after an hour."""
        if occurrence.stands:
            patch = {"count": occurrence.count, "lastTimestamp": _timestamp(occurrence.last)}
            try:
                await self._client.merge_patch(EVENTS, occurrence.name, patch, occurrence.namespace)
            except NotFoundError:
                occurrence.stands = False
            else:
                return
        # A create that was answered too late stands: that is what was wanted.
        with contextlib.suppress(AlreadyExistsError):
            await self._client.create(EVENTS, self._document(occurrence), occurrence.namespace)
        occurrence.stands = True

    def _document(self, occurrence: _Occurrence) -> dict[str, object]:
        return {
            "metadata": {"name": occurrence.name, "namespace": occurrence.namespace},
            "involvedObject": occurrence.involved,
            "reason": occurrence.reason,
            "message": occurrence.message,
            "type": "Warning" if occurrence.warning else "Normal",
            "action": occurrence.action,
            "count": occurrence.count,
            "firstTimestamp": _timestamp(occurrence.first),
            "lastTimestamp": _timestamp(occurrence.last),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
        }


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
