"""The pictures of docs/policy.md are what the core gives now: drawn anew they come out the same to the byte."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[4]
PICTURES = REPOSITORY / "docs" / "pictures"


@pytest.mark.timeout(180)
def test_pictures_are_up_to_date(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, str(REPOSITORY / "bench" / "pictures.py"), "--into", str(tmp_path)],
        check=True,
        timeout=170,
    )
    drawn = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_bytes() for path in PICTURES.iterdir()}
    assert drawn == kept, "`python bench/pictures.py` draws them anew"
    text = (REPOSITORY / "docs" / "policy.md").read_text(encoding="utf-8")
    assert all(f"pictures/{name}" in text for name in kept), "each is shown"
