"""Kinds that come, go, change their version or may not be read; and a cluster that is not stated by halves."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiohttp import web

from fairlead_bus import Bus, ConnectionSettings, connect
from fairlead_bus.facts.announcer import Announcer, Revisions
from fairlead_bus.observer import BusTally
from fairlead_bus.ownership.leadership import Leadership
from fairlead_bus.server.provision import provision
from fairlead_contracts import topology
from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.messages.state import TenantState
from fairlead_kube.client import KubeClient
from fairlead_kube.client import connect as connect_kube
from fairlead_kube.kinds.resources import LOCAL_QUEUES
from fairlead_kube.reflector import Key
from fairlead_kube.settings import KubeSettings
from fairlead_runtime.metrics import Metrics
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.processes.http_server import http_server, refusal, write_kubeconfig
from fairlead_testkit.timing.in_hand import beside
from fairlead_watcher import sources
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.instruments import WatcherInstruments
from fairlead_watcher.objects.workload_context import LocalQueueFacts, local_queue_facts
from fairlead_watcher.sources import BELIEVED_DENIALS, KindSource, SourceContext, WatchedKinds
from fairlead_watcher.watcher import Watcher

GROUP = "kueue.x-k8s.io"
PROBE_SECONDS = 0.05


class OneKindServer:
    """An API server that serves LocalQueues in one version, or does not, or not to us."""

    def __init__(self) -> None:
        self.version: str | None = "v1beta2"
        self.denials = 0
        """Number of further questions of the kind that are answered as if it were not served."""
        self.forbids = False
        self.refusal = (403, "Forbidden")
        self.names: list[str] = []
        self.host = ""
        self._moved_on = asyncio.Event()

    def move_on(self) -> None:
        """Ends all watches: what has changed shows when they are opened anew."""
        self._moved_on.set()
        self._moved_on = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path == f"/apis/{GROUP}":
            return web.json_response({"versions": [{"version": self.version or "v1"}]})
        if path == f"/apis/{GROUP}/{self.version or 'v1'}":
            served = self.version is not None and not self.denials
            self.denials = max(0, self.denials - 1)
            return web.json_response(
                {"resources": [{"name": "localqueues", "kind": "LocalQueue"}] if served else []}
            )
        if path != f"/apis/{GROUP}/{self.version}/localqueues" or self.denials:
            return refusal(404, "NotFound")
        return refusal(*self.refusal) if self.forbids else await self._watch(request)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        moved_on = self._moved_on
        if "sendInitialEvents" in request.query:
            for name in self.names:
                await response.write(line("ADDED", {"name": name, "namespace": "a", "resourceVersion": "1"}))
            end = {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}
            await response.write(line("BOOKMARK", end))
        await moved_on.wait()
        return response


def line(word: str, metadata: Mapping[str, object]) -> bytes:
    item = {"metadata": metadata, "spec": {"clusterQueue": "cq"}}
    return json.dumps({"type": word, "object": item}).encode() + b"\n"


@pytest.fixture
async def server() -> AsyncIterator[OneKindServer]:
    server = OneKindServer()
    async with http_server(server.answer) as server.host:
        yield server
        server.move_on()


@pytest.fixture
async def client(server: OneKindServer, tmp_path: Path) -> AsyncIterator[KubeClient]:
    kubeconfig = tmp_path / "kubeconfig"
    write_kubeconfig(kubeconfig, f"http://{server.host}")
    async with connect_kube(KubeSettings(kubeconfig=str(kubeconfig)), user_agent="test") as opened:
        yield opened


class SourceTaker:
    """A source, and what it delivered."""

    def __init__(self, client: KubeClient, *, optional: bool = False, dispensable: bool = False) -> None:
        self.wake = asyncio.Event()
        self.values: dict[Key, LocalQueueFacts] = {}
        self.gone: list[Key] = []
        self.troubles: set[str] = set()
        self.tally = BusTally()
        self.source = KindSource(
            SourceContext(client, self.wake, self.tally, PROBE_SECONDS),
            LOCAL_QUEUES,
            local_queue_facts,
            self.take,
            optional=optional,
            dispensable=dispensable,
        )

    def take(self, key: Key, value: LocalQueueFacts | None) -> None:
        if value is None:
            del self.values[key]
            self.gone.append(key)
        else:
            self.values[key] = value

    async def follow(self) -> None:
        """Looks whenever it is woken, as the watcher does."""
        while True:
            await self.wake.wait()
            self.wake.clear()
            self.source.look()
            self.troubles.add(self.source.missing or "")

    def names(self) -> list[str]:
        self.source.look()
        return sorted(key.name for key in self.values)

    def whole(self, *names: str) -> Callable[[], bool]:
        return lambda: self.names() == list(names) and self.source.missing is None


def running(taker: SourceTaker) -> contextlib.AbstractAsyncContextManager[None]:
    return beside(taker.source.run(), taker.follow())


async def test_a_kind_that_must_be_there_is_missed_until_it_is(
    server: OneKindServer, client: KubeClient
) -> None:
    server.version, server.names = None, ["x"]
    taker = SourceTaker(client)
    async with running(taker):
        await eventually(lambda: "does not serve" in (taker.source.missing or ""))
        server.version = "v1beta2"
        await eventually(taker.whole("x"))


async def test_a_kind_that_need_not_be_there_has_no_objects_while_it_is_not(
    server: OneKindServer, client: KubeClient
) -> None:
    server.version, server.names = None, ["x"]
    taker = SourceTaker(client, optional=True)
    async with running(taker):
        await eventually(taker.whole())
        server.version = "v1beta2"
        await eventually(taker.whole("x"))
        server.version = None
        server.move_on()
        await eventually(taker.whole(), 30)
        assert taker.source.age_seconds() == 0


async def test_a_kind_that_is_denied_once_or_twice_is_not_forgotten(
    server: OneKindServer, client: KubeClient
) -> None:
    server.names = ["x"]
    taker = SourceTaker(client, optional=True)
    async with running(taker):
        await eventually(taker.whole("x"))
        server.denials = BELIEVED_DENIALS - 1
        server.move_on()
        await eventually(lambda: not server.denials and taker.whole("x")(), 30)
        assert any("does not serve" in trouble for trouble in taker.troubles)
        assert taker.gone == []


async def test_another_version_takes_over_and_what_it_lacks_is_gone(
    server: OneKindServer, client: KubeClient
) -> None:
    server.version, server.names = "v1beta1", ["x", "y"]
    taker = SourceTaker(client)
    async with running(taker):
        await eventually(taker.whole("x", "y"))
        server.version, server.names = "v1beta2", ["y", "z"]
        server.move_on()
        await eventually(taker.whole("y", "z"), 30)


async def test_a_kind_that_may_not_be_read_says_so_and_is_read_once_it_may(
    server: OneKindServer, client: KubeClient
) -> None:
    server.forbids, server.names = True, ["x"]
    taker = SourceTaker(client)
    async with running(taker):
        await eventually(lambda: "Forbidden" in (taker.source.missing or ""))
        assert taker.tally.said("source.refused")
        server.forbids = False
        await eventually(taker.whole("x"), 30)


async def test_a_dispensable_kind_that_may_not_be_read_holds_nobody_up_and_is_read_once_it_may(
    server: OneKindServer, client: KubeClient
) -> None:
    server.forbids, server.names = True, ["x"]
    taker = SourceTaker(client, optional=True, dispensable=True)
    async with running(taker):
        await eventually(lambda: taker.tally.said("source.refused"))
        taker.troubles.clear()
        await eventually(lambda: taker.tally.counts["source.refused"] > 2)
        assert taker.troubles <= {""}
        assert (taker.source.missing, taker.source.age_seconds()) == (None, 0)
        server.forbids = False
        await eventually(taker.whole("x"), 30)


async def test_a_dispensable_kind_is_waited_for_where_it_is_refused_for_another_reason(
    server: OneKindServer, client: KubeClient
) -> None:
    """As by a server that just started: stated without it, jobs would lose their classes for a moment."""
    server.forbids, server.refusal = True, (404, "NotFound")
    taker = SourceTaker(client, optional=True, dispensable=True)
    async with running(taker):
        await eventually(lambda: "NotFound" in (taker.source.missing or ""))


async def test_a_dispensable_kind_that_cannot_be_listed_is_not_waited_for_long_and_is_read_once_it_can(
    server: OneKindServer, client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the webhook that converts its CRD is broken."""
    monkeypatch.setattr(sources, "AWAITED_SECONDS", 0.5)
    server.forbids, server.refusal, server.names = True, (500, "InternalError"), ["x"]
    waiting, done_without = (
        SourceTaker(client, optional=True),
        SourceTaker(client, optional=True, dispensable=True),
    )
    async with running(waiting), running(done_without):
        await eventually(lambda: done_without.tally.said("source.unlisted"))
        assert (done_without.source.missing, done_without.source.age_seconds()) == (None, 0)
        assert "not all" in (waiting.source.missing or "")
        server.forbids = False
        await eventually(done_without.whole("x"), 30)


