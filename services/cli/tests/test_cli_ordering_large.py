"""`fairlead order` on many jobs: both forms, from a file and from standard input, within bounds of memory."""

import json
import random
import re
import resource
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

GPU = "nvidia.com/gpu"
NOW = 1_760_000_000
TENANTS = 200
MEMORY_A_JOB = 1500
"""Bytes a job beside what a small snapshot takes: the file, what is read of it, and rows of a table."""
BASE_MEMORY = 200 * 2**20


def a_job(number: int, rng: random.Random) -> dict[str, object]:
    submitted: object = NOW - rng.randrange(30 * 86_400)
    if number % 7 == 0:
        submitted = datetime.fromtimestamp(NOW - rng.randrange(86_400), UTC).isoformat()
    demand: dict[str, object] = {
        "cpu": f"{rng.randrange(1, 128) * 500}m" if number % 5 == 0 else rng.randrange(1, 64),
        "memory": rng.randrange(1, 256) * 2**30,
        GPU: rng.choice((0, 1, 1, 1, 2, 4, 8)),
    }
    found: dict[str, object] = {
        "id": f"job-{number}",
        "tenant": f"team-{rng.randrange(TENANTS)}",
        "class": rng.choice(("urgent", "normal", "normal", "normal")),
        "submitted": submitted,
        "demand": demand,
        "frontend": "kueue",
        "queue": f"cq-{number % 4}",
    }
    if number % 11 == 0:
        found |= {"gang": {"pods": 1 + number % 3}, "uid": f"uid-{number}", "queue_time": NOW - number % 900}
    return found


def write_snapshot(path: Path, count: int) -> None:
    rng = random.Random(count)
    head = {
        "now": NOW,
        "policy": {"classes": ["urgent", "normal"]},
        "pools": [{"name": "gpu", "capacity": {"cpu": 32_000, "memory": "250Ti", GPU: 4000}}],
        "tenants": [{"name": f"team-{number}", "weight": 1 + number % 5} for number in range(TENANTS)],
        "running": [{"id": "r", "tenant": "team-0", "demand": {GPU: 100}}],
    }
    with path.open("w") as file:
        file.write(json.dumps(head)[:-1] + ', "jobs": [')
        for number in range(count):
            file.write((",\n" if number else "") + json.dumps(a_job(number, rng)))
        file.write("]}")


TOLD = sys.platform == "linux"
"""Whether `ru_maxrss` is told in kB."""
MEASURED = """
import resource, subprocess, sys
ended = subprocess.run([sys.executable, "-m", "fairlead_cli", *sys.argv[1:]])
sys.stderr.write(f"peak {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss} kB")
sys.exit(ended.returncode)
"""
"""The command below a small process: a child's `ru_maxrss` begins with that of its parent."""


class Ordered(NamedTuple):
    """Output of one `fairlead order`, and what it took."""

    printed: Path
    seconds: float
    """Seconds of the processor."""
    peak: int
    """Bytes of memory at most; 0 where it cannot be told."""


def ordered(path: Path, *words: str, stdin: bool = False) -> Ordered:
    printed = path.with_suffix(f".{'-'.join(words) or 'table'}")
    how = ["-c", MEASURED] if TOLD else ["-m", "fairlead_cli"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with printed.open("wb") as output, path.open("rb") as given:
        ended = subprocess.run(
            [sys.executable, *how, "order", "-" if stdin else str(path), *words],
            stdin=given if stdin else None, stdout=output, stderr=subprocess.PIPE, text=True, check=True, timeout=600,
        )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    most = re.search(r"peak (\d+) kB", ended.stderr)
    return Ordered(printed, seconds, 0 if most is None else int(most[1]) * 1024)


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(20_000, marks=pytest.mark.timeout(240)),
        pytest.param(1_000_000, marks=[pytest.mark.deep, pytest.mark.timeout(900)]),
    ],
)
def test_many_jobs_are_put_in_order(tmp_path: Path, count: int) -> None:
    path = tmp_path / "snapshot.json"
    write_snapshot(path, count)
    table, plain = ordered(path), ordered(path, "-o", "json", stdin=True)
    [pool] = json.loads(plain.printed.read_bytes())["pools"]
    names = [job["id"] for job in pool["order"]]
    assert [job["rank"] for job in pool["order"]] == list(range(count))
    assert len(set(names)) == count
    for job_class in ("urgent", "normal"):
        keys = [job["key"] for job in pool["order"] if job["class"] == job_class]
        assert keys == sorted(keys)
    with table.printed.open() as lines:
        assert next(lines) == f"pool gpu: {count} waiting\n"
        next(lines)
        assert [line.split(maxsplit=2)[1] for line in lines if line.strip()] == names
    # Processor time, with room for slow machines: an order that looks at each job anew for each other takes hours.
    assert max(table.seconds, plain.seconds) < 5 + count * 60e-6
    assert (table.peak > 0) == TOLD
    assert max(table.peak, plain.peak) < BASE_MEMORY + count * MEMORY_A_JOB


def test_one_wrong_job_among_many_is_named(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    write_snapshot(path, 3000)
    text = path.read_text().replace('"id": "job-2999", "tenant": "team-', '"id": "job-7", "tenant": "nobody-')
    ended = subprocess.run(
        [sys.executable, "-m", "fairlead_cli", "order", "-"],
        input=text, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "jobs[2999].id" in ended.stderr
    assert "jobs[2999].tenant" in ended.stderr
    assert ended.stdout == ""
