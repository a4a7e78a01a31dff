"""Alerts whose fault takes work to cause: each is caused on live services, and a real Prometheus fires."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_packed
from fairlead_contracts.frontend import verbs
from fairlead_contracts.messages.state import STATE, JobState
from fairlead_contracts.policyfile.document import Aging, PolicyDocument
from fairlead_testkit import eventually
from fairlead_testkit.fleets.fleet import CLUSTER, Fleet, equal_jobs, one_pool, submit_all
from fairlead_testkit.fleets.kube_fleet import KubeFleet, fair_policy
from fairlead_testkit.fleets.process_fleet import ProcessFleet
from fairlead_testkit.fleets.slurm_fleet import SlurmFleet, account_policy
from fairlead_testkit.kubelab import WORKLOADS_ALONE
from fairlead_testkit.kubelab.parts import APISERVER
from fairlead_testkit.kueue.namespace_fixture import NamespaceFixture
from fairlead_testkit.labs.processes import LabProcess
from fairlead_testkit.nats_servers.streams import change_stream, stream_info
from fairlead_testkit.pytest_plugin.kubelab_fixtures import LabFactory
from fairlead_testkit.pytest_plugin.slurmlab_fixtures import SlurmLabFactory
from fairlead_testkit.slurmlab import SlurmOptions
from fairlead_testkit.telemetry.prometheus import Prometheus, all_scraped, ensure_prometheus
from fairlead_testkit.timing.in_hand import beside

FOLDER = Path(__file__).parents[2] / "deploy" / "monitoring"
RULES, ALERTS = FOLDER / "prometheus" / "rules" / "fairlead.yaml", FOLDER / "alerts" / "fairlead.yaml"
GPUS = 4
HOLDS, WAITS, ALSO_WAITS = TENANTS = ("team-a", "team-b", "team-c")


def policy(*weights: float) -> PolicyDocument:
    """The policy with these weights of the two that wait. A second is worth what two days are: the bound is seconds away."""
    return one_pool(
        dict(zip(TENANTS, (1.0, *weights), strict=True)), aging=Aging(entitlement_per_day=20_000.0)
    )


REFUSING = {"max_msg_size": 1}
"""A stream that is full still takes a message in place of the one before on its subject, and a claim is such a message."""

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def impatient_alerts(folder: Path) -> Path:
    """The alerts, after seconds in place of minutes and hours: how long they wait is promtool's to check."""
    path = folder / "alerts.yaml"
    text = re.sub(r"for: \w+", "for: 1s", ALERTS.read_text()).replace("[1m]", "[10s]")
    assert text.count("> 3600") == 1, "the alert whose bound is an hour"
    assert text.count("age_seconds) > 60") == 2, "the alerts whose bound is a minute"
    path.write_text(text.replace("> 3600", "> 5").replace("age_seconds) > 60", "age_seconds) > 5"))
    return path


async def firing(prometheus: Prometheus) -> set[str]:
    alerts = await asyncio.to_thread(prometheus.alerts)
    return {alert.labels["alertname"] for alert in alerts if alert.state == "firing"}


async def none_fires(prometheus: Prometheus) -> bool:
    return not await firing(prometheus)


async def is_firing(prometheus: Prometheus, name: str) -> bool:
    return name in await firing(prometheus)


async def is_silent(prometheus: Prometheus, name: str) -> bool:
    return name not in await firing(prometheus)


