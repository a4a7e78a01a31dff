"""Kills and restarts under load, beside a real Kueue: admission goes on, no Job is lost or made twice, the order is right.

FAIRLEAD_CHAOS_SECONDS sets how long it blows (`make chaos`: 300), FAIRLEAD_CHAOS_SEED what is broken when; where CI=true
is set, it is the same plan in every run.
"""

import asyncio
import random
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_contracts.base.instants import from_datetime
from fairlead_contracts.policyfile.document import Grant
from fairlead_testkit.chaos.chaos_load import (
    UNHURRIED,
    KubeBreaker,
    Load,
    blow,
    longest_pause,
    storm,
    worked_off,
)
from fairlead_testkit.fleets.fleet import whole_queue
from fairlead_testkit.fleets.kube_fleet import KUBE_CLUSTER, POOL, KubeFleet, fair_policy, levels
from fairlead_testkit.fleets.what_stood import explained
from fairlead_testkit.kubelab import GPU, RUN_SECONDS, KubeLab, KubeObject, things
from fairlead_testkit.kubelab.parts import KUEUE
from fairlead_testkit.kueue.namespace_fixture import QUEUE, NamespaceFixture
from fairlead_testkit.nats_servers.proxy import FlakyProxy
from fairlead_testkit.oracles.oracle import OracleJob, OracleRules, fill
from fairlead_testkit.timing.awaiting import eventually

SHORT = 20
"""Seconds in every run."""
SECONDS, SEED = storm(SHORT, repeated_in_ci=True)

pytestmark = [pytest.mark.kube, pytest.mark.chaos, pytest.mark.timeout(int(5 * SECONDS) + 600)]

GPUS = 12
WEIGHTS = {"team-a": 3.0, "team-b": 2.0, "team-c": 1.0}
AFTER = 8
PER_SECOND = 4.0 if SECONDS > SHORT else 2.0
"""Jobs submitted a second. Each costs Kubernetes a third of a second of CPU: in every run half as many are under way when
something breaks, and run twice as long."""
RUN_SECONDS_EACH = 4.0 / PER_SECOND


def jobs_of(lab: KubeLab, fixture: NamespaceFixture) -> list[KubeObject]:
    found: list[KubeObject] = []
    for namespace in fixture.namespaces.values():
        found += lab.api.items(f"/apis/batch/v1/namespaces/{namespace}/jobs")
    return found


def from_scratch(fixture: NamespaceFixture, fleet: KubeFleet) -> list[str]:
    """The order of what waits, by brute force in exact fractions from the API server's own objects."""
    held, waiting = fixture.admitted(), fixture.waiting()
    use: dict[str, Counter[str]] = {}
    for item in held.values():
        use.setdefault(item["metadata"]["namespace"], Counter()).update(demand(item))
    jobs = [
        OracleJob(
            uid=item["metadata"]["uid"],
            tenant=item["metadata"]["namespace"],
            job_class="normal",
            submitted=from_datetime(created(item)),
            demand=demand(item),
        )
        for item in waiting.values()
    ]
    names = {item["metadata"]["uid"]: name for name, item in waiting.items()}
    rules = OracleRules.of(fleet.policy, {GPU: GPUS * 1000})
    return [names[position.uid] for position in fill(jobs, rules, 0, use)]


def created(item: KubeObject) -> datetime:
    return datetime.fromisoformat(item["metadata"]["creationTimestamp"])


def demand(item: KubeObject) -> dict[str, int]:
    return {GPU: 1000 * things.gpus(item)}


