"""Share of admissions with which a real Kueue follows the order, and the time for which what came free stands idle.

Jobs end at random times and nobody waits for an order to stand; others come meanwhile. Layouts of queues one after the other, on
a lab of their own each; Kueue alone, without Fairlead, in the same run.
"""

import asyncio
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bench_lines import say
from msgspec import to_builtins

from fairlead_bus import Bucket, Bus
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.members import LEADER_LEASE
from fairlead_testkit.fleets.fleet import whole_queue
from fairlead_testkit.fleets.kube_fleet import KUBE_CLUSTER, POOL, KubeFleet, all_placed, fair_policy
from fairlead_testkit.kubelab import WORKLOADS_ALONE, KubeLab, LabOptions
from fairlead_testkit.kubelab.toolsets import OLDER
from fairlead_testkit.kueue.admissions import AdmissionLog
from fairlead_testkit.kueue.kueue_rounds import QuotaLayout, Rounds
from fairlead_testkit.kueue.namespace_fixture import NamespaceFixture
from fairlead_testkit.kueue.placements import PlacementTally, QuotaNode
from fairlead_testkit.timing.awaiting import eventually

WEIGHTS = {"team-a": 1.0, "team-b": 2.0, "team-c": 3.0}
HASHING = "SchedulingEquivalenceHashing"
"""A gate of Kueue: on since 0.18."""
EACH = 10
RELEASES = 320
REST = (0.4, 1.6)
TAKEOVERS = "one queue, whoever leads is killed"
LEADS_SECONDS = 15.0
"""Seconds after which whoever leads is killed, in that layout."""
TAKEOVER_SECONDS = 1.3
"""Seconds after a takeover in which what is admitted was woken by another."""
ALONE = 20
"""Releases on which Kueue's own time is taken."""

_QUEUES = dict(zip(WEIGHTS, ("x", "y", "z"), strict=True))


def _over(quotas: tuple[int, int, int], above: int, **limits: int) -> QuotaLayout:
    """A layout of three queues below a Cohort."""
    queues = {
        queue: QuotaNode(nominal=gpus, parent="root", **limits)
        for queue, gpus in zip(_QUEUES.values(), quotas, strict=True)
    }
    return QuotaLayout(nodes={"root": QuotaNode(nominal=above), **queues}, tenants=_QUEUES)


ONE = QuotaLayout(nodes={"q": QuotaNode(nominal=4)}, tenants=dict.fromkeys(WEIGHTS, "q"))
SHARES = {"fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}}
USAGE = {"admissionFairSharing": {"usageHalfLifeTime": "1h", "usageSamplingInterval": "1m"}}
USAGE_FIRST = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}
NESTED = QuotaLayout(
    nodes={
        "root": QuotaNode(nominal=6),
        "left": QuotaNode(parent="root"),
        "x": QuotaNode(parent="left"),
        "y": QuotaNode(parent="left"),
        "z": QuotaNode(parent="root"),
    },
    tenants=_QUEUES,
)
LAYOUTS: dict[str, tuple[QuotaLayout, int, LabOptions]] = {
    "one queue": (ONE, 1, WORKLOADS_ALONE),
    "one queue, two at once": (ONE, 2, WORKLOADS_ALONE),
    "one queue, sizes 1 to 3": (
        QuotaLayout(nodes={"q": QuotaNode(nominal=8)}, tenants=ONE.tenants, sizes=(1, 2, 3)),
        1,
        WORKLOADS_ALONE,
    ),
    TAKEOVERS: (ONE, 1, WORKLOADS_ALONE),
    "one queue that blocks": (replace(ONE, strategy="StrictFIFO"), 1, WORKLOADS_ALONE),
    "all quota above": (_over((0, 0, 0), 6), 2, WORKLOADS_ALONE),
    "quota of their own": (_over((5, 3, 2), 0), 2, WORKLOADS_ALONE),
    "limits": (_over((5, 3, 2), 0, borrowing=2, lending=2), 2, WORKLOADS_ALONE),
    "nested cohorts": (NESTED, 2, WORKLOADS_ALONE),
    "use of LocalQueues first": (
        replace(ONE, spec=USAGE_FIRST),
        1,
        replace(WORKLOADS_ALONE, kueue_config=USAGE),
    ),
    **{f"one queue, Kueue {version}": (ONE, 1, replace(WORKLOADS_ALONE, kueue=version)) for version in OLDER},
    **{
        f"one queue, Kueue {version}, equal jobs tried {how}": (
            ONE,
            1,
            replace(WORKLOADS_ALONE, kueue=version, gates={**WORKLOADS_ALONE.gates, HASHING: together}),
        )
        for version, how, together in ((None, "one by one", False), ("0.17.1", "together", True))
    },
    "Kueue's shares": (_over((5, 3, 2), 0), 2, replace(WORKLOADS_ALONE, kueue_config=SHARES)),
}


