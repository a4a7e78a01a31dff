"""Checks of jobs before they stand: few questions are asked, and a real slurmctld's job_submit asks."""

import asyncio
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from fairlead_slurm.batch.checks import ImageRule
from fairlead_slurm.batch.pods import PodSite
from fairlead_slurm.cluster import SlurmNode, SlurmPartition, SlurmSettings
from fairlead_slurm.controller import CommandController
from fairlead_slurm.errors import SlurmUnreachableError, UnreadableError
from fairlead_slurm.hooks.installing import HookSettings, hook_files
from fairlead_slurm.images.reference import ImageReference, image_reference
from fairlead_slurm.images.registry import ImageAnswer, Presence, Registries
from fairlead_slurm.limits import AccountLimits
from fairlead_slurm_bridge.checking import TARGET_SECONDS, BatchChecks, CachedRegistry
from fairlead_slurm_bridge.hooks.server import HookServer
from fairlead_testkit.inputs.slurm_builders import a_node, a_partition, some_settings
from fairlead_testkit.slurmlab import PEOPLE, SlurmCommandError, SlurmLab, SlurmOptions
from fairlead_testkit.telemetry.image_registry import ensure_image_registry, image_registry
from fairlead_testkit.timing.in_hand import ManualClock, beside

POD = ["--partition=pods", "--comment=image=a.b/c:1"]


class Hub:
    """A registry that says what it is told to."""

    def __init__(self, presence: Presence = Presence.THERE) -> None:
        self.presence = presence
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def ask(self, image: ImageReference) -> ImageAnswer:
        self.asked += 1
        await self.may_answer.wait()
        return ImageAnswer(presence=self.presence, why="" if self.presence is Presence.THERE else f"{image}")


class OneNodeSlurmctld:
    """The answers that a slurmctld would give."""

    def __init__(self) -> None:
        self.fails: Exception | None = None
        self.asked = 0

    async def settings(self) -> SlurmSettings:
        self.asked += 1
        if self.fails is not None:
            raise self.fails
        return some_settings()

    async def partitions(self) -> list[SlurmPartition]:
        return [a_partition("pods", is_default=True)]

    async def nodes(self) -> list[SlurmNode]:
        return [a_node("n1", "pods")]

    async def accounts(self) -> list[str]:
        return []

    async def limits(self) -> AccountLimits:
        return AccountLimits()


async def test_an_image_is_asked_for_once_and_again_when_that_is_old() -> None:
    hub, clock, name = Hub(Presence.MISSING), ManualClock(100.0), image_reference("a.b/c:1")
    registry = CachedRegistry(hub, clock=clock)
    hub.may_answer.clear()
    asking = [asyncio.create_task(registry.ask(name)) for _ in range(50)]
    await asyncio.sleep(0)
    asking[0].cancel()
    hub.may_answer.set()
    found = await asyncio.gather(*asking[1:])
    assert {one.presence for one in found} == {Presence.MISSING}
    assert hub.asked == 1
    hub.presence = Presence.THERE  # pushed since
    assert (await registry.ask(name)).presence is Presence.MISSING
    clock.now += 16
    assert (await registry.ask(name)).presence is Presence.THERE
    assert hub.asked == 2


@pytest.mark.parametrize(("allowed", "asked"), [((), 1), (("a.b",), 1), (("a.b:443", "docker.io"), 0)])
async def test_the_site_says_which_registries_are_asked(allowed: Collection[str], asked: int) -> None:
    hub = Hub()
    found = await CachedRegistry(hub, allowed).ask(image_reference("a.b/c:1"))
    assert hub.asked == asked
    assert (found.presence is Presence.UNASKED) is not bool(asked)