async def test_a_storm_beside_a_real_kueue(kueue_lab: KubeLab, tmp_path: Path) -> None:
    """The API server is restarted, too; that every Job has run in the end says that all of the lab goes on."""
    print(f"storm of {SECONDS} s, seed {SEED}")  # noqa: T201 # repeats the plan of a failure
    lab = kueue_lab
    with NamespaceFixture(lab, list(WEIGHTS)) as fixture:
        pool = fixture.queue("shared", GPUS)
        for namespace in fixture.namespaces.values():
            lab.open_to_submissions(namespace)
        first = next(iter(fixture.namespaces.values()))
        policy = fair_policy(
            fixture, WEIGHTS, pool, grants=[Grant(tenant=first, classes=["urgent"])], preemption="never"
        )
        fleet = KubeFleet(
            tmp_path, lab, policy=policy, watchers=2, scorers=3, admitters=2, settings=UNHURRIED
        )
        with fleet.server:
            rng = random.Random(SEED)
            proxy = FlakyProxy(fleet.server.port, random.Random(rng.random()), longest_delay=0.002)
            async with proxy.open(), fleet.running(through=f"nats://127.0.0.1:{proxy.port}") as bus:
                load = Load(
                    bus,
                    list(fixture.namespaces.values()),
                    random.Random(rng.random()),
                    per_second=PER_SECOND,
                    cluster=KUBE_CLUSTER,
                    more={
                        "template": {
                            "image": "busybox",
                            "annotations": {RUN_SECONDS: f"{RUN_SECONDS_EACH:g}"},
                        }
                    },
                )
                breaker = KubeBreaker(
                    fleet, bus, proxy, random.Random(rng.random()), longest_pause=longest_pause(SECONDS)
                )
                await blow(load, breaker, SECONDS)
                print(f"{len(load.acked)} jobs, {load.repeats} duplicates, {dict(breaker.done)}")  # noqa: T201 # as above
                proxy.longest_delay = 0.0
                async with explained(fleet, bus):
                    await fleet.all_ready()
                    await all_have_run(lab, fixture, load)
                await the_order_is_right(bus, fleet, fixture)


async def all_have_run(lab: KubeLab, fixture: NamespaceFixture, load: Load) -> None:
    """Every submission that was acked is one Job that ran to its end."""

    def missing() -> set[str]:
        return load.acked - {
            job["metadata"]["name"] for job in jobs_of(lab, fixture) if things.condition(job, "Complete")
        }

    await worked_off(missing, "has run")
    names = [job["metadata"]["name"] for job in jobs_of(lab, fixture)]
    assert len(names) == len(set(names))
    assert len(names) == len(load.acked)


async def the_order_is_right(bus: Bus, fleet: KubeFleet, fixture: NamespaceFixture) -> None:
    """A standing queue, some of it deleted: Kueue has the order computed from scratch, and nothing comes back."""
    for tenant in WEIGHTS:
        for number in range(AFTER):
            gpus = 1 + number % 2
            item = things.workload(f"after-{tenant}-{number}", fixture.namespaces[tenant], QUEUE, {GPU: gpus})
            fixture.lab.api.create(item)

    seen: dict[str, object] = {}

    async def same() -> bool:
        found = await whole_queue(bus, POOL)
        wanted = await asyncio.to_thread(from_scratch, fixture, fleet)
        order = [ranked.position.id for ranked in found.positions]
        front = (await asyncio.to_thread(fixture.kueue_order))[:4]
        seen.update(
            wanted=wanted, order=order, front=front, silent=found.silent_shards, steering=found.steering
        )
        return not found.silent_shards and len(wanted) > 0 and order == wanted and front == wanted[:4]

    told = (lambda: seen, lambda: levels(fixture), lambda: fixture.lab.process(KUEUE).log_end)
    async with explained(fleet, bus, *told):
        await eventually(same, 120, what="the order, and Kueue's front, equal those computed from scratch")
    for name, item in list(fixture.waiting().items())[::3]:
        fixture.lab.api.delete(
            f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{item['metadata']['namespace']}/workloads/{name}"
        )
    await asyncio.to_thread(fleet.server.restart)
    async with explained(fleet, bus, *told):
        await fleet.all_ready()
        await eventually(same, 120, what="the order without the deleted ones")
