"""Tools of the lab are built once, whole or not at all; where they cannot be built, tests say what to do."""

import os
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead_testkit.kubelab import BuildError, GoMissingError, Kit, build, building
from fairlead_testkit.kubelab.toolsets import Toolset

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="Go is missing: https://go.dev/doc/install")


@pytest.fixture
def toolset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toolset:
    """A tiny one, with a cache of its own."""
    go = shutil.which("go")
    if go is not None:  # Go's own cache would move along
        known = subprocess.run([go, "env", "GOCACHE"], capture_output=True, text=True, check=True)
        monkeypatch.setenv("GOCACHE", known.stdout.strip())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    module = tmp_path / "module"
    (module / "hello").mkdir(parents=True)
    (module / "go.mod").write_text("module tiny\n\ngo 1.24.0\n")
    (module / "go.sum").write_text("")
    (module / "hello" / "main.go").write_text(
        'package main\n\nvar Who = "nobody"\n\nfunc main() { println("hello", Who) }\n'
    )
    return Toolset(str(module), "0", {"hello": "tiny/hello"}, {"main.Who": "lab"})


def cached(tmp_path: Path) -> list[str]:
    folders = (tmp_path / "cache" / "fairlead" / "kubelab").iterdir()
    return sorted(folder.name for folder in folders if folder.is_dir())


@needs_go
@pytest.mark.timeout(600)  # Go builds its own library first, where its cache is empty
def test_two_builds_at_once_build_once(tmp_path: Path, toolset: Toolset) -> None:
    reports: list[str] = []
    kits: list[Kit] = []
    builds = [threading.Thread(target=lambda: kits.append(build(toolset, reports.append))) for _ in range(2)]
    for each in builds:
        each.start()
    for each in builds:
        each.join()
    assert kits[0] == kits[1]
    assert len([line for line in reports if line.startswith("building hello")]) == 1
    assert cached(tmp_path) == [kits[0].folder.name]
    said = subprocess.run([kits[0].binary("hello")], capture_output=True, text=True, check=True)
    assert said.stderr == "hello lab\n"
    assert "building 1 binaries with go version" in reports[0]
    assert "on two idle cores" in reports[0]
    assert re.fullmatch(r"  hello: \d+ packages compiled, (\d+ min )?\d+ s", reports[2])
    assert re.fullmatch(rf"built in (\d+ min )?\d+ s: {re.escape(str(kits[0].folder))}", reports[-1])


@needs_go
@pytest.mark.timeout(600)
def test_a_long_build_says_how_far_it_is(toolset: Toolset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "SAID_EVERY_SECONDS", 0.0)
    module = Path(toolset.folder)
    for name in ("one", "two"):
        (module / name).mkdir()
        (module / name / "it.go").write_text(f"package {name}\n\nvar It = {os.getpid()}\n")
    (module / "hello" / "main.go").write_text(
        'package main\n\nimport (\n"tiny/one"\n"tiny/two"\n)\n\nfunc main() { println(one.It, two.It) }\n'
    )
    reports: list[str] = []
    build(toolset, reports.append)
    assert [re.sub(r"\d+ s$", "", line) for line in reports[2:-2]] == [
        f"  hello: {number} packages so far, " for number in (1, 2, 3)
    ]


@needs_go
@pytest.mark.timeout(600)
def test_what_is_built_needs_no_go_and_what_differs_is_built_anew(
    toolset: Toolset, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit = build(toolset, lambda _: None)
    monkeypatch.setenv("PATH", "")
    assert build(toolset) == kit
    for other in (replace(toolset, stamps={"main.Who": "x"}), replace(toolset, kueue="1")):
        with pytest.raises(GoMissingError, match="make lab-build"):
            build(other)
    with (Path(toolset.folder) / "go.sum").open("a") as sums:
        sums.write("\n")
    assert Kit.found(toolset) is None


@needs_go
@pytest.mark.timeout(600)
def test_a_failed_build_leaves_nothing(tmp_path: Path, toolset: Toolset) -> None:
    (Path(toolset.folder) / "hello" / "main.go").write_text("no Go at all")
    with pytest.raises(BuildError, match="expected 'package'"):
        build(toolset, lambda _: None)
    assert cached(tmp_path) == []


@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 error")])
def test_without_go_tests_of_the_lab_say_what_to_do(tmp_path: Path, ci: str, outcome: str) -> None:
    (tmp_path / "test_lab.py").write_text(
        "import pytest\n\n@pytest.mark.kube\ndef test_lab(kube_lab):\n    raise AssertionError\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = kube\n")
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
        "PATH": "",
        "CI": ci,
        "XDG_CACHE_HOME": str(tmp_path),
    }
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", str(tmp_path)]
    said = subprocess.run(
        command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    ).stdout
    assert outcome in said
    assert "https://go.dev/doc/install" in said
