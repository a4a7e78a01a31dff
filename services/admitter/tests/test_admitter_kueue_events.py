"""Objections to queued jobs, as people see them: with kubectl, on the Workload and on the Job."""

import pytest

from fairlead_bus import Bus
from fairlead_contracts.messages.state import Fault, JobState
from fairlead_testkit import eventually
from fairlead_testkit.by_hand.bus_harness import sample
from fairlead_testkit.by_hand.fake_cluster import FakeScorer, RunAdmitter
from fairlead_testkit.kubelab import ADMITTER, KubeLab, things
from fairlead_testkit.kueue.kueue_team import FakeKueue, Team

pytestmark = [pytest.mark.kube, pytest.mark.integration, pytest.mark.timeout(300)]


def told(team: Team) -> list[tuple[str, str, str, str]]:
    """Kind, reason, message and count of our Events, as kubectl prints them."""
    fields = "{.involvedObject.kind}|{.reason}|{.message}|{.count}"
    found = team.lab.kubectl(
        "get",
        "events",
        "-n",
        team.name,
        "--field-selector",
        "reportingComponent=fairlead-admitter",
        "-o",
        f"jsonpath={{range .items[*]}}{fields}{{'\\n'}}{{end}}",
    )
    lines = [line.split("|") for line in found.splitlines() if line]
    return sorted((kind, reason, message, count) for kind, reason, message, count in lines)


def kinds_and_reasons(team: Team) -> list[tuple[str, str]]:
    return [(kind, reason) for kind, reason, _, _ in told(team)]


async def a_queued_job(team: Team, cluster: FakeKueue, **changes: object) -> JobState:
    """A Job that is too large to be admitted, with the Workload that Kueue made of it."""
    team.lab.api.create(things.job("greedy", team.name, "main", {"cpu": 1000}))
    await eventually(lambda: len(team.workloads()) == 1, 60)
    return await cluster.state_workload(team.workloads()[0], **changes)


async def test_an_objection_is_on_the_workload_and_its_job_once_whoever_leads(
    bus: Bus, scorer: FakeScorer, kube_lab: KubeLab, run_admitter: RunAdmitter
) -> None:
    assert scorer.replica
    team = Team(kube_lab)
    cluster = await team.become_known(bus)
    settings = {"frontend": "kueue", "kubeconfig": str(kube_lab.kubeconfig(ADMITTER))}
    job = await a_queued_job(team, cluster, requested_class="urgent")
    both = [("Job", "ClassNotGranted"), ("Workload", "ClassNotGranted")]
    async with run_admitter(**settings) as first:
        await eventually(lambda: sample(first, "objections_total", reason="ClassNotGranted") == 1, 60)
        assert kinds_and_reasons(team) == both
        (_, _, message, count), _ = told(team)
        assert message.startswith('class: found "urgent"; it is not granted to tenant')
        assert count == "1"
        assert "ClassNotGranted" in kube_lab.kubectl("describe", "job", "greedy", "-n", team.name)
    async with run_admitter(**settings) as second:
        await eventually(lambda: sample(second, "objections_total", reason="ClassNotGranted") == 1, 60)
        assert kinds_and_reasons(team) == both
        assert {count for *_, count in told(team)} == {"1"}
        fault = Fault(field="spec.podSets cpu", value="1000", remedy="ask for less")
        await cluster.state(job, requested_class="approved", faults=[fault])
        await eventually(lambda: sample(second, "objections_total", reason="LargerThanQuota") == 1, 60)
        await eventually(lambda: sample(second, "objections_total", reason="ClassNotGranted") == 2, 60)
        assert kinds_and_reasons(team) == sorted(
            [*both, *both, ("Job", "LargerThanQuota"), ("Workload", "LargerThanQuota")]
        )
