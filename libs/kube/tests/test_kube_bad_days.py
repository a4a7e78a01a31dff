"""Answers of API servers on a bad day, or of another version, given by a server with a script."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from fairlead_kube.client import KubeClient, connect
from fairlead_kube.errors import (
    ForbiddenError,
    MalformedAnswerError,
    ServerError,
    TimedOutError,
    UnauthorizedError,
    UnreachableError,
)
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.resources import NAMESPACES, NODES
from fairlead_kube.reflector import Key, Reflector
from fairlead_kube.settings import KubeSettings
from fairlead_testkit.by_hand.kube_observer_log import KubeObserverLog
from fairlead_testkit.processes.http_server import HttpAnswer, http_server, kube_status, write_kubeconfig
from fairlead_testkit.timing.awaiting import eventually
from fairlead_testkit.timing.in_hand import beside


class ScriptedServer:
    """A server that answers one request after the other, as the script says; keeps the requests."""

    def __init__(self) -> None:
        self.script: list[HttpAnswer] = []
        self.asked: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.host = ""
        self.exhausted = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        self.bodies.append(await request.read())
        if not self.script:
            self.exhausted.set()
            return await silent(request)
        return await self.script.pop(0)(request)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    server = ScriptedServer()
    async with http_server(server.answer) as server.host:
        yield server


@contextlib.asynccontextmanager
async def client_of(
    server: ScriptedServer,
    folder: Path,
    observer: KubeObserverLog | None = None,
    *,
    silence: float = 150.0,
    within: float = 30.0,
) -> AsyncIterator[KubeClient]:
    """A client whose token stands in `folder/token`."""
    kubeconfig = folder / "kubeconfig"
    write_kubeconfig(kubeconfig, f"http://{server.host}/prefix")
    settings = KubeSettings(
        kubeconfig=str(kubeconfig), watch_silence_seconds=silence, request_timeout_seconds=within
    )
    async with connect(settings, user_agent="scripted", observer=observer or KubeObserverLog()) as client:
        yield client


def says(body: object, code: int = 200, **headers: str) -> HttpAnswer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(
            status=code,
            text=body if isinstance(body, str) else json.dumps(body),
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )

    return answer


def refuses(
    code: int, reason: str, message: str = "no", details: object = None, **headers: str
) -> HttpAnswer:
    return says(kube_status(code, reason, message, details), code, **headers)


def streams(*events: object, end: bool = False, pieces: int = 0) -> HttpAnswer:
    """Serve a watch that says these events, then ends or stays open; `pieces`: bytes at a time."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        text = "".join(json.dumps(event) + "\n" for event in events).encode()
        step = pieces or len(text) or 1
        for start in range(0, len(text), step):
            await response.write(text[start : start + step])
        if not end:
            await asyncio.Event().wait()
        return response

    return answer


async def silent(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


# --- requests


async def test_requests_carry_token_agent_query_and_impersonation(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.script = [says({"metadata": {"name": "a"}})]
    async with client_of(server, tmp_path) as client:
        await client.create(
            NAMESPACES, {"metadata": {"name": "a"}}, dry_run=True, impersonate="jane", field_manager="me"
        )
    [asked] = server.asked
    assert asked.path == "/prefix/api/v1/namespaces"
    assert dict(asked.query) == {"dryRun": "All", "fieldManager": "me"}
    assert asked.headers["Authorization"] == "Bearer one"
    assert asked.headers["Impersonate-User"] == "jane"
    assert asked.headers["User-Agent"] == "scripted"
    assert json.loads(server.bodies[0]) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "a"},
    }


async def test_a_token_that_is_refused_is_read_again_once(server: ScriptedServer, tmp_path: Path) -> None:
    server.script = [
        refuses(401, "Unauthorized"),
        says({}),
        refuses(401, "Unauthorized"),
        refuses(401, "Unauthorized"),
    ]
    async with client_of(server, tmp_path) as client:
        await client.get(NODES, "n")
        assert [asked.headers["Authorization"] for asked in server.asked] == ["Bearer one", "Bearer one"]
        (tmp_path / "token").write_text("two")
        with pytest.raises(UnauthorizedError):
            await client.get(NODES, "n")
        assert [asked.headers["Authorization"] for asked in server.asked[2:]] == ["Bearer one", "Bearer two"]


