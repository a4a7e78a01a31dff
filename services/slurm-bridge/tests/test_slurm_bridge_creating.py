"""Submissions, of which each becomes one job, whoever is killed when; and those that Slurm cannot make."""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Rejected
from fairlead_contracts.base.instants import Micros, from_seconds
from fairlead_contracts.frontend.templates import JobTemplate
from fairlead_contracts.frontend.verbs import CreateJob, CreateOutcome
from fairlead_slurm import SlurmJob
from fairlead_slurm.batch.options import Remark
from fairlead_slurm.errors import SlurmUnreachableError, SubmitRefusedError
from fairlead_slurm.submitting import BatchJob
from fairlead_slurm_bridge.creating import Creator
from fairlead_slurm_bridge.statements.partition_pools import Naming
from fairlead_slurm_bridge.store import SubmissionStore
from fairlead_slurm_bridge.submitting import NoBatchJobError, batch_job_of
from fairlead_testkit.inputs.builders import a_create
from fairlead_testkit.inputs.slurm_builders import GPU, a_slurm_job
from fairlead_testkit.timing.in_hand import ManualClock

NAMING = Naming.of(GPU)
QOS = {"urgent": "urgent"}
COMMAND = JobTemplate(command=["python", "train.py"])


def a_wish(name: str = "train-1", **changes: object) -> CreateJob:
    wish = a_create(
        scope="vision",
        id=name,
        submission=name,
        digest="d" * 32,
        demand={GPU: 2000, "cpu": 1500},
        template=COMMAND,
    )
    return msgspec.structs.replace(wish, **changes)


class Slurm:
    """A slurmctld and its sbatch, as far as making jobs goes."""

    def __init__(self) -> None:
        self.jobs: list[SlurmJob] = []
        self.refuses = ""
        self.loses_answers = False
        self.away = False
        self.says: list[Remark] = []
        self.accounted: list[SlurmJob] = []
        self.accounting = asyncio.Event()
        self.accounting.set()
        self.is_accounting_asked = asyncio.Event()

    async def remarks(self, words: Sequence[str]) -> list[Remark]:
        assert "--account=vision" in words
        return self.says

    async def submit(self, job: BatchJob) -> str:
        if self.refuses:
            raise SubmitRefusedError(self.refuses)
        if self.away:
            raise SlurmUnreachableError("slurmctld is restarting")
        number = str(len(self.jobs) + 1)
        self.jobs.append(a_slurm_job(number, account=job.account, comment=job.comment))
        if self.loses_answers:
            raise SlurmUnreachableError("the answer was lost")
        return number

    async def look(self) -> Sequence[SlurmJob]:
        return self.jobs

    async def ended(self, account: str, names: Sequence[str], since: Micros) -> Sequence[SlurmJob]:
        assert (account, names, since) == ("vision", ["train-1"], from_seconds(100.0))
        self.is_accounting_asked.set()
        await self.accounting.wait()
        return self.accounted

    def partition_of(self, name: str | None) -> str | None:
        return {None: "gpu", "gpu": "gpu"}.get(name)


def a_creator(slurm: Slurm, store: SubmissionStore, clock: ManualClock) -> Creator:
    return Creator(
        slurm.submit, store, slurm.partition_of, slurm.look, slurm.ended, NAMING, QOS, slurm.remarks, clock
    )


async def a_creator_in_doubt(slurm: Slurm, store: SubmissionStore, clock: ManualClock) -> Creator:
    """A creator that had no answer to its first submission: slurmctld was away."""
    slurm.away = True
    creator = a_creator(slurm, store, clock)
    with pytest.raises(Rejected, match="restarting"):
        await creator.create([a_wish()])
    slurm.away = False
    return creator


async def test_the_same_submission_again_is_the_same_job(store: SubmissionStore) -> None:
    slurm, clock = Slurm(), ManualClock(100.0)
    creator = a_creator(slurm, store, clock)
    [made] = await creator.create([a_wish()])
    assert (made.outcome, made.job, made.queue) == (CreateOutcome.CREATED, "1", "gpu")
    [again, other, unknown] = await creator.create(
        [a_wish(), a_wish(digest="e" * 32), a_wish("t-2", queue="odd")]
    )
    assert (again.outcome, again.job) == (CreateOutcome.EXISTS, "1")
    assert (other.outcome, unknown.outcome) == (CreateOutcome.CONFLICT, CreateOutcome.NO_QUEUE)
    assert len(slurm.jobs) == 1


