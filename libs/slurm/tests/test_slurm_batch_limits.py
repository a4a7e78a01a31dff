"""Batch scripts against limits of accounts and QOS, and against what pods ask; a real slurmctld agrees on the former."""

import time

import pytest

from fairlead_slurm.batch.checks import ImageRule, batch_target, check_batch, script_of_words
from fairlead_slurm.batch.fit import BatchTarget, fit
from fairlead_slurm.batch.pods import PodSite
from fairlead_slurm.batch.script import read
from fairlead_slurm.controller import CommandController
from fairlead_slurm.images.reference import ImageReference
from fairlead_slurm.images.registry import ImageAnswer, Presence
from fairlead_slurm.limits import AccountLimits, AllowedAmounts, Association, account_limits
from fairlead_testkit.inputs.slurm_builders import a_node, a_partition
from fairlead_testkit.pytest_plugin.slurmlab_fixtures import SlurmLabFactory
from fairlead_testkit.slurmlab import PEOPLE, SlurmCommandError, SlurmLab, SlurmOptions

MINUTE = 60 * 10**6
PRINTED = (
    "Current Association Manager state\nAssociation Records\n"
    "ClusterName=lab Account=root UserName= Partition= ID=1 ParentAccount= DefAssoc=No GrpJobs=N(0) GrpTRES=cpu=N(0) MaxWallPJ= MaxTRESPJ=\n"
    "ClusterName=lab Account=vision UserName= Partition= ID=7 ParentAccount=research(3) DefAssoc=No GrpJobs=N(0) GrpSubmitJobs=50(7)"
    " GrpTRES=cpu=40(3),mem=1500(0),gres/gpu=6(1),gres/gpu:h100=N(0) MaxJobs= MaxSubmitJobs=20(0) MaxWallPJ=120 MaxTRESPJ=cpu=30 MaxTRESPN=gres/gpu=2\n"
    "ClusterName=lab Account=vision UserName=games(5) Partition= ID=10 ParentAccount= DefAssoc=Yes GrpTRES=cpu=N(0) MaxWallPJ=120\n"
    "QOS Records\nQOS=small(3) GrpTRES=cpu=9(0),mem=N(0) MaxWallPJ=10 MaxTRESPJ=gres/gpu=1 MaxTRESPN= MinPrioThresh=  MinTRESPJ= PreemptMode=OFF Priority=0 Account Limits=No Accounts User Limits=No Users\n"
)


def test_what_slurmctld_prints_of_limits_is_read() -> None:
    found = account_limits(PRINTED)
    root, vision, games = found.associations
    assert (root.parent, root.limits) == ("", AllowedAmounts())
    assert (vision.parent, vision.user, vision.is_default) == ("research", "", False)
    assert vision.limits == AllowedAmounts(
        group={"cpu": 40_000, "mem": 1500 * 2**20, "gres/gpu": 6000},
        job={"cpu": 30_000},
        node={"gres/gpu": 2000},
        wall=120 * MINUTE,
        jobs=20,
    )
    assert (games.user, games.is_default) == ("games", True)
    small = AllowedAmounts(group={"cpu": 9000}, job={"gres/gpu": 1000}, wall=10 * MINUTE)
    assert found.qualities == {"small": small}


def an_account(name: str, parent: str = "root", user: str = "", **limits: object) -> Association:
    """An account of the tree, or a user in one."""
    return Association(
        account=name,
        parent="" if user else parent,
        user=user,
        is_default=bool(user),
        limits=AllowedAmounts(**limits),  # type: ignore[arg-type] # passed on
    )


