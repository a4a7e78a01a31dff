from pathlib import Path

import msgspec
import pytest

from fairlead_bus import ConnectionSettings, MisconfiguredError, connect
from fairlead_bus.connection.bus import with_publish_headers


def test_settings_show_no_secret() -> None:
    settings = ConnectionSettings(
        url="nats://user:hunter2@a:4222,tls://t0ken@b:4222, nats://c",
        password="hunter2",  # noqa: S106 - what must not be shown
        token="t0ken",  # noqa: S106 - what must not be shown
        creds="/c",
    )
    for shown in (repr(settings), str(settings), str(settings.redacted())):
        assert "hunter2" not in shown
        assert "t0ken" not in shown
        assert "/c" in shown
    assert settings.servers() == ["nats://user:hunter2@a:4222", "tls://t0ken@b:4222", "nats://c"]


def test_tls_is_off_unless_asked_for() -> None:
    assert ConnectionSettings().tls() is None
    for asked in ("tls://a:4222", "nats://a:4222, tls://b:4222", "nats://a,TLS://b", "wss://a"):
        assert ConnectionSettings(url=asked).tls() is not None, asked


GARBAGE = {"missing": None, "empty": b"", "no text": b"\xff\x00", "of another kind": b"hello\n"}


@pytest.mark.parametrize("name", ["tls_ca", "tls_cert", "nkey_seed", "creds"])
@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
async def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes | None) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    given = msgspec.convert({name: str(path)}, ConnectionSettings)
    with pytest.raises(MisconfiguredError) as refused:
        async with connect(given, name="x"):
            pass
    assert f"in {path} cannot be read" in str(refused.value)
    assert "codec" not in str(refused.value)


def test_publish_headers_leave_the_callers_alone_and_round_a_ttl_up() -> None:
    mine = {"Mine": "1"}
    made = with_publish_headers(mine, msg_id="m", expect_last=0, ttl_seconds=1.9)
    assert mine == {"Mine": "1"}
    assert made == {
        "Mine": "1",
        "Nats-Msg-Id": "m",
        "Nats-Expected-Last-Subject-Sequence": "0",
        "Nats-TTL": "2",
    }
    assert with_publish_headers(None, ttl_seconds=0.2) == {"Nats-TTL": "1"}
    assert with_publish_headers(None) is None


@pytest.mark.parametrize(
    "url",
    ["nats://me:secret@host:port", "garbage::", "nats://a:4222,b:99999", "http://a:4222", "nats://", " , "],
)
def test_what_is_no_address_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(MisconfiguredError, match="is not of the form nats://host:port") as refused:
        ConnectionSettings(url=url).servers()
    assert "secret" not in str(refused.value)