async def test_a_job_past_its_bound_an_order_that_moves_another_writer_and_a_full_stream_each_fire_their_alert(
    tmp_path: Path,
) -> None:
    ensure_prometheus()
    fleet = Fleet(tmp_path, policy=policy(1.0, 3.0), gpus=GPUS, scorers=2)
    async with fleet.running() as bus:
        ports = await fleet.health_ports("scorer", "admitter", "sim")
        with Prometheus(tmp_path, ports, [RULES, impatient_alerts(tmp_path)]) as prometheus:
            await all_scraped(prometheus, 4)
            await submit_all(bus, HOLDS, equal_jobs("long", GPUS, run_seconds=3600))
            await eventually(partial(has_started, prometheus), 60, what="the pool is full")
            # Before the first look no scorer is known, and an impatient alert says so until the next one.
            await eventually(partial(none_fires, prometheus), 30, what="nothing fires where nothing is wrong")
            for tenant in (WAITS, ALSO_WAITS):
                await submit_all(bus, tenant, equal_jobs(f"{tenant}-held", 2, run_seconds=3600))
            await check_past_bound(prometheus)
            await check_over_budget(bus, fleet, prometheus)
            await check_fight(bus, fleet, prometheus)
            await check_nearly_full(bus, prometheus)
            await check_unowned(bus, fleet, prometheus)
            await check_nobody_leads(fleet, prometheus)
            await check_gone(fleet, prometheus)


@pytest.mark.kube
@pytest.mark.deep
async def test_a_watcher_whose_api_server_is_gone_fires_its_alert(
    kube_labs: LabFactory, tmp_path: Path
) -> None:
    ensure_prometheus()
    lab = kube_labs(WORKLOADS_ALONE)
    with NamespaceFixture(lab, ["team-a"]) as fixture:
        pool = fixture.queue("shared", GPUS)
        fleet = KubeFleet(tmp_path, lab, policy=fair_policy(fixture, {"team-a": 1.0}, pool))
        await check_unheard(tmp_path, fleet, "watcher", lab.process(APISERVER), "FairleadWatchBroken")


@pytest.mark.slurm
@pytest.mark.deep
async def test_a_bridge_whose_slurmctld_is_gone_fires_its_alert(
    slurm_labs: SlurmLabFactory, tmp_path: Path
) -> None:
    ensure_prometheus()
    lab = slurm_labs(SlurmOptions(nodes=1))
    fleet = SlurmFleet(tmp_path, lab, policy=account_policy({"vision": 1.0}))
    await check_unheard(
        tmp_path, fleet, "slurm_bridge", lab.process("slurmctld"), "FairleadSlurmNotRead", grace=20
    )


async def check_unheard(
    folder: Path, fleet: ProcessFleet, service: str, server: LabProcess, name: str, *, grace: float = 0.0
) -> None:
    """Checks that an alert fires while what a service listens to is gone, until that is back."""
    async with fleet.running():
        ports = await fleet.health_ports(service)
        with Prometheus(folder, ports, [RULES, impatient_alerts(folder)]) as prometheus:
            await all_scraped(prometheus, sum(map(len, ports.values())))
            await eventually(partial(is_silent, prometheus, name), 30, what="it is heard")
            server.end(grace=grace)
            await eventually(partial(is_firing, prometheus, name), 60)
            server.start()
            await eventually(partial(is_silent, prometheus, name), 90, what="it is heard again")


async def has_started(prometheus: Prometheus) -> bool:
    return bool(
        await asyncio.to_thread(prometheus.query, f"max(fairlead_admitter_admissions_total) == {GPUS}")
    )


async def check_past_bound(prometheus: Prometheus) -> None:
    """Checks the alert of a job past its bound: jobs that do not end hold the whole pool, and a tenant who has nothing waits."""
    assert await is_silent(prometheus, "FairleadJobPastItsBound")
    await eventually(partial(is_firing, prometheus, "FairleadJobPastItsBound"), 60)


async def check_over_budget(bus: Bus, fleet: Fleet, prometheus: Prometheus) -> None:
    """The order moves all the time, as somebody changes the policy again and again, and nothing starts."""
    assert await is_silent(prometheus, "FairleadWritesOverBudget")
    for number in range(4 * GPUS):
        before = await levels_written(prometheus)
        await fleet.apply(bus, policy(*((1.0, 3.0) if number % 2 else (3.0, 1.0))))
        await eventually(partial(more_are_written, prometheus, before), 30, what="the order moved")
    await eventually(partial(is_firing, prometheus, "FairleadWritesOverBudget"), 60)


