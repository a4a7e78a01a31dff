"""A real slurmctld with 10,000 pending jobs: what a reading costs, and what levels cost.

CPU seconds beside wall time: slurmctld, squeue and we share the machine with whatever else runs there.
"""

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import aiohttp
from bench_lines import cpu_seconds, quantile, say

from fairlead_slurm.controller import CommandController
from fairlead_slurm_bridge.statements.partition_pools import Naming
from fairlead_slurm_bridge.statements.stated_view import SlurmContext, StatedView
from fairlead_testkit.slurmlab import ACCOUNTS, SPARE, SlurmLab, SlurmOptions

ARRAYS, TASKS = 10, 1000
ROUNDS = 7
WHOLE = ("--gres=gpu:8", "--nodes=1")
TURNS = 2
CONNECTIONS = 8
STEP = 10_000
POLL_SECONDS = 2.0
"""Seconds between two readings, by default."""


async def slurm() -> None:
    """Read 10,000 pending jobs, pass over them when nothing changed, and write levels."""
    with SlurmLab(SlurmOptions(rest=True)) as lab:
        lab.fill(SPARE)
        for number in range(ARRAYS):
            lab.submit(ACCOUNTS[number % len(ACCOUNTS)], *WHOLE, f"--array=1-{TASKS}")
        controller = CommandController(lab.conf, seconds=200)
        await _read(lab, controller)
        await _write(lab, controller)
        await _read(lab, controller, "slurm read, each task split off")


async def _read(lab: SlurmLab, controller: CommandController, name: str = "slurm read") -> None:
    view = StatedView("lab", naming=Naming.of("nvidia.com/gpu"), qos_classes={}, array_window=8)
    view.take_context(
        SlurmContext(
            nodes=await controller.nodes(),
            partitions=await controller.partitions(),
            accounts=await controller.accounts(),
            settings=await controller.settings(),
        )
    )
    at, spent = time.perf_counter(), _ours()
    view.read((await controller.jobs()).jobs)
    first = time.perf_counter() - at, _ours() - spent
    walls, own, squeues, theirs, translating, changes = [], [], [], [], [], 0
    for _ in range(ROUNDS):
        began = time.perf_counter(), _own(), _programs(), cpu_seconds(lab.process("slurmctld").pid)
        reading = await controller.jobs()
        walls.append(time.perf_counter() - began[0])
        own.append(_own() - began[1])
        squeues.append(_programs() - began[2])
        theirs.append(cpu_seconds(lab.process("slurmctld").pid) - began[3])
        started = time.process_time()
        changes += len(view.read(reading.jobs))
        translating.append(time.process_time() - started)
    say(
        name,
        jobs=ARRAYS * TASKS,
        wall_ms=1000 * quantile(walls, 0.5),
        best_wall_ms=1000 * min(walls),
        first_with_view_wall_ms=1000 * first[0],
        first_with_view_cpu_ms=1000 * first[1],
        our_cpu_ms=1000 * quantile(own, 0.5),
        squeue_cpu_ms=1000 * quantile(squeues, 0.5),
        slurmctld_cpu_ms=1000 * sum(theirs) / ROUNDS,
        slurmctld_share_of_a_core=sum(theirs) / ROUNDS / POLL_SECONDS,
        aim_slurmctld_share=0.02,
        aim_wall_ms=150,
    )
    say(
        f"{name}: pass without a change",
        cpu_ms=1000 * quantile(translating, 0.5),
        stated=changes,
        aim_stated=0,
    )


async def _write(lab: SlurmLab, controller: CommandController) -> None:
    """Writes another level to all that wait; by ours, by one scontrol, and by slurmrestd, turn by turn."""
    ids = [job.id for job in (await controller.jobs()).jobs if job.state == "PENDING"]
    # Split off before it is measured: that happens once in a task's life.
    await controller.set_site_factors([(job, 1) for job in ids])
    ours, lists, rest = [], [], []
    numbers = [job.number for job in (await controller.jobs()).jobs if job.state == "PENDING"]
    for turn in range(1, TURNS + 1):
        each = [(job, STEP * (place + turn)) for place, job in enumerate(ids)]
        ours.append(await _timed(partial(controller.set_site_factors, each)))
        alike = [(job, turn) for job in ids]
        lists.append(await _timed(partial(controller.set_site_factors, alike)))
        rest.append(await _timed(partial(_by_rest, lab, numbers, turn)))
    fastest = min(quantile(lists, 0.5), quantile(rest, 0.5))
    say(
        "slurm re-ordered in full",
        jobs=len(ids),
        a_value_each_s=quantile(ours, 0.5),
        best_s=min(ours),
        worst_s=max(ours),
        one_value_in_lists_s=quantile(lists, 0.5),
        slurmrestd_nice_s=quantile(rest, 0.5),
        to_the_fastest=quantile(ours, 0.5) / fastest,
        aim_to_the_fastest=1.3,
    )


async def _by_rest(lab: SlurmLab, numbers: Sequence[int], turn: int) -> None:
    """The quickest way that was found to give each job a value: a nice each, over eight connections."""
    token = lab.run("scontrol", "token", "username=root", "lifespan=600").strip().partition("=")[2]
    headers = {"X-SLURM-USER-NAME": "root", "X-SLURM-USER-TOKEN": token}
    left = iter(enumerate(numbers))
    async with aiohttp.ClientSession(headers=headers) as session:

        async def work() -> None:
            for place, number in left:
                url = f"http://127.0.0.1:{lab.ports.slurmrestd}/slurm/v0.0.38/job/{number}"
                async with session.post(url, json={"nice": place + turn}) as answer:
                    answer.raise_for_status()

        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


def _ours() -> float:
    """CPU seconds of this process and of the programs that it ran."""
    return _own() + _programs()


def _own() -> float:
    return _spent(resource.RUSAGE_SELF)


def _programs() -> float:
    return _spent(resource.RUSAGE_CHILDREN)


def _spent(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime
