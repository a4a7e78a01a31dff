"""The order on a real slurmctld: what is promised stands in Slurm's own priorities, and is what starts.

The judge knows weights and what runs, and no code of ours (`filled`).
"""

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.questions import EXPLAIN_REPLY, ExplainQuestion, Explanation
from fairlead_contracts.messages.state import Phase
from fairlead_contracts.policyfile.document import Grant
from fairlead_contracts.subjects import ask
from fairlead_testkit.fleets.slurm_fleet import (
    SlurmFleet,
    account_policy,
    filled,
    order_stands,
    slurm_order,
    wanted_order,
)
from fairlead_testkit.slurmlab import ACCOUNTS, SPARE, URGENT, SlurmLab, SlurmOptions
from fairlead_testkit.telemetry.prometheus import Prometheus, all_scraped, all_speak, asked_by_panels
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

WEIGHTS = {"vision": 3, "speech": 2, "robots": 1}
NODES, SLOTS = 4, 16
PART = ("--nodes=1", "--ntasks=1", "--gres=gpu:2")
"""Words for a quarter of a node, a sixteenth of the partition."""
WHOLE = ("--nodes=1", "--ntasks=1", "--gres=gpu:8")
EACH = 16
TASKS, POSITIONS = 200, 8
WINDOW = 32
BURST = 6


def flood(lab: SlurmLab) -> list[tuple[str, str]]:
    """Submits as many jobs of each account, in turns; the poorest account comes first."""
    accounts = list(reversed(ACCOUNTS)) * EACH
    return [(lab.submit(account, *PART), account) for account in accounts]


def running(lab: SlurmLab) -> dict[str, str]:
    """Account by id, of what runs."""
    return dict(line.split() for line in lab.jobs("%i %a", "--states=RUNNING"))


def flood_beside_an_array(lab: SlurmLab) -> list[tuple[str, str]]:
    """The same, but one account has an array of 200 tasks, of which the first have a position."""
    array = lab.submit("speech", *PART, f"--array=1-{TASKS}")
    others = ["robots", "vision"] * EACH
    tasks = [(f"{array}_{task}", "speech") for task in range(1, POSITIONS + 1)]
    return [*tasks, *((lab.submit(account, *PART), account) for account in others)]


@pytest.mark.parametrize("come", [pytest.param(flood, marks=pytest.mark.deep), flood_beside_an_array])
async def test_a_flood_starts_as_weighted_drf_has_it(
    slurm_lab: SlurmLab, tmp_path: Path, come: Callable[[SlurmLab], list[tuple[str, str]]]
) -> None:
    lab = slurm_lab
    blockers = lab.fill(SPARE)
    waiting = come(lab)
    wanted = filled(waiting, Counter(), WEIGHTS)
    policy = account_policy(WEIGHTS | {SPARE: 1})
    fleet = SlurmFleet(tmp_path, lab, policy=policy)
    async with fleet.running() as bus:
        order = await order_stands(bus, lab, WINDOW, waiting=len(waiting))
        assert order == wanted
        assert slurm_order(lab)[:WINDOW] == wanted[:WINDOW]
        with Prometheus(tmp_path, await fleet.health_ports("slurm_bridge")) as prometheus:
            await all_scraped(prometheus, 1)
            lab.run("scancel", *blockers)
            await eventually(lambda: len(running(lab)) == SLOTS, 60, what="all slots are taken")
            assert set(running(lab)) == set(wanted[:SLOTS])
            await _each_end_gives_its_slot_to_the_next(bus, lab)
            await _a_burst_of_ends_takes_the_first_of_the_order_that_stood(fleet, bus, lab)
            of_it = [one for one in asked_by_panels() if "fairlead_slurm_bridge_" in one[1]]
            assert len(of_it) == 10
            await all_speak(prometheus, of_it)


async def _each_end_gives_its_slot_to_the_next(bus: Bus, lab: SlurmLab) -> None:
    """Jobs end one by one, by chance; what runs stays within one job of the weights."""
    chance = random.Random(17)
    entitled = {name: SLOTS * weight / sum(WEIGHTS.values()) for name, weight in WEIGHTS.items()}
    for _ in range(6):
        before = running(lab)
        await order_stands(bus, lab, 3)
        lab.run("scancel", chance.choice(sorted(before)))
        await eventually(partial(_refilled, lab, before), 60, what="the slot is taken again")
        holds = Counter(running(lab).values())
        assert all(abs(holds[name] - entitled[name]) <= 1 for name in WEIGHTS), holds