async def test_what_is_not_of_kubernetes_is_still_told(server: ScriptedServer, tmp_path: Path) -> None:
    server.script = [
        says("<html>bad gateway</html>", 502),
        says("hello"),
        says({"metadata": 5}),
        says({"items": 5}),
    ]
    async with client_of(server, tmp_path) as client:
        with pytest.raises(ServerError, match="bad gateway"):
            await client.get(NODES, "n")
        for _ in range(2):
            with pytest.raises(MalformedAnswerError, match="Node at"):
                await client.get(NODES, "n")
        with pytest.raises(MalformedAnswerError):
            await client.list(NODES)


async def test_silence_and_absence_are_told_apart(server: ScriptedServer, tmp_path: Path) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    server.script = [silent, cut, cut]
    async with client_of(server, tmp_path, within=0.2) as client:
        with pytest.raises(TimedOutError):
            await client.get(NODES, "n")
    async with client_of(server, tmp_path) as client:
        with pytest.raises(UnreachableError):
            await client.create(NODES, {})
    server.host = "127.0.0.1:1"
    async with client_of(server, tmp_path) as client:
        with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1"):
            await client.get(NODES, "n")


async def test_all_pages_of_a_list_are_read_and_an_expired_one_is_begun_again(
    server: ScriptedServer, tmp_path: Path
) -> None:
    def page(name: str, token: str = "") -> HttpAnswer:
        return says({"metadata": {"resourceVersion": "5", "continue": token}, "items": [node(name)]})

    server.script = [page("lost", "t1"), refuses(410, "Expired"), page("a", "t2"), page("b")]
    heard = KubeObserverLog()
    async with client_of(server, tmp_path, heard) as client:
        found = await client.list(NODES, label_selector="x=y", limit=1)
    assert [one.metadata.name for one in found] == ["a", "b"]
    assert heard.counts["list.expired"] == 1
    assert dict(server.asked[3].query) == {"labelSelector": "x=y", "limit": "1", "continue": "t2"}


async def test_a_patch_at_a_version_keeps_the_metadata_given(server: ScriptedServer, tmp_path: Path) -> None:
    server.script = [says({})]
    async with client_of(server, tmp_path) as client:
        await client.merge_patch(NODES, "n", {"metadata": {"labels": {"a": None}}}, resource_version="9")
    assert json.loads(server.bodies[0]) == {"metadata": {"labels": {"a": None}, "resourceVersion": "9"}}
    assert server.asked[0].content_type == "application/merge-patch+json"


# --- reflectors


def node(name: str, version: str = "1", **labels: str) -> dict[str, object]:
    return {"metadata": {"name": name, "resourceVersion": version, "labels": labels}}


def event(kind: str, name: str, version: str = "1", **labels: str) -> dict[str, object]:
    return {"type": kind, "object": node(name, version, **labels)}


def bookmark(version: str, *, ends: bool = False) -> dict[str, object]:
    annotations = {"k8s.io/initial-events-end": "true"} if ends else None
    return {
        "type": "BOOKMARK",
        "object": {"metadata": {"resourceVersion": version, "annotations": annotations}},
    }


def failure(code: int, reason: str, **details: object) -> dict[str, object]:
    return {"type": "ERROR", "object": kube_status(code, reason, details=details)}


def labels(value: Node) -> dict[str, str] | None:
    """The labels of a node; None for one that is `hidden`."""
    return None if value.metadata.label("hidden") else (value.metadata.labels or {})


class RunningReflector:
    """A reflector that runs, of nodes."""

    def __init__(self, client: KubeClient, heard: KubeObserverLog) -> None:
        self.wake = asyncio.Event()
        self.reflector = Reflector(client, NODES, project=labels, wake=self.wake, observer=heard, page=2)

    @property
    def names(self) -> set[str]:
        return {key.name for key in self.reflector.values}

    async def until(self, *names: str) -> None:
        await eventually(
            lambda: self.names == set(names) and self.reflector.complete, on=self.wake, what=str(names)
        )


@contextlib.asynccontextmanager
async def following(
    server: ScriptedServer, folder: Path, heard: KubeObserverLog, *, silence: float = 150.0
) -> AsyncIterator[RunningReflector]:
    async with client_of(server, folder, heard, silence=silence) as client:
        found = RunningReflector(client, heard)
        async with beside(found.reflector.run()):
            yield found


