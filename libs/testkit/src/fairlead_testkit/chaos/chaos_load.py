"""A chaos load: work for a whole Fairlead while its processes are killed and paused, and its network delays and breaks.

Everything random comes from one seed, so that the plan can be repeated; what the machine makes of it cannot.
"""

import asyncio
import contextlib
import os
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from fairlead_bus import Bus, BusError, RetryableBusError
from fairlead_contracts import subjects, topology
from fairlead_testkit.fleets.fleet import CLUSTER
from fairlead_testkit.fleets.kube_fleet import KubeFleet
from fairlead_testkit.fleets.process_fleet import ProcessFleet
from fairlead_testkit.kubelab import KubeLab
from fairlead_testkit.nats_servers.proxy import FlakyProxy
from fairlead_testkit.processes.process import ServiceProcess
from fairlead_testkit.timing.awaiting import eventually

RETRY_SECONDS = 0.1
REPEATED = 0.2
"""Part of the jobs that are published again."""
HEADERLESS = 0.5
"""Part of the repeats that come without the id that would let the server drop them."""
_PAUSE_SECONDS = 0.5, 6.0
_LONG_PAUSES = 0.1
"""Part of the pauses that may be longer than these."""
UNHURRIED = {"nats_connect_timeout_seconds": 120}
"""Settings of services in a storm: whoever begins while the server stands still ends after ten seconds, and nobody would begin it
again here, as Kubernetes and systemd do."""
type Deed = Callable[[], Coroutine[Any, Any, None]]
"""A deed that breaks something, and mends it."""


class Load:
    """Publishes jobs of several tenants at a rate, each until its publish is acked, and some of them again."""

    def __init__(
        self,
        bus: Bus,
        tenants: Sequence[str],
        rng: random.Random,
        *,
        per_second: float,
        cluster: str = CLUSTER,
        more: Mapping[str, object] | None = None,
    ) -> None:
        """Publish nothing yet.

        Args:
            bus: a connection that nothing breaks.
            tenants: the first one also submits urgent jobs.
            more: fields that every body has beside a demand and a run time.
        """
        self._bus = bus
        self._tenants = tenants
        self._cluster = cluster
        self._more = dict(more or {})
        self._rng = rng
        self._per_second = per_second
        self._bodies: dict[str, tuple[str, bytes]] = {}
        self.acked: set[str] = set()
        """Ids whose publish was acked: none of these may be lost."""
        self.repeats = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Publish until stopped; what was begun is published to its end."""
        async with asyncio.TaskGroup() as group:
            while not stop.is_set():
                group.create_task(self._one())
                if self._rng.random() < REPEATED and self.acked:
                    group.create_task(self._again(delay=self._rng.random() * 8))
                await stopped_within(stop, self._rng.expovariate(self._per_second))

    async def _one(self) -> None:
        number = len(self._bodies)
        tenant = self._rng.choice(self._tenants)
        job = {
            "id": f"storm-{number:05d}",
            "demand": {"nvidia.com/gpu": self._rng.choice((1, 1, 1, 2))},
            "run_seconds": self._rng.uniform(0.3, 1.2),
            "class": "urgent" if tenant == self._tenants[0] and number % 10 == 0 else "normal",
            **self._more,
        }
        self._bodies[str(job["id"])] = (tenant, msgspec.json.encode(job))
        await self._publish(str(job["id"]))
        self.acked.add(str(job["id"]))

    async def _again(self, delay: float) -> None:
        """Publishes a duplicate, at once or late, with the header that names it or without."""
        await asyncio.sleep(delay)
        await self._publish(self._rng.choice(sorted(self.acked)), msg_id=self._rng.random() >= HEADERLESS)
        self.repeats += 1

    async def _publish(self, job: str, *, msg_id: bool = True) -> None:
        tenant, body = self._bodies[job]
        while True:
            try:
                await self._bus.publish(
                    subjects.submit(self._cluster, tenant), body, msg_id=job if msg_id else None
                )
            except RetryableBusError:
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return


class Chaos(ABC):
    """Breaks one thing after another, several at a time, with pauses of so many seconds between, and mends each after a while."""

    def __init__(self, rng: random.Random, pauses: tuple[float, float]) -> None:
        self._rng = rng
        self._pauses = pauses
        self._broken: set[str] = set()
        self.done: Counter[str] = Counter()

    async def run(self, stop: asyncio.Event) -> None:
        """Break until stopped; everything is mended when this returns."""
        deeds = self._deeds()
        async with asyncio.TaskGroup() as group:
            while not stop.is_set():
                group.create_task(self._rng.choice(deeds)())
                await stopped_within(stop, self._rng.uniform(*self._pauses))

    @abstractmethod
    def _deeds(self) -> list[Deed]:
        """Deeds to choose from, the frequent ones several times."""

    async def _away(
        self,
        name: str,
        deed: str,
        seconds: tuple[float, float],
        end: Callable[[], object],
        mend: Callable[[], object],
    ) -> None:
        """Takes something away for a while; nothing is done where it is broken already."""
        if name in self._broken:
            return
        self._broken.add(name)
        self.done[deed] += 1
        await asyncio.to_thread(end)
        await asyncio.sleep(self._rng.uniform(*seconds))
        await asyncio.to_thread(mend)
        self._broken.discard(name)


async def stopped_within(stop: asyncio.Event, seconds: float) -> None:
    """Returns once it is to stop, or after so long."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


