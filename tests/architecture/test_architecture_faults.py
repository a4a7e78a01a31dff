"""The kept faults: each can still be made, so that `make faults` tries what it says."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_fault_finds_its_one_place() -> None:
    """A text that moved is found here, within a second, and not in the hour that all faults take."""
    sources = "\n".join(
        path.read_text() for folder in ("libs", "services") for path in ROOT.glob(f"{folder}/*/src/**/*.py")
    )
    faults = [
        fault
        for path in (ROOT / "tests" / "faults").glob("*.toml")
        for fault in tomllib.loads(path.read_text())["fault"]
    ]
    assert faults
    lost = [fault["name"] for fault in faults if sources.count(fault["find"]) != 1]
    assert not lost
