"""Chaos over a site whose Slurm jobs run as pods: what stands between the two is killed, and jobs are taken back.

Everything random comes from one seed, so that the plan can be repeated; what the machine makes of it cannot.
"""

import asyncio
import contextlib
import os
import random
import signal

from fairlead_testkit.chaos.chaos_load import Chaos, Deed, stopped_within
from fairlead_testkit.fleets.pod_fleet import PodFleet, PodFleetSite
from fairlead_testkit.labs.processes import LabProcess
from fairlead_testkit.processes.process import ServiceProcess
from fairlead_testkit.slurmlab import ACCOUNTS, SlurmCommandError

ENDS_WITH = "ends-with-"
"""Beginning of a job's name, which ends with the exit code of its program."""
_TOGETHER = 4
"""Jobs that are submitted at once, at most."""
_LONGEST_AWAY = 3.0
"""Seconds from a kill to the next start: slurmctld calls no slurmd lost that soon."""


class PodLoad:
    """Submits jobs in bursts, each of which asks for more than there is room for."""

    def __init__(self, site: PodFleetSite, rng: random.Random, *, per_second: float) -> None:
        self._site = site
        self._rng = rng
        self._per_second = per_second
        self.jobs: set[str] = set()
        """Numbers of jobs that slurmctld answered for. It forgets its last seconds where it is killed, and gives
        their numbers again."""

    async def run(self, stop: asyncio.Event) -> None:
        """Submit until stopped."""
        async with asyncio.TaskGroup() as group:
            while not stop.is_set():
                for _ in range(self._rng.randint(1, _TOGETHER)):
                    group.create_task(self._one())
                await stopped_within(stop, self._rng.expovariate(2 * self._per_second / (_TOGETHER + 1)))

    async def _one(self) -> None:
        gpus, code = self._rng.choice((1, 2, 2, 4)), self._rng.choice((0, 0, 3))
        seconds, account = self._rng.uniform(0.2, 2.5), self._rng.choice(ACCOUNTS)

        def submit() -> str:
            name = f"--job-name={ENDS_WITH}{code}"
            return self._site.submit(name, gpus=gpus, seconds=seconds, code=code, account=account)

        with contextlib.suppress(
            SlurmCommandError
        ):  # slurmctld is away: whether it took the job, the queue will tell
            self.jobs.add(await asyncio.to_thread(submit))


class PodBreaker(Chaos):
    """Kills one thing after another, several at a time, and starts each again after a while; cancels and requeues jobs."""

    def __init__(self, fleet: PodFleet, site: PodFleetSite, load: PodLoad, rng: random.Random) -> None:
        super().__init__(rng, (0.1, 1.0))
        self._fleet = fleet
        self._site = site
        self._load = load
        self.taken_back: set[str] = set()
        """Jobs that were cancelled, or whose processes were killed: their exit codes are their own affair."""
        self.requeued: set[str] = set()
        """Jobs that somebody put back into the queue: their programs begin again."""

    def _deeds(self) -> list[Deed]:
        [bridge] = self._fleet.named("slurm_bridge")
        slurmctld, slurmd = self._site.lab.process("slurmctld"), self._site.lab.process("slurmd-n1")
        return [
            *[lambda: self._kill(bridge)] * 3,
            lambda: self._away(bridge.name, f"SIGSTOP {bridge.name}", (0.5, 5), bridge.pause, bridge.resume),
            *[lambda: self._kill(slurmctld)] * 2,
            lambda: self._restart(slurmctld),
            lambda: self._kill(slurmd),
            *[self._kill_hook] * 4,
            *[lambda: self._take_back("scancel")] * 2,
            *[lambda: self._take_back("scontrol", "requeue")] * 2,
        ]

    async def _kill(self, victim: ServiceProcess | LabProcess) -> None:
        deed = f"kill -9 {victim.name}"
        await self._away(victim.name, deed, (0, _LONGEST_AWAY), victim.kill, victim.start)

    async def _restart(self, victim: LabProcess) -> None:
        deed = f"restart of {victim.name}"
        await self._away(victim.name, deed, (0, _LONGEST_AWAY), victim.end, victim.start)

    async def _kill_hook(self) -> None:
        """Kills a hook, or the process that stands on a node for a job."""
        running = self._site.hook_processes()
        if not running:
            return
        pid = self._rng.choice(sorted(running))
        kind, job = running[pid]
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            self.done[f"kill -9 {kind}"] += 1
        if kind == "body":
            self.taken_back.add(job)

    async def _take_back(self, *command: str) -> None:
        if not self._load.jobs:
            return
        job = self._rng.choice(sorted(self._load.jobs)[-20:])
        (self.taken_back if command == ("scancel",) else self.requeued).add(job)
        with contextlib.suppress(SlurmCommandError):  # it has ended, or slurmctld is away
            await asyncio.to_thread(self._site.lab.run, *command, job)
            self.done[" ".join(command)] += 1
