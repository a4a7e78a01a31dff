"""Admissions of Kueue that miss the order, and idle room: seen before the first write, and after."""

from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_contracts.messages.questions import Adherence
from fairlead_testkit.by_hand.people import give_leave
from fairlead_testkit.fleets.fleet import all_wait, whole_queue
from fairlead_testkit.fleets.kube_fleet import KUBE_CLUSTER, POOL, KubeFleet, fair_policy, heads_stand
from fairlead_testkit.kubelab import ADMITTER, GPU, KubeLab
from fairlead_testkit.kueue.admissions import AdmissionLog, AdmissionStep
from fairlead_testkit.kueue.namespace_fixture import NamespaceFixture
from fairlead_testkit.processes import command
from fairlead_testkit.timing.awaiting import eventually, next_second

pytestmark = [pytest.mark.kube, pytest.mark.timeout(480)]

GPUS = 4
EACH = 12
WEIGHTS = {"team-a": 1.0, "team-b": 1.0}
SLOW_SECONDS = 0.35
"""Seconds by which the admitter may hear of something later than this test, on a busy machine."""


async def measured(bus: Bus, admissions: int) -> Adherence:
    """The adherence that is told once so many admissions are counted."""

    async def said() -> list[Adherence]:
        steering = (await whole_queue(bus, POOL)).steering
        return [
            one.adherence
            for one in steering
            if one.adherence is not None and _counted(one.adherence) >= admissions
        ]

    return (await eventually(said, 60, what=f"{admissions} admissions are counted"))[0]


def _counted(found: Adherence) -> int:
    """Number of admissions that were seen, those among them that are not judged."""
    return found.admissions + _apart(found)


def _apart(found: Adherence) -> int:
    """Admissions that are counted by why nobody can judge them."""
    return found.newcomers + found.takeovers + found.unordered + found.unseen


def end_oldest(fixture: NamespaceFixture, log: AdmissionLog) -> None:
    """The run that began first ends, and Kueue admits another."""
    admitted = fixture.admitted()
    oldest = next(name for name in log.admitted if name in admitted)
    before = len(log.admitted)
    fixture.finish(fixture.tenant_of(admitted[oldest]), oldest)
    log.wait(before + 1)


def gaps(steps: list[AdmissionStep]) -> list[float]:
    """Seconds from each end to the admission after it, as the test's own watch heard them."""
    found, ended = [], None
    for step in steps:
        if step.what == "finished":
            ended = step.at
        elif step.what == "admitted" and ended is not None:
            found.append(step.at - ended)
            ended = None
    return found


async def test_the_worth_is_shown_before_the_first_write_and_the_effect_after(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    with NamespaceFixture(kube_lab, [*WEIGHTS, "keeper"]) as fixture, AdmissionLog(fixture) as log:
        pool = fixture.queue("shared", GPUS)
        fixture.backlog("keeper", GPUS)
        log.wait(GPUS)
        for tenant in WEIGHTS:
            fixture.backlog(tenant, EACH)
            await next_second()  # Kueue orders by whole seconds, and within one by UID
        mark = kube_lab.audit_mark()
        fleet = KubeFleet(tmp_path, kube_lab, policy=fair_policy(fixture, WEIGHTS, pool), lever=None)
        async with fleet.running() as bus:
            await all_wait(bus, POOL, 2 * EACH)  # before anything ends
            # The admitter leads, and looks; what ran before there was an order may be told apart already.
            apart = _counted(await measured(bus, 0))
            releases = 2 * GPUS
            for _ in range(releases):
                # Amid the batch a release goes to whoever is tried next, the order's first perhaps.
                await fixture.batch_passed()
                end_oldest(fixture, log)
            found = await measured(bus, apart + releases)
            # Whoever has just begun to look takes what waits for newcomers, and the lead for new: a moment long. On a busy
            # machine a lease can lapse meanwhile: those admissions are told apart, and none of them is lost.
            assert _counted(found) == apart + releases
            assert found.newcomers + found.takeovers <= 2
            # Kueue takes team-a's, which came first. The order has them in turns: only its very first is right.
            assert found.missed in (found.admissions - 1, found.admissions)
            waits_seen = gaps(log.steps)
            assert len(waits_seen) == releases
            assert found.idle[GPU] / 1000 == pytest.approx(sum(waits_seen), abs=releases * SLOW_SECONDS)
            assert level_writes(kube_lab, fixture, mark) == 0
            shown = asked(fleet, "queue")
            assert f"{found.missed} of {found.admissions} admissions out of order" in shown
            assert "GPU-seconds idle" in shown
            assert "out of order" in asked(fleet, "top")

            await give_leave(bus, "boost", cluster=KUBE_CLUSTER)
            for _ in range(GPUS):
                await heads_stand(bus, fixture)
                end_oldest(fixture, log)
            after = await measured(bus, apart + releases + GPUS)
            assert after.missed <= found.missed + 1  # one whose order changed within the very moment
            assert level_writes(kube_lab, fixture, mark) > 0


def level_writes(lab: KubeLab, fixture: NamespaceFixture, after: int) -> int:
    lines = lab.audit_lines(user=ADMITTER, verb="patch", resource="workloads", after=after)
    return sum(line.namespace in fixture.namespaces.values() and not line.dry_run for line in lines)


def asked(fleet: KubeFleet, word: str) -> str:
    """The text that a person reads."""
    ended = command.fairlead(word, environ=fleet.person())
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
