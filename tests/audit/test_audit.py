"""What `make audit` says of pip-audit's report: a vulnerability, and an index that knows of none, are not the same."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")
KNOWN = {"name": "a", "version": "1.0", "vulns": []}
UNKNOWN = {"name": "b", "skip_reason": "not found: b (2.0)"}
BAD = {"name": "c", "version": "3.0", "vulns": [{"id": "CVE-1", "fix_versions": ["3.1"], "aliases": []}]}


@pytest.mark.parametrize(
    ("packages", "code", "told"),
    [
        ([KNOWN], 0, ["no known vulnerability in 1 packages"]),
        ([KNOWN, BAD], 1, ["c 3.0: CVE-1, mended in 3.1"]),
        ([UNKNOWN, UNKNOWN], 1, ["2 of 2 packages were not looked up", "not found: b (2.0)"]),
        ([KNOWN, BAD, UNKNOWN], 1, ["c 3.0: CVE-1", "1 of 3 packages were not looked up"]),
        (None, 1, ["pip-audit gave no report: no such host"]),
    ],
)
def test_an_audit_is_green_only_if_every_package_was_looked_up(
    packages: list[object] | None, code: int, told: list[str]
) -> None:
    report = {"dependencies": packages, "fixes": []}
    script = f"print({json.dumps(report)!r})" if packages else "import sys; sys.exit('no such host')"
    done = subprocess.run(
        [sys.executable, RUN, sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, [words for words in told if words not in done.stdout]) == (code, [])