async def _a_burst_of_ends_takes_the_first_of_the_order_that_stood(
    fleet: SlurmFleet, bus: Bus, lab: SlurmLab
) -> None:
    """Checks the starts when many end together: they were chosen before, and not anew after each end."""
    await order_stands(bus, lab, BURST)
    [admitter] = fleet.named("admitter")
    admitter.pause()  # nothing is written while they end
    try:
        before, first = running(lab), slurm_order(lab)[:BURST]
        lab.run("scancel", *sorted(before)[:BURST])
        await eventually(
            lambda: len(running(lab).keys() - before.keys()) == BURST, 60, what="the slots are taken again"
        )
        assert running(lab).keys() - before.keys() == set(first)
    finally:
        admitter.resume()


def _refilled(lab: SlurmLab, before: dict[str, str]) -> bool:
    now = running(lab)
    return len(now) == SLOTS and now.keys() != before.keys()


async def test_urgency_nice_requeues_and_arrays(slurm_lab: SlurmLab, tmp_path: Path) -> None:
    lab = slurm_lab
    lab.fill(SPARE)
    first = lab.submit("vision", *PART)
    waiting = [(first, "vision"), *((lab.submit(account, *PART), account) for account in ACCOUNTS * 3)]
    sizes = {job: size for job, (_, size) in _own_factors(lab).items()}
    policy = account_policy(
        WEIGHTS | {SPARE: 1}, grants=[Grant(tenant="robots", classes=[URGENT], by="test")]
    )
    fleet = SlurmFleet(tmp_path, lab, policy=policy)
    async with fleet.running() as bus:
        assert await order_stands(bus, lab, WINDOW, waiting=len(waiting)) == filled(
            waiting, Counter(), WEIGHTS
        )
        await _slurms_own_factors_stay(lab, sizes, accounts=dict(waiting))
        await _nice_counts_within_its_account(bus, lab, waiting)
        await _nobody_rises_by_a_nice_that_comes_and_goes(bus, lab, waiting)
        await _who_was_held_waits_for_its_turn_again(fleet, bus, lab)
        await _urgent_goes_first(bus, lab)
        await _an_array_stands_with_its_first_tasks(bus, lab)


def _own_factors(lab: SlurmLab) -> dict[str, tuple[str, str]]:
    """Fair share and size by job, as Slurm's own plugin has them."""
    lines = (line.split("|") for line in lab.run("sprio", "-h", "-o", "%i|%F|%J").splitlines())
    return {name.strip(): (share, size) for name, share, size in lines}


async def _slurms_own_factors_stay(lab: SlurmLab, sizes: dict[str, str], accounts: dict[str, str]) -> None:
    """Amid a write, the last ones may stand in the order by their own factors alone.

    Every minute slurmctld computes the fair share anew, of all jobs of an account alike.
    """

    def each_has_a_site() -> bool:
        lines = (line.split() for line in lab.run("sprio", "-h", "-o", "%i %S").splitlines())
        sites = {name: int(site) for name, site in lines}
        return len(set(sites.values())) == len(sites) == len(sizes)

    await eventually(each_has_a_site, 60, what="every job has a level of its own")
    factors = _own_factors(lab)
    assert {job: size for job, (_, size) in factors.items()} == sizes
    assert all(int(size) > 0 for size in sizes.values())
    shares = {(accounts[job], share) for job, (share, _) in factors.items()}
    assert len(shares) == len(ACCOUNTS), shares


async def _nice_counts_within_its_account(bus: Bus, lab: SlurmLab, waiting: list[tuple[str, str]]) -> None:
    before = filled(waiting, Counter(), WEIGHTS)
    mine = [job for job, account in waiting if account == "vision"]
    lab.run("scontrol", "update", f"jobid={mine[0]}", "nice=100")
    moved = dict(zip(mine, [*mine[1:], mine[0]], strict=True))
    wanted = [moved.get(job, job) for job in before]

    async def stands() -> bool:
        return await order_stands(bus, lab, WINDOW) == wanted

    await eventually(stands, 60, what="the nicer job lets its own account's jobs past, and nobody else's")
    assert slurm_order(lab) == wanted
    lab.run("scontrol", "update", f"jobid={mine[0]}", "nice=0")
    await eventually(partial(_is_order, bus, lab, before), 60, what="all stand as before")


