"""Bad input on a real Kueue: an Event on the object says field, value and remedy, and no other job is harmed."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from fairlead_kube.kinds.workloads import PRIORITY_BOOST
from fairlead_testkit.admissions import full_queue
from fairlead_testkit.awaiting import eventually
from fairlead_testkit.kube_fleet import KubeFleet, fair_policy
from fairlead_testkit.kubelab import GPU, KubeLab, KubeObject, things
from fairlead_testkit.namespace_fixture import NamespaceFixture

pytestmark = [pytest.mark.kube, pytest.mark.timeout(480)]

BAD = {
    "urgent-taken": "ClassNotGranted",
    "override-words": "BadAnnotation",
    "nowhere": "NoSuchQueue",
    "too-large": "LargerThanQuota",
    "lifted": "ForeignBoost",
}


def events_of(lab: KubeLab, namespace: str) -> list[KubeObject]:
    return lab.api.items(f"/api/v1/namespaces/{namespace}/events")


def plant(fixture: NamespaceFixture) -> None:
    """Makes a Workload for each kind of mistake."""
    fixture.workload("team-a", "urgent-taken", annotations={"wdrf.x-k8s.io/urgent": "true"})
    fixture.workload("team-a", "override-words", annotations={"wdrf.x-k8s.io/priority-override": "very"})
    fixture.workload("team-a", "too-large", 500)
    # In the first seconds of a lead, in which it could be the leader's before.
    fixture.workload("team-a", "lifted", annotations={PRIORITY_BOOST: "70"})
    nowhere = things.workload("nowhere", fixture.namespaces["team-a"], "no-such-queue", {GPU: 1})
    fixture.lab.api.create(nowhere)


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
            assert "wdrf.x-k8s.io/priority-override" in notes["override-words"]
            assert "very" in notes["override-words"]
            assert "no-such-queue" in notes["nowhere"]
            assert "500" in notes["too-large"]
            assert '"70"' in notes["lifted"]
            assert "fairlead approve" in notes["urgent-taken"] or "grant" in notes["urgent-taken"]
            # Those that are wrong in their words alone run all the same, and so does everybody else's.
            fixture.workload("team-b", "good")
            fixture.finish("keeper", "keeper")
            log.wait(3)
            for more in (4, 5):
                fixture.finish(
                    *next((fixture.tenant_of(item), name) for name, item in fixture.admitted().items())
                )
                log.wait(more)
        assert sorted(log.admitted) == ["good", "keeper", "lifted", "override-words", "urgent-taken"]
