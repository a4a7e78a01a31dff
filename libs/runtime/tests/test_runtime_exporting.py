"""The session that sends spans goes by what the environment says of its collector, and looks there once."""

from pathlib import Path

import pytest
import requests

from fairlead_runtime.exporting import read_environment_once

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
