"""`make nightly`: a red part keeps none of the others from running, and is not forgotten."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("parts", "code", "told"),
    [
        (["help", "help"], 0, ["green", "green"]),
        (["help", "absent", "help"], 2, ["green", "red", "green"]),
    ],
)
def test_every_part_of_a_night_is_run_and_told_in_the_last_lines(
    parts: list[str], code: int, told: list[str]
) -> None:
    # As if installed already: what is asked is how the parts follow one another.
    done = subprocess.run(
        ["make", "--no-print-directory", "--old-file", ".venv/.installed", "nightly", f"NIGHTLY={' '.join(parts)}"],  # noqa: S607 # whichever make
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    lines = [line.split() for line in done.stdout.splitlines()[-len(parts) :]]
    assert lines == [["nightly:", part, found, "0", "min"] for part, found in zip(parts, told, strict=True)]
    assert done.returncode == code
