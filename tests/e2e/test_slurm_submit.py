"""Submissions on NATS become Slurm's batch jobs, as the tenant's Unix user, each once."""

import asyncio
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Bus
from fairlead_contracts.messages.state import Outcome
from fairlead_contracts.messages.submissions import Accepted, AnyAnswer, Cancelling, Ended, Refused, Started
from fairlead_testkit.by_hand.people import cancel, hear_answers, submit
from fairlead_testkit.fleets.fleet import submit_all
from fairlead_testkit.fleets.slurm_fleet import SlurmFleet, account_policy
from fairlead_testkit.fleets.slurm_submitting import losing_the_first_answer, submitting_helper
from fairlead_testkit.slurmlab import CLUSTER, PEOPLE, SlurmLab
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="submitting as other users needs root"),
]

WEIGHTS = {"vision": 3, "speech": 2}
WHO = ["sh", "-c", 'id -un; printf %s "$1"', "sh", "it's $(touch owned)\n#SBATCH --hold"]


class TenantAnswers:
    """Answers that the senders of one tenant hear, by submission."""

    def __init__(self) -> None:
        self._heard: dict[str, list[AnyAnswer]] = {}

    async def listen(self, bus: Bus, tenant: str) -> None:
        def take(answer: AnyAnswer) -> None:
            self._heard.setdefault(answer.id, []).append(answer)

        await hear_answers(bus, take, tenant)

    async def of(self, submission: str, last: type[AnyAnswer]) -> list[AnyAnswer]:
        """Answers to one submission, up to the kind that is its last."""

        def complete() -> list[AnyAnswer]:
            found = self._heard.get(submission, [])
            return found if found and isinstance(found[-1], last) else []

        return await eventually(complete, 90, what=f"{submission} hears {last.__name__}")

    async def more_of(self, submission: str, *, than: int) -> None:
        """Return once there are more answers than so many."""
        await eventually(
            lambda: len(self._heard[submission]) > than, 60, what=f"{submission} is answered again"
        )


def a_body(name: str, **more: object) -> dict[str, object]:
    return {"id": name, "demand": {"nvidia.com/gpu": 1, "cpu": 1}, "template": {"command": WHO}} | more


async def test_a_submission_is_one_job_of_its_tenants_user(slurm_lab: SlurmLab, tmp_path: Path) -> None:
    policy = account_policy(WEIGHTS)
    with submitting_helper(tmp_path, slurm_lab) as helper:
        async with losing_the_first_answer(tmp_path, helper) as (socket, lost):
            fleet = SlurmFleet(tmp_path, slurm_lab, policy=policy, submit_socket=socket)
            async with fleet.running() as bus:
                heard = TenantAnswers()
                await heard.listen(bus, "vision")
                await _killed_between_creation_and_answer(fleet, bus, heard, lost)
                await _cancelled(fleet, bus, heard)
                await _refused(bus, heard)
                await _by_the_command(fleet, slurm_lab)


async def _killed_between_creation_and_answer(
    fleet: SlurmFleet, bus: Bus, heard: TenantAnswers, lost: asyncio.Event
) -> None:
    """The job is there, and nobody knows: the next bridge finds it, and makes no second one."""
    lab = fleet.lab
    await submit_all(bus, "vision", [a_body("once")], cluster=CLUSTER)
    async with asyncio.timeout(60):
        await lost.wait()
    [bridge] = fleet.named("slurm_bridge")
    bridge.kill()
    await bridge.start().ready(60)
    answers = await heard.of("once", Ended)
    by_kind = {type(answer): answer for answer in answers}  # each is told at least once
    assert list(by_kind) == [Accepted, Started, Ended]
    accepted, ended = by_kind[Accepted], by_kind[Ended]
    assert isinstance(accepted, Accepted)
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.SUCCEEDED
    made = lab.run("scontrol", "-o", "show", "job").splitlines()
    assert [line.split()[0] for line in made if "JobName=once " in line] == [f"JobId={accepted.job}"]
    assert (lab.layout.folder / "out" / accepted.job).read_text() == f"{PEOPLE['vision']}\n{WHO[-1]}"
    told = len(answers)
    # Under another Nats-Msg-Id: by the first one, NATS itself would swallow it.
    await submit(bus, msgspec.json.encode(a_body("once")), tenant="vision", cluster=CLUSTER, msg_id="twice")
    await heard.more_of("once", than=told)
    made = lab.run("scontrol", "-o", "show", "job").splitlines()
    assert len([line for line in made if "Comment=fairlead=once " in line]) == 1