async def test_a_streaming_list_is_complete_at_its_bookmark_and_is_resumed_at_the_last_version(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.script = [
        streams(
            event("ADDED", "a", "3"),
            event("ADDED", "b", "2"),
            bookmark("9", ends=True),
            event("DELETED", "a", "10"),
            end=True,
        ),
        streams(event("ADDED", "c", "12"), bookmark("15"), end=True),
        streams(event("MODIFIED", "c", "16", colour="red")),
    ]
    heard = KubeObserverLog()
    async with following(server, tmp_path, heard) as found:
        await eventually(lambda: found.reflector.values.get(Key("", "c")) == {"colour": "red"}, on=found.wake)
        assert found.names == {"b", "c"}
        changes = found.reflector.take()
        assert changes.complete
        assert changes.changed == {Key("", "a"): None, Key("", "b"): {}, Key("", "c"): {"colour": "red"}}
        assert found.reflector.take().changed == {}
        assert found.reflector.following
    first, second, third = (dict(asked.query) for asked in server.asked)
    assert first["sendInitialEvents"] == "true"
    assert "resourceVersion" not in first
    assert 240 <= int(first["timeoutSeconds"]) <= 300
    assert (second["resourceVersion"], third["resourceVersion"]) == ("10", "15")
    assert found.reflector.relists == 0


async def test_events_cut_anywhere_in_the_stream_are_put_together(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.script = [streams(event("ADDED", "a"), event("ADDED", "b"), bookmark("9", ends=True), pieces=7)]
    async with following(server, tmp_path, KubeObserverLog()) as found:
        await found.until("a", "b")


@pytest.mark.parametrize("refusal", [(422, "Invalid"), (400, "BadRequest")])
async def test_where_streaming_lists_are_refused_pages_are_read(
    server: ScriptedServer, tmp_path: Path, refusal: tuple[int, str]
) -> None:
    server.script = [
        refuses(*refusal),
        says({"metadata": {"resourceVersion": "", "continue": "t"}, "items": [node("a")]}),
        says({"metadata": {"resourceVersion": "40"}, "items": [node("b")]}),
        streams(event("ADDED", "c", "41"), end=True),
        refuses(410, "Expired"),
        says({"metadata": {"resourceVersion": "50"}, "items": [node("c")]}),
    ]
    heard = KubeObserverLog()
    async with following(server, tmp_path, heard) as found:
        await found.until("c")
        assert found.reflector.take().changed == {Key("", "a"): None, Key("", "b"): None, Key("", "c"): {}}
        await eventually(lambda: len(server.asked) == 7)
    queries = [dict(asked.query) for asked in server.asked]
    assert (queries[1]["limit"], queries[2]["continue"]) == ("2", "t")
    assert [query.get("resourceVersion") for query in queries[3:]] == ["40", "41", None, "50"]
    assert (heard.counts["reflector.gone"], found.reflector.relists) == (1, 1)


@pytest.mark.parametrize(
    "expiry",
    [failure(410, "Expired"), failure(504, "Timeout", causes=[{"reason": "ResourceVersionTooLarge"}])],
    ids=["forgotten", "not reached"],
)
async def test_a_version_that_leads_nowhere_is_noticed_in_band_and_deletes_are_not_missed(
    server: ScriptedServer, tmp_path: Path, expiry: dict[str, object]
) -> None:
    gate = asyncio.Event()

    async def later(request: web.Request) -> web.StreamResponse:
        await gate.wait()
        return await streams(event("ADDED", "b", "60"), event("ADDED", "new"), bookmark("70", ends=True))(
            request
        )

    server.script = [
        streams(event("ADDED", "a"), event("ADDED", "b"), bookmark("9", ends=True), expiry),
        later,
    ]
    heard = KubeObserverLog()
    async with following(server, tmp_path, heard) as found:
        await eventually(lambda: found.reflector.relists == 1, on=found.wake)
        assert found.names == {"a", "b"}  # old values stay readable
        assert not found.reflector.take().complete
        gate.set()
        await found.until("b", "new")
        assert found.reflector.take().changed == {Key("", "a"): None, Key("", "new"): {}}  # b did not change
    assert heard.counts["reflector.gone"] == 1


async def test_a_list_that_breaks_off_shows_nothing_as_deleted(
    server: ScriptedServer, tmp_path: Path
) -> None:
    whole_list = [event("ADDED", "a"), event("ADDED", "b")]
    server.script = [
        streams(*whole_list, bookmark("9", ends=True), failure(410, "Expired")),
        streams(event("ADDED", "a"), end=True),
        streams(*whole_list, bookmark("10", ends=True)),
    ]
    heard = KubeObserverLog()
    async with following(server, tmp_path, heard) as found:
        await eventually(lambda: len(server.asked) == 3)
        await found.until("a", "b")
        assert None not in found.reflector.take().changed.values()
    assert heard.counts["reflector.errors"] == 1


async def test_a_server_that_forgets_at_once_is_not_asked_in_a_tight_loop(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.script = [streams(event("ADDED", "a"), bookmark("9", ends=True), failure(410, "Expired"))] * 20
    clock = asyncio.get_running_loop().time
    async with following(server, tmp_path, KubeObserverLog()):
        began = clock()
        await eventually(lambda: len(server.asked) >= 6)
        assert clock() - began >= 0.5 * (0.05 + 0.1 + 0.2 + 0.4 + 0.8)


async def test_throttling_and_failures_are_waited_out(server: ScriptedServer, tmp_path: Path) -> None:
    server.script = [
        refuses(503, "ServiceUnavailable"),
        refuses(429, "TooManyRequests", Retry_After="1"),
        streams(event("ADDED", "a"), bookmark("9", ends=True), failure(500, "InternalError"), end=True),
    ]
    heard = KubeObserverLog()
    async with following(server, tmp_path, heard) as found:
        began = asyncio.get_running_loop().time()
        await found.until("a")
        assert asyncio.get_running_loop().time() - began >= 1
        await eventually(lambda: len(server.asked) == 4)
    assert server.asked[3].query["resourceVersion"] == "9"
    assert heard.counts["reflector.errors"] == 3


async def test_a_watch_gone_silent_is_opened_anew(server: ScriptedServer, tmp_path: Path) -> None:
    server.script = [
        streams(event("ADDED", "a"), bookmark("9", ends=True)),
        streams(event("ADDED", "b", "10")),
    ]
    async with following(server, tmp_path, KubeObserverLog(), silence=2.0) as found:
        await found.until("a", "b")
    assert server.asked[1].query["resourceVersion"] == "9"


async def test_an_object_that_cannot_be_read_counts_as_absent_and_harms_no_other(
    server: ScriptedServer, tmp_path: Path
) -> None:
    broken = {
        "type": "MODIFIED",
        "object": {"metadata": {"name": "a", "resourceVersion": "10"}, "spec": {"taints": 5}},
    }
    server.script = [
        streams(event("ADDED", "a"), event("ADDED", "b"), bookmark("9", ends=True), broken, end=True)
    ]
    heard = KubeObserverLog()
    async with following(server, tmp_path, heard) as found:
        await found.until("b")
        await eventually(lambda: len(server.asked) == 2)
    assert server.asked[1].query["resourceVersion"] == "10"
    assert heard.counts["reflector.malformed"] == 1


async def test_what_the_projection_leaves_out_is_dropped_and_comes_back(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.script = [
        streams(
            event("ADDED", "a"),
            event("ADDED", "b", hidden="yes"),
            bookmark("9", ends=True),
            event("MODIFIED", "a", "10", hidden="yes"),
            event("MODIFIED", "b", "11"),
        )
    ]
    async with following(server, tmp_path, KubeObserverLog()) as found:
        await found.until("b")
        assert found.reflector.take().changed[Key("", "a")] is None


async def test_an_equal_value_is_no_change_and_wakes_nobody(server: ScriptedServer, tmp_path: Path) -> None:
    server.script = [
        streams(
            event("ADDED", "a"),
            bookmark("9", ends=True),
            event("MODIFIED", "a", "10"),
            bookmark("11"),
            end=True,
        )
    ]
    heard = KubeObserverLog()
    async with following(server, tmp_path, heard) as found:
        await eventually(lambda: len(server.asked) == 2)
        assert found.reflector.take().changed == {Key("", "a"): {}}
    assert heard.counts["reflector.events"] == 2


async def test_a_missing_right_is_fatal_at_the_start_and_waited_out_later(
    server: ScriptedServer, tmp_path: Path
) -> None:
    heard = KubeObserverLog()
    server.script = [refuses(403, "Forbidden")]
    async with client_of(server, tmp_path, heard) as client:
        with pytest.raises(ForbiddenError):
            await RunningReflector(client, heard).reflector.run()
    server.script = [
        streams(event("ADDED", "a"), bookmark("9", ends=True), end=True),
        refuses(403, "Forbidden"),
        streams(event("ADDED", "b", "10"), end=True),
        refuses(404, "NotFound"),
        streams(event("ADDED", "b", "30"), bookmark("31", ends=True)),
    ]
    async with following(server, tmp_path, heard) as found:
        await found.until("b")
        assert found.reflector.relists == 1
    assert heard.notes.count("reflector.error") == 2
