"""Several workers share a run: each test runs once, files stay whole, and who computes gives way."""

import json
import os
import threading
from collections import defaultdict
from pathlib import Path

import pytest

from fairlead_testkit import kubelab
from fairlead_testkit.pytest_plugin import lanes
from fairlead_testkit.pytest_plugin.inner_runs import OPTIONS, UNUSED
from fairlead_testkit.pytest_plugin.kits import KitBuilding

pytest_plugins = ["pytester"]

KUBE = "pytestmark = pytest.mark.kube"
INTEGRATION = "pytestmark = pytest.mark.integration"
FILE = """
import json
import os
import pathlib

import pytest

{mark}

@pytest.mark.parametrize("number", range(4))
def test_it(number, worker_id):
    said = [pathlib.Path(__file__).stem, number, worker_id, os.nice(0)]
    pathlib.Path(__file__).with_name(f"{{said[0]}}-{{number}}.said").write_text(json.dumps(said))
    {action}
"""
OF_LANES = (*OPTIONS, *UNUSED, "-n")
WORKERS = 7
"""Number of workers that `make test` has."""


def run(
    pytester: pytest.Pytester, workers: int, *, hermetic: str = "pass", integration: str = "pass"
) -> pytest.RunResult:
    """Runs three hermetic files and three of real processes, in a run of their own."""
    pytester.makeini("[pytest]\nmarkers =\n    kube\n    integration\n    chaos\n")
    for number in range(3):
        pytester.makepyfile(**{f"test_h{number}": FILE.format(mark="", action=hermetic)})
        pytester.makepyfile(**{f"test_i{number}": FILE.format(mark=INTEGRATION, action=integration)})
    return pytester.runpytest_subprocess(*OF_LANES, str(workers))


def said(folder: Path) -> list[tuple[str, int, str, int]]:
    """Notes that the tests wrote: each one's file, its number, its worker and how nice that was."""
    return [json.loads(path.read_text()) for path in folder.glob("*.said")]


def test_every_test_runs_once_in_its_file_also_where_a_worker_dies_and_who_computes_gives_way(
    pytester: pytest.Pytester,
) -> None:
    dies = "os._exit(3) if (said[0], number) == ('test_i1', 2) else None"
    ran = run(pytester, WORKERS, hermetic="sum(range(3_000_000))", integration=dies)
    assert ran.parseoutcomes() == {"passed": 23, "failed": 1}
    found = said(pytester.path)
    assert len(found) == 24
    workers = defaultdict(set)
    for file, _, worker, _ in found:
        workers[file].add(worker)
    assert len(workers) == 6
    assert len(workers.pop("test_i1")) == 2, "another goes on where one died"
    assert all(len(of_file) == 1 for of_file in workers.values())
    usual = os.nice(0)  # Of whoever runs these tests: a person may have given way already.
    niced = {worker for _, _, worker, nice in found if nice == min(usual + lanes.NICENESS, 19)}
    if usual < 19:  # else nobody can give way any more
        assert niced == {"gw5", "gw6"}
        assert niced <= {worker for file, _, worker, _ in found if file.startswith("test_h")}
        assert all(nice == usual for _, _, worker, nice in found if worker not in niced)


