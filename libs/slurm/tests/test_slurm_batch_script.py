"""Batch scripts as sbatch reads them. Each rule here was tried on sbatch 22.05.8; one test asks the real one again."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_slurm.batch.fit import BatchTarget, fit
from fairlead_slurm.batch.options import Remark
from fairlead_slurm.batch.script import read
from fairlead_slurm.batch.values import gres, memory, seconds
from fairlead_testkit.inputs.slurm_builders import a_node, a_partition
from fairlead_testkit.slurmlab import PEOPLE, SlurmCommandError, SlurmLab, SlurmOptions

DAY = 86_400
TAKEN = [
    "",
    "--time=10",
    "--time=1-2",
    "--time=1-",
    "--time=1:2:3",
    "--time=UNLIMITED",
    "-t 5 -N2 -n 4",
    "-N1-4",
    "--part=gpu",
    "--mem=10GB",
    "--mem=0",
    "--nice",
    "--nice=10x",
    "--exclusive",
    "--exclusive=user",
    "--array=1-10:2%4",
    "--array=1,3,5-7",
    "--array=[1-3]%0",
    "--gres=gpu:h100:2",
    "--gres=none",
    "--gpus-per-node=h100:2",
    "--gpus-per-node=h100",
    "--gres=gres:gpu:1",
    "--nodes=0",
    '--job-name="a b" --comment=x # --time=x',
    "--ntasks=+2",
    "-HQ",
    "--comment=a#b --time=x",
    *(
        f"--begin={word}"
        for word in ("now", "NOW", "today", "tomorrow", "noon", "fika", "16:00", "2030-01-20")
    ),
    *(f"--begin=now{more}" for more in ("+1hour", "+2DAYS", "-1week", "+90", "+3minutes")),
    *(
        f"--mail-type={word}"
        for word in ("end", "END,FAIL", "FOO,END", "Time_Limit_80", "NONE", '"END, FAIL"')
    ),
    *(f"--signal={word}" for word in ("USR1", "B:USR1@60", "sigterm", "10", "RB:10@5", "r:XCPU", "B:TERM@")),
]
REFUSED = [
    "--tme=5",
    "-X 5",
    "--n=2",
    "--hold=5",
    "--time",
    "--time=x",
    "--time=5d",
    "--time=10:",
    "--time=1:2:3:4",
    "--mem=1.5G",
    "--mem=12Q",
    "--ntasks=0",
    "--ntasks=1k",
    "-n x",
    "--cpus-per-task=x",
    "--ntasks-per-node=0",
    "--nodes=x",
    "--nodes=4-2",
    "--nice=5000000000",
    "--nice=-5",
    "--array=5-x",
    "--array=5-2",
    "--array=1-3,7-",
    "--gres=gpu=2",
    "--gres=",
    "--gres=gpu:x:y",
    "gpu --time=5",
    "--mem=5 G",
    '--job-name="a b',
    *(
        f"--begin={word}"
        for word in ("yesterday", "monday", "am", "now+1h", "now+1min", "now+1hourfoo", "now+1month")
    ),
    *(f"--mail-type={word}" for word in ("FOO", "", ",", "BAR,FOO", "STAGE_IN")),
    *(f"--signal={word}" for word in ("B:FOO@10", "FOO", "SIG", "USR", "USR1x@5", "B:sigfoo", "SEGV")),
]
LATER = ["--nodes=1,3", "--nodes=1-15:4"]
"""Lines that sbatch 22.05 refuses and a later one takes."""


def script(*lines: str, first: str = "#!/bin/sh") -> bytes:
    """A script with these `#SBATCH` lines."""
    return "\n".join([first, *(f"#SBATCH {line}" for line in lines), "sleep 1", ""]).encode()


def refused(content: bytes) -> list[str]:
    """The remarks for which a script would be refused."""
    return [one.says for one in read(content).remarks if one.refused]


@pytest.mark.parametrize("line", TAKEN)
def test_what_sbatch_takes_is_not_refused(line: str) -> None:
    assert refused(script(line)) == []


@pytest.mark.parametrize("line", REFUSED)
def test_what_sbatch_refuses_is_refused_at_its_line(line: str) -> None:
    remarks = [one for one in read(script("--requeue", line)).remarks if one.refused]
    assert remarks
    assert {one.line for one in remarks} == {3}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"sleep 1\n", "interpreter"),
        (b"#!/bin/sh\nsleep 1\r\n", "Windows"),
        (b"#!/bin/sh\n\0\n", "NUL"),
    ],
)
def test_what_is_no_script_is_refused(content: bytes, words: str) -> None:
    [says] = refused(content)
    assert words in says


@pytest.mark.parametrize("line", LATER)
def test_what_later_releases_take_is_a_warning(line: str) -> None:
    [remark] = read(script(line)).remarks
    assert not remark.refused
    assert "Slurm 22.05 refuses" in remark.says


def test_a_misspelt_option_is_guessed() -> None:
    [remark] = read(script("--ntask-per-node=2")).remarks
    assert remark.mend == "Did you mean --ntasks-per-node?"


def test_lines_that_slurm_passes_over_are_told() -> None:
    found = read(b"#!/bin/sh\n# SBATCH --time=x\n  #SBATCH --mem=x\n# words\n\ncd /\n#SBATCH --ntasks=x\n")
    assert found.parts == ((),)
    assert [(one.line, one.refused) for one in found.remarks] == [(2, False), (3, False), (7, False)]


def test_a_value_may_stand_on_the_next_line() -> None:
    [part] = read(script("--time", "30 --requeue")).parts
    assert [(one.name, one.value) for one in part] == [("time", "30"), ("requeue", "")]


def test_parts_of_a_heterogeneous_job_are_told_apart() -> None:
    first, second = read(script("--ntasks=1", "hetjob", "--ntasks=2")).parts
    assert [one.value for one in (*first, *second)] == ["1", "2"]


@given(st.binary(max_size=200))
def test_no_script_is_too_odd_to_read(content: bytes) -> None:
    for whole in (content, script("").replace(b"\nsleep", b"\n#SBATCH " + content + b"\nsleep")):
        assert all(isinstance(one, Remark) for one in fit(read(whole), TARGET))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("10", 600), ("10:30", 630), ("1:2:3", 3723), ("1-2", DAY + 7200), ("1-2:3", DAY + 7380), ("1-", DAY),
        ("1-2:3:4", DAY + 7384), ("0", None), ("unlimited", None),
    ],
)  # fmt: skip
def test_times(text: str, wanted: int | None) -> None:
    assert seconds(text) == wanted


def test_amounts() -> None:
    assert [memory(text) for text in ("10", "10K", "1GB", "2t")] == [10 * 2**20, 10 * 2**10, 2**30, 2**41]
    assert gres("gpu:h100:2,nvme,none") == {"gpu:h100": 2, "nvme": 1}


PARTITIONS = [
    a_partition("gpu", is_default=True),
    a_partition("short", max_time=3600 * 10**6),
    a_partition("theirs", allowed_accounts=("speech",)),
    a_partition("shut", state="DRAIN"),
    a_partition("later", state="DOWN"),
]
ALL = [one.name for one in PARTITIONS]
TARGET = BatchTarget(
    partitions=PARTITIONS,
    nodes=[a_node("n1", *ALL), a_node("n2", *ALL)],  # 16 CPUs, 8 H100 and 1 GiB each
    accounts=frozenset({"vision", "speech", "root"}),
    array_size=1001,
)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--partition=gup", "there is no partition gup"),
        ("--partition=shut", "takes no jobs"),
        ("--partition=short --time=1:00:01", "more than partition short gives"),
        ("--partition=short --time=0", "more than partition short gives"),
        ("--account=visoin", "there is no account visoin"),
        ("--partition=theirs --account=vision", "not for account vision"),
        ("--nodes=3", "3 nodes"),
        ("--cpus-per-task=17", "17 CPUs on one node"),
        ("--cpus-per-task=4 --ntasks-per-node=5", "20 CPUs on one node"),
        ("--nodes=1 --ntasks=17 --cpus-per-task=1", "17 CPUs on one node"),
        ("--mem=1025M", "1025 MiB of memory on one node"),
        ("--cpus-per-task=2 --mem-per-cpu=513M", "1026 MiB of memory on one node"),
        ("--gres=gpu:9", "9 gpu on one node"),
        ("--gres=gpu:a100:1", "no node of partition gpu has more than 0 gpu:a100"),
        ("--gpus-per-node=9", "9 gpu on one node"),
        ("--gpus=17", "17 gpu in all: partition gpu has 16 gpu"),
        ("--array=1-1001%4", "task 1001: the highest number that an array may have here is 1000"),
        ("--array=1,5000", "task 5000"),
        ("--ntasks=33", "33 CPUs in all"),
        ("--partition=shut,short --time=120", "takes no jobs"),
        ("--time=5\n#SBATCH hetjob\n#SBATCH --nodes=3", "3 nodes"),
    ],
)
def test_what_does_not_fit_the_cluster_is_refused(line: str, words: str) -> None:
    [remark] = fit(read(script(line)), TARGET)
    assert remark.refused
    assert words in remark.says


@pytest.mark.parametrize(
    "line",
    [
        "--gres=gpu:h100:8 --cpus-per-task=16 --mem=1G",
        "--partition=short --time=1:00:00",
        "--partition=short,gpu --time=2:00:00",
        "--partition=theirs --account=speech",
        "--account=Vision",
        "--ntasks=32",
        "--nodes=2 --ntasks=32 --gpus=16",
        "--nodes=1 --ntasks=17 --overcommit",
        "--nodes=0",
        "--array=0-1000:2000",
        "--array=1-1000%5000",
    ],
)
def test_what_fits_is_not(line: str) -> None:
    assert fit(read(script(line)), TARGET) == []


def test_a_partition_that_is_down_is_a_warning() -> None:
    [remark] = fit(read(script("--partition=later")), TARGET)
    assert not remark.refused


def test_nodes_that_are_each_large_enough_for_something_else_hold_nothing() -> None:
    small = a_node("n1", "gpu", resources={"cpu": 32_000, "mem": 2**29})
    nodes = [small, a_node("n2", "gpu")]
    [remark] = fit(
        read(script("--cpus-per-task=32 --mem=1G")),
        BatchTarget(partitions=PARTITIONS, nodes=nodes, accounts=None),
    )
    assert "32 CPUs, 1024 MiB of memory" in remark.says


def _taken(lab: SlurmLab, content: bytes) -> bool:
    """Whether the real sbatch would take the script."""
    words = () if re.search(rb"--account", content) else ("--account=vision",)
    user = PEOPLE["vision"] if SlurmOptions().accounting else None
    try:
        lab.run("sbatch", "--test-only", *words, given=content.decode(), user=user)
    except SlurmCommandError:
        return False
    return True


TOO_HIGH = ("--array=1-1001", "--array=1,5000")
"""Arrays of which some task number is too high for Slurm's own MaxArraySize, 1001."""


@pytest.mark.slurm
def test_the_real_sbatch_agrees(slurm_lab: SlurmLab) -> None:
    for line in TAKEN:
        assert _taken(slurm_lab, script(line)), line
    for line in (*REFUSED, *LATER, *TOO_HIGH):
        assert not _taken(slurm_lab, script(line)), line