async def kueue_order() -> None:
    """Measures each layout with Fairlead, and the time that Kueue takes alone."""
    own = await _alone()
    for name, (layout, units, options) in LAYOUTS.items():
        await _steered(name, layout, units, options, own)


async def _change_hands(bus: Bus, fleet: KubeFleet, takeovers: list[tuple[float, float]]) -> None:
    """Kill whoever leads, again and again, and note from when to when nobody did or the new one had just begun."""
    admitters = {service.name: service for service in fleet.named("admitter")}
    leases = Bucket(bus, topology.MEMBERS)
    key = subjects.leader_key("admitter", KUBE_CLUSTER)

    async def leader() -> str:
        found = await leases.get(key)
        return "" if found is None else LEADER_LEASE.decode(found.value).replica

    while True:
        await asyncio.sleep(LEADS_SECONDS)
        old = await eventually(leader, 60, what="somebody leads")
        begun = time.monotonic()
        admitters[old].kill()
        takeovers.append((begun, float("inf")))

        async def another(old: str = old) -> bool:
            return await leader() not in ("", old)

        await eventually(another, 60, what="another leads")
        takeovers[-1] = (begun, time.monotonic() + TAKEOVER_SECONDS)
        await admitters[old].start().ready()


async def _alone() -> float:
    with (
        KubeLab(WORKLOADS_ALONE) as lab,
        NamespaceFixture(lab, list(WEIGHTS)) as fixture,
        AdmissionLog(fixture) as log,
    ):
        pool = ONE.make(fixture)
        rounds = Rounds(fixture, log, ONE)
        rounds.backlog(EACH)
        await asyncio.sleep(2)
        await rounds.play(ALONE, rest=(1.5, 2.0))
        return PlacementTally.of(rounds.placements(fair_policy(fixture, WEIGHTS, pool))).idle


async def _steered(name: str, layout: QuotaLayout, units: int, options: LabOptions, own: float) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        KubeLab(options) as lab,
        NamespaceFixture(lab, list(WEIGHTS)) as fixture,
        AdmissionLog(fixture) as log,
    ):
        policy = fair_policy(fixture, WEIGHTS, layout.make(fixture))
        rounds = Rounds(fixture, log, layout)
        rounds.backlog(EACH)
        takeovers: list[tuple[float, float]] = []
        fleet = KubeFleet(Path(folder), lab, policy=policy, admitters=2 if name == TAKEOVERS else 1)
        async with fleet.running() as bus:
            await all_placed(bus, fixture)
            changing = (
                asyncio.create_task(_change_hands(bus, fleet, takeovers)) if name == TAKEOVERS else None
            )
            begun = time.monotonic()
            await rounds.play(RELEASES // units, units=units, rest=REST)
            await rounds.settle()
            if changing is not None:
                changing.cancel()
                await asyncio.wait([changing])
            said = [one.adherence for one in (await whole_queue(bus, POOL)).steering]
        tally = PlacementTally.of(rounds.placements(policy), takeovers)
        say(
            "order kept",
            layout=name,
            admissions=tally.positions.total(),
            seconds=time.monotonic() - begun,
            first=tally.right,
            places=dict(sorted(tally.positions.items())),
            by_the_very_instant=dict(sorted(tally.strict.items())),
            newcomers=dict(sorted(tally.newcomers.items())),
            takeovers=dict(sorted(tally.takeovers.items())),
            said=[None if one is None else to_builtins(one) for one in said],
            idle=tally.idle,
            idle_ratio=tally.idle / own,
            aim="0.98 first, none beyond 1; a quarter of Kueue's own time",
        )