class Breaker(Chaos):
    """Chaos over a fleet of our processes, their server and the network to it.

    Args:
        longest_pause: seconds for which a process stands still at most, one time in ten; else a few.
    """

    def __init__(
        self,
        fleet: ProcessFleet,
        bus: Bus,
        proxy: FlakyProxy,
        rng: random.Random,
        *,
        longest_pause: float = _PAUSE_SECONDS[1],
    ) -> None:
        super().__init__(rng, (0.3, 2.5))
        self._longest_pause = longest_pause
        self._fleet = fleet
        self._bus = bus
        self._proxy = proxy

    def _deeds(self) -> list[Deed]:
        return [
            *[lambda: self._kill("scorer"), lambda: self._pause("scorer")] * 3,
            *[lambda: self._kill("admitter"), lambda: self._pause("admitter")] * 2,
            *[lambda: self._kill("sim"), lambda: self._pause("sim")] * 2,
            self._kill_server,
            self._pause_server,
            self._stall,
            self._cut,
            *[self._repeat_old_decision] * 2,
        ]

    def _victim(self, service: str) -> ServiceProcess | None:
        sound = [process for process in self._fleet.named(service) if process.name not in self._broken]
        return self._rng.choice(sound) if sound else None

    async def _kill(self, service: str) -> None:
        if victim := self._victim(service):
            await self._away(victim.name, f"kill -9 {service}", (0, 4), victim.kill, victim.start)

    async def _pause(self, service: str) -> None:
        """Pauses a process, often past the lease of three seconds: it wakes up believing what is no longer so."""
        if victim := self._victim(service):
            seconds = self._pause_seconds()
            await self._away(victim.name, f"SIGSTOP {service}", seconds, victim.pause, victim.resume)

    def _pause_seconds(self) -> tuple[float, float]:
        return (
            _PAUSE_SECONDS if self._rng.random() >= _LONG_PAUSES else (_PAUSE_SECONDS[1], self._longest_pause)
        )

    async def _kill_server(self) -> None:
        server = self._fleet.server
        await self._away("nats-server", "kill -9 nats-server", (0, 2), server.kill, server.start)

    async def _pause_server(self) -> None:
        """Pauses the server: leases end while nobody can renew them, and all answers of before come at once."""
        server = self._fleet.server
        await self._away(
            "nats-server", "SIGSTOP nats-server", self._pause_seconds(), server.pause, server.resume
        )

    async def _stall(self) -> None:
        self._proxy.stall()
        self.done["stalled network"] += 1
        await asyncio.sleep(self._rng.uniform(0.2, 3))
        self._proxy.flow()

    async def _cut(self) -> None:
        self._proxy.cut()
        self.done["cut network"] += 1

    async def _repeat_old_decision(self) -> None:
        """Puts a decision of the moment back over what came after it: a delayed duplicate on the owner's subject."""
        subject = subjects.decision("gpu", self._rng.randrange(16))
        with contextlib.suppress(BusError):
            stored = await self._bus.last(topology.DECISION, subject)
            if stored is None:
                return
            await asyncio.sleep(self._rng.uniform(0.5, 4))
            await self._bus.publish(subject, stored.payload)
            self.done["old decision repeated"] += 1


class KubeBreaker(Breaker):
    """A breaker of the real cluster instead of the simulated one."""

    def __init__(
        self,
        fleet: KubeFleet,
        bus: Bus,
        proxy: FlakyProxy,
        rng: random.Random,
        *,
        longest_pause: float = _PAUSE_SECONDS[1],
    ) -> None:
        super().__init__(fleet, bus, proxy, rng, longest_pause=longest_pause)
        self._lab: KubeLab = fleet.lab

    def _deeds(self) -> list[Deed]:
        return [
            *[lambda: self._kill("scorer"), lambda: self._pause("scorer")] * 2,
            *[lambda: self._kill("admitter"), lambda: self._pause("admitter")] * 2,
            *[lambda: self._kill("watcher"), lambda: self._pause("watcher")] * 2,
            self._kill_server,
            self._pause_server,
            self._stall,
            self._cut,
            self._repeat_old_decision,
            # Kueue's webhook is away meanwhile, and refuses every write of a Workload.
            lambda: self._restart("kueue", self._lab.restart_kueue),
            # Every watch breaks.
            lambda: self._restart("kube-apiserver", self._lab.restart_apiserver),
        ]

    async def _restart(self, part: str, restart: Callable[[], None]) -> None:
        # One at a time: Kueue cannot start without its API server.
        if self._broken & {"kueue", "kube-apiserver"}:
            return
        self._broken.add(part)
        self.done[f"restart of {part}"] += 1
        await asyncio.to_thread(restart)
        self._broken.discard(part)


class UntilStopped(Protocol):
    """A load, or what breaks things meanwhile."""

    async def run(self, stop: asyncio.Event) -> None:
        """Go on until stopped."""


async def blow(load: UntilStopped, breaker: Chaos, seconds: float) -> None:
    """Load and breakage for a time; afterwards everything runs again."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(load.run(stop))
        group.create_task(breaker.run(stop))
        await asyncio.sleep(seconds)
        stop.set()


async def worked_off(left: Callable[[], Collection[str]], what: str, seconds: float = 120.0) -> None:
    """Wait until nothing is left of what a storm leaves, each time for one less.

    A long storm leaves a queue that a slow machine works off slowly: what counts is that it goes on.
    """
    names = await asyncio.to_thread(left)
    while names:
        before = len(names)

        async def fewer(before: int = before) -> bool:
            return len(await asyncio.to_thread(left)) < before

        await eventually(
            fewer, seconds, what=f"one more of these {what}: {sorted(names)[:10]} ({before} in all)"
        )
        names = await asyncio.to_thread(left)


def longest_pause(seconds: float) -> float:
    """The longest pause, in seconds, in a storm of so many: in a long one beyond the minute after which NATS lets go who is silent."""
    return max(_PAUSE_SECONDS[1], min(seconds / 4, 75.0))


def storm(seconds: float, *, repeated_in_ci: bool = False) -> tuple[float, int]:
    """The storm that the environment asks for: how many seconds it blows, and the seed of what is broken when.

    Args:
        seconds: length of the storm where FAIRLEAD_CHAOS_SECONDS says nothing.
        repeated_in_ci: whether the plan is the same in every run where CI=true is set and FAIRLEAD_CHAOS_SEED says nothing.
    """
    drawn = (
        1 if repeated_in_ci and os.environ.get("CI") == "true" else random.SystemRandom().randrange(1, 10**6)
    )
    wanted = float(os.environ.get("FAIRLEAD_CHAOS_SECONDS", str(seconds)))
    return wanted, int(os.environ.get("FAIRLEAD_CHAOS_SEED", "0")) or drawn