def test_second_tries_count_over_all_workers(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    once = "been = pathlib.Path(__file__ + f'-{number}'); first = not been.exists(); been.touch(); assert not first"
    result = run(pytester, 3, integration=once)
    assert result.parseoutcomes() == {"passed": 14, "failed": 10, "rerun": 2}
    result.stdout.fnmatch_lines(["*rerun test summary info*", "*assert not first*"])


def test_a_worker_that_dies_when_the_others_have_ended_is_replaced(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers =\n    integration\n")
    pytester.makeconftest(
        "import os, pathlib\n"
        "def pytest_sessionfinish():\n"
        "    pathlib.Path(os.environ.get('PYTEST_XDIST_WORKER', 'run') + '.ended').touch()\n"
    )
    alone = "while len(list(pathlib.Path().glob('gw*.ended'))) < 1: time.sleep(0.05)"
    action = f"import time\n    if number == 1:\n        {alone}\n        os._exit(3)"
    pytester.makepyfile(test_i=FILE.format(mark=INTEGRATION, action=action))
    assert pytester.runpytest_subprocess(*OF_LANES, "2").parseoutcomes() == {"passed": 3, "failed": 1}


def test_the_lane_of_a_file_is_that_of_its_most_demanding_test() -> None:
    assert lanes.lane_of(INTEGRATION + "\n" + KUBE) == lanes.KUBE
    assert lanes.lane_of("@pytest.mark.chaos\n") == lanes.PROCESSES
    assert lanes.lane_of("@pytest.mark.slurm\n") == lanes.PROCESSES
    assert lanes.lane_of("assert 1") == lanes.HERMETIC


def test_the_longest_files_are_there_and_begin_first(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {path.name for path in (Path(__file__).parents[3] / "tests").rglob("test_*.py")}
    assert set(lanes.LONGEST) <= there
    monkeypatch.chdir(pytester.path)
    files = ["libs/test_a.py", f"tests/{lanes.LONGEST[1]}", f"tests/{lanes.LONGEST[0]}", "tests/test_b.py"]
    for file in files:
        path = pytester.path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(KUBE)
    scheduling = lanes.LaneScheduling(pytester.parseconfig("-n", "5", "-p", "no:cacheprovider"))
    queues = scheduling._sorted([f"{file}::test_it" for file in files])
    assert [found[0].partition("::")[0] for found in queues[lanes.KUBE]] == [
        files[2],
        files[1],
        files[0],
        files[3],
    ]


def test_a_file_whose_kit_is_being_built_lets_others_go_first(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pytester.path)
    texts = {
        "test_k.py": KUBE,
        "test_t.py": f"{INTEGRATION}\ndef test_it(jaeger): ...",
        "test_i.py": INTEGRATION,
    }
    for name, text in texts.items():
        (pytester.path / name).write_text(text)
    scheduling = lanes.LaneScheduling(pytester.parseconfig("-n", "7", "-p", "no:cacheprovider"))
    scheduling._queues = scheduling._sorted([f"{name}::test_it" for name in texts])
    scheduling._kits._missing = frozenset({"kube", "jaeger"})
    assert scheduling._next([lanes.KUBE, lanes.PROCESSES]) == ["test_i.py::test_it"]
    scheduling._kits._missing = frozenset({"kube"})
    assert scheduling._next([lanes.KUBE, lanes.PROCESSES]) == ["test_t.py::test_it"]
    assert scheduling._next([lanes.KUBE, lanes.PROCESSES]) == ["test_k.py::test_it"], "nothing else is left"
    assert scheduling._next([lanes.KUBE, lanes.PROCESSES]) is None


def test_a_kit_that_cannot_be_built_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(kubelab, "build", fails)
    building = KitBuilding()
    building._missing = frozenset({"jaeger"})
    thread = threading.Thread(target=building._build, args=(["jaeger"],))  # which gives way from then on
    thread.start()
    thread.join()
    assert not building.lacks(frozenset({"jaeger"}))


def test_before_the_lab_is_built_no_test_runs(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    built, go = pytester.path / "built", pytester.path / "bin" / "go"
    go.parent.mkdir()
    # That it fails is told by tests that ask for a lab; these do not.
    go.write_text(f"#!/bin/sh\nsleep 1\ntouch {built}\nexit 1\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))
    looks = f"assert pathlib.Path({str(built)!r}).exists()"
    pytester.makepyfile(test_k=FILE.format(mark=KUBE, action=looks))
    assert run(pytester, WORKERS, hermetic=looks, integration=looks).parseoutcomes() == {"passed": 28}


def test_a_worker_reads_no_file_that_it_never_takes(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers =\n    integration\n")
    reads = "(pathlib.Path(__file__).with_suffix(f'.{os.environ[\"PYTEST_XDIST_WORKER\"]}')).touch()"
    for name, mark in (("h", ""), ("i", INTEGRATION)):
        pytester.makepyfile(**{f"test_{name}": FILE.format(mark=f"{reads}\n{mark}", action="pass")})
    assert pytester.runpytest_subprocess(*OF_LANES, str(WORKERS)).parseoutcomes() == {"passed": 8}
    readers = {name: {path.suffix[1:] for path in pytester.path.glob(f"test_{name}.gw*")} for name in "hi"}
    assert readers == {"h": {"gw5", "gw6"}, "i": {f"gw{number}" for number in range(WORKERS)}}
