"""Sources: mirrors of one kind of a cluster's objects for as long as the API server serves the kind."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

from fairlead_contracts.base.observer import LibraryObserver
from fairlead_kube.client import KubeClient
from fairlead_kube.discovery import pick_version
from fairlead_kube.errors import FatalKubeError, ForbiddenError, KubeError
from fairlead_kube.kinds.objects import ApiObject
from fairlead_kube.kinds.resources import Resource
from fairlead_kube.reflector import Key, Reflector

RETRY_SECONDS = 2.0
BELIEVED_DENIALS = 3
"""Answers in a row, one probe apart, that a kind is not served, after which its objects count as gone."""
LISTEN_SECONDS = 1.0
"""Seconds between two looks whether a kind is still heard of: its age is that exact."""
AWAITED_SECONDS = 60.0
"""Seconds for which a dispensable kind is waited for that is served and cannot be listed, as where its CRD's webhook is broken."""


class WatchedKind(Protocol):
    """Questions of the watcher to each kind."""

    @property
    def name(self) -> str:
        """The kind's plural, or what some of its objects are called."""

    @property
    def missing(self) -> str | None:
        """The reason for which not all objects of the kind are known; None where they are, or may be missing."""

    def age_seconds(self) -> float:
        """The time for which nothing could be heard of the kind."""

    def look(self) -> None:
        """Hand over what changed."""

    async def run(self) -> None:
        """Runs until cancelled."""


@dataclass(frozen=True, eq=False)
class SourceContext:
    """The part that all sources of a cluster have in common."""

    client: KubeClient
    wake: asyncio.Event
    """Set when there is something to look at."""
    observer: LibraryObserver
    probe_seconds: float
    """Seconds between two questions whether a kind is served."""
    rest: Callable[[], float] = lambda: 0.0
    """Seconds for which changes may wait now before they are looked at."""


