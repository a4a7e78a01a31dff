"""The wait of a job's container before its program: the manifest's own words, run by real shells."""

import asyncio
import os
import shutil
import signal
from pathlib import Path

import msgspec
import pytest

from fairlead_slurm.pod_comment import PodWords
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.gate.kube_facts import ANNOTATION_PROGRAM
from fairlead_slurm_bridge.pods.manifest import PodRules, begun, pod_manifest
from fairlead_slurm_bridge.pods.requests import Payload, PodJob
from fairlead_testkit.timing.awaiting import eventually

pytestmark = pytest.mark.timeout(60)

JOB = PodJob(
    attempt=Attempt(7, 0), name="n", user="ann", uid=1000, gid=1000, account="vision", qos="", partition="pods",
    work_dir="/", comment="", cpu=1000, memory=0, gpus=0, submitted=0,
)  # fmt: skip
ARGUMENTS = ("a b", "$HOME $(id) `id`", "")
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A shell that is called `sh`, as in an image."""
    found = tmp_path / "bin" / "sh"
    found.parent.mkdir()
    found.symlink_to(shutil.which(request.param) or "")
    return found


class Volume:
    """A pod's volume as the kubelet keeps it: it swaps a link to a new folder (atomic_writer.go)."""

    def __init__(self, folder: Path, script: str) -> None:
        self.folder = folder
        self._script = script
        folder.mkdir()
        for name in ("script", "program"):
            (folder / name).symlink_to(f"..data/{name}")
        self.write("waits")

    def write(self, program: str) -> None:
        data = self.folder / program
        data.mkdir()
        (data / "script").write_text(self._script)
        (data / "script").chmod(0o555)
        (data / "program").write_text(program)
        (self.folder / "fresh").symlink_to(program)
        (self.folder / "fresh").replace(self.folder / "..data")
        for old in {"waits", "runs"} - {program}:
            shutil.rmtree(self.folder / old, ignore_errors=True)


MANIFEST = msgspec.json.decode(
    msgspec.json.encode(
        pod_manifest(
            JOB,
            PodWords(),
            Payload(script="", arguments=ARGUMENTS),
            PodRules(cluster="c", namespace="n", image="i"),
        )
    )
)


def test_what_is_waited_for_is_an_annotation_that_says_so() -> None:
    annotations = MANIFEST["metadata"]["annotations"]
    files = MANIFEST["spec"]["volumes"][0]["downwardAPI"]["items"]
    [program] = [one["fieldRef"]["fieldPath"] for one in files if one["path"] == "program"]
    assert program == f"metadata.annotations['{ANNOTATION_PROGRAM}']"
    assert annotations[ANNOTATION_PROGRAM] == "waits"
    patch = msgspec.json.decode(msgspec.json.encode(begun("u")))["metadata"]
    assert (patch["uid"], patch["annotations"][ANNOTATION_PROGRAM]) == ("u", "runs")


async def container(shell: Path, volume: Volume) -> asyncio.subprocess.Process:
    [made] = MANIFEST["spec"]["containers"]
    # Kubernetes makes one dollar of two.
    first, *words = [word.replace("$$", "$") for word in made["command"]]
    assert first == "/bin/sh"
    words = [word.replace("/fairlead/", f"{volume.folder}/") for word in words]
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(shell, *words, stdout=pipe, stderr=asyncio.subprocess.STDOUT)


async def test_a_program_begins_when_its_process_has_come(shell: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    script = f'#!/bin/sh\nprintf "%s|" $$ "$@"\ntrap "echo told; exit 5" TERM\ntouch {begun}\nwhile :; do sleep 0.05; done\n'
    volume = Volume(tmp_path / "volume", script)
    process = await container(shell, volume)
    await asyncio.sleep(0.5)
    assert process.returncode is None
    assert not begun.exists()
    volume.write("runs")
    await eventually(begun.exists, 20, what="the program begins")
    process.terminate()
    printed, _ = await process.communicate()
    # It is the container's first process, and hears what that is told.
    assert printed.decode() == f"{process.pid}|" + "".join(f"{one}|" for one in ARGUMENTS) + "told\n"
    assert process.returncode == 5


async def test_one_that_waits_can_be_ended_and_has_not_begun(shell: Path, tmp_path: Path) -> None:
    volume = Volume(tmp_path / "volume", f"#!/bin/sh\ntouch {tmp_path}/begun\n")
    process = await container(shell, volume)
    await asyncio.sleep(0.3)
    os.kill(process.pid, signal.SIGTERM)
    printed, _ = await asyncio.wait_for(process.communicate(), 5)
    assert (printed, process.returncode) == (b"", 143)
    assert not (tmp_path / "begun").exists()
