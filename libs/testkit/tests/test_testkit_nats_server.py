"""The server fixture on the real binary."""

import json
import socket
from pathlib import Path

import pytest

from fairlead_testkit import NatsServer, OwnProcessError

pytestmark = pytest.mark.integration


def server_info(server: NatsServer) -> dict[str, object]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        line = connection.makefile("rb").readline()
    found = json.loads(line.removeprefix(b"INFO "))
    assert isinstance(found, dict)
    return found


def test_the_fixture_gives_a_server_with_jetstream_under_its_own_name(nats_server: NatsServer) -> None:
    info = server_info(nats_server)
    assert info["server_name"] == nats_server.name
    assert info["jetstream"] is True


def test_a_restart_keeps_the_port_and_gives_another_server_id(nats_server: NatsServer) -> None:
    before, port = server_info(nats_server), nats_server.port
    nats_server.restart()
    after = server_info(nats_server)
    assert nats_server.port == port
    assert after["server_id"] != before["server_id"]


def test_a_killed_server_answers_nobody(nats_server: NatsServer) -> None:
    nats_server.kill()
    assert not nats_server.running
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", nats_server.port), timeout=1)


def test_a_paused_server_keeps_connections_but_says_nothing(nats_server: NatsServer) -> None:
    with nats_server.paused(), socket.create_connection(("127.0.0.1", nats_server.port)) as connection:
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
    assert server_info(nats_server)["server_name"] == nats_server.name


def test_a_paused_server_can_be_stopped(nats_server: NatsServer) -> None:
    nats_server.pause()
    nats_server.end()
    assert not nats_server.running


def test_a_strange_server_on_the_port_is_noticed(nats_server: NatsServer, tmp_path: Path) -> None:
    # nats-server ends when its port is taken, or ours reads the neighbour's name first: both are errors.
    with pytest.raises(OwnProcessError):
        NatsServer(tmp_path / "second", port=nats_server.port).start()


def test_a_wrong_configuration_is_reported_with_the_servers_own_words(tmp_path: Path) -> None:
    with pytest.raises(OwnProcessError, match="no_such_setting"):
        NatsServer(tmp_path / "wrong", config="no_such_setting: 1").start()