@dataclass(eq=False)
class KindSource[T: ApiObject, U]:
    """Mirrors one kind.

    A kind that is not served, or not yet, or that we may not read, is asked for again now and then: CRDs are installed,
    Kueue is updated to another version and rights are granted while we run. Where `optional`, a kind that is not served
    has no objects; otherwise it keeps the whole cluster from being known. So does one that may not be read, or cannot be
    listed, unless it is `dispensable`. Objects that were there are forgotten only when the kind was denied several times.
    """

    watching: SourceContext
    resource: Resource[T]
    """The kind, in the version that is preferred."""
    project: Callable[[T], U | None]
    """Makes what is kept of an object; None for nothing."""
    deliver: Callable[[Key, U | None], None]
    """Takes each change when somebody looks; None for what is gone."""
    _: KW_ONLY
    optional: bool = False
    dispensable: bool = False
    label_selector: str | None = None
    field_selector: str | None = None
    called: str | None = None
    """The source's name, where some objects of a kind are mirrored apart; by default the kind's plural."""

    def __post_init__(self) -> None:
        self._done_without = False
        """Whether the kind was refused or not listed, and its objects are not waited for."""
        self.name = self.called or self.resource.plural
        self._reflector: Reflector[T, U] | None = None
        self._delivered: set[Key] = set()
        self._sweeps = False
        """Whether to forget, once a new reflector is complete, the objects that it lacks and its predecessor had."""
        self._denials = 0
        self._trouble: str | None = "it was not asked for yet"
        self._heard_at = time.monotonic()

    @property
    def missing(self) -> str | None:
        """The reason for which not all objects of the kind are known; None where they are, or need not be."""
        if self._trouble is not None:
            return f"{self.name}: {self._trouble}"
        if self._reflector is not None and not self._reflector.complete and not self._done_without:
            return f"{self.name}: not all of them were heard yet"
        return None

    def age_seconds(self) -> float:
        """Seconds for which nothing could be heard of the kind; 0 for one that is known not to be served."""
        # Of a kind that is known not to be served there is nothing to hear.
        hears = self._trouble is None and (self._reflector is None or self._reflector.following)
        return 0.0 if hears or self._done_without else time.monotonic() - self._heard_at

    def look(self) -> None:
        """Hand over what changed; objects of a kind that is not served any more are handed over as gone."""
        reflector = self._reflector
        if reflector is None:
            if self._trouble is None:  # known not to be served, and need not be
                self._forget(self._delivered)
            return
        for key, value in reflector.take().changed.items():
            self._hand_over(key, value)
        self._done_without &= not reflector.complete
        if self._sweeps and reflector.complete:
            self._sweeps = False
            self._forget(self._delivered - reflector.values.keys())

    async def run(self) -> None:
        """Find the served version and mirror the kind, again and again until cancelled."""
        while True:
            try:
                served = await pick_version(self.watching.client, self.resource)
            except KubeError as error:
                self._say(str(error))
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if served is None:
                self._reflector = None
                self._denials += 1
                self._say(self._why_unknown())
                await asyncio.sleep(self.watching.probe_seconds)
                continue
            self._denials = 0
            await self._mirror(served)

    async def _mirror(self, served: Resource[T]) -> None:
        """Mirrors until the kind is not served any more in this version, or cannot be read from the start."""
        reflector = Reflector(
            self.watching.client,
            served,
            project=self.project,
            wake=self.watching.wake,
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            observer=self.watching.observer,
            rest=self.watching.rest,
        )
        if self._reflector is None and self._trouble is None:  # there was nothing to hear until now
            self._heard_at = time.monotonic()
        self._reflector, self._sweeps = reflector, True
        self._say(None)
        async with asyncio.TaskGroup() as group:
            mirroring = group.create_task(self._follow(reflector), name=f"mirror of {self.name}")
            await self._attend(mirroring, reflector, served)
            mirroring.cancel()

    async def _attend(
        self, mirroring: asyncio.Task[None], reflector: Reflector[T, U], served: Resource[T]
    ) -> None:
        began = asked_at = time.monotonic()
        while not mirroring.done():
            await asyncio.wait({mirroring}, timeout=min(LISTEN_SECONDS, self.watching.probe_seconds))
            now = time.monotonic()
            if reflector.following:
                self._heard_at = now
            began = now if reflector.complete else began
            if reflector.complete or now - asked_at < self.watching.probe_seconds:
                continue
            if self.dispensable and now - began >= AWAITED_SECONDS and not self._done_without:
                self.watching.observer.note("source.unlisted", kind=self.name)
                self._done_without = True
                self.watching.wake.set()
            asked_at = now
            if not await self._is_still_served(served):
                return

    async def _follow(self, reflector: Reflector[T, U]) -> None:
        try:
            await reflector.run()
        except FatalKubeError as error:
            self.watching.observer.note("source.refused", kind=self.name, error=str(error))
            # Not for a kind that is refused in another way, as by a server that just started: that passes.
            self._done_without = self.dispensable and isinstance(error, ForbiddenError)
            self._say(None if self._done_without else str(error))
            self.watching.wake.set()
            await asyncio.sleep(self.watching.probe_seconds)

    async def _is_still_served(self, served: Resource[T]) -> bool:
        try:
            return await pick_version(self.watching.client, self.resource) == served
        except KubeError:
            return True  # the server does not deny it

    def _why_unknown(self) -> str | None:
        """The reason why a kind is not served. An API server that just started may not know all of its CRDs yet."""
        doubted = self._delivered and self._denials < BELIEVED_DENIALS
        if doubted or not self.optional:
            return "the API server does not serve the kind"
        return None

    def _say(self, trouble: str | None) -> None:
        if self._trouble != trouble:
            self._trouble = trouble
            self.watching.wake.set()

    def _hand_over(self, key: Key, value: U | None) -> None:
        if value is None:
            self._delivered.discard(key)
        else:
            self._delivered.add(key)
        self.deliver(key, value)

    def _forget(self, keys: set[Key]) -> None:
        for key in list(keys):
            self._hand_over(key, None)


class WatchedKinds:
    """The kinds of a cluster, all together."""

    def __init__(self, sources: list[WatchedKind]) -> None:
        self._sources = sources

    def missing(self) -> str | None:
        """The reason for which not everything is known; None where it is."""
        return next((source.missing for source in self._sources if source.missing is not None), None)

    def why_silent(self, longest_seconds: float) -> str | None:
        """The kinds that were not heard of for longer than that, in words."""
        age, name = max((source.age_seconds(), source.name) for source in self._sources)
        if age <= longest_seconds:
            return None
        return f"the API server has said nothing of {name} for {age:.0f} s"

    def ages(self) -> Mapping[str, Callable[[], float]]:
        """Seconds for which nothing could be heard, by kind."""
        return {source.name: source.age_seconds for source in self._sources}

    def look(self) -> None:
        """Hand over all changes."""
        for source in self._sources:
            source.look()

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            for source in self._sources:
                group.create_task(source.run(), name=source.name)
