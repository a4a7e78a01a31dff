"""The program that moves a job's results: all files arrive, and none is lost where it cannot move."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairlead_slurm.hooks import results as program
from fairlead_slurm.hooks.results import MANIFEST, OUTPUT, OWN_MANIFEST, PARTIAL, SUMMARY

HOSTILE = "it's $(id)\nand \\ more ü"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "shared" / "out"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "model.bin").write_bytes(b"\x00\xff" * 1000)
    (folder / "deep" / "er" / HOSTILE).write_text("x")
    (folder / "latest").symlink_to("model.bin")
    return folder


def moved(source: Path, target: Path, *, seconds: float = 60, output: bytes = b"") -> dict[str, object]:
    plan = {
        "from": str(source),
        "to": str(target),
        "until": time.monotonic() + seconds,
        "summary": {"job": 7},
    }
    given = json.dumps(plan).encode() + b"\n" + output
    command = [sys.executable, "-I", "-S", program.__file__]
    ran = subprocess.run(command, input=given, capture_output=True, timeout=60, check=True)
    found: dict[str, object] = json.loads(ran.stdout)
    return found


def sha256sum(*words: str, folder: Path) -> bytes:
    tool = shutil.which("sha256sum")
    assert tool is not None, "of coreutils"
    return subprocess.run([tool, *words], cwd=folder, check=True, capture_output=True).stdout


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_results_are_moved_and_sha256sum_agrees(source: Path, tmp_path: Path) -> None:
    target, before = tmp_path / "results", files(source)
    summary = moved(source, target, output=b"one\n\xfftwo\n")
    assert "trouble" not in summary
    assert {name: content for name, content in files(target).items() if name in before} == before
    assert (target / "latest").readlink() == Path("model.bin")
    assert (target / OUTPUT).read_bytes() == b"one\n\xfftwo\n"
    assert json.loads((target / SUMMARY).read_text()) == summary
    sha256sum("--check", "--strict", MANIFEST, folder=target)
    assert not source.exists()
    assert not (target / PARTIAL).exists()


MEMORY = Path("/dev/shm")  # noqa: S108 # a second file system, in a folder of the test's own


@pytest.mark.skipif(not MEMORY.is_dir(), reason="a second file system is needed")
def test_from_another_file_system_they_are_copied_and_read_again(source: Path, tmp_path: Path) -> None:
    before = files(source)
    target = MEMORY / f"fairlead-{os.getpid()}-{tmp_path.name}"
    try:
        assert "trouble" not in moved(source, target)
        assert before.items() <= files(target).items()
        assert not source.exists()
    finally:
        shutil.rmtree(target)


def test_what_is_there_already_is_not_overwritten(source: Path, tmp_path: Path) -> None:
    target, before = tmp_path / "results", files(source)
    target.mkdir()
    (target / "model.bin").write_text("of another run")
    assert "there already" in str(moved(source, target)["trouble"])
    assert (target / "model.bin").read_text() == "of another run"
    assert files(source) == before
    assert not (target / PARTIAL).exists()


def test_without_time_nothing_is_moved(source: Path, tmp_path: Path) -> None:
    before = files(source)
    assert "time" in str(moved(source, tmp_path / "results", seconds=-1)["trouble"])
    assert files(source) == before


def test_a_programs_own_manifest_is_held_against_the_files(source: Path, tmp_path: Path) -> None:
    names = ["model.bin", f"deep/er/{HOSTILE}"]
    sums = sha256sum(*names, folder=source)
    (source / OWN_MANIFEST).write_bytes(sums + b"0" * 64 + b"  ./missing\n")
    (source / "model.bin").write_text("changed since")
    found = moved(source, tmp_path / "results")["results"]
    assert isinstance(found, dict)
    assert found["not_as_its_own_manifest"] == ["missing", "model.bin"]


def test_a_link_leads_to_no_others_file(source: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of somebody else")
    (source / "mine").symlink_to(secret)
    (source / "folder").symlink_to(tmp_path)
    os.mkfifo(source / "pipe")
    moved(source, tmp_path / "results")
    assert secret.read_text() == "of somebody else"
    assert (tmp_path / "results" / "mine").readlink() == secret
    assert (tmp_path / "results" / "folder").readlink() == tmp_path
    assert (source / "pipe").exists(), "what is neither file nor link stays"