KNOWN = AccountLimits(
    associations=(
        an_account("root", ""),
        an_account("research", group={"gres/gpu": 6000, "node": 3000}),
        an_account("vision", "research", job={"cpu": 8000, "mem": 2**29}, wall=60 * MINUTE),
        an_account("vision", user="ann", job={"cpu": 4000}, node={"gres/gpu:h100": 2000}),
        an_account("closed", jobs=0),
        an_account("closed", user="bob"),
        an_account("closed", user="ann", jobs=0),
    ),
    qualities={"normal": AllowedAmounts(), "small": AllowedAmounts(job={"cpu": 2000}, wall=10 * MINUTE)},
)
NODES = [a_node(f"n{number}", "gpu", "pods", "two") for number in range(4)]
PARTITIONS = [a_partition("gpu", is_default=True), a_partition("pods"), a_partition("two", qos="small")]
TARGET = BatchTarget(
    partitions=PARTITIONS,
    nodes=NODES,
    accounts=frozenset({"vision", "closed", "root"}),
    limits=KNOWN,
    user="ann",
    pods=PodSite(partition="pods"),
)


def said(*lines: str, refused: bool = True) -> list[str]:
    """The remarks on a script with these lines."""
    content = "\n".join(["#!/bin/sh", *(f"#SBATCH {line}" for line in lines), "true", ""]).encode()
    return [one.says for one in fit(read(content), TARGET) if one.refused is refused]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--account=vision --qos=normal --cpus-per-task=5", "5 CPUs: user ann in account vision may have 4 CPUs in a job"),
        ("--qos=normal --ntasks=2 --cpus-per-task=3", "6 CPUs"),  # of the account that is hers by default
        ("--qos=normal --gres=gpu:h100:3", "3 gres/gpu:h100: user ann in account vision may have 2 gres/gpu:h100 of a job on a node"),
        ("--gpus=7 --nodes=3", "7 gres/gpu: account research may have 6 gres/gpu in all"),
        ("--gpus-per-task=4 --ntasks=2", "8 gres/gpu: account research"),
        ("--nodes=4", "4 node: account research may have 3 node in all"),
        ("--qos=small --cpus-per-task=3", "3 CPUs: QOS small may have 2 CPUs in a job"),
        ("--qos=small --time=11", "--time=11 is more than QOS small may ask for"),
        ("--qos=large", "there is no QOS large"),
        ("--account=closed", "user ann in account closed may run no jobs"),
        ("--account=research", "user ann has no part in account research"),
    ],
)  # fmt: skip
def test_what_is_beyond_a_limit_is_refused(line: str, words: str) -> None:
    [found] = [one for one in said(line) if "there is no account" not in one]
    assert words in found


@pytest.mark.parametrize(
    "line",
    [
        "--account=vision --cpus-per-task=4 --qos=normal",
        "--cpus-per-task=5",  # the QOS that it has by default may allow more
        "--time=120",
        "--gpus=6 --nodes=3",
        "--gres=gpu:8 --ntasks=1 --nodes=4 --account=none-of-these",
        "--partition=two --qos=normal --cpus-per-task=5",  # the partition's QOS stands in its place
        "--nodes=4 --ntasks=3",
    ],
)
def test_what_may_be_within_its_limits_is_not(line: str) -> None:
    assert [one for one in said(line) if "there is no account" not in one and "research" not in one] == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--partition=pods,gpu", "cannot ask for other partitions"),
        ("--partition=pods --nodes=2", "2 nodes: a job of partition pods runs as one pod, on one node"),
        ("--partition=pods --comment=claim=../x:/data", "the comment's claim="),
        ("--partition=pods --comment=image=registry.example/Train", "it has to be in small letters"),
        ("--partition=pods --comment=env=A-B", "the comment's env="),
        ("--partition=pods --comment=scratch=1G", "the comment's scratch="),
    ],
)  # fmt: skip
def test_what_no_pod_can_be_is_refused(line: str, words: str) -> None:
    [found] = said(line)
    assert words in found
    assert said(line.replace("=pods", "=gpu")) == []


def test_a_job_may_have_any_name() -> None:
    assert said("--partition=pods '--job-name=it\x01 is \u263a $(id)'") == []


