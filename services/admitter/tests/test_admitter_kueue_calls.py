"""Answers of an API server and what they mean for Workloads and marks, told by a server that plays a few of them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from fairlead_admitter.errors import (
    FrontendDownError,
    FrontendForbiddenError,
    FrontendForbiddenHereError,
    FrontendRefusedError,
)
from fairlead_admitter.frontends.kueue.calls import KueueCalls
from fairlead_admitter.frontends.kueue.rights import FreshRefusals
from fairlead_admitter.frontends.kueue.sweep import KueueSweep
from fairlead_admitter.frontends.kueue.tenant_calls import TenantCalls
from fairlead_contracts.frontend.marks import BASE_PRIORITY
from fairlead_kube.client import KubeClient, connect
from fairlead_kube.settings import KubeSettings
from fairlead_testkit.kubelab import KubeObject
from fairlead_testkit.processes.http_server import http_server, refusal, write_kubeconfig

GROUP = "/apis/kueue.x-k8s.io"


def a_workload(name: str, queue_name: str = "main", admitted_by: str | None = None) -> KubeObject:
    meta = {"name": name, "namespace": "team-a", "uid": f"uid-{name}", "resourceVersion": "1"}
    status = {"admission": {"clusterQueue": admitted_by}} if admitted_by else {}
    return {
        "metadata": meta | {"annotations": {BASE_PRIORITY: "5"}},
        "spec": {"queueName": queue_name, "priority": 9},
        "status": status,
    }


class WorkloadsServer:
    """Serves Workloads in one version, or for a moment none at all."""

    def __init__(self) -> None:
        self.version = "v1beta2"
        self.serving = True
        """Whether the kind is there; discovery lags behind."""
        self.workloads: dict[str, KubeObject] = {}
        self.refused: set[str] = set()
        self.patched: list[str] = []
        self.denied: tuple[int, object] | None = None
        """The answer to whoever patches."""

    async def answer(self, request: web.Request) -> web.Response:
        if request.path == GROUP:
            return web.json_response({"versions": [{"version": self.version}]})
        if request.path == f"{GROUP}/{self.version}":
            return web.json_response({"resources": [{"name": "workloads", "kind": "Workload"}]})
        if not self.serving or not request.path.startswith(f"{GROUP}/{self.version}/"):
            return web.Response(status=404, text="404 page not found")
        return self.play(request.method, request.path.rpartition("/")[2])

    def play(self, method: str, name: str) -> web.Response:
        if name == "workloads":
            return web.json_response({"metadata": {}, "items": list(self.workloads.values())})
        if name not in self.workloads:
            return refusal(
                404, "NotFound", details={"name": name, "group": "kueue.x-k8s.io", "kind": "workloads"}
            )
        if method == "PATCH":
            if self.denied is not None:
                code, details = self.denied
                return refusal(code, "", details=details)
            if name in self.refused:
                return refusal(422, "Invalid", details={"name": name, "kind": "Workload"})
            self.patched.append(name)
        return web.json_response(self.workloads[name])


@pytest.fixture
def server() -> WorkloadsServer:
    return WorkloadsServer()


@pytest.fixture
async def client(server: WorkloadsServer, tmp_path: Path) -> AsyncIterator[KubeClient]:
    kubeconfig = tmp_path / "kubeconfig"
    async with http_server(server.answer) as host:
        write_kubeconfig(kubeconfig, f"http://{host}")
        async with connect(KubeSettings(kubeconfig=str(kubeconfig)), user_agent="test") as client:
            yield client


async def test_a_workload_is_gone_only_where_the_server_names_it(
    server: WorkloadsServer, client: KubeClient
) -> None:
    calls = KueueCalls(client)
    assert await calls.patch("team-a", "x", "uid-x", annotations={}) is None
    assert await calls.look("team-a", "x", "uid-x") is None
    server.serving = False
    with pytest.raises(FrontendDownError, match="does not serve"):
        await calls.patch("team-a", "x", "uid-x", annotations={})
    with pytest.raises(FrontendDownError, match="does not serve"):
        await calls.look("team-a", "x", "uid-x")
    with pytest.raises(FrontendDownError, match="does not serve"):
        await calls.list_metadata()


KIND = {"name": "a", "group": "kueue.x-k8s.io", "kind": "workloads"}


@pytest.mark.parametrize(
    ("code", "details", "error"),
    [
        (403, KIND, FrontendForbiddenHereError),
        (403, {}, FrontendRefusedError),
        (401, None, FrontendForbiddenError),
    ],
    ids=["no right here", "a webhook says no", "nobody knows us"],
)
async def test_a_right_may_be_missing_for_one_job_alone(
    server: WorkloadsServer, client: KubeClient, code: int, details: object, error: type[Exception]
) -> None:
    server.workloads = {"a": a_workload("a")}
    calls = KueueCalls(client)
    assert await calls.look("team-a", "a", "uid-a")
    server.denied = (code, details)
    with pytest.raises(error) as caught:
        await calls.patch("team-a", "a", "uid-a", annotations={})
    assert type(caught.value) is error


async def test_a_conflict_is_another_workload_s_or_too_many_writes_at_once(
    server: WorkloadsServer, client: KubeClient
) -> None:
    server.workloads, server.denied = {"a": a_workload("a")}, (409, KIND)
    calls = KueueCalls(client)
    with pytest.raises(FrontendDownError):  # it is tried again
        await calls.patch("team-a", "a", "uid-a", annotations={})
    assert await calls.patch("team-a", "a", "uid-of-the-one-before", annotations={}) is None


async def test_another_version_is_found_after_the_one_in_use_is_served_no_more(
    server: WorkloadsServer, client: KubeClient
) -> None:
    server.workloads = {"a": a_workload("a")}
    calls = KueueCalls(client)
    assert await calls.look("team-a", "a", "uid-a")
    server.version = "v1beta1"
    with pytest.raises(FrontendDownError):
        await calls.patch("team-a", "a", "uid-a", annotations={})
    assert await calls.patch("team-a", "a", "uid-a", annotations={})


async def test_a_groups_workload_is_looked_for_in_the_version_that_is_served(
    server: WorkloadsServer, client: KubeClient
) -> None:
    server.version = "v1beta1"
    server.workloads = {"a": a_workload("a")}
    calls = TenantCalls(client, "team-a", "fairlead-submitter", FreshRefusals(0.0))
    assert await calls.workload("a") is not None
    assert await calls.workload("b") is None
    server.serving = False
    with pytest.raises(FrontendDownError):
        await calls.workload("a")


async def test_one_refused_workload_keeps_no_other_from_being_cleaned(
    server: WorkloadsServer, client: KubeClient
) -> None:
    server.workloads = {name: a_workload(name) for name in ("a", "b", "c")}
    server.refused = {"a"}
    sweep = KueueSweep(KueueCalls(client), lambda *_: "q", {"q"})
    with pytest.raises(FrontendRefusedError, match="1 Workloads stay marked"):
        await sweep.sweep(["q"], lambda: True)
    assert server.patched == ["b", "c"]


async def test_marks_of_queues_that_are_gone_are_cleaned_with_any_pool(
    server: WorkloadsServer, client: KubeClient
) -> None:
    server.workloads = {
        "mine": a_workload("mine"),
        "others": a_workload("others", "other"),
        "no-door": a_workload("no-door", "closed"),
        "no-queue": a_workload("no-queue", admitted_by="gone"),
        "runs-elsewhere": a_workload("runs-elsewhere", admitted_by="q2"),
    }
    entries = {"main": "q", "other": "q2"}
    sweep = KueueSweep(KueueCalls(client), lambda _, entry: entries.get(entry), {"q", "q2"})
    assert await sweep.sweep(["q"], lambda: True) == 3
    assert server.patched == ["mine", "no-door", "no-queue"]
