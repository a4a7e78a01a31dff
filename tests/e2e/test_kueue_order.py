"""The order that is promised is the order that happens: of each admission, which job of the order it was.

Jobs end whenever their time has come, others come meanwhile, and nobody waits for an order to stand. The judge replays quota
and order from a watch of its own (`PlacementReplay`). The long forms, on a quiet machine, are in `bench/`.
"""

import time
from functools import partial
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Bus
from fairlead_contracts.messages.questions import PoolQueue
from fairlead_contracts.policyfile.document import Grant, PolicyDocument
from fairlead_testkit.fleets.fleet import whole_queue
from fairlead_testkit.fleets.kube_fleet import (
    POOL,
    KubeFleet,
    all_placed,
    fair_policy,
    heads_stand,
    level_patches,
)
from fairlead_testkit.kubelab import GPU, KubeLab, KubeObject, things
from fairlead_testkit.kueue.admissions import AdmissionLog, full_queue
from fairlead_testkit.kueue.kueue_rounds import QuotaLayout, Rounds
from fairlead_testkit.kueue.namespace_fixture import QUEUE, NamespaceFixture
from fairlead_testkit.kueue.placements import PlacedAdmission, PlacementTally, QuotaNode
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.kube, pytest.mark.timeout(480)]

WEIGHTS = {"team-a": 1.0, "team-b": 2.0, "team-c": 3.0}
EACH = 8
PLAYED = 15
"""Jobs that end one after another, and admissions at the least."""
RIGHT, HELPED = 0.8, 0.5
"""Least part of these admissions on a loaded machine that is right: where the order is exact, and where Kueue's own
rules come first once in a while. Fifteen do not tell 98 % from 90; without wake-ups it was a tenth."""
SLOW = 0.5
"""Seconds after which a release or an arrival has been ordered by, on a loaded machine."""

ONE_QUEUE = QuotaLayout(nodes={"q": QuotaNode(nominal=4)}, tenants=dict.fromkeys(WEIGHTS, "q"))
BLOCKING = QuotaLayout(nodes=ONE_QUEUE.nodes, tenants=ONE_QUEUE.tenants, strategy="StrictFIFO")
QUOTA_ABOVE = QuotaLayout(
    nodes={"root": QuotaNode(nominal=6)} | {name: QuotaNode(parent="root") for name in ("x", "y", "z")},
    tenants={"team-a": "x", "team-b": "y", "team-c": "z"},
)
QUOTA_OF_THEIR_OWN = QuotaLayout(
    nodes={"root": QuotaNode()}
    | {name: QuotaNode(nominal=gpus, parent="root") for name, gpus in (("x", 3), ("y", 2), ("z", 1))},
    tenants=QUOTA_ABOVE.tenants,
)


def told(placements: list[PlacedAdmission]) -> str:
    return "\n".join(str(placement) for placement in placements if placement.missed)


