"""A mirror of the objects of one kind that knows when it is complete."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from fairlead_contracts.base.observer import SILENT, LibraryObserver
from fairlead_kube.client import PAGE, KubeClient, accepted, selectors
from fairlead_kube.errors import (
    ExpiredError,
    FatalKubeError,
    InvalidError,
    KubeError,
    MalformedAnswerError,
    NotFoundError,
    RefusedError,
    StatusError,
    UnreachableError,
)
from fairlead_kube.kinds.objects import ApiObject
from fairlead_kube.kinds.resources import Resource
from fairlead_kube.watching import (
    INITIAL_END,
    WatchEvent,
    error_in_band,
    read_event,
    read_head,
    watch_query,
)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 10.0


class Key(NamedTuple):
    """The namespace and name of an object."""

    namespace: str
    """Namespace of the object; empty for one of the whole cluster."""
    name: str


class KubeChanges[U](msgspec.Struct, frozen=True):
    """The changes of a mirror since the last look."""

    changed: dict[Key, U | None]
    """New values by key; None for an object that is deleted, or that the projection leaves out now."""
    complete: bool


def whole[T](value: T) -> T:
    """The projection that keeps everything."""
    return value


class Reflector[T: ApiObject, U]:
    """The last value of each object of a kind, projected to what its user needs; nothing else is kept.

    It begins with all objects (a streaming list, or a paged one where the server refuses that) and follows with a
    watch that is resumed at the version last heard of, bookmarks included. Where the server has forgotten that
    version (410, as an answer or in band), it begins anew, and what is not shown any more is deleted: a delete is
    never missed. Several changes of an object between two looks are one, also a delete and a new object of the
    name: a projection that must tell these apart keeps the uid. A value equal to the one known is no change.

    Old values stay readable while it begins anew, and `complete` is False.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource[T],
        *,
        project: Callable[[T], U | None],
        wake: asyncio.Event,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        observer: LibraryObserver = SILENT,
        page: int = PAGE,
        rest: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Make an empty mirror. A `project` that gives None leaves the object out, and drops it if it was in.

        `rest` is asked after each batch of events for the seconds in which no more of them are read.
        """
        self._client = client
        self._resource = resource
        self._project = project
        self._wake = wake
        self._path = resource.path(namespace)
        self._query = selectors(label_selector, field_selector)
        self._observer = observer
        self._page = page
        self._rest = rest
        self._decoder = msgspec.json.Decoder(resource.shape)
        self._values: dict[Key, U] = {}
        self._changed: dict[Key, U | None] = {}
        self._version: str | None = None
        """Version at which a watch can go on; None where everything must be shown again."""
        self._shown: set[Key] | None = None
        """Keys shown so far while everything is shown; None at other times."""
        self._streams = True
        """Whether the server takes streaming lists, as far as we know."""
        self._ever_complete = False
        self._heard = False
        """Whether the watch said anything that moved us on."""
        self.complete = False
        """Whether `values` holds everything that stood when it was last shown, and all changes heard of since."""
        self.following = False
        """Whether a watch is open right now; without one, `values` grow old."""
        self.relists = 0
        """Number of times that everything was begun to be shown again, after the first time."""

    @property
    def values(self) -> Mapping[Key, U]:
        """The last value of each object, by key."""
        return self._values

    def take(self) -> KubeChanges[U]:
        """Take the changes since the last take; several changes of an object are one."""
        changed, self._changed = self._changed, {}
        return KubeChanges(changed, self.complete)

    async def run(self) -> None:
        """Mirror until cancelled.

        Raises:
            FatalKubeError: the kind or the right to read it is missing from the start. Once the mirror was complete,
                such an error is noted and tried again: right and kind can be missing for a moment while a server
                restarts, or while somebody changes roles.
        """
        pause = _FIRST_PAUSE
        clock = asyncio.get_running_loop().time
        while True:
            began, resumed = clock(), self._version is not None
            self._heard = False
            pause_asked = 0.0
            try:
                await self._follow()
            except KubeError as error:
                survives = self._ever_complete or isinstance(error, ExpiredError)
                if isinstance(error, FatalKubeError) and not survives:
                    raise
                pause_asked = self._note(error)
            finally:
                if self.following:
                    self.following = False
                    self._wake.set()
            # Neither a watch that ends at once without a word, as those of a server that shuts down, nor everything
            # shown once more is progress: a server that can do no better is not asked in a tight loop.
            if (resumed and self._heard) or clock() - began > _LONGEST_PAUSE:
                pause = _FIRST_PAUSE
            await asyncio.sleep(max(pause * random.uniform(0.5, 1.5), pause_asked))  # noqa: S311 - not a secret
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _follow(self) -> None:
        """Follow one watch, from its start to its end in good order."""
        initial = self._version is None and self._streams
        if self._version is None:
            self._begin()
            if not initial:
                await self._list()
        query = self._query | watch_query(self._version or "", initial=initial)
        accept = accepted(self._resource)
        try:
            async with self._client.transport.stream(
                self._path, query=query, accept=accept, rest=self._rest
            ) as batches:
                self.following = True
                async for lines in batches:
                    self._take_in(lines)
        except (InvalidError, RefusedError) as error:
            if not initial:
                raise
            self._streams = False
            self._observer.note("reflector.lists", kind=self._resource.kind, reason=str(error))
        else:
            self._observer.count("reflector.reopened")
            if self._shown is not None:
                raise UnreachableError(f"the watch of {self._path} ended before it had shown everything")

    def _begin(self) -> None:
        if self._ever_complete:
            self.relists += 1
            self._observer.count("reflector.relists")
        self._shown = set()
        self.complete = False
        self._wake.set()

    async def _list(self) -> None:
        version = ""
        query = {**self._query, "limit": str(self._page)}
        async for page in self._client.pages(self._resource, self._path, query):
            version = page.metadata.resource_version
            for item in page.items or ():
                self._keep(item)
        self._sweep(version)

    def _take_in(self, lines: Sequence[bytes]) -> None:
        """Take in lines that arrived together; of several changes of an object the last alone is read."""
        newest: dict[Key, msgspec.Raw] = {}
        try:
            for line in lines:
                self._note_event(read_event(line), newest)
        finally:
            self._keep_all(newest)

    def _note_event(self, event: WatchEvent, newest: dict[Key, msgspec.Raw]) -> None:
        match event.type:
            case "ADDED" | "MODIFIED":
                self._observer.count("reflector.events")
                head = read_head(event.object)
                newest[Key(head.namespace, head.name)] = event.object
                self._move_on(head.resource_version)
            case "DELETED":
                self._observer.count("reflector.events")
                head = read_head(event.object)
                key = Key(head.namespace, head.name)
                newest.pop(key, None)
                self._drop(key)
                self._move_on(head.resource_version)
            case "BOOKMARK":
                self._observer.count("reflector.bookmarks")
                head = read_head(event.object)
                if self._shown is not None and head.annotation(INITIAL_END) == "true":
                    self._keep_all(newest)
                    self._sweep(head.resource_version)
                self._move_on(head.resource_version)
            case "ERROR":
                raise error_in_band(event.object)
            case _:
                self._observer.count("reflector.unknown_events")

    def _move_on(self, version: str) -> None:
        """Note the version, but not while everything is shown: those come in any order."""
        if self._shown is None:
            self._version = version
            self._heard = True

    def _keep_all(self, newest: dict[Key, msgspec.Raw]) -> None:
        for raw in newest.values():
            self._keep(raw)
        newest.clear()

    def _keep(self, raw: msgspec.Raw) -> None:
        try:
            value = self._decoder.decode(raw)
        except msgspec.DecodeError as error:
            self._refuse(raw, error)
            return
        metadata = value.metadata
        key = Key(metadata.namespace, metadata.name)
        projected = self._project(value)
        if projected is None:
            self._drop(key)
            return
        if self._shown is not None:
            self._shown.add(key)
        if self._values.get(key) != projected:
            self._values[key] = projected
            self._change(key, projected)

    def _refuse(self, raw: msgspec.Raw, error: msgspec.DecodeError) -> None:
        """Count an object that cannot be read as absent, so that it harms no other."""
        metadata = read_head(raw)
        key = Key(metadata.namespace, metadata.name)
        self._drop(key)
        self._observer.note("reflector.malformed", kind=self._resource.kind, key=key, error=str(error))

    def _drop(self, key: Key) -> None:
        if self._shown is not None:
            self._shown.discard(key)
        if self._values.pop(key, None) is not None:
            self._change(key, None)

    def _change(self, key: Key, value: U | None) -> None:
        self._changed[key] = value
        if self._shown is None:
            self._wake.set()

    def _sweep(self, version: str) -> None:
        """Drop what was not shown, now that everything was: it is gone."""
        shown, self._shown = self._shown or set(), None
        for key in self._values.keys() - shown:
            self._drop(key)
        self._version = version
        self._ever_complete = True
        self.complete = True
        self._wake.set()

    def _note(self, error: KubeError) -> float:
        """Take note of an error; returns the pause in seconds that the server asks for."""
        if isinstance(error, ExpiredError | NotFoundError | MalformedAnswerError):
            self._version = None
        if isinstance(error, ExpiredError):
            self._observer.count("reflector.gone")
            return 0.0
        self._observer.count("reflector.errors")
        self._observer.note("reflector.error", kind=self._resource.kind, error=str(error))
        return error.retry_after if isinstance(error, StatusError) else 0.0