async def _is_order(bus: Bus, lab: SlurmLab, wanted: list[str]) -> bool:
    return await order_stands(bus, lab, WINDOW) == wanted


async def _nobody_rises_by_a_nice_that_comes_and_goes(
    bus: Bus, lab: SlurmLab, waiting: list[tuple[str, str]]
) -> None:
    """Checks that a SiteFactor never makes up for a nice: the job would be above all for as long as nobody looks."""
    wanted = await order_stands(bus, lab, WINDOW)
    tricky = [job for job in wanted if dict(waiting)[job] == "vision"][-1]
    before = wanted[: wanted.index(tricky)]
    for _ in range(4):  # whoever overwrites a level three times is left alone with it
        lab.run("scontrol", "update", f"jobid={tricky}", "nice=1000000000")
        assert slurm_order(lab)[-1] == tricky
        await eventually(partial(_has_no_position, bus, tricky), 60, what="the nice is seen")
        lab.run("scontrol", "update", f"jobid={tricky}", "nice=0")
        assert slurm_order(lab)[: len(before)] == before
        await eventually(partial(_is_order, bus, lab, wanted), 60, what="it has its position again")


async def _who_was_held_waits_for_its_turn_again(fleet: SlurmFleet, bus: Bus, lab: SlurmLab) -> None:
    """Checks that a held job loses its level, also where no bridge saw it: else it would have it again, and be first, the
    moment that its user releases it."""
    wanted = await order_stands(bus, lab, WINDOW)
    first = wanted[0]
    assert (await _explained(bus, first)).level > 0
    [bridge] = fleet.named("slurm_bridge")
    bridge.kill()
    lab.run("scontrol", "hold", first)
    bridge.start()

    async def lowered() -> bool:
        found = await _explained(bus, first)
        return (found.phase, found.level) == (Phase.HELD.value, 0)

    await eventually(lowered, 60, what="the held job has no level")
    lab.run("scontrol", "release", first)
    assert slurm_order(lab)[-1] == first
    await eventually(partial(_is_order, bus, lab, wanted), 60, what="it has its position again")


async def _has_no_position(bus: Bus, job: str) -> bool:
    return (await _explained(bus, job)).phase == Phase.HELD.value


async def _explained(bus: Bus, job: str) -> Explanation:
    question = to_json(ExplainQuestion(job=job))
    [found] = EXPLAIN_REPLY.decode(await bus.request(ask("explain"), question, timeout=5.0)).found
    return found


async def test_jobs_that_wait_for_a_limit_cost_others_of_their_account_nothing(
    slurm_lab: SlurmLab, tmp_path: Path
) -> None:
    """Checks that one job stands for all that one user's limit holds back, and takes no part of the account or the window."""
    lab = slurm_lab
    if not SlurmOptions().accounting:
        pytest.skip("limits need accounting, and that needs root")
    lab.fill(SPARE)
    quality = (f"--qos={URGENT}",)  # two limits, for all that Slurm says: one of each stands for the others
    limited = [lab.submit("vision", *PART, user="games") for _ in range(3)]
    limited += [lab.submit("vision", *PART, *quality, user="games") for _ in range(3)]
    free = [(lab.submit(account, *PART), account) for account in ("vision", "speech", "robots") * 4]
    of_games = ("sacctmgr", "--immediate", "modify", "user", "games", "where", "account=vision", "set")
    lab.run(*of_games, "GrpJobs=0")
    try:
        policy = account_policy(WEIGHTS | {SPARE: 1}, window=len(free))
        async with SlurmFleet(tmp_path, lab, policy=policy).running() as bus:
            wanted = [limited[0], limited[3], *filled(free, Counter(), WEIGHTS)]
            await eventually(partial(_is_order, bus, lab, wanted), 90, what="one of each has a position")
            found = await _explained(bus, limited[-1])
            reason = f"(AssocGrpJobsLimit), and job {limited[3]} comes first"
            assert found.phase == Phase.HELD.value
            assert any(reason in said for said in found.reasons), found.reasons
            lab.run(*of_games, "GrpJobs=-1")
            whole = filled([*((job, "vision") for job in limited), *free], Counter(), WEIGHTS)

            async def ranked() -> bool:
                return await wanted_order(bus) == whole

            await eventually(ranked, 90, what="all of them have one")
    finally:
        lab.run(*of_games, "GrpJobs=-1")