async def test_jobs_are_measured_by_what_slurmctld_said_lately() -> None:
    cluster, clock = OneNodeSlurmctld(), ManualClock(100.0)
    checks = BatchChecks(
        cluster, Hub(Presence.MISSING), ImageRule.REFUSE, PodSite(partition="pods"), clock=clock
    )
    with pytest.raises(SlurmUnreachableError):
        await checks.remarks_at_once(POD)
    assert [one.says for one in await checks.remarks([*POD, "--gres=gpu:9"])] == [
        "9 gpu on one node: no node of partition pods has more than 8 gpu",
        "image a.b/c:1",
    ]
    assert len(await checks.remarks_at_once(POD)) == 1
    assert cluster.asked == 1
    cluster.fails = SlurmUnreachableError("away")
    clock.now += TARGET_SECONDS
    with pytest.raises(SlurmUnreachableError):
        await checks.remarks(POD)
    assert len(await checks.remarks_at_once(POD)) == 1  # from what was known
    clock.now += 200
    with pytest.raises(SlurmUnreachableError):
        await checks.remarks_at_once(POD)
    cluster.fails = UnreadableError("of another version")
    assert await checks.remarks(POD) == []


class _Nothing:
    """Parts of the bridge that job_submit does not ask for."""

    def __init__(self) -> None:
        self.hints = 0

    def hint(self) -> None:
        self.hints += 1

    def asked(self, hook: str, answer: str, seconds: float) -> None:
        del hook, answer, seconds


def with_job_submit(folder: Path) -> SlurmLab:
    """A lab whose jobs are looked over at their submission."""
    folder.chmod(0o755)  # munge wants a way that everybody may go
    hooks = HookSettings(
        folder=str(folder), partition="gpu", socket=str(folder / "gate"), python="/usr/bin/python3"
    )
    (folder / "lab" / "etc").mkdir(parents=True)
    for name, file in hook_files(hooks).items():
        (folder / name).write_text(file.text)
        (folder / name).chmod(0o755)
    (folder / "lab" / "etc" / "job_submit.lua").write_text((folder / "job_submit.lua").read_text())
    return SlurmLab(SlurmOptions(lines=("JobSubmitPlugins=lua",)), folder / "lab")


@pytest.mark.slurm
@pytest.mark.skipif(not SlurmOptions().accounting, reason="accounting needs root")
async def test_a_real_job_submit_refuses_what_validate_would(slurm_programs: None, tmp_path: Path) -> None:
    del slurm_programs
    ensure_image_registry()
    with (
        tempfile.TemporaryDirectory() as made,
        with_job_submit(folder := Path(made)) as lab,
        image_registry(tmp_path) as registry,
    ):
        await asyncio.to_thread(registry.push, "team/train", "3")
        checks = BatchChecks(
            CommandController(lab.conf),
            CachedRegistry(Registries({}, seconds=2)),
            ImageRule.REFUSE,
            PodSite(partition="gpu"),
        )
        here = f"image={registry.host}/team/train"

        async def sbatch(*words: str) -> str:
            try:
                return (
                    ""
                    if await asyncio.to_thread(lab.submit, "vision", *words, user=PEOPLE["vision"])
                    else "?"
                )
            except SlurmCommandError as error:
                return str(error)

        assert await sbatch(f"--comment={here}:4") == ""  # nobody to ask: it stands
        nothing: Any = _Nothing()
        server = HookServer(
            folder / "gate", nothing, nothing, nothing, checks.remarks_at_once,
            trusted={0}, why_not=lambda: "it does not lead", instruments=nothing, hint=nothing.hint,
        )  # fmt: skip
        async with beside(checks.keep_current(), server.run()):
            await checks.remarks([])
            lab.run("sacctmgr", "-i", "modify", "account", "vision", "set", "MaxTRESPerJob=cpu=4")
            checks._asked_at = 0  # ten seconds later
            await checks.remarks([])
            assert await sbatch(f"--comment={here}:3", "--gres=gpu:2") == ""
            assert f"image {registry.host}/team/train:4 is not there" in await sbatch(f"--comment={here}:4")
            assert "user games in account vision may have 4 CPUs" in await sbatch("--cpus-per-task=5")
            assert "9 gpu on one node" in await sbatch("--gres=gpu:9")
            assert await sbatch("--mem=65M", "--job-name=it's $(id)") == ""
            assert "64001 MiB of memory on one node" in await sbatch("--mem=64001M")
            both = [f"--comment={here}:{3 + number % 2}" for number in range(16)]
            found = await asyncio.gather(*map(sbatch, both))
            assert [bool(one) for one in found] == [bool(number % 2) for number in range(16)]
            assert nothing.hints >= len(found), "a job that comes is read before the next poll"
