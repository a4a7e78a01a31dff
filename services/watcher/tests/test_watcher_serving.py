"""StatefulSets, LeaderWorkerSets and gangs of pods: their names, their words and what holds them. Objects as Kueue 0.19 makes them."""

from functools import partial

import msgspec
import pytest

from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_kube.kinds.objects import PartialObject, instant
from fairlead_kube.kinds.workloads import Workload
from fairlead_kube.reflector import Key
from fairlead_testkit.kubelab import KubeObject, things
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.objects.quota import QueueFacts, Quota, QuotaKey
from fairlead_watcher.objects.workload_context import LocalQueueFacts
from fairlead_watcher.objects.workload_facts import MOST_OWNERS, owner_facts, workload_facts

AT = "2026-11-21T10:00:00Z"
PODS: list[KubeObject] = [
    {"kind": "Pod", "name": f"serve-{n}", "uid": f"p{n}"} for n in range(MOST_OWNERS + 4)
]

condition = partial(things.stated_condition, at=AT)


def a_view() -> ClusterView:
    view = ClusterView("c1", ended_stay=600 * SECOND)
    view.local_queue(Key("team-a", "main"), LocalQueueFacts(queue="cq"))
    quotas = {QuotaKey("f", "gpu"): Quota(nominal=64_000)}
    view.cluster_queue(Key("", "cq"), QueueFacts(name="cq", quotas=quotas))
    return view


def job_of(*conditions: KubeObject, owners: list[KubeObject], view: ClusterView | None = None) -> JobState:
    item = things.workload("one", "team-a", "main", {"gpu": 2})
    item["metadata"] |= {"uid": "u1", "creationTimestamp": AT, "ownerReferences": owners}
    item["status"] = {"conditions": list(conditions)}
    view = view or a_view()
    view.workload(Key("team-a", "one"), workload_facts(msgspec.convert(item, Workload)))
    view.settle(instant(AT))
    [job] = view.jobs()
    return job


def asks(view: ClusterView, kind: str, name: str, uid: str, wish: str) -> None:
    """An object asks for a class."""
    metadata = {
        "name": name,
        "namespace": "team-a",
        "uid": uid,
        "annotations": {f"wdrf.x-k8s.io/{wish}": "true"},
    }
    owner = msgspec.convert({"kind": kind, "metadata": metadata}, PartialObject)
    view.owner(kind, Key("team-a", name), owner_facts(owner))


@pytest.mark.parametrize("kind", ["LeaderWorkerSet", "StatefulSet"])
def test_pods_that_an_object_makes_are_known_by_its_name_and_ask_with_its_words(kind: str) -> None:
    """Neither the object nor its pods, which come later, are the Workload's controller."""
    owners = [{"kind": kind, "name": "serve", "uid": "s1"}, *PODS]
    view = a_view()
    asks(view, kind, "serve", "s1", "urgent")
    job = job_of(owners=owners, view=view)
    assert (job.owner, job.requested_class) == (f"{kind}/serve", "urgent")
    view = a_view()
    asks(view, "Pod", "serve-1", "p1", "approved")  # of a StatefulSet's template only its pods tell
    job = job_of(owners=owners, view=view)
    assert (job.owner, job.requested_class) == (f"{kind}/serve", "approved")


def test_what_kueue_keeps_out_of_its_queue_is_held() -> None:
    """A StatefulSet that was scaled to zero, and a gang that lost pods."""
    off = condition("QuotaReserved", "False", "OnHold", "StatefulSet scaled to zero; workload on hold")
    held = job_of(off, owners=[{"kind": "StatefulSet", "name": "serve", "uid": "s1"}])
    assert (held.phase, held.owner) == (Phase.HELD, "StatefulSet/serve")
    assert held.held_by == "Kueue keeps it on hold: StatefulSet scaled to zero; workload on hold"
    waits = condition("QuotaReserved", "False", "WaitingForQuota", "couldn't assign flavors")
    gone = condition("WaitingForReplacementPods", "True", "PodsFailed", "Some Failed pods need replacement")
    held = job_of(waits, gone, owners=PODS)
    assert (held.phase, held.owner) == (Phase.HELD, "PodGroup/one")
    assert held.held_by == "some of its pods are gone, and Kueue waits for others in their place"
    runs = condition("QuotaReserved", "True", "QuotaReserved")
    assert job_of(runs, gone, owners=PODS).phase is Phase.RUNNING
    assert job_of(waits, gone | {"status": "False"}, owners=PODS).phase is Phase.WAITING
