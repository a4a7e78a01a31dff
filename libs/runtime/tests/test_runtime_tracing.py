"""Tracing: off costs nothing, on exports, and a collector that is gone keeps nobody."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from fairlead_testkit import ServiceProcess, eventually
from fairlead_testkit.processes.fresh_interpreter import printed_by
from fairlead_testkit.processes.http_server import http_server


@pytest.fixture
async def collector() -> AsyncIterator[tuple[str, list[bytes]]]:
    received: list[bytes] = []

    async def take(request: web.Request) -> web.Response:
        assert (request.method, request.path) == ("POST", "/v1/traces")
        received.append(await request.read())
        return web.Response(content_type="application/x-protobuf")

    async with http_server(take) as host:
        yield f"http://{host}", received


async def test_spans_are_exported_before_the_end_and_lines_carry_their_trace(
    collector: tuple[str, list[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    endpoint, received = collector

    async def exported() -> bool:
        """Whether no span was lost, as some are where the machine stands still for longer than the end waits."""
        with ServiceProcess(
            "demo", tmp_path, {"otel_endpoint": endpoint, "otel_sample_ratio": 1}, module="demo_service"
        ) as process:
            line = await process.logged("serving")
            trace_id = str(line["trace_id"])
            assert len(trace_id) == 32
            assert len(str(line["span_id"])) == 16
            assert await process.stop() == 0
            if any(line["event"] == "spans were lost" for line in process.events()):
                return False
        assert any(bytes.fromhex(trace_id) in body and b"fairlead-demo" in body for body in received)
        return True

    await eventually(exported, 40)


async def test_a_collector_that_is_gone_does_not_keep_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    settings = {"otel_endpoint": "http://127.0.0.1:1", "otel_sample_ratio": 1}
    with ServiceProcess("demo", tmp_path, settings, module="demo_service") as process:
        await process.logged("serving")
        assert await process.stop() == 0
    assert any(line["event"] == "spans were lost" for line in process.events())


async def test_without_an_endpoint_lines_have_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    with ServiceProcess("demo", tmp_path, module="demo_service") as process:
        assert "trace_id" not in await process.logged("serving")
        await eventually(lambda: process.running)


def test_neither_sdk_nor_exporter_is_imported_while_tracing_is_off() -> None:
    code = (
        "import sys; from fairlead_runtime.settings import ServiceSettings;"
        "from fairlead_runtime.tracing import configure_tracing; t = configure_tracing(ServiceSettings(), 'x');"
        "print(t.on, [m for m in sys.modules if m.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))])"
    )
    assert printed_by(code) == "False []"