async def _cancelled(fleet: SlurmFleet, bus: Bus, heard: TenantAnswers) -> None:
    """One that runs is stopped in Slurm, at once where it was asked for in the same moment; it is not made again."""
    body = a_body("back", template={"command": ["sleep", "600"]})
    await submit_all(bus, "vision", [body], cluster=CLUSTER)
    await cancel(bus, "back", tenant="vision", cluster=CLUSTER)
    answers = await heard.of("back", Ended)
    ended = answers[-1]
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.CANCELLED
    assert {type(answer) for answer in answers} - {Started} == {Accepted, Cancelling, Ended}
    await submit(bus, msgspec.json.encode(body), tenant="vision", cluster=CLUSTER, msg_id="back again")
    await heard.more_of("back", than=len(answers))
    made = fleet.lab.run("scontrol", "-o", "show", "job").splitlines()
    states = [line.split("JobState=")[1].split()[0] for line in made if "JobName=back " in line]
    assert states == ["CANCELLED"]


async def _refused(bus: Bus, heard: TenantAnswers) -> None:
    wrong: dict[str, dict[str, object]] = {
        "no-command": {"template": {"image": "registry.example/train:3"}},
        "no-such-queue": {"queue": "odd"},
        "too-much": {"demand": {"nvidia.com/gpu": 4000}},
        "elsewhere": {"frontend": "kueue"},
        "odd-class": {"class": "approved"},
    }
    await submit_all(bus, "vision", [a_body(name, **more) for name, more in wrong.items()], cluster=CLUSTER)
    told = {name: await heard.of(name, Refused) for name in wrong}
    fields = {name: answers[0].field for name, answers in told.items() if isinstance(answers[0], Refused)}
    assert fields == {
        "no-command": "body",
        "no-such-queue": "queue",
        "too-much": "body",  # Slurm judges that: the pool's capacity is of the nodes that are up
        "elsewhere": "frontend",
        "odd-class": "class",
    }


async def _by_the_command(fleet: SlurmFleet, lab: SlurmLab) -> None:
    """`any` goes to the cluster of that frontend; the command follows the job to its end."""
    words = ["--frontend", "slurm", "--tenant", "speech", "--gpus", "2", "--id", "typed", "--output", "json"]
    code, lines = await _typed(fleet, "submit", *words, "--command", "sh -c 'exit 3'")
    assert code != 0
    assert [line["kind"] for line in lines] == ["accepted", "started", "ended"]
    assert lines[-1]["outcome"] == "failed"
    owner = lab.run("scontrol", "-o", "show", "job", str(lines[0]["job"]))
    assert f"UserId={PEOPLE['speech']}(" in owner
    assert "Account=speech" in owner


async def _typed(fleet: SlurmFleet, *words: str) -> tuple[int, Sequence[dict[str, object]]]:
    environ = os.environ | fleet.person("tenant.speech")
    run = partial(asyncio.create_subprocess_exec, stdout=asyncio.subprocess.PIPE, env=environ)
    process = await run(sys.executable, "-m", "fairlead_cli", *words)
    out, _ = await process.communicate()
    lines = [msgspec.json.decode(line, type=dict[str, object]) for line in out.splitlines()]
    return process.returncode or 0, lines