async def levels_written(prometheus: Prometheus) -> float:
    found = await asyncio.to_thread(prometheus.query, "sum(fairlead_admitter_levels_written_total)")
    return sum(float(sample.value[1]) for sample in found)


async def more_are_written(prometheus: Prometheus, before: float) -> bool:
    return await levels_written(prometheus) > before


async def check_fight(bus: Bus, fleet: Fleet, prometheus: Prometheus) -> None:
    """Another program sets the level of a job that waits, again and again."""
    assert await is_silent(prometheus, "FairleadDriftFight")
    async with another_writer(bus, fleet, f"{WAITS}-held-0000"):
        await eventually(partial(is_firing, prometheus, "FairleadDriftFight"), 60)


@contextlib.asynccontextmanager
async def another_writer(bus: Bus, fleet: Fleet, job: str) -> AsyncIterator[None]:
    [admitter] = fleet.named("admitter")
    epoch = int(str((await admitter.logged("leading"))["epoch"]))
    subject = subjects.state(CLUSTER, "job", job, scope=WAITS)

    async def write() -> None:
        while True:
            stated = await bus.last(topology.STATE, subject)
            assert stated is not None
            found = STATE.decode(stated.payload)
            assert isinstance(found, JobState)
            order = verbs.SetLevel(scope=WAITS, id=job, uid=found.uid, level=999)
            if found.level != order.level:
                request = to_packed(verbs.SetLevels(epoch=epoch, levels=[order]))
                told = await bus.request(subjects.frontend(CLUSTER, "levels"), request, timeout=10.0)
                [reply] = verbs.LEVEL_REPLIES.decode(told).replies
                assert reply.verdict is verbs.VerbOutcome.DONE, reply
            await asyncio.sleep(0.05)

    async with beside(write()):
        yield


async def check_nearly_full(bus: Bus, prometheus: Prometheus) -> None:
    """The stream of facts has a limit that it fills by three quarters, until the limit is taken away."""
    name = "FairleadNatsNearlyFull"
    assert await is_silent(prometheus, name)
    held = (await stream_info(bus, topology.STATE))["state"]["bytes"]
    before = await change_stream(bus, topology.STATE, max_bytes=held * 4 // 3)
    await eventually(partial(is_firing, prometheus, name), 60)
    await change_stream(bus, topology.STATE, max_bytes=before["max_bytes"])
    await eventually(partial(is_silent, prometheus, name), 60)


async def check_unowned(bus: Bus, fleet: Fleet, prometheus: Prometheus) -> None:
    """A scorer dies while the stream of decisions takes no message: nobody can claim its shards. Mended, somebody does."""
    assert await is_silent(prometheus, "FairleadNoOwnerForShard")
    before = await change_stream(bus, topology.DECISION, **REFUSING)
    fleet.named("scorer")[0].kill()
    await eventually(partial(is_firing, prometheus, "FairleadNoOwnerForShard"), 60)
    await change_stream(bus, topology.DECISION, **{name: before[name] for name in REFUSING})
    await eventually(partial(is_silent, prometheus, "FairleadNoOwnerForShard"), 60)


async def check_nobody_leads(fleet: Fleet, prometheus: Prometheus) -> None:
    """NATS stands still: who leads cannot say so again, and nobody else can. Once it goes on, somebody does."""
    name = "FairleadNobodyLeads"
    assert await is_silent(prometheus, name)
    with fleet.server.paused():
        await eventually(partial(is_firing, prometheus, name), 60)
    await eventually(partial(is_silent, prometheus, name), 60)


async def check_gone(fleet: Fleet, prometheus: Prometheus) -> None:
    """Ends the service that states the cluster, and with it its page of metrics: the order that stands says nothing of it."""
    assert await is_silent(prometheus, "FairleadServiceGone")
    fleet.named("sim")[0].kill()
    await eventually(partial(is_firing, prometheus, "FairleadServiceGone"), 60)
