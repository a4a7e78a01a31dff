"""TLS: what is different on a connection that began in the clear."""

import logging
from pathlib import Path

import pytest
import trustme

from fairlead_bus import ConnectFailedError, ConnectionSettings, connect
from fairlead_testkit import eventually
from fairlead_testkit.nats_servers.nats_server import NatsServer


@pytest.mark.integration
@pytest.mark.parametrize("also_in_the_clear", ["", "allow_non_tls: true"])
async def test_a_connection_over_tls_that_the_server_ends_is_nothing_to_warn_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, also_in_the_clear: str
) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    pem = tmp_path / "server.pem"
    config = f'tls {{ cert_file: "{pem}", key_file: "{pem}" }}\n{also_in_the_clear}'
    with NatsServer(tmp_path / "nats", config=config) as server:
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


@pytest.mark.integration
async def test_a_stranger_s_server_that_would_do_without_tls_is_told_nothing(tmp_path: Path) -> None:
    pem, trusted = tmp_path / "server.pem", tmp_path / "ca.crt"
    trustme.CA().issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(pem))
    trustme.CA().cert_pem.write_to_path(str(trusted))
    config = f'tls {{ cert_file: "{pem}", key_file: "{pem}" }}\nallow_non_tls: true'
    with NatsServer(tmp_path / "nats", config=config) as server:
        settings = ConnectionSettings(
            url=f"tls://127.0.0.1:{server.port}", tls_ca=str(trusted), connect_timeout_seconds=1
        )
        with pytest.raises(ConnectFailedError, match="certificate"):
            async with connect(settings, name="test"):
                pass
