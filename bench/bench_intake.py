"""Taking submissions in: how many a second one core can, and what a neighbour of a flood notices."""

import asyncio
import tempfile
import time
from pathlib import Path

from bench_lines import cpu_seconds, say

from fairlead_bus import Bus, Follower
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.submissions import ANSWER, Accepted, Refused
from fairlead_contracts.policyfile.document import PolicyDocument, Pool, Tenant
from fairlead_testkit.awaiting import eventually
from fairlead_testkit.fleet import CLUSTER, Fleet, equal_jobs, submit_all

JOBS = 10_000
ROUNDS = 3
STEADY_A_SECOND = 500
STEADY_SECONDS = 10.0
FLOOD = 6_000
SAMPLES = 200
TENANTS = [f"team-{number}" for number in range(10)]
FLOODER, NEIGHBOUR = "flooder", "neighbour"
POLICY = PolicyDocument(
    pools=[Pool(name="gpu", members=[f"{CLUSTER}/gpu"])],
    tenants=[Tenant(name=name) for name in [*TENANTS, FLOODER, NEIGHBOUR]],
)
CONFIG = {
    "nodes": [{"name": "node", "count": 8, "allocatable": {"nvidia.com/gpu": 8}}],
    "queues": [{"name": "main"}],
    "accounts": dict.fromkeys([*TENANTS, FLOODER, NEIGHBOUR], "main"),
}


class Heard:
    """When each submission was first answered."""

    def __init__(self, bus: Bus) -> None:
        self._follower = Follower(bus, stream=topology.ANSWER, filter=subjects.answer_filter())
        self.accepted: dict[str, float] = {}
        self.refused: dict[str, float] = {}
        self.changed = asyncio.Event()

    async def run(self) -> None:
        """Listen until cancelled."""
        async for delivery in self._follower:
            answer = ANSWER.decode(delivery.payload)
            found = {Accepted: self.accepted, Refused: self.refused}.get(type(answer))
            if found is not None:
                found.setdefault(answer.id, delivery.at / 1e6)
                self.changed.set()

    async def all_of(self, ids: list[str]) -> None:
        """Wait until each of these is answered."""
        await eventually(
            lambda: all(one in self.accepted or one in self.refused for one in ids),
            240,
            on=self.changed,
            what="all are answered",
        )


async def intake() -> None:
    """One scorer, one admitter, the simulated cluster, one replica of each stream."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder), policy=POLICY, cluster_config=CONFIG, scorers=1)
        async with fleet.running() as bus:
            heard = Heard(bus)
            listening = asyncio.create_task(heard.run())
            await _rates(bus, fleet, heard)
            listening.cancel()


async def _rates(bus: Bus, fleet: Fleet, heard: Heard) -> None:
    """All at once, in rounds: the rate by the admitter's own CPU, which a busy machine does not change much."""
    [admitter], [sim] = fleet.named("admitter"), fleet.named("sim")
    rates, walls, sims = [], [], []
    for round_ in range(ROUNDS):
        before, sim_before, start = cpu_seconds(admitter.pid), cpu_seconds(sim.pid), time.perf_counter()
        ids: list[str] = []
        for tenant in TENANTS:
            jobs = equal_jobs(f"{tenant}-{round_}", JOBS // len(TENANTS), run_seconds=3600)
            ids += await submit_all(bus, tenant, jobs)
        await heard.all_of(ids)
        rates.append(JOBS / (cpu_seconds(admitter.pid) - before))
        sims.append(JOBS / (cpu_seconds(sim.pid) - sim_before))
        walls.append(JOBS / (time.perf_counter() - start))
    say("intake", jobs=JOBS, per_core_second=sorted(rates)[ROUNDS // 2], all=rates, wall=walls, sim=sims)
