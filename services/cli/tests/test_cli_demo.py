import json
import subprocess
import sys
from pathlib import Path

import pytest


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
