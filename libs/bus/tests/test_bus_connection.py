import asyncio
import contextlib
import json
from pathlib import Path

import nkeys  # type: ignore[import-untyped] # it ships no types
import pytest

from fairlead_bus import (
    Bus,
    ClosedError,
    ConnectFailedError,
    ConnectionSettings,
    DeniedError,
    PayloadTooLargeError,
    PublishUncertainError,
    connect,
)
from fairlead_bus.errors import DisconnectedError, InvalidMessageError
from fairlead_bus.observer import BusTally
from fairlead_contracts import subjects
from fairlead_testkit import NatsServer, eventually

pytestmark = pytest.mark.integration

NODE = subjects.state("c1", "node", "n1")


async def test_a_lone_server_has_a_new_incarnation_after_each_start(
    nats_server: NatsServer, bus: Bus
) -> None:
    before = bus.incarnation
    changes: list[tuple[bool, str]] = []
    up = asyncio.Event()

    def changed(connected: bool) -> None:
        changes.append((connected, bus.incarnation))
        if connected:
            up.set()

    forget = bus.on_connection(changed)
    await asyncio.to_thread(nats_server.restart)
    async with asyncio.timeout(40):
        await up.wait()
    assert bus.connected
    assert bus.incarnation not in {"", before}
    # It moves together with the reconnect, not while we are away.
    assert changes == [(False, before), (True, bus.incarnation)]
    forget()


async def test_a_server_that_is_stopped_is_said_not_to_answer(nats_server: NatsServer) -> None:
    with nats_server.paused(), pytest.raises(ConnectFailedError, match=r":\d+: no answer$"):
        async with connect(ConnectionSettings(url=nats_server.url, connect_timeout_seconds=2.5), name="late"):
            pass


async def test_nothing_published_while_disconnected_arrives_later(
    nats_server: NatsServer, bus: Bus, tally: BusTally
) -> None:
    nats_server.kill()
    await eventually(lambda: not bus.connected, on=tally.heard)
    with pytest.raises(DisconnectedError, match="the connection to NATS is down"):  # logs say it
        await bus.publish(NODE, b"late")
    nats_server.start()
    await eventually(lambda: bus.connected, on=tally.heard)
    assert await bus.last("state", NODE) is None


async def test_what_was_queued_when_the_connection_broke_is_not_flushed_after_the_reconnect(
    nats_server: NatsServer, bus: Bus, tally: BusTally
) -> None:
    wire_client = bus.connection._client
    wire_client._pending.append(
        b"PUB " + NODE.encode() + b" 4\r\nlate\r\n"
    )  # queued, and the flusher not yet kicked
    wire_client._pending_data_size += 8
    await wire_client.force_reconnect()
    await eventually(lambda: tally.counts["bus.reconnects"] == 1, on=tally.heard)
    await bus.publish(subjects.state("c1", "node", "n2"), b"behind it")
    assert await bus.last("state", NODE) is None
    del nats_server


async def test_a_publish_that_was_sent_and_not_acked_is_uncertain_at_once(
    nats_server: NatsServer, bus: Bus
) -> None:
    nats_server.pause()
    publishing = asyncio.create_task(bus.publish(NODE, b"x", timeout=300))
    await eventually(
        lambda: bus.connection._client.pending_data_size == 0 and bus.connection.replies._waiting
    )
    nats_server.kill()
    with pytest.raises(PublishUncertainError):  # long before its 300 s
        await asyncio.wait_for(publishing, 40)


async def test_a_paused_server_is_noticed_and_left_for_another(tmp_path: Path) -> None:
    """A half-open connection, which the client's defaults notice after six minutes.

    Its socket is full: closing it politely would wait for a peer that never reads.
    """
    tally = BusTally()
    with NatsServer(tmp_path / "one") as one, NatsServer(tmp_path / "two") as two:
        settings = ConnectionSettings(url=f"{one.url},{two.url}", ping_interval_seconds=0.2)
        async with connect(settings, name="ops", observer=tally) as bus:
            url = bus.connection._client.connected_url
            assert url is not None
            before = bus.incarnation
            with (one if url.port == one.port else two).paused():
                for _ in range(20):
                    with contextlib.suppress(PublishUncertainError, DisconnectedError):
                        await bus.publish(NODE, b"x" * 900_000, timeout=0.01)
                await eventually(
                    lambda: bus.connected and bus.incarnation != before, on=tally.heard, timeout=40
                )


