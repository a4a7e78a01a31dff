"""The session that sends spans goes by what the environment says of its collector, and looks there once."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import override

import pytest
import requests
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from fairlead_runtime.exporting import BoundedQueue, read_environment_once

URL = "http://collector.example:4318/v1/traces"


def test_proxy_certificates_and_password_are_those_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine collector.example login ann password secret\n")
    for name, value in (("http_proxy", "http://proxy:1"), ("no_proxy", ""), ("REQUESTS_CA_BUNDLE", "ca.pem")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NETRC", str(netrc))
    session = requests.Session()
    read_environment_once(session, URL)
    assert (session.proxies["http"], session.verify) == ("http://proxy:1", "ca.pem")
    prepared = session.prepare_request(requests.Request("POST", URL))
    assert str(prepared.headers["Authorization"]).startswith("Basic ")


def test_what_the_exporter_was_told_holds_where_the_environment_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "http_proxy",
        "HTTP_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    session = requests.Session()
    session.verify = "own.pem"
    read_environment_once(session, URL)
    assert session.verify == "own.pem"
    assert not session.proxies


def test_the_environment_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    session = requests.Session()
    read_environment_once(session, URL)
    monkeypatch.setenv("http_proxy", "http://proxy:1")
    assert "http" not in session.merge_environment_settings(URL, {}, None, None, None)["proxies"]


class Complaining(SpanExporter):
    """An exporter that says of each batch that nobody took it that it tries again, as OpenTelemetry's does."""

    is_away = True

    @override
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if not self.is_away:
            return SpanExportResult.SUCCESS
        for _ in range(3):
            logging.getLogger(__name__).warning("nobody is there")
        return SpanExportResult.FAILURE


def test_an_outage_of_the_collector_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    exporter = Complaining()
    queue = BoundedQueue(exporter, None)
    sampled = trace.SpanContext(1, 1, is_remote=False, trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED))

    def send() -> int:
        queue.put(ReadableSpan("level", context=sampled))
        queue.force_flush()
        return len(caplog.records)

    assert (send(), send()) == (1, 1)
    exporter.is_away = False
    assert send() == 1
    exporter.is_away = True
    assert send() == 2
    queue.shutdown()
