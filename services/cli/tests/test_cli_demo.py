import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_testkit import eventually


@pytest.mark.integration
@pytest.mark.timeout(240)
def test_a_short_demo_loses_nothing_and_prints_the_figures_alone(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    command = [
        sys.executable,
        "-m",
        "fairlead_cli",
        "demo",
        "--seconds",
        "10",
        "--json",
        "--report",
        str(page),
    ]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=220, env={"TMPDIR": str(tmp_path)}
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["lost"] == 0
    assert found["submitted"] == found["finished"] == sum(tenant["jobs"] for tenant in found["tenants"]) > 100
    assert all(tenant["wait_p50"] <= tenant["wait_p90"] for tenant in found["tenants"])
    assert "</html>" in page.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html"], (
        "the demo cleans up behind itself"
    )


@pytest.fixture
def playing(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A demo that was just started."""
    command = [sys.executable, "-m", "fairlead_cli", "demo", "--seconds", "10"]
    environ = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environ) as demo:
        yield demo
        demo.terminate()


def port_of_its_server(folder: Path) -> int | None:
    lines = [line for config in folder.glob("*/nats.conf") for line in config.read_text().splitlines()]
    return next((int(line.split()[1]) for line in lines if line.startswith("port:")), None)


@pytest.mark.integration
@pytest.mark.timeout(240)
async def test_no_other_user_of_the_machine_is_let_into_the_demo(
    playing: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    async def greeting() -> dict[str, object] | None:
        assert playing.poll() is None
        port = port_of_its_server(tmp_path)
        if port is None:
            return None
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return None
        said = await reader.readline()
        writer.close()
        return dict(json.loads(said.removeprefix(b"INFO ")))

    found = await eventually(greeting, 180, what="the demo's server greets")
    assert found["auth_required"] is True