async def test_jobs_for_a_node_that_is_drained_keep_nobody_from_a_level(
    slurm_lab: SlurmLab, tmp_path: Path
) -> None:
    """Checks that jobs which Slurm cannot place, of a tenant that holds nothing, take no position of those that it can."""
    lab, window = slurm_lab, 6
    lab.fill(SPARE)
    node = lab.run("sinfo", "--noheader", "--Node", "--format=%N").split()[0]
    lab.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    try:
        lost = [
            lab.submit("speech", "--nodes=1", "--ntasks=1", f"--nodelist={node}") for _ in range(2 * window)
        ]
        free = [(lab.submit(account, *PART), account) for account in ("vision", "robots") * window]
        policy = account_policy(WEIGHTS | {SPARE: 1}, window=window)
        async with SlurmFleet(tmp_path, lab, policy=policy).running():

            async def levelled() -> bool:
                stands = slurm_order(lab)[: 2 * window]
                return [job for job in stands if job not in lost] == filled(free, Counter(), WEIGHTS)[:window]

            await eventually(levelled, 90, what="those that can start have their levels")
            assert set(slurm_order(lab)[:window]) < set(lost)
    finally:
        lab.run("scontrol", "update", f"nodename={node}", "state=resume")


async def test_an_array_that_lets_few_tasks_run_at_once_goes_on_beside_others(
    slurm_lab: SlurmLab, tmp_path: Path
) -> None:
    """Checks that the next task starts whenever one has ended: slurmctld comes to none that has no level, once it said so."""
    lab, at_once = slurm_lab, 2
    blockers = lab.fill(SPARE)
    array = lab.submit("vision", *PART, f"--array=1-20%{at_once}")
    for _ in range(3 * SLOTS):
        lab.submit("speech", *PART)

    def of_array() -> list[str]:
        return [job for job in running(lab) if job.startswith(f"{array}_")]

    async with SlurmFleet(tmp_path, lab, policy=account_policy(WEIGHTS | {SPARE: 1})).running() as bus:
        await order_stands(bus, lab, POSITIONS)
        lab.run("scancel", *blockers)
        for _ in range(5):
            await eventually(lambda: len(of_array()) == at_once, 30, what="as many of its tasks run as may")
            lab.run("scancel", *of_array())


async def _urgent_goes_first(bus: Bus, lab: SlurmLab) -> None:
    words = (f"--qos={URGENT}",) if SlurmOptions().accounting else ()
    urgent = lab.submit("robots", *PART, *words)
    if not words:
        return

    async def first() -> bool:
        return (await order_stands(bus, lab, WINDOW))[0] == urgent

    await eventually(first, 60, what="the urgent job is first")


async def _an_array_stands_with_its_first_tasks(bus: Bus, lab: SlurmLab) -> None:
    array = lab.submit("speech", *PART, f"--array=1-{TASKS}")

    async def placed() -> list[str]:
        order = await order_stands(bus, lab, WINDOW)
        tasks = [job for job in order if job.startswith(f"{array}_")]
        return tasks if len(tasks) >= POSITIONS else []

    tasks = await eventually(placed, 60, what="the first tasks of the array have a position")
    assert tasks == [f"{array}_{task}" for task in range(1, POSITIONS + 1)]
    rest = [line.split() for line in lab.jobs("%i %Q", "--states=PENDING")]
    lowest = min(int(priority) for job, priority in rest if job in tasks)
    assert all(
        int(priority) < lowest for job, priority in rest if job.startswith(f"{array}_") and job not in tasks
    )


async def test_a_requeued_job_keeps_its_age(slurm_lab: SlurmLab, tmp_path: Path) -> None:
    lab = slurm_lab
    old = lab.submit("vision", *WHOLE)
    blockers = [lab.submit(SPARE, *WHOLE) for _ in range(NODES - 1)]
    await eventually(lambda: len(running(lab)) == NODES, 30, what="the nodes are full")
    younger = [lab.submit("vision", *WHOLE) for _ in range(2)]
    policy = account_policy(WEIGHTS | {SPARE: 1})
    async with SlurmFleet(tmp_path, lab, policy=policy).running() as bus:
        assert await order_stands(bus, lab, 2, waiting=2) == younger
        # Its node goes to the next in line, and it comes back with a submit time of its own that is now.
        lab.run("scontrol", "requeue", old)

        async def is_back() -> bool:
            return await order_stands(bus, lab, 2, waiting=2) == [old, younger[1]]

        await eventually(is_back, 60, what="it waits in its old place")
        assert {younger[0], *blockers} == set(running(lab))
