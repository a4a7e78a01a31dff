"""A whole Fairlead on three nats-servers: leaders die, quorum is lost and comes back, all die at once.

Nothing is lost or run twice, no service ends, and each is ready and answers within 15 seconds of a quorum.
FAIRLEAD_CHAOS_SECONDS sets how long it goes on (`make chaos`), FAIRLEAD_CHAOS_SEED what dies when.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_contracts import topology
from fairlead_contracts.policyfile.document import Grant
from fairlead_testkit.chaos.audit import check_each_ran_once, history, simulated_jobs
from fairlead_testkit.chaos.chaos_load import Load, storm
from fairlead_testkit.fleets.fleet import CLUSTER, Fleet, one_pool, whole_queue
from fairlead_testkit.nats_servers.nats_server import NatsServer
from fairlead_testkit.timing.awaiting import eventually

SECONDS, SEED = storm(0)
READY_SECONDS = 15.0 if SECONDS else 45.0
"""Seconds after a quorum until all is ready. The claim is the first; the short form also runs where others keep every
core busy."""

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(int(2 * SECONDS) + 480)]

TENANTS = ["team-a", "team-b"]
POLICY = one_pool(TENANTS, grants=[Grant(tenant=TENANTS[0], classes=["urgent"])])


class Outages:
    """Takes servers away and brings them back; each time the services must be ready soon after there is a quorum."""

    def __init__(self, fleet: Fleet, bus: Bus, rng: random.Random) -> None:
        self._servers = fleet.servers
        self._fleet = fleet
        self._bus = bus
        self._rng = rng

    async def leader_of(self, stream: str) -> None:
        """The leader of a stream dies; two servers go on."""
        await self._without("the leader of " + stream, [await self._servers.stream_leader(self._bus, stream)])

    async def meta_leader(self) -> None:
        """The leader of JetStream itself dies; two servers go on."""
        leader = self._servers.meta_leader()
        assert leader is not None
        await self._without("the leader of JetStream", [leader])

    async def quorum(self) -> None:
        """Breaks the quorum: two of three die, and nobody leads anything until one of them is back."""
        await self._without("two servers", self._rng.sample(self._servers.servers, 2))

    async def everything(self) -> None:
        """Kills all at once, which find in their stores what they acknowledged."""
        await self._without("all servers", self._servers.servers)

    async def _without(self, what: str, victims: Sequence[NatsServer]) -> None:
        for victim in victims:
            victim.kill()
        if len(victims) == 1:
            await self._recovered(f"{what} killed")
        await asyncio.to_thread(self._servers.start)
        await self._recovered(f"{what} back")

    async def _recovered(self, what: str) -> None:
        began = time.monotonic()
        await self._servers.quorum()
        quorum = time.monotonic()
        await asyncio.gather(*(service.ready(READY_SECONDS) for service in self._fleet.services.values()))
        await eventually(
            self._is_decided, READY_SECONDS - (time.monotonic() - quorum), what=f"{what}: the order is whole"
        )
        done = time.monotonic()
        print(f"{what}: quorum after {quorum - began:.1f} s, ready after {done - quorum:.1f} s more")  # noqa: T201 # figures

    async def _is_decided(self) -> bool:
        return not (await whole_queue(self._bus, "gpu")).silent_shards


async def test_nothing_is_lost_or_run_twice_while_nats_servers_die(tmp_path: Path) -> None:
    print(f"seed {SEED}")  # noqa: T201 # repeats the plan of a failure
    rng = random.Random(SEED)
    fleet = Fleet(tmp_path, policy=POLICY, gpus=4, nodes=3, scorers=2, admitters=2, servers=3)
    async with fleet.running() as bus:
        before = {name: service.pid for name, service in fleet.services.items()}
        load = Load(bus, TENANTS, rng, per_second=8)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(load.run(stop))
            await break_servers(Outages(fleet, bus, rng), rng)
            stop.set()
        assert before == {name: service.pid for name, service in fleet.services.items() if service.running}
        async with asyncio.timeout(120):
            events = await history(bus, CLUSTER, load.acked)
    print(f"{len(load.acked)} jobs, {load.repeats} duplicates")  # noqa: T201 # figures
    check_each_ran_once(simulated_jobs(fleet.store), events, load.acked)


async def break_servers(outages: Outages, rng: random.Random) -> None:
    """Breaks servers in each way once, then in any of them for as long as there is time."""
    until = time.monotonic() + SECONDS
    await outages.leader_of(topology.SUBMIT)
    await outages.quorum()
    await outages.everything()
    while time.monotonic() < until:
        kinds = [
            *(
                lambda stream=stream: outages.leader_of(stream)
                for stream in ("state", "decision", "KV_members")
            ),
            outages.meta_leader,
            outages.quorum,
            outages.everything,
        ]
        await rng.choice(kinds)()
