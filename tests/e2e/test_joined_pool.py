"""A single pool over a real Slurm partition and a real Kueue queue: what an account uses on one side counts on the other.

The judge sees what squeue and the API server say of jobs, and has no code of ours: by weighted DRF on one resource the next
job is that of the account with the least use over its weight, of both systems together.
"""

from collections import Counter
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_testkit.fleets.fleet import whole_queue
from fairlead_testkit.fleets.joined_fleet import POOL, JoinedFleet, joined_policy
from fairlead_testkit.fleets.kube_fleet import holds_still
from fairlead_testkit.fleets.slurm_fleet import filled, stands_first
from fairlead_testkit.kubelab import KubeLab, KubeObject
from fairlead_testkit.kueue.namespace_fixture import NamespaceFixture
from fairlead_testkit.slurmlab import ACCOUNTS, SPARE, SlurmLab
from fairlead_testkit.timing.awaiting import eventually, next_second

pytestmark = [pytest.mark.kube, pytest.mark.slurm, pytest.mark.timeout(480)]

WEIGHTS = {"vision": 3, "speech": 2, "robots": 1}
PART = ("--nodes=1", "--ntasks=1")
QUOTA = 4
"""GPUs of the Kueue queue; Slurm has 32."""
EACH = 6
SOME = 3
"""Jobs of each account that wait on each of two sides."""
STEPS = 3


class Both:
    """The words of both systems, and of nobody else."""

    def __init__(self, slurm: SlurmLab, fixture: NamespaceFixture) -> None:
        self.slurm = slurm
        self.fixture = fixture

    def flood_kueue(self) -> None:
        """Submits to Kueue: as many of each account, in turns."""
        for number in range(EACH):
            for account in reversed(ACCOUNTS):
                self.fixture.workload(account, f"{account}-{number}")

    def run_on_slurm(self, account: str, gpus: int) -> str:
        """Starts a job at once: there is room."""
        return self.slurm.submit(account, *PART, f"--gres=gpu:{gpus}")

    def used(self) -> Counter[str]:
        """GPUs by account, of what runs on either side."""
        use: Counter[str] = Counter()
        for account, gres in (line.split() for line in self.slurm.jobs("%a %b", "--states=RUNNING")):
            use[account] += int(gres.rpartition(":")[2])
        use.update(self.fixture.tenant_of(item) for item in self.fixture.admitted().values())
        return use

    def next_on_kueue(self) -> list[str]:
        """Workloads that wait on Kueue, in the order of the oracle."""
        waiting = sorted(self.fixture.waiting().values(), key=_came)
        return filled([(_name(item), self.fixture.tenant_of(item)) for item in waiting], self.used(), WEIGHTS)

    async def kueue_follows(self, bus: Bus) -> str:
        """Wait until the promised order, and Kueue's own, begin as the oracle has it; gives the first."""

        async def follows() -> bool:
            wanted = self.next_on_kueue()
            found = await whole_queue(bus, POOL)
            order = [one.position.id for one in found.positions]
            # Kueue is given the levels of those alone that can start soon.
            return not found.silent_shards and order == wanted and self.fixture.kueue_order()[0] == wanted[0]

        await eventually(
            partial(holds_still, self.fixture, follows),
            60,
            what="Kueue's order is the oracle's, with what Slurm runs in it",
        )
        return self.next_on_kueue()[0]

    async def flood_both(self) -> None:
        """Submits some of each account on either side, no two batches in one second: what came first is plain."""
        for account in reversed(ACCOUNTS):
            for side in (self._wait_on_kueue, self._wait_on_slurm):
                await next_second()
                side(account)

    def _wait_on_kueue(self, account: str) -> None:
        self.fixture.backlog(account, SOME)

    def _wait_on_slurm(self, account: str) -> None:
        for _ in range(SOME):
            self.slurm.submit(account, *PART, "--gres=gpu:1")

    def next_on_both(self) -> tuple[list[str], list[str]]:
        """Jobs that wait on Kueue and on Slurm, each in the order that the oracle gives all of them together."""
        waiting = [
            (
                int(datetime.fromisoformat(_came(item)[0]).timestamp()),
                _came(item)[1],
                _name(item),
                self.fixture.tenant_of(item),
            )
            for item in self.fixture.waiting().values()
        ]
        on_kueue = {name for _, _, name, _ in waiting}
        for number, account, since in (
            line.split() for line in self.slurm.jobs("%i %a %V", "--states=PENDING")
        ):
            waiting.append(
                (
                    int(datetime.fromisoformat(since).astimezone().timestamp()),
                    f"{int(number):010d}",
                    number,
                    account,
                )
            )
        order = filled([(name, account) for _, _, name, account in sorted(waiting)], self.used(), WEIGHTS)
        return [name for name in order if name in on_kueue], [name for name in order if name not in on_kueue]

    async def both_follow(self, bus: Bus) -> tuple[str, str]:
        """Wait until either side begins as the oracle has it; gives the first of each."""

        async def follow() -> bool:
            kueue, slurm = self.next_on_both()
            found = await whole_queue(bus, POOL)
            order = [one.position.id for one in found.positions]
            return (
                not found.silent_shards
                and [name for name in order if name in kueue] == kueue
                and [name for name in order if name in slurm] == slurm
                and self.fixture.kueue_order()[0] == kueue[0]
                and stands_first(self.slurm, slurm)
            )

        await eventually(
            partial(holds_still, self.fixture, follow), 60, what="the order of both sides is the oracle's"
        )
        kueue, slurm = self.next_on_both()
        return kueue[0], slurm[0]

    async def slurm_starts_next(self, bus: Bus, *, ends: str) -> None:
        """Ends a job; the oracle's first of those that wait on Slurm starts in its place."""
        _, wanted = await self.both_follow(bus)
        self.slurm.run("scancel", ends)
        await eventually(
            lambda: wanted in self.slurm.jobs("%i", "--states=RUNNING"), 30, what=f"{wanted} starts"
        )

    async def kueue_admits_next(self, bus: Bus, *, ends: str) -> None:
        """Ends a Workload; the oracle's first of those that wait on Kueue is admitted."""
        await self.fixture.batch_passed()
        wanted, _ = await self.both_follow(bus)
        self.fixture.finish(ends.partition("-")[0], ends)
        await eventually(lambda: wanted in self.fixture.admitted(), 30, what=f"{wanted} is admitted")

    async def admits_next(self, bus: Bus, ends: str) -> str:
        """Ends a Workload; returns the one that Kueue admitted in its place, which is the oracle's first."""
        await self.fixture.batch_passed()
        first = await self.kueue_follows(bus)
        before = set(self.fixture.admitted())
        self.fixture.finish(ends.partition("-")[0], ends)

        def came() -> set[str]:
            return set(self.fixture.admitted()) - before

        [came_in] = await eventually(came, 30, what="the room is taken")
        assert came_in == first
        return came_in