async def test_a_job_whose_answer_was_lost_is_found_again(store: SubmissionStore) -> None:
    slurm, clock = Slurm(), ManualClock(100.0)
    slurm.loses_answers = True
    with pytest.raises(Rejected, match="lost"):
        await a_creator(slurm, store, clock).create([a_wish(), a_wish("t-2")])
    slurm.loses_answers = False
    found = await a_creator(slurm, store, clock).create([a_wish(), a_wish("t-2")])
    assert [(one.outcome, one.job) for one in found] == [
        (CreateOutcome.EXISTS, "1"),
        (CreateOutcome.EXISTS, "2"),
    ]


async def test_without_its_store_a_job_is_found_by_its_comment(
    store: SubmissionStore, tmp_path: Path
) -> None:
    slurm, clock = Slurm(), ManualClock(100.0)
    await a_creator(slurm, store, clock).create([a_wish()])
    slurm.jobs.append(
        a_slurm_job("9", account="speech", comment=slurm.jobs[0].comment)
    )  # somebody else's words
    another = SubmissionStore(tmp_path / "another.db")
    [found] = await a_creator(slurm, another, clock).create([a_wish()])
    [other] = await a_creator(slurm, another, clock).create([a_wish(digest="e" * 32)])
    another.close()
    assert (found.outcome, found.job, other.outcome) == (CreateOutcome.EXISTS, "1", CreateOutcome.CONFLICT)


async def test_a_colleague_s_job_with_the_submission_s_name_and_another_body_is_not_it(
    store: SubmissionStore,
) -> None:
    """Of one account anybody may write the comment."""
    slurm = Slurm()
    slurm.jobs.append(a_slurm_job("1", account="vision", comment=f"fairlead=train-1 digest={'e' * 16}"))
    [made] = await a_creator(slurm, store, ManualClock(100.0)).create([a_wish()])
    assert (made.outcome, made.job) == (CreateOutcome.CREATED, "2")


async def test_another_body_under_an_id_of_the_bridge_before_is_refused_and_a_colleague_s_comment_changes_nothing(
    store: SubmissionStore, tmp_path: Path
) -> None:
    slurm, clock = Slurm(), ManualClock(100.0)
    await a_creator(slurm, store, clock).create([a_wish(), a_wish("t-2")])
    with contextlib.closing(SubmissionStore(tmp_path / "another.db")) as another:
        creator = a_creator(slurm, another, clock)
        creator.made_before["vision", "train-1"] = "1"
        found = await creator.create([a_wish(digest="e" * 32), a_wish("t-2", digest="e" * 32)])
        assert [one.outcome for one in found] == [CreateOutcome.CONFLICT, CreateOutcome.CREATED]


async def test_what_nobody_knows_of_is_not_made_again_at_once(store: SubmissionStore) -> None:
    slurm, clock = Slurm(), ManualClock(100.0)
    creator = await a_creator_in_doubt(slurm, store, clock)
    clock.now += 10
    with pytest.raises(Rejected, match="not known yet"):
        await creator.create([a_wish()])
    clock.now += 30
    [made] = await creator.create([a_wish()])
    assert made.outcome is CreateOutcome.CREATED


async def test_a_job_that_slurmctld_forgot_before_anybody_heard_of_it_is_found_in_accounting(
    store: SubmissionStore,
) -> None:
    slurm, clock = Slurm(), ManualClock(100.0)
    slurm.loses_answers = True
    creator = a_creator(slurm, store, clock)
    with pytest.raises(Rejected, match="lost"):
        await creator.create([a_wish()])
    slurm.loses_answers = False
    slurm.accounted, slurm.jobs = slurm.jobs, []
    clock.now += 3600
    [found] = await creator.create([a_wish()])
    assert (found.outcome, found.job, slurm.jobs) == (CreateOutcome.EXISTS, "1", [])


