"""TLS: what is different on a connection that began in the clear."""

import logging
from pathlib import Path

import pytest
import trustme

from fairlead_bus import ConnectFailedError, ConnectionSettings, connect
from fairlead_testkit import eventually
from fairlead_testkit.nats_servers.nats_server import NatsServer


@pytest.mark.integration
async def test_a_connection_over_tls_that_the_server_ends_is_nothing_to_warn_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    pem = tmp_path / "server.pem"
    with NatsServer(tmp_path / "nats", config=f'tls {{ cert_file: "{pem}", key_file: "{pem}" }}') as server:
        settings = ConnectionSettings(url=f"tls://127.0.0.1:{server.port}", tls_ca=str(tmp_path / "ca.crt"))
        with caplog.at_level(logging.WARNING, logger="asyncio"):
            async with connect(settings, name="test") as bus:
                server.end()
                await eventually(lambda: not bus.connected, 30, what="the end is noticed")
    assert "eof_received" not in caplog.text


@pytest.mark.integration
@pytest.mark.parametrize("scheme", ["tls", "nats"])
async def test_a_server_without_tls_is_told_nothing_where_tls_is_asked_for(
    tmp_path: Path, scheme: str
) -> None:
    """Its greeting comes in the clear, so whoever stands between could say that there is no TLS."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    with NatsServer(tmp_path / "nats") as server:
        settings = ConnectionSettings(
            url=f"{scheme}://127.0.0.1:{server.port}",
            tls_ca=str(tmp_path / "ca.crt"),
            connect_timeout_seconds=1,
        )
        with pytest.raises(ConnectFailedError, match="offers no TLS"):
            async with connect(settings, name="test"):
                pass
