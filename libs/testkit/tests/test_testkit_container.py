"""The server in a container, where a daemon is: it does what the one of the wheel does."""

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator

import pytest

from fairlead_testkit.nats_servers.container import ContainerNatsServer

pytestmark = pytest.mark.container


@pytest.fixture
def container() -> Iterator[ContainerNatsServer]:
    program = shutil.which("docker")
    if program is None or subprocess.run([program, "version"], capture_output=True, check=False).returncode:
        pytest.skip("no container daemon answers `docker version`: start one, such as dockerd")
    server = ContainerNatsServer().start()
    try:
        yield server
    finally:
        server.remove()


def server_info(server: ContainerNatsServer) -> dict[str, object]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        line = connection.makefile("rb").readline()
    found: dict[str, object] = json.loads(line.removeprefix(b"INFO "))
    return found


def test_it_has_jetstream_and_after_a_kill_it_answers_on_the_same_port_again(
    container: ContainerNatsServer,
) -> None:
    before, url = server_info(container), container.url
    assert before["jetstream"] is True
    container.restart()
    after = server_info(container)
    assert container.url == url
    assert after["jetstream"] is True
    assert after["server_id"] != before["server_id"]


def test_paused_it_says_nothing_and_resumed_it_answers(container: ContainerNatsServer) -> None:
    container.pause()
    with socket.create_connection(("127.0.0.1", container.port)) as connection:
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
    container.resume()
    assert server_info(container)["jetstream"] is True