def _name(item: KubeObject) -> str:
    name: str = item["metadata"]["name"]
    return name


def _came(item: KubeObject) -> tuple[str, str]:
    """The time and uid of an object as the API server has them: whole seconds, and of one second no order but the uid's."""
    return item["metadata"]["creationTimestamp"], item["metadata"]["uid"]


async def test_what_an_account_uses_on_slurm_puts_it_back_on_kueue(
    slurm_lab: SlurmLab, kube_lab: KubeLab, tmp_path: Path
) -> None:
    with NamespaceFixture(kube_lab, [*WEIGHTS, SPARE]) as fixture:
        queue = fixture.queue("shared", QUOTA)
        both = Both(slurm_lab, fixture)
        fixture.backlog(SPARE, QUOTA)
        await eventually(lambda: len(fixture.admitted()) == QUOTA, 30, what="the queue is full")
        heavy = both.run_on_slurm("vision", 8)
        both.run_on_slurm("speech", 2)
        both.flood_kueue()
        await eventually(lambda: both.used()["vision"] == 8, 30, what="they run on Slurm")
        policy = joined_policy(fixture, WEIGHTS | {SPARE: 1}, queue)
        async with JoinedFleet(tmp_path, slurm_lab, kube_lab, policy=policy).running() as bus:
            # Of equal jobs vision would be the first by its weight: half of the pool is its part.
            admitted = [await both.admits_next(bus, f"{SPARE}-{number}") for number in range(QUOTA)]
            assert [name for name in admitted if name.startswith("vision")] == []
            # What it gives back on Slurm puts it in front on Kueue, where nothing of its changed.
            slurm_lab.run("scancel", heavy)
            await eventually(lambda: both.used()["vision"] == 0, 30, what="it ended on Slurm")
            # What speech has on Slurm keeps it behind vision, whatever ends: who is next stays plain while Kueue takes a step.
            ends = [name for name in admitted if name.startswith("speech")]
            then = [await both.admits_next(bus, name) for name in ends]
            assert [name.partition("-")[0] for name in then] == ["vision", "vision"]


async def test_what_waits_on_both_sides_starts_in_one_order(
    slurm_lab: SlurmLab, kube_lab: KubeLab, tmp_path: Path
) -> None:
    """Room appears now here, now there: each time the oracle, which sees both, names who takes it."""
    with NamespaceFixture(kube_lab, [*WEIGHTS, SPARE]) as fixture:
        queue = fixture.queue("shared", QUOTA)
        both = Both(slurm_lab, fixture)
        fixture.backlog(SPARE, QUOTA)
        for _ in range(3):
            both.run_on_slurm(SPARE, 8)
        ones = [both.run_on_slurm(SPARE, 1) for _ in range(8)]
        await eventually(lambda: both.used()[SPARE] == QUOTA + 32, 60, what="both sides are full")
        await both.flood_both()
        policy = joined_policy(fixture, WEIGHTS | {SPARE: 1}, queue)
        async with JoinedFleet(tmp_path, slurm_lab, kube_lab, policy=policy).running() as bus:
            for step in range(STEPS):
                await both.slurm_starts_next(bus, ends=ones[step])
                await both.kueue_admits_next(bus, ends=f"{SPARE}-{step}")
            assert both.used()[SPARE] == QUOTA + 32 - 2 * STEPS
            assert both.used().total() == QUOTA + 32, "and nobody else came in"