def test_what_a_pod_does_without_is_a_warning() -> None:
    assert "label" in said("--partition=pods --account=-a-", refused=False)[0]
    assert "--no-requeue" in said("--partition=pods --no-requeue", refused=False)[0]


def test_a_script_is_no_longer_than_an_annotation() -> None:
    content = b"#!/bin/sh\n#SBATCH -p pods\n" + b"#" * 200_000
    assert "200026 bytes" in fit(read(content), TARGET)[0].says


class _None:
    """A registry without images, which keeps the names that it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, image: ImageReference) -> ImageAnswer:
        self.asked.append(str(image))
        return ImageAnswer(presence=Presence.MISSING, why=f"{image} is not there")


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["--partition=pods", "--comment=image=a.b/c:1 x"], ["a.b/c:1"]),
        (["--partition=pods"], []),
        (["--partition=gpu", "--comment=image=a.b/c:1"], []),
        (["--partition=pods", "--comment=image=A"], []),
        (["--comment=image=a.b/c:1"], []),
    ],
)
async def test_images_of_pods_are_asked_for(words: list[str], asked: list[str]) -> None:
    registry = _None()
    found = await check_batch(script_of_words(words), TARGET, registry, ImageRule.REFUSE)
    assert registry.asked == asked
    assert [one.refused for one in found if "is not there" in one.says] == [True] * len(asked)


LIMITED = (
    "modify account vision set GrpTRES=gres/gpu=6,cpu=40 MaxTRESPerJob=gres/gpu=4 MaxTRESPerNode=gres/gpu=3 MaxWall=02:00:00",
    "modify account research set GrpTRES=node=3",
    "add qos small set MaxTRESPerJob=cpu=2 MaxWall=10",
    "modify account vision set qos=normal,small",
)


@pytest.mark.slurm
@pytest.mark.skipif(not SlurmOptions().accounting, reason="accounting needs root")
async def test_the_real_slurmctld_starts_none_that_is_refused_and_all_others(
    slurm_labs: SlurmLabFactory,
) -> None:
    lab = slurm_labs(SlurmOptions())
    for words in LIMITED:
        lab.run("sacctmgr", "-i", *words.split())
    controller = CommandController(lab.conf)
    target = await batch_target(controller, await controller.settings(), None)
    user = PEOPLE["vision"]
    asked: dict[str, bool] = {}
    for words in (
        "--gres=gpu:3", "--gres=gpu:4", "--gpus=4 --nodes=2", "--gpus=5 --nodes=2", "--gpus=7 --nodes=3", "--nodes=3",
        "--nodes=4", "--cpus-per-task=16", "--ntasks=41", "--qos=small --cpus-per-task=2", "--qos=small --cpus-per-task=3",
        "--qos=small --time=11", "--qos=small --time=10", "--qos=normal --time=121", "--qos=normal --time=120",
    ):  # fmt: skip
        script = script_of_words(["--account=vision", *words.split()])
        own = BatchTarget(
            partitions=target.partitions,
            nodes=target.nodes,
            accounts=target.accounts,
            limits=target.limits,
            user=user,
        )
        refused = [one.says for one in fit(script, own) if one.refused]
        asked[words] = _starts(lab, words, user)
        assert asked[words] is not bool(refused), (words, refused)
    assert {True, False} == set(asked.values())


def _starts(lab: SlurmLab, words: str, user: str) -> bool:
    """Whether the job starts, on a cluster without other jobs."""
    try:
        job = lab.submit("vision", *words.split(), user=user)
    except SlurmCommandError:
        return False
    until, line = time.monotonic() + 30, ""
    while time.monotonic() < until:
        [line] = lab.jobs("%T %r", f"--jobs={job}")
        state, _, reason = line.partition(" ")
        if state == "RUNNING" or reason.startswith(("Assoc", "QOS")):
            lab.clear()
            return state == "RUNNING"
        time.sleep(0.1)
    raise AssertionError(line)