async def test_a_dead_port_ends_the_first_connect_in_time(nats_server: NatsServer) -> None:
    nats_server.kill()
    settings = ConnectionSettings(
        url=f"nats://me:secret@127.0.0.1:{nats_server.port}", connect_timeout_seconds=0.3
    )
    with pytest.raises(ConnectFailedError) as failed:
        async with connect(settings, name="ops"):
            raise AssertionError("connected to nobody")
    assert "secret" not in str(failed.value)


async def test_a_server_that_is_too_old_for_leases_is_refused_by_its_version() -> None:
    """A server of 2.9 made the streams, passed over what it did not know of them, and no lease ended."""

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b'INFO {"server_id": "A", "version": "2.9.10", "max_payload": 1048576, "headers": true}\r\n'
        )
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        settings = ConnectionSettings(url=f"nats://127.0.0.1:{port}", connect_timeout_seconds=1)
        with pytest.raises(ConnectFailedError, match=r"is NATS 2\.9\.10, and Fairlead needs 2\.11 or newer"):
            async with connect(settings, name="ops"):
                raise AssertionError("let in")


async def test_a_closed_connection_says_so_and_refuses(settings: ConnectionSettings) -> None:
    async with connect(settings, name="ops") as bus:
        await bus.connection.close()
        async with asyncio.timeout(30):
            await bus.wait_closed()
        with pytest.raises(ClosedError):
            await bus.publish(NODE, b"x")
        with pytest.raises(ClosedError):
            await bus.connection.until_connected()


async def test_a_message_that_is_too_large_with_its_headers_does_not_cost_the_connection(bus: Bus) -> None:
    limit = bus.connection._client.max_payload
    with pytest.raises(PayloadTooLargeError):
        await bus.publish(NODE, b"x" * (limit + 1))
    with pytest.raises(PayloadTooLargeError):  # the server would close the connection over this one
        await bus.publish(NODE, b"x" * limit, headers={"Some": "header"})
    assert (await bus.publish(NODE, b"x" * (limit - 100), headers={"Some": "header"})).seq == 1


@pytest.mark.parametrize("subject", ["", "two words", "line\r\nPUB other 1\r\nx"])
async def test_a_malformed_subject_is_refused_before_it_is_sent(bus: Bus, subject: str) -> None:
    with pytest.raises(InvalidMessageError):
        await bus.publish(subject, b"x")
    with pytest.raises(InvalidMessageError):
        await bus.publish(NODE, b"x", headers={"a b": "c"})


async def test_a_cancelled_ping_does_not_make_the_connection_deaf(bus: Bus) -> None:
    flushing = asyncio.create_task(bus.connection._client.flush())
    await asyncio.sleep(0)
    flushing.cancel()
    await asyncio.gather(flushing, return_exceptions=True)
    assert (await bus.publish(NODE, b"x")).seq == 1


async def test_who_we_are(tmp_path: Path) -> None:
    """User and password, token, NKey; and a denied subject is an error with a name, at once."""
    pair = nkeys.from_seed(nkeys.encode_seed(b"0" * 32, nkeys.PREFIX_BYTE_USER))
    seed = tmp_path / "seed"
    seed.write_bytes(pair.seed)
    scorer = {
        "nkey": pair.public_key.decode(),
        "permissions": {"publish": ["ok"], "subscribe": ["_INBOX_scorer.>"]},
    }
    config = f"authorization {{ users = [ {{ user: me, password: pass }}, {json.dumps(scorer)} ] }}"
    with NatsServer(tmp_path / "users", config=config) as server:
        async with connect(ConnectionSettings(url=server.url, user="me", password="pass"), name="ops") as bus:  # noqa: S106 - a test's
            await bus.connection.send("anything")
        tally = BusTally()
        settings = ConnectionSettings(url=server.url, nkey_seed=str(seed))
        async with connect(settings, name="scorer", observer=tally) as bus:
            with pytest.raises(
                DeniedError, match="whose key does FAIRLEAD_NATS_"
            ):  # trap: to nats-py this is a timeout
                await asyncio.wait_for(bus.request("Denied.Here", b"", timeout=300), 30)
            assert tally.counts["bus.denied"] == 1
        wrong = ConnectionSettings(url=server.url, user="me", password="no", connect_timeout_seconds=0.5)  # noqa: S106 - a test's

        async def refused() -> bool:
            """Whether the server's words were heard in the time that the first connect has."""
            with pytest.raises(ConnectFailedError) as failed:
                async with connect(wrong, name="ops"):
                    raise AssertionError("let in")
            return "FAIRLEAD_NATS_* says it" in str(failed.value)

        await eventually(refused)
    with NatsServer(tmp_path / "token", config="authorization { token: t }") as server:
        async with connect(ConnectionSettings(url=server.url, token="t"), name="ops") as bus:  # noqa: S106 - a test's
            assert bus.connected