async def test_a_dispensable_kind_that_was_read_is_waited_for_again_and_its_silence_told(
    server: OneKindServer, client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where its watch is too old, so that all is listed anew, and the server cannot do that for a while."""
    monkeypatch.setattr(sources, "AWAITED_SECONDS", 1.0)
    server.names = ["x"]
    taker = SourceTaker(client, optional=True, dispensable=True)
    async with running(taker):
        await eventually(taker.whole("x"))
        await asyncio.sleep(1.0)  # nobody waits for it meanwhile
        server.forbids, server.refusal = True, (410, "Expired")
        server.move_on()
        await eventually(lambda: "not all" in (taker.source.missing or ""))
        await eventually(lambda: taker.tally.said("source.unlisted"))
        server.forbids, server.names = False, ["y"]
        await eventually(taker.whole("y"), 30)
        server.forbids = True
        server.move_on()
        await eventually(lambda: taker.source.age_seconds() > 0)


async def test_a_kind_that_comes_late_is_not_said_to_be_silent_since_the_start(
    server: OneKindServer, client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(sources, "time", SimpleNamespace(monotonic=lambda: now))
    server.version, server.forbids = None, True
    taker = SourceTaker(client, optional=True)
    async with running(taker):
        await eventually(lambda: taker.source.missing is None)
        now = 1000.0
        server.version = "v1beta2"
        await eventually(lambda: "Forbidden" in (taker.source.missing or ""))
        assert taker.source.age_seconds() == 0


@contextlib.asynccontextmanager
async def a_bus(server: NatsServer, tally: BusTally) -> AsyncIterator[Bus]:
    async with connect(ConnectionSettings(url=server.url), name="watcher", observer=tally) as bus:
        await provision(bus, topology.topology(["c1"]))
        yield bus


@pytest.mark.integration
async def test_nothing_is_stated_before_every_kind_was_heard(
    server: OneKindServer, client: KubeClient, nats_server: NatsServer
) -> None:
    server.forbids = True
    server.names = ["x"]
    tally = BusTally()
    async with a_bus(nats_server, tally) as bus:
        wake, led, now = asyncio.Event(), asyncio.Event(), 1_800_000_000 * SECOND
        view = ClusterView("c1", ended_stay=SECOND)
        sources = WatchedKinds(
            [
                KindSource(
                    SourceContext(client, wake, BusTally(), PROBE_SECONDS),
                    LOCAL_QUEUES,
                    local_queue_facts,
                    view.local_queue,
                )
            ]
        )
        leadership = Leadership(bus, role="watcher", cluster="c1", replica="r", wake=led)
        announcer = Announcer(
            bus,
            leadership,
            cluster="c1",
            wake=led,
            next_rev=Revisions(lambda: now).next,
            clock=lambda: now,
            missing=sources.missing,
        )
        watcher = Watcher(
            sources, view, announcer, WatcherInstruments(Metrics("watcher")), clock=lambda: now, wake=wake
        )
        async with beside(leadership.run(), announcer.run(), sources.run(), watcher.run()):
            await eventually(lambda: leadership.epoch, 30)
            await eventually(lambda: "Forbidden" in (watcher.unknown() or ""), 30)
            assert announcer.why_not_ready() is not None
            server.forbids = False
            await eventually(lambda: announcer.why_not_ready() is None, 30)
            assert watcher.unknown() is None
            assert list(view.stated.values()) == [
                TenantState(cluster="c1", epoch=0, rev=0, name="x", scope="a", queue="cq")
            ]
            assert [told["repaired"] for told in tally.said("announcer.reconciled")] == [1]


def test_revisions_grow_whatever_the_clock_does() -> None:
    times = iter([5, 5, 3, 9])
    revisions = Revisions(lambda: next(times))
    assert [revisions.next() for _ in range(4)] == [5, 6, 7, 9]
