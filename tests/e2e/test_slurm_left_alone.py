"""A job whose priority an operator sets by hand: Fairlead leaves it alone, and `queue` and `explain` say so."""

from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.control import Mode
from fairlead_contracts.messages.questions import EXPLAIN_REPLY, ExplainQuestion
from fairlead_testkit.by_hand.people import say
from fairlead_testkit.fleets.fleet import whole_queue
from fairlead_testkit.fleets.slurm_fleet import POOL, SlurmFleet, account_policy, order_stands, slurm_order
from fairlead_testkit.slurmlab import SPARE, SlurmLab
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

WEIGHTS = {"vision": 3, "speech": 2, SPARE: 1}
PART = ("--nodes=1", "--ntasks=1", "--gres=gpu:2")
ABOVE_ALL = 4_000_000_000


async def reasons(bus: Bus, job: str) -> str:
    question = to_json(ExplainQuestion(job=job))
    [found] = EXPLAIN_REPLY.decode(await bus.request(subjects.ask("explain"), question, timeout=5)).found
    return " ".join(found.reasons)


async def test_a_priority_set_by_hand_stands_and_is_told_until_slurm_and_fairlead_are_given_it_back(
    slurm_lab: SlurmLab, tmp_path: Path
) -> None:
    lab = slurm_lab
    lab.fill(SPARE)
    for account in ("vision", "speech") * 3:
        lab.submit(account, *PART)
    async with SlurmFleet(tmp_path, lab, policy=account_policy(WEIGHTS)).running() as bus:
        order = await order_stands(bus, lab, 6, waiting=6)
        lifted = order[4]
        lab.run("scontrol", "update", f"jobid={lifted}", f"priority={ABOVE_ALL}")

        async def alone(*, told: bool) -> bool:
            return bool((await whole_queue(bus, POOL)).steering[0].left_alone) is told

        await eventually(lambda: alone(told=True), 60, what="the queue says that a job is left alone")
        assert slurm_order(lab)[0] == lifted
        pool = await whole_queue(bus, POOL)
        assert [one.position.id for one in pool.positions if one.left_alone] == [lifted]
        assert [(one.enforcement, one.left_alone) for one in pool.steering] == [("loose", 1)]
        assert "left its level alone since" in await reasons(bus, lifted)
        assert "left its level alone since" not in await reasons(bus, order[0])
        lab.run("scontrol", "release", lifted)
        await say(bus, Mode.ACTIVE, POOL)
        await eventually(lambda: alone(told=False), 60, what="no job is left alone any more")
        assert await order_stands(bus, lab, 6) == order
        assert (await whole_queue(bus, POOL)).steering[0].enforcement == "exact"