async def test_nobody_else_waits_for_accounting(store: SubmissionStore) -> None:
    slurm, clock = Slurm(), ManualClock(100.0)
    creator = await a_creator_in_doubt(slurm, store, clock)
    clock.now += 60
    slurm.accounting.clear()
    in_doubt = asyncio.create_task(creator.create([a_wish()]))
    async with asyncio.timeout(5):
        await slurm.is_accounting_asked.wait()
        [made] = await creator.create([a_wish("t-2")])
    assert (made.outcome, in_doubt.done()) == (CreateOutcome.CREATED, False)
    slurm.accounting.set()
    [made] = await in_doubt
    assert (made.outcome, made.job) == (CreateOutcome.CREATED, "2")


async def test_what_was_refused_may_be_asked_for_again(store: SubmissionStore) -> None:
    slurm, clock = Slurm(), ManualClock(100.0)
    slurm.refuses = "Invalid account"
    creator = a_creator(slurm, store, clock)
    [refused] = await creator.create([a_wish()])
    assert (refused.outcome, refused.reason) == (CreateOutcome.REFUSED, "Invalid account")
    slurm.refuses = ""
    [made] = await creator.create([a_wish()])
    assert made.outcome is CreateOutcome.CREATED


def batch(**changes: object) -> BatchJob:
    return batch_job_of(
        msgspec.structs.replace(a_wish(), **changes), naming=NAMING, qos_classes=QOS, partition="gpu"
    )


def test_a_submission_as_a_batch_job() -> None:
    job = batch(
        demand={GPU: 4000, "cpu": 3500, "memory": 3 * 2**30 + 1},
        pods=2,
        requested_class="urgent",
        run_limit=61_000_000,
    )
    assert (job.tasks, job.cpus, job.memory_mib, job.gpus, job.qos, job.minutes) == (
        2,
        2,
        1537,
        2,
        "urgent",
        2,
    )
    assert (job.account, job.name, job.partition) == ("vision", "train-1", "gpu")
    assert "exec python train.py" in job.script
    image = batch(template=JobTemplate(command=["x"], image="registry.example/train:3"))
    assert image.comment.endswith("image=registry.example/train:3")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"template": None}, "template.command is missing"),
        ({"template": JobTemplate(image="i")}, "template.command is missing"),
        ({"template": JobTemplate(command=["x"], kind="pytorch-job")}, "template.kind"),
        ({"template": JobTemplate(command=["x"], env={"SBATCH_HOLD": "1"})}, "SBATCH_HOLD"),
        ({"template": JobTemplate(command=["x\0y"])}, "zero byte"),
        ({"template": JobTemplate(command=["x"], node_selector={"a": "b"})}, "node_selector"),
        ({"labels": {"a": "b"}}, "labels"),
        ({"demand": {"example.com/tpu": 1000}}, "example.com/tpu"),
        ({"demand": {GPU: 3000}, "pods": 2}, "divide evenly"),
        ({"requested_class": "approved"}, "no QOS"),
    ],
)
def test_what_slurm_cannot_make_is_said(changes: dict[str, object], why: str) -> None:
    with pytest.raises(NoBatchJobError, match=why):
        batch(**changes)


async def test_what_would_never_start_is_refused_before_it_stands(store: SubmissionStore) -> None:
    slurm = Slurm()
    slurm.says = [
        Remark(line=0, says="image a.b/c:1 is not there"),
        Remark(line=0, says="17 CPUs"),
        Remark(line=0, says="a label", refused=False),
    ]
    [reply] = await a_creator(slurm, store, ManualClock(100.0)).create([a_wish()])
    assert (reply.outcome, reply.reason) == (CreateOutcome.REFUSED, "image a.b/c:1 is not there; 17 CPUs")
    assert slurm.jobs == []
    slurm.says = slurm.says[2:]
    [reply] = await a_creator(slurm, store, ManualClock(100.0)).create([a_wish()])
    assert reply.outcome is CreateOutcome.CREATED