@pytest.mark.parametrize(
    ("layout", "units", "least"),
    [
        pytest.param(
            ONE_QUEUE,
            1,
            RIGHT,
            id="one queue",
            marks=pytest.mark.deep,  # as beside jobs that no flavor takes, below
        ),
        pytest.param(BLOCKING, 1, RIGHT, id="one queue that blocks"),
        pytest.param(
            QUOTA_ABOVE,
            2,
            RIGHT,
            id="three queues with all quota above, two units at once",
            marks=pytest.mark.deep,  # two units at once meet Kueue's batch more often: it wants a quiet machine
        ),
        pytest.param(QUOTA_OF_THEIR_OWN, 1, HELPED, id="three queues with quota of their own"),
    ],
)
async def test_what_comes_free_goes_to_the_first_of_the_order_that_fits(
    kube_lab: KubeLab, tmp_path: Path, layout: QuotaLayout, units: int, least: float
) -> None:
    with NamespaceFixture(kube_lab, list(WEIGHTS)) as fixture, AdmissionLog(fixture) as log:
        policy = fair_policy(fixture, WEIGHTS, layout.make(fixture))
        rounds = Rounds(fixture, log, layout)
        rounds.backlog(EACH)
        async with KubeFleet(tmp_path, kube_lab, policy=policy).running() as bus:
            await all_placed(bus, fixture)
            await rounds.play(-(-PLAYED // units), units=units, rest=(0.6, 1.4))
            await rounds.settle()
        placements = rounds.placements(policy, reaction=SLOW)
        assert len(placements) >= PLAYED
        assert PlacementTally.of(placements).right >= least, told(placements)


async def test_an_urgent_job_that_is_parked_is_the_next(kube_lab: KubeLab, tmp_path: Path) -> None:
    """The parked job waits at the level that it needs: nothing of the order changes when room comes free for it."""
    with NamespaceFixture(kube_lab, list(WEIGHTS)) as fixture, AdmissionLog(fixture) as log:
        fixture.priority_class("urgent", 100_000)
        pool = ONE_QUEUE.make(fixture)
        grant = Grant(tenant=fixture.namespaces["team-a"], classes=["urgent"])
        policy = fair_policy(fixture, WEIGHTS, pool, grants=[grant])
        rounds = Rounds(fixture, log, ONE_QUEUE)
        rounds.backlog(EACH)
        async with KubeFleet(tmp_path, kube_lab, policy=policy).running() as bus:
            # While the first front gets its levels, what comes free goes to whoever is just being written to.
            await all_placed(bus, fixture)
            await rounds.play(1, rest=(1.0, 1.0), arrivals=False)
            await rounds.settle()
            urgent = []
            for _ in range(3):
                urgent.append(rounds.arrive("team-a", priority_class="urgent", priority=100_000))
                # Parked, and nobody else is being written to: Kueue tries each job that is, whatever its position.
                await heads_stand(bus, fixture)
                await rounds.play(1, rest=(1.0, 1.0), arrivals=False)
            await rounds.settle()
        placements = rounds.placements(policy, reaction=SLOW)
        assert [one.name for one in placements[1:]] == urgent, told(placements)


async def test_where_a_large_job_ends_those_are_woken_first_that_kueue_would_leave_out(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    """What Fairlead does not come to, Kueue's batch starts by age."""
    with full_queue(kube_lab, list(WEIGHTS), LARGE) as (fixture, log, pool):
        for number in range(LARGE):
            for tenant in WEIGHTS:
                fixture.workload(tenant, f"{tenant}-{number}")
        policy = fair_policy(fixture, WEIGHTS | {"keeper": 1.0}, pool, window=4)
        async with KubeFleet(tmp_path, kube_lab, policy=policy).running() as bus:
            await heads_stand(bus, fixture)
            by_age, mark = fixture.kueue_order()[:LARGE], kube_lab.audit_mark()
            fixture.finish("keeper", "keeper")
            log.wait(1 + LARGE)
        woken = [line.name for line in level_patches(fixture, mark)]
        assert set(woken[: LARGE // 4]) - set(by_age), woken


LARGE = 24
"""GPUs of one job, and jobs of one GPU that start when it ends."""


async def test_jobs_that_no_flavor_takes_stand_first_and_keep_nobody_waiting(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    """The tenant of these jobs never holds anything: what comes free goes to the first of the others, long before a batch."""
    tenants = [*WEIGHTS, "lost"]
    with NamespaceFixture(kube_lab, tenants) as fixture, AdmissionLog(fixture) as log:
        kube_lab.api.apply(things.flavor(fixture.flavor, {"disk": "fast"}))
        pool = ONE_QUEUE.make(fixture)
        kube_lab.api.apply(things.local_queue(QUEUE, fixture.namespaces["lost"], pool))
        policy = fair_policy(fixture, WEIGHTS | {"lost": 100.0}, pool)
        rounds = Rounds(fixture, log, ONE_QUEUE)
        rounds.backlog(EACH)
        for number in range(LOST):
            kube_lab.api.create(without_flavor(f"lost-{number}", fixture.namespaces["lost"]))
        async with KubeFleet(tmp_path, kube_lab, policy=policy).running() as bus:
            await all_placed(bus, fixture)
            await rounds.play(PLAYED, rest=(0.6, 1.4))
            await rounds.settle()
            found = await eventually(partial(lost_stand_first, bus), 60, what="they keep their places")
        placements = rounds.placements(policy, reaction=SLOW)
        tally = PlacementTally.of(placements)
        assert len(placements) >= PLAYED
        assert tally.right >= RIGHT, told(placements)
        assert tally.idle < SLOW, told(placements)
        [adherence] = [one.adherence for one in found.steering if one.adherence is not None]
        assert adherence.hindered == LOST
        assert adherence.missed <= adherence.admissions * (1 - RIGHT)


LOST = 12
"""Number of such jobs: more than are in hand at a time."""


async def lost_stand_first(bus: Bus) -> PoolQueue | None:
    """The order, once they stand first in it: until the last start is known, its tenant may hold nothing, either."""
    found = await whole_queue(bus, POOL)
    first = {one.position.id for one in found.positions[:LOST]}
    return found if first == {f"lost-{number}" for number in range(LOST)} else None


def without_flavor(name: str, namespace: str) -> KubeObject:
    """A Workload of a shape of its own, for nodes or a topology that no flavor has."""
    item = things.workload(name, namespace, QUEUE, {GPU: 1})
    [pods] = item["spec"]["podSets"]
    if name.endswith(("1", "3", "5", "7", "9")):
        pods["topologyRequest"] = {"required": name}
    else:
        pods["template"]["spec"]["nodeSelector"] = {"disk": name}
    return item


@pytest.mark.deep  # it counts writes to the last one: a woken job that is slow to start is written to once more
async def test_a_wake_up_is_one_write_a_start_and_far_quicker_than_the_batch(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    """First come, first served is right here: nothing else is written, and nothing at all if the policy says so."""
    with NamespaceFixture(kube_lab, ["team-a"]) as fixture, AdmissionLog(fixture) as log:
        layout = QuotaLayout(nodes={"q": QuotaNode(nominal=2)}, tenants={"team-a": "q"})
        policy = fair_policy(fixture, {"team-a": 1}, layout.make(fixture), wake="never")
        rounds = Rounds(fixture, log, layout)
        rounds.backlog(14)
        fleet = KubeFleet(tmp_path, kube_lab, policy=policy)
        async with fleet.running() as bus:
            await all_placed(bus, fixture)
            own, unwoken = await one_by_one(rounds, fixture, policy)
            assert unwoken == 0
            woken = msgspec.structs.replace(policy, wake="always")
            await fleet.apply(bus, woken)
            await rounds.play(1)
            await rounds.settle()
            quick, writes = await one_by_one(rounds, fixture, woken)
        assert writes == STARTS
        assert quick <= own / 4


STARTS = 5


async def one_by_one(rounds: Rounds, fixture: NamespaceFixture, policy: PolicyDocument) -> tuple[float, int]:
    """Releases, each after the pool is full again; median seconds to the next admission, and Fairlead's writes."""
    mark, begun = fixture.lab.audit_mark(), time.monotonic()
    for _ in range(STARTS):
        await rounds.play(1, rest=(0.2, 0.2), arrivals=False)
        await rounds.settle()
    idle = PlacementTally.of(one for one in rounds.placements(policy) if one.at >= begun).idle
    return idle, len(level_patches(fixture, mark))
