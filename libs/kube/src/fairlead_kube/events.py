"""Kubernetes Events: what a person finds with `kubectl describe`.

Core v1 Events with a count, as that command shows them. The same reason and message about the same object are one
Event, also over a restart of ours: its name is made of them.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime

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
_DIGEST_BYTES = 8


class _Occurrence(msgspec.Struct, kw_only=True):
    """What happened, how often since it was last written."""

    involved: ObjectReference
    reason: str
    message: str
    warning: bool
    action: str
    first: float
    last: float
    count: int = 1

    @property
    def name(self) -> str:
        """The Event's own name."""
        parts = (self.involved.uid, self.reason, self.message)
        digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=_DIGEST_BYTES).hexdigest()
        return f"{self.involved.name[:200]}.{digest}"

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
        self._waiting: OrderedDict[str, _Occurrence] = OrderedDict()
        self._held: OrderedDict[str, _Occurrence] = OrderedDict()
        """What was written, and what happened since: `count` of it is not written yet."""
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

    def _take_in(self, occurrence: _Occurrence) -> None:
        name = occurrence.name
        if (waiting := self._waiting.get(name)) is not None:
            waiting.count += 1
            waiting.last = occurrence.last
            return
        if (held := self._held.get(name)) is not None:
            held.count += 1
            if occurrence.last - held.last < HOLD_SECONDS:
                self._observer.count("events.held")
                return
            occurrence = msgspec.structs.replace(occurrence, first=held.first, count=held.count)
        if len(self._waiting) >= self._capacity:
            self._observer.count("events.dropped")
            return
        self._waiting[name] = occurrence
        self._idle.clear()
        self._wake.set()

    async def run(self) -> None:
        """Writes what was recorded until cancelled."""
        while True:
            while self._waiting:
                name, occurrence = self._waiting.popitem(last=False)
                self._remember(name, occurrence)
                await self._try_to_write(occurrence)
            self._idle.set()
            await self._wake.wait()
            self._wake.clear()

    async def flush(self) -> None:
        """Returns when everything recorded so far is written or given up; `run` must be running."""
        await self._idle.wait()

    def _remember(self, name: str, occurrence: _Occurrence) -> None:
        self._held[name] = msgspec.structs.replace(occurrence, count=0)
        self._held.move_to_end(name)
        if len(self._held) > _REMEMBERED:
            self._held.popitem(last=False)

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
        """Once more where there is such an Event, else anew: servers forget Events after an hour."""
        try:
            await self._client.create(EVENTS, self._document(occurrence), occurrence.namespace)
        except AlreadyExistsError:
            await self._add(occurrence)

    async def _add(self, occurrence: _Occurrence) -> None:
        try:
            standing = await self._client.get(EVENTS, occurrence.name, occurrence.namespace)
        except NotFoundError:
            await self._client.create(EVENTS, self._document(occurrence), occurrence.namespace)
            return
        patch = {
            "count": (standing.count or 0) + occurrence.count,
            "lastTimestamp": _timestamp(occurrence.last),
        }
        await self._client.merge_patch(EVENTS, occurrence.name, patch, occurrence.namespace)

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
