"""A bridge with a store of its own takes over on a real Slurm: each job has one end, and none is told of a job that runs."""

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Bus
from fairlead_contracts.messages.events import Event, JobEnded, JobEvicted, JobStarted, LevelWritten
from fairlead_contracts.messages.state import JobState, Outcome, Phase
from fairlead_contracts.messages.submissions import AnyAnswer, Refused
from fairlead_testkit.by_hand.people import hear_answers, submit
from fairlead_testkit.chaos.audit import heard, stated_job
from fairlead_testkit.fleets.slurm_fleet import SlurmFleet, account_policy
from fairlead_testkit.fleets.slurm_submitting import submitting_helper
from fairlead_testkit.pytest_plugin.slurmlab_fixtures import SlurmLabFactory
from fairlead_testkit.slurmlab import CLUSTER, SlurmLab, SlurmOptions
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="accounting needs root"),
]

SOON_FORGOTTEN = SlurmOptions(nodes=1, lines=("MinJobAge=2",))
"""A slurmctld that knows a job for some seconds after its end, not for minutes."""


class SlurmTakeover:
    """Jobs of vision's that run until they are let go, and fail then."""

    def __init__(self, lab: SlurmLab, folder: Path, bus: Bus) -> None:
        self._lab, self._bus, self._flags = lab, bus, folder
        self._words = ("--parsable", "--account=vision", "--output=/dev/null", "--requeue")

    def submit(self, name: str) -> str:
        script = f"#!/bin/sh\nwhile [ ! -e {self._flags / name} ]; do sleep 0.2; done\nexit 3\n"
        return self._lab.run("sbatch", *self._words, given=script).strip()

    async def submit_as(self, name: str, seconds: str) -> AnyAnswer:
        """Publish a submission of that id; gives the first answer to it."""
        answers: list[AnyAnswer] = []
        await hear_answers(self._bus, answers.append, "vision")
        body = {"id": name, "demand": {"cpu": 1}, "template": {"command": ["sleep", seconds]}}
        await submit(self._bus, msgspec.json.encode(body), tenant="vision", cluster=CLUSTER, msg_id=seconds)
        await eventually(lambda: answers, 60, what=f"{name} is answered")
        return answers[0]

    def let_go(self, name: str) -> None:
        (self._flags / name).touch()

    async def runs(self, job: str) -> JobState:
        """The statement of a job once it is stated to run."""

        async def stated() -> JobState | None:
            found = await self.stated(job)
            return found if found is not None and found.phase is Phase.RUNNING else None

        return await eventually(stated, 60, what=f"{job} is stated to run")

    async def stated(self, job: str) -> JobState | None:
        return await stated_job(self._bus, CLUSTER, "vision", job)

    async def forgotten(self, job: str) -> None:
        def is_gone() -> bool:
            return job not in self._lab.jobs("%i", "--states=all")

        await eventually(lambda: asyncio.to_thread(is_gone), 90, what=f"slurmctld has forgotten {job}")


async def test_each_job_has_one_end_whoever_bridges(slurm_labs: SlurmLabFactory, tmp_path: Path) -> None:
    lab = slurm_labs(SOON_FORGOTTEN)
    with submitting_helper(tmp_path, lab) as socket:
        fleet = SlurmFleet(tmp_path, lab, policy=account_policy({"vision": 1}), submit_socket=socket)
        async with fleet.running() as bus, heard(bus, CLUSTER, Event) as events:
            site = SlurmTakeover(lab, tmp_path, bus)
            await _killed_in_turns(fleet, site, events)


async def _killed_in_turns(fleet: SlurmFleet, site: SlurmTakeover, events: Sequence[Event]) -> None:
    lab = fleet.lab
    short, long = site.submit("short"), site.submit("long")
    before = await site.runs(long)
    lab.run("scontrol", "requeue", long)  # gives it another submit time
    site.let_go("short")
    await site.forgotten(short)
    await eventually(lambda: _kinds(events, long)[JobStarted] > 1, 60, what="it runs again")
    await site.runs(long)
    told = _kinds(events, long)
    assert (told[JobStarted], told[JobEvicted]) == (2, 1)
    # For six seconds it may not begin, and after each write slurmctld gives no reason: no level comes and goes.
    assert told[LevelWritten] <= 3  # before each of its runs, and down between them
    await site.submit_as("named", "600")
    first, second = *fleet.named("slurm_bridge"), await fleet.another("slurm_bridge")
    first.kill()
    await second.logged("announcer.reconciled")
    after = await site.runs(long)
    assert after.uid == before.uid
    refused = await site.submit_as("named", "601")
    assert isinstance(refused, Refused)
    assert refused.field == "id"
    lab.process("slurmdbd").end(grace=20)
    second.pause()
    site.let_go("long")
    await site.forgotten(long)
    second.resume()
    await eventually(lambda: _is_owed(site, long), 60, what="its end is owed")
    second.kill()
    first.start()
    await first.logged("announcer.reconciled")
    lab.process("slurmdbd").start()
    await eventually(lambda: _kinds(events, long)[JobEnded], 90, what="its end is told")
    await eventually(lambda: _is_gone(site, long), 60, what="it is stated no more")
    ends = [(one.job, one.outcome) for one in events if isinstance(one, JobEnded)]
    assert ends == [(short, Outcome.FAILED), (long, Outcome.FAILED)]


def _kinds(events: Sequence[Event], job: str) -> Counter[type[Event]]:
    return Counter(type(one) for one in events if one.job == job)


async def _is_owed(site: SlurmTakeover, job: str) -> bool:
    stated = await site.stated(job)
    return stated is not None and stated.phase is Phase.ENDED


async def _is_gone(site: SlurmTakeover, job: str) -> bool:
    return await site.stated(job) is None
