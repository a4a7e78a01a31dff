"""Taking submissions in: how many a second one core can, and what a neighbour of a flood notices."""

import asyncio
import tempfile
import time
from pathlib import Path

import msgspec
from bench_lines import cpu_seconds, quantile, say
from flooding import flood

from fairlead_bus import Bus, Follower, Publisher
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.submissions import ANSWER, Accepted, Refused
from fairlead_testkit.fleets.fleet import CLUSTER, Fleet, equal_jobs, one_pool, submit_all
from fairlead_testkit.timing.awaiting import eventually
from fairlead_testkit.timing.in_hand import no_garbage_collected

JOBS = 10_000
ROUNDS = 3
STEADY_A_SECOND = 500
STEADY = 5_000
FLOOD = 6_000
FLOOD_A_SECOND = 2_000
NEIGHBOUR_A_SECOND = 50
SAMPLES = 150
TENANTS = [f"team-{number}" for number in range(10)]
FLOODER, NEIGHBOUR = "flooder", "neighbour"
POLICY = one_pool([*TENANTS, FLOODER, NEIGHBOUR])


class AnswerTimes:
    """Moments at which each submission was first answered."""

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
    """Measures one scorer, one admitter, the simulated cluster, one replica of each stream."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder), policy=POLICY, gpus=8, nodes=8, scorers=1)
        async with fleet.running() as bus:
            heard = AnswerTimes(bus)
            listening = asyncio.create_task(heard.run())
            with no_garbage_collected():
                await _rates(bus, fleet, heard)
                await _steady(bus, heard)
                await _flooded(fleet, bus, heard, "accepted", {"nvidia.com/gpu": 1})
                await _flooded(fleet, bus, heard, "refused", {})
            listening.cancel()


async def _rates(bus: Bus, fleet: Fleet, heard: AnswerTimes) -> None:
    """Submits all at once, in rounds: the rate by the admitter's own CPU, which a busy machine does not change much."""
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


async def _waits(
    bus: Bus, heard: AnswerTimes, tenant: str, name: str, *, count: int, a_second: float
) -> list[float]:
    """Seconds from each publish of one tenant to its acceptance, at a steady rate."""
    sent: dict[str, float] = {}
    publisher, begun = Publisher(bus), time.perf_counter()
    for number, job in enumerate(equal_jobs(f"{tenant}-{name}", count, run_seconds=3600)):
        await asyncio.sleep(max(0.0, begun + number / a_second - time.perf_counter()))
        sent[str(job["id"])] = time.time()
        await publisher.put(subjects.submit(CLUSTER, tenant), msgspec.json.encode(job))
    await publisher.flush()
    await heard.all_of(list(sent))
    return [heard.accepted[one] - at for one, at in sent.items()]


async def _steady(bus: Bus, heard: AnswerTimes) -> None:
    waits = await _waits(bus, heard, TENANTS[0], "steady", count=STEADY, a_second=STEADY_A_SECOND)
    say(
        "submit_to_accepted",
        a_second=STEADY_A_SECOND,
        p50_ms=quantile(waits, 0.5) * 1e3,
        p99_ms=quantile(waits, 0.99) * 1e3,
        aim_p99_ms=100,
    )


async def _flooded(fleet: Fleet, bus: Bus, heard: AnswerTimes, kind: str, demand: dict[str, int]) -> None:
    """A neighbour beside a flood of another tenant and without, by turns in one run."""
    quiet: list[float] = []
    beside: list[float] = []
    who = fleet.person(f"tenant.{FLOODER}")
    for round_ in range(ROUNDS):
        name = f"{kind}-{round_}"
        quiet += await _waits(
            bus, heard, NEIGHBOUR, f"quiet-{name}", count=SAMPLES, a_second=NEIGHBOUR_A_SECOND
        )
        flooding = asyncio.create_task(
            flood(
                who,
                subjects.submit(CLUSTER, FLOODER),
                f"flood-{name}",
                FLOOD,
                a_second=FLOOD_A_SECOND,
                demand=demand,
            ),
            name="flood",
        )
        await heard.all_of([f"flood-{name}-0000"])
        beside += await _waits(
            bus, heard, NEIGHBOUR, f"beside-{name}", count=SAMPLES, a_second=NEIGHBOUR_A_SECOND
        )
        await heard.all_of(await flooding)
    say(
        "neighbour_of_a_flood",
        kind=kind,
        flood=FLOOD,
        quiet_p50_ms=quantile(quiet, 0.5) * 1e3,
        quiet_p99_ms=quantile(quiet, 0.99) * 1e3,
        p50_ms=quantile(beside, 0.5) * 1e3,
        p99_ms=quantile(beside, 0.99) * 1e3,
        ratio_p50=quantile(beside, 0.5) / quantile(quiet, 0.5),
        ratio_p99=quantile(beside, 0.99) / quantile(quiet, 0.99),
        aim_ratio=2,
    )
