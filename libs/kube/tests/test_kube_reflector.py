"""Reflectors on the real API server, killed, compacted, cut off: they mirror all that stands, deletes too."""

import asyncio
import contextlib
import json
import random
import re
import urllib.request
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from fairlead_kube.client import KubeClient, connect
from fairlead_kube.errors import RetryableKubeError
from fairlead_kube.kinds.objects import PartialObject
from fairlead_kube.kinds.resources import NAMESPACES, Resource
from fairlead_kube.reflector import Key, Reflector
from fairlead_kube.settings import KubeSettings
from fairlead_testkit.by_hand.kube_observer_log import KubeObserverLog
from fairlead_testkit.kubelab import WORKLOADS_ALONE, Kit, KubeLab
from fairlead_testkit.nats_servers.proxy import FlakyProxy
from fairlead_testkit.timing.awaiting import eventually
from fairlead_testkit.timing.in_hand import beside

pytestmark = pytest.mark.kube

THINGS: Resource[PartialObject] = Resource(
    group="", version="v1", plural="configmaps", kind="ConfigMap", namespaced=True, shape=PartialObject
)
LABEL = "test/value"


@pytest.fixture(scope="module")
def lab(kube_kit: Kit) -> Iterator[KubeLab]:
    """A lab of this module's own: its API server is killed."""
    with KubeLab(WORKLOADS_ALONE, kit=kube_kit) as found:
        yield found


def value_of(thing: PartialObject) -> tuple[str, str]:
    return thing.metadata.uid, thing.metadata.label(LABEL) or ""


class Mirrored:
    """A running reflector, and the truth to compare it with."""

    def __init__(
        self, client: KubeClient, namespace: str, *, streams: bool, rest: Callable[[], float]
    ) -> None:
        self.wake = asyncio.Event()
        self.heard = KubeObserverLog()
        self.read: list[tuple[str, str]] = []
        """The name and value of each object that was read whole."""
        self.reflector: Reflector[PartialObject, tuple[str, str]] = Reflector(
            client,
            THINGS,
            project=self._project,
            wake=self.wake,
            namespace=namespace,
            observer=self.heard,
            page=100,
            rest=rest,
        )
        self.reflector._streams = streams
        self.known: dict[Key, tuple[str, str]] = {}
        """Objects as somebody knows them who only looks at the changes."""

    def _project(self, found: PartialObject) -> tuple[str, str]:
        self.read.append((found.metadata.name, found.metadata.label(LABEL) or ""))
        return value_of(found)

    def look(self) -> None:
        changes = self.reflector.take()
        for key, value in changes.changed.items():
            if value is None:
                self.known.pop(key, None)
            else:
                self.known[key] = value

    async def eventually(self, right: Callable[[Reflector[PartialObject, tuple[str, str]]], bool]) -> None:
        """Wait until the reflector is as it should be."""
        await eventually(lambda: right(self.reflector), 60, what="the reflector's state")

    async def equals(self, truth: Callable[[], dict[Key, tuple[str, str]]]) -> None:
        wanted = truth()
        await eventually(
            lambda: self.reflector.complete and self.reflector.values == wanted,
            60,
            on=self.wake,
            what="the mirror",
        )
        self.look()
        assert self.known == wanted


