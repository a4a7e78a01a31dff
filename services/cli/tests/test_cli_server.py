"""The nats-server that `fairlead up` starts: who may connect."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairlead_bus import ConnectFailedError, ConnectionSettings, connect
from fairlead_cli.errors import ProcessFailedError
from fairlead_cli.local.server import ServerPlan, plan_server, wait_ready

pytestmark = pytest.mark.integration


@contextmanager
def serving(plan: ServerPlan, folder: Path) -> Iterator[None]:
    with (folder / "log").open("wb") as log, subprocess.Popen(plan.program.command, stderr=log) as server:
        try:
            yield
        finally:
            server.terminate()


async def lets_in(url: str) -> bool:
    try:
        async with connect(ConnectionSettings(url=url, connect_timeout_seconds=1.0), name="test"):
            return True
    except ConnectFailedError:
        return False


@pytest.mark.parametrize("guarded", [True, False])
async def test_beside_a_real_cluster_other_users_of_the_machine_are_not_let_in(
    tmp_path: Path, *, guarded: bool
) -> None:
    plan = plan_server(tmp_path, port=None, environ=os.environ, guarded=guarded)
    config = tmp_path / "nats.conf"
    assert config.stat().st_mode & 0o777 == 0o600
    assert (f'password: "{plan.password}"' in config.read_text()) is guarded
    assert str(plan.password) not in " ".join(plan.program.command)
    with serving(plan, tmp_path):
        await wait_ready(plan)
        assert await lets_in(plan.url)
        assert await lets_in(f"nats://127.0.0.1:{plan.port}") is not guarded
        assert await lets_in(f"nats://fairlead:wrong@127.0.0.1:{plan.port}") is not guarded


def test_each_start_has_a_password_of_its_own_and_reads_no_earlier_file(tmp_path: Path) -> None:
    config = tmp_path / "nats.conf"
    config.write_text("left by another release, for all to read")
    config.chmod(0o644)
    first = plan_server(tmp_path, port=None, environ=os.environ, guarded=True)
    assert config.stat().st_mode & 0o777 == 0o600
    assert first.password != plan_server(tmp_path, port=None, environ=os.environ, guarded=True).password


def test_a_port_that_somebody_else_has_is_told_at_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ProcessFailedError, match=f"cannot listen on port {port} .*: Address already in use"
        ):
            plan_server(tmp_path, port=port, environ=os.environ)
    assert plan_server(tmp_path, port=port, environ=os.environ).port == port, "and later it is free"
