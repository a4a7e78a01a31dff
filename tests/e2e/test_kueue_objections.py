"""Bad input on a real Kueue: an Event on the object says field, value and remedy, and no other job is harmed."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from fairlead_contracts.frontend.marks import BASE_PRIORITY
from fairlead_kube.kinds.workloads import PRIORITY_BOOST
from fairlead_testkit.fleets.kube_fleet import KubeFleet, fair_policy
from fairlead_testkit.kubelab import GPU, KubeLab, KubeObject, things
from fairlead_testkit.kueue.admissions import full_queue
from fairlead_testkit.kueue.namespace_fixture import QUEUE, NamespaceFixture, effective_priority
from fairlead_testkit.processes.command import fairlead
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.kube, pytest.mark.timeout(480)]

BAD = {
    "urgent-taken": "ClassNotGranted",
    "override-words": "BadAnnotation",
    "nowhere": "NoSuchQueue",
    "too-large": "LargerThanQuota",
    "odd": "LargerThanQuota",
    "lifted": "ForeignBoost",
    "forged": "BadAnnotation",
    "self-set": "ForeignPriority",
}
HIGHEST = 2**31 - 1
TOP = 1_000_001
"""Above every level of the last class, where the cluster names none of the policy's classes."""
MADE_UP = 18_000


def events_of(lab: KubeLab, namespace: str) -> list[KubeObject]:
    return lab.api.items(f"/api/v1/namespaces/{namespace}/events")


def plant(fixture: NamespaceFixture) -> None:
    """Makes a Workload for each kind of mistake."""
    fixture.workload("team-a", "urgent-taken", annotations={"wdrf.x-k8s.io/urgent": "true"})
    fixture.workload("team-a", "override-words", annotations={"wdrf.x-k8s.io/priority-override": "very"})
    fixture.workload("team-a", "too-large", 500)
    # In the first seconds of a lead, in which it could be the leader's before.
    fixture.workload("team-a", "lifted", annotations={PRIORITY_BOOST: "70"})
    fixture.workload("team-a", "forged", annotations={BASE_PRIORITY: "2000000000"})
    name = fixture.named("class")
    fixture.priority_class(name, 5)
    fixture.workload("team-a", "self-set", priority_class=name, priority=HIGHEST)
    nowhere = things.workload("nowhere", fixture.namespaces["team-a"], "no-such-queue", {GPU: 1})
    fixture.lab.api.create(nowhere)
    # Of all that it asks for, the event would be larger than NATS takes (1 MiB). Without the server's word on who wrote
    # each field etcd takes it.
    asked = {f"made.up/one-that-no-queue-ever-has-{number:05}": "1E15" for number in range(MADE_UP)}
    odd = things.workload("odd", fixture.namespaces["team-a"], QUEUE, asked)
    odd["metadata"]["managedFields"] = [{}]
    fixture.lab.api.create(odd)


def doctors_finding(lab: KubeLab, folder: Path) -> Mapping[str, str]:
    """The finding of a job that asks for too many resources, by a doctor who reaches no NATS."""
    words = ["doctor", "--kubeconfig", str(lab.kubeconfig()), "--output", "json"]
    told = fairlead(*words, environ={"XDG_STATE_HOME": str(folder)})
    [found] = [
        one for one in msgspec.json.decode(told.stdout)["findings"] if one["name"] == "job-too-many-resources"
    ]
    return dict(found)


def check(notes: Mapping[str, str]) -> None:
    """Each note says what was found."""
    assert "wdrf.x-k8s.io/priority-override" in notes["override-words"]
    assert "very" in notes["override-words"]
    assert "no-such-queue" in notes["nowhere"]
    assert "500" in notes["too-large"]
    assert '"70"' in notes["lifted"]
    assert f"{MADE_UP} resources" in notes["odd"]
    assert BASE_PRIORITY in notes["forged"]
    assert "2000000000" in notes["forged"]
    assert notes["self-set"].startswith(f'spec.priority: found "{HIGHEST}"')
    assert "fairlead approve" in notes["urgent-taken"] or "grant" in notes["urgent-taken"]


async def test_each_mistake_is_told_on_its_object_and_others_are_admitted(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    with full_queue(kube_lab, ["team-a", "team-b"], 2) as (fixture, log, pool):
        namespace = fixture.namespaces["team-a"]
        fleet = KubeFleet(tmp_path, kube_lab, policy=fair_policy(fixture, {"team-a": 1, "team-b": 1}, pool))
        async with fleet.running():
            plant(fixture)

            def told() -> Mapping[str, str]:
                found = {
                    event["involvedObject"]["name"]: event
                    for event in events_of(kube_lab, namespace)
                    if event["reason"] in BAD.values()
                }
                return (
                    {name: event["reason"] for name, event in found.items()}
                    if found.keys() == BAD.keys()
                    else {}
                )

            assert await eventually(told, 90, what="an Event on each") == BAD
            notes = {
                event["involvedObject"]["name"]: event["message"]
                for event in events_of(kube_lab, namespace)
                if event["reason"] in BAD.values()
            }
            check(notes)
            finding = await asyncio.to_thread(doctors_finding, kube_lab, tmp_path)
            assert finding["subject"] == f"Workload/{namespace}/odd"
            assert len(finding["what"]) < 1000
            # Those that are wrong in their words alone run all the same, and so does everybody else's.
            fixture.workload("team-b", "good")
            fixture.finish("keeper", "keeper")
            log.wait(3)
            for more in (4, 5, 6, 7):
                fixture.finish(
                    *next((fixture.tenant_of(item), name) for name, item in fixture.admitted().items())
                )
                log.wait(more)
        assert sorted(log.admitted) == sorted(
            ["forged", "good", "keeper", "lifted", "override-words", "self-set", "urgent-taken"]
        )
        stood = [
            effective_priority(one.item) for one in log.glimpses if one.item["metadata"]["name"] == "self-set"
        ]
        # Neither above the level nor, for a moment, above what it gave itself.
        assert {HIGHEST} != {*stood} <= {HIGHEST, *range(TOP)}