@contextlib.asynccontextmanager
async def client_through(lab: KubeLab, folder: Path, port: int | None = None) -> AsyncIterator[KubeClient]:
    """Connect a client, through a proxy's port if one is given."""
    shown = json.loads(
        await asyncio.to_thread(lab.kubectl, "config", "view", "--raw", "--flatten", "-o", "json")
    )
    if port is not None:
        shown["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    path = folder / f"kubeconfig-{port}"
    path.write_text(json.dumps(shown))
    settings = KubeSettings(kubeconfig=str(path), write_qps=100_000, write_burst=100_000)
    async with connect(settings, user_agent="fairlead-test") as client:
        yield client


@contextlib.asynccontextmanager
async def mirrored(
    client: KubeClient, namespace: str, *, streams: bool = True, rest: Callable[[], float] = lambda: 0.0
) -> AsyncIterator[Mirrored]:
    found = Mirrored(client, namespace, streams=streams, rest=rest)
    async with beside(found.reflector.run()):
        yield found


@pytest.fixture
async def client(lab: KubeLab, tmp_path: Path) -> AsyncIterator[KubeClient]:
    async with client_through(lab, tmp_path) as found:
        yield found


@pytest.fixture
async def namespace(client: KubeClient) -> str:
    name = f"mirror-{uuid.uuid4().hex[:8]}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    return name


@pytest.fixture
async def proxy(lab: KubeLab) -> AsyncIterator[FlakyProxy]:
    port = int(lab.server.rpartition(":")[2])
    async with FlakyProxy(port, random.Random(7), longest_delay=0.002).open() as found:
        yield found


def thing(name: str, namespace: str, value: int = 0) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": namespace, "labels": {LABEL: str(value)}}}


async def make(client: KubeClient, namespace: str, *names: str) -> None:
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(client.create(THINGS, thing(name, namespace)))


async def standing(client: KubeClient, namespace: str) -> dict[Key, tuple[str, str]]:
    found = await client.list(THINGS, namespace)
    return {Key(one.metadata.namespace, one.metadata.name): value_of(one) for one in found}


async def agree(found: Mirrored, client: KubeClient, namespace: str) -> None:
    wanted = await standing(client, namespace)
    await found.equals(lambda: wanted)


async def test_a_killed_api_server_costs_nothing_but_time(
    lab: KubeLab, client: KubeClient, namespace: str
) -> None:
    """Whether they begin with a streaming list or with pages."""
    await make(client, namespace, *(f"a{number}" for number in range(20)))
    async with (
        mirrored(client, namespace) as streamed,
        mirrored(client, namespace, streams=False) as paged,
    ):
        both = (streamed, paged)
        for found in both:
            await agree(found, client, namespace)
        lab.process("kube-apiserver").kill()
        for found in both:
            await found.eventually(lambda reflector: not reflector.following)
            assert len(found.reflector.values) == 20
        with pytest.raises(RetryableKubeError):
            await client.list(THINGS, namespace)
        await asyncio.to_thread(lab.restart_apiserver)
        await client.delete(THINGS, "a3", namespace)
        await client.merge_patch(THINGS, "a4", {"metadata": {"labels": {LABEL: "9"}}}, namespace)
        await make(client, namespace, "late")
        for found in both:
            await agree(found, client, namespace)
            assert len(found.known) == 20
            await found.eventually(lambda reflector: reflector.following)


async def test_a_forgotten_version_is_listed_anew_and_no_delete_is_missed(
    lab: KubeLab, client: KubeClient, namespace: str, proxy: FlakyProxy, tmp_path: Path
) -> None:
    await make(client, namespace, *(f"a{number}" for number in range(20)))
    async with client_through(lab, tmp_path, proxy.port) as cut_off, mirrored(cut_off, namespace) as found:
        await agree(found, client, namespace)
        proxy.stall()
        for number in range(10):
            await client.delete(THINGS, f"a{number}", namespace)
        await make(client, namespace, "a0", "b0")  # a0 is another object now
        await asyncio.to_thread(compact, lab, await latest_version(client, namespace))
        await asyncio.to_thread(lab.restart_apiserver)  # whose cache of the past begins anew
        assert len(found.reflector.values) == 20
        proxy.flow()
        proxy.cut()
        await agree(found, client, namespace)
        # Once, or more often where the server, just started, broke off the list.
        assert found.heard.counts["reflector.gone"] >= 1
        assert found.reflector.relists >= 1
        assert Key(namespace, "a9") not in found.known


@pytest.mark.parametrize("objects", [500, pytest.param(1000, marks=pytest.mark.deep)])
async def test_objects_churned_while_the_watch_is_cut_are_all_right_in_the_end(
    lab: KubeLab, client: KubeClient, namespace: str, proxy: FlakyProxy, tmp_path: Path, *, objects: int
) -> None:
    rng = random.Random(11)
    async with client_through(lab, tmp_path, proxy.port) as cut_off, mirrored(cut_off, namespace) as found:
        await eventually(lambda: found.reflector.complete, on=found.wake)
        churning = asyncio.Event()

        async def cut() -> None:
            while not churning.is_set():
                proxy.cut()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await churning.wait()

        async def churn(part: int) -> None:
            for number in range(part, objects, 10):
                name = f"t{number}"
                await client.create(THINGS, thing(name, namespace))
                if rng.random() < 0.7:
                    await client.merge_patch(THINGS, name, {"metadata": {"labels": {LABEL: "1"}}}, namespace)
                if rng.random() < 0.5:
                    await client.delete(THINGS, name, namespace)
                    if rng.random() < 0.3:
                        await client.create(THINGS, thing(name, namespace, 2))

        async with asyncio.TaskGroup() as group:
            group.create_task(cut())
            async with asyncio.TaskGroup() as work:
                for part in range(10):
                    work.create_task(churn(part))
            churning.set()
        # Nobody looked meanwhile: what waits to be looked at is bounded by the objects, not by the events.
        assert len(found.reflector._changed) <= objects
        await agree(found, client, namespace)
        assert 0.4 * objects < len(found.known) < 0.8 * objects
        assert found.heard.counts["reflector.errors"] > 3


async def test_both_ways_to_begin_show_the_same(client: KubeClient, namespace: str) -> None:
    await make(client, namespace, *(f"a{number}" for number in range(250)))
    async with (
        mirrored(client, namespace) as streamed,
        mirrored(client, namespace, streams=False) as paged,
    ):
        await agree(streamed, client, namespace)
        await agree(paged, client, namespace)
        assert streamed.heard.counts["reflector.events"] >= 250
        assert streamed.heard.counts["reflector.bookmarks"] >= 1
        assert paged.heard.counts["reflector.events"] == 0


async def test_of_what_changed_during_a_rest_the_last_state_is_read_alone_and_no_delete_is_missed(
    client: KubeClient, namespace: str
) -> None:
    rests = [0.0]
    await make(client, namespace, "a", "b", "c")
    async with mirrored(client, namespace, rest=lambda: rests[0]) as found:
        await agree(found, client, namespace)
        rests[0] = 1.0
        await client.merge_patch(THINGS, "a", {"metadata": {"labels": {LABEL: "begins"}}}, namespace)
        await eventually(lambda: ("a", "begins") in found.read, 30, on=found.wake, what="a rest begins")
        for number in range(10):
            for name in "ab":
                await client.merge_patch(
                    THINGS, name, {"metadata": {"labels": {LABEL: str(number)}}}, namespace
                )
        await client.delete(THINGS, "b", namespace)
        await client.delete(THINGS, "c", namespace)
        await make(client, namespace, "c", "d")
        events = found.heard.counts["reflector.events"]
        await agree(found, client, namespace)
        assert found.heard.counts["reflector.events"] - events >= 20
        states = Counter(found.read)
        assert states["a", "9"] == 1
        assert sum(states[name, str(number)] for name in "ab" for number in range(9)) < 9


async def latest_version(client: KubeClient, namespace: str) -> int:
    """The revision of etcd; a test may know that a version is one."""
    body = await client.request("GET", THINGS.path(namespace), query={"limit": "1"})
    return int(msgspec.json.decode(body)["metadata"]["resourceVersion"])


def compact(lab: KubeLab, revision: int) -> None:
    """Have etcd forget all older revisions, by its HTTP gateway."""
    command = " ".join(lab.process("etcd").command)
    found = re.search(r"--listen-client-urls=(\S+)", command)
    assert found is not None
    body = json.dumps({"revision": str(revision), "physical": True}).encode()
    with urllib.request.urlopen(f"{found[1]}/v3/kv/compaction", body, timeout=30) as answer:  # noqa: S310 - our own etcd
        assert answer.status == 200
