"""Jobs of every kind on a real slurmctld: who has a position, in which domain, as what."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Bus
from fairlead_contracts.policyfile.document import Pool
from fairlead_testkit.fleets.fleet import whole_queue
from fairlead_testkit.fleets.slurm_fleet import SlurmFleet, account_policy, wanted_order
from fairlead_testkit.slurmlab import CLUSTER, SPARE, SlurmLab, SlurmOptions
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

WHOLE = ("--nodes=1", "--ntasks=1", "--gres=gpu:8")
STEP = 10_000
RUSH = "rush"
"""A partition of a higher PriorityTier, and the pool of that name."""
MORE = {"batch": (), RUSH: ("prioritytier=5",)}
"""Partitions of all nodes, beside `gpu`, and what slurmctld is told of each."""


RESERVED = ("starttime=now+1day", "duration=60", "nodecnt=1", "accounts=vision")


@pytest.fixture
def lab(slurm_lab: SlurmLab) -> Iterator[SlurmLab]:
    """The lab with more partitions and, where there is accounting, a reservation, for as long as this test."""
    made = []
    for name, words in MORE.items():
        given = (f"partitionname={name}", "nodes=ALL", "maxtime=INFINITE", "state=UP", *words)
        slurm_lab.run("scontrol", "create", *given)
        made.append(given[0])
    if SlurmOptions().accounting:
        slurm_lab.run("scontrol", "create", "reservation", "reservationname=tomorrow", *RESERVED)
        made.append("reservationname=tomorrow")
    yield slurm_lab
    slurm_lab.clear()
    for one in made:
        slurm_lab.run("scontrol", "delete", one)


def priorities(lab: SlurmLab) -> dict[str, int]:
    """Slurm's own, by record."""
    lines = (line.split() for line in lab.jobs("%A %Q", "--states=PENDING"))
    return {job: int(priority) for job, priority in lines}


async def test_every_kind_of_job_has_the_position_that_it_should(lab: SlurmLab, tmp_path: Path) -> None:
    blockers = lab.fill(SPARE, "--time=60")
    first = lab.submit("vision", *WHOLE)
    out = {
        "held": lab.submit("vision", *WHOLE, "--hold"),
        "dependent": lab.submit("speech", *WHOLE, f"--dependency=afterany:{blockers[0]}"),
        "later": lab.submit("speech", *WHOLE, "--begin=now+1hour"),
    }
    if SlurmOptions().accounting:
        out["reserved"] = lab.submit("vision", *WHOLE, "--reservation=tomorrow")
    both = lab.submit("robots", *WHOLE, "--partition=batch,gpu")
    torn = lab.submit("robots", *WHOLE, "--partition=rush,gpu")
    rush = lab.submit("robots", *WHOLE, "--partition=rush")
    script = "#!/bin/sh\nexec sleep 3600\n"
    parts = lab.run(
        "sbatch", "--parsable", "--output=/dev/null", "--account=speech", *WHOLE, ":", *WHOLE, given=script
    )
    het = parts.strip()
    words = ("--parsable", "--output=/dev/null", "--account=vision")
    across = int(lab.run("sbatch", *words, "--partition=rush", *WHOLE, ":", *WHOLE, given=script))
    policy = account_policy({"vision": 1, "speech": 1, "robots": 1, "spare": 1})
    policy = msgspec.structs.replace(
        policy, pools=[*policy.pools, Pool(name=RUSH, members=[f"{CLUSTER}/{RUSH}"])]
    )
    async with SlurmFleet(tmp_path, lab, policy=policy).running() as bus:
        await _only_who_may_start_has_a_position(bus, lab, {first, both, torn, het, str(across + 1)}, out)
        await _a_tier_is_a_domain_of_its_own(bus, lab, {rush, str(across)})
        await _parts_that_start_together_have_one_level(lab, het)
        await _who_may_start_again_has_a_position(bus, lab, out)


async def _only_who_may_start_has_a_position(
    bus: Bus, lab: SlurmLab, placed: set[str], out: dict[str, str]
) -> None:
    """Checks who has a position; a job that listed two partitions has one, where others wait for most."""

    async def stand() -> bool:
        wanted, found = await wanted_order(bus), priorities(lab)
        levels = [found[job] // STEP for job in wanted]
        return (
            sorted(wanted) == sorted(placed)
            and levels == sorted(set(levels), reverse=True)
            and min(levels) > 0
        )

    await eventually(stand, 90, what="who may start stands in Slurm in the order")
    assert {kind: priorities(lab)[job] // STEP for kind, job in out.items()} == dict.fromkeys(out, 0)


async def _a_tier_is_a_domain_of_its_own(bus: Bus, lab: SlurmLab, rush: set[str]) -> None:
    """Checks that who may start there alone is ranked there, a part of a job as well; who listed both domains is not."""

    async def ranked() -> bool:
        return {one.position.id for one in (await whole_queue(bus, RUSH)).positions} == rush

    await eventually(ranked, 60, what="the higher tier has an order of its own")
    await eventually(
        lambda: all(priorities(lab)[job] >= STEP for job in rush), 60, what="it stands in Slurm, too"
    )


async def _parts_that_start_together_have_one_level(lab: SlurmLab, het: str) -> None:
    """Each is written to by itself, and the one that has a position may be the first."""

    def one_level() -> bool:
        lines = (line.split() for line in lab.jobs("%i %Q", "--states=PENDING"))
        first, second = [int(priority) // STEP for job, priority in lines if job.startswith(f"{het}+")]
        return first == second > 0

    await eventually(one_level, 60, what="both parts have the same level")


async def _who_may_start_again_has_a_position(bus: Bus, lab: SlurmLab, out: dict[str, str]) -> None:
    lab.run("scontrol", "release", out["held"])
    lab.run("scontrol", "update", f"jobid={out['later']}", "starttime=now")
    lab.run("scontrol", "update", f"jobid={out['dependent']}", "dependency=")
    back = {out[kind] for kind in ("held", "later", "dependent")}

    async def are_back() -> bool:
        return back <= set(await wanted_order(bus)) and all(priorities(lab)[job] >= STEP for job in back)

    await eventually(are_back, 60, what="who may start again has a place, and a level")
    assert out.get("reserved") not in await wanted_order(bus)
