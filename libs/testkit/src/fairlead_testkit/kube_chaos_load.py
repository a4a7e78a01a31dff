"""Chaos over a fleet beside a real Kueue: its own parts are killed, and Kueue and the API server with them."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from fairlead_bus import Bus
from fairlead_testkit.chaos_load import Breaker
from fairlead_testkit.kube_fleet import KubeFleet
from fairlead_testkit.kubelab import KubeLab
from fairlead_testkit.proxy import FlakyProxy


class KubeBreaker(Breaker):
    """A breaker of the real cluster instead of the simulated one."""

    def __init__(self, fleet: KubeFleet, bus: Bus, proxy: FlakyProxy, rng: random.Random) -> None:
        super().__init__(fleet, bus, proxy, rng)
        self._lab: KubeLab = fleet.lab

    def _deeds(self) -> list[Callable[[], Awaitable[None]]]:
        return [
            *[lambda: self._kill("scorer"), lambda: self._pause("scorer")] * 2,
            *[lambda: self._kill("admitter"), lambda: self._pause("admitter")] * 2,
            *[lambda: self._kill("watcher"), lambda: self._pause("watcher")] * 2,
            self._kill_server,
            self._stall,
            self._cut,
            self._repeat_old_decision,
            self._restart_kueue,
            self._restart_apiserver,
        ]

    async def _restart_kueue(self) -> None:
        """Restarts Kueue: its webhook is away meanwhile, and refuses every write of a Workload."""
        await self._restart("kueue", self._lab.restart_kueue)

    async def _restart_apiserver(self) -> None:
        """Every watch breaks."""
        await self._restart("kube-apiserver", self._lab.restart_apiserver)

    async def _restart(self, part: str, restart: Callable[[], None]) -> None:
        # One at a time: Kueue cannot start without its API server.
        if self._broken & {"kueue", "kube-apiserver"}:
            return
        self._broken.add(part)
        self.done[f"restart of {part}"] += 1
        await asyncio.to_thread(restart)
        self._broken.discard(part)
