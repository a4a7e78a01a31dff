"""A Workload as a job: phases, holds, levels, demand, times, words. Objects as the API server has them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.frontend.marks import SUBMISSION
from fairlead_contracts.messages.state import JobShape, JobState, Outcome, Phase, encode_state
from fairlead_kube.kinds.objects import LabelSelector, PartialObject, instant
from fairlead_kube.kinds.workloads import PRIORITY_BOOST, Workload
from fairlead_kube.reflector import Key
from fairlead_testkit.kubelab import KubeObject, things
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.objects.equivalence import equivalence
from fairlead_watcher.objects.quota import QueueFacts, Quota, QuotaKey
from fairlead_watcher.objects.workload_context import LocalQueueFacts
from fairlead_watcher.objects.workload_facts import (
    MOST_OWNERS,
    End,
    WorkloadFacts,
    owner_facts,
    workload_facts,
)
from fairlead_watcher.statements.jobs import MOST_FAULTS

CREATED = "2026-11-21T10:00:00Z"
LATER = "2026-11-21T10:05:00Z"
NOW = instant("2026-11-21T11:00:00Z")
STAY = 600 * SECOND
KEY = Key("team-a", "one")
QUOTAS = {
    QuotaKey("f", "cpu"): Quota(nominal=64_000),
    QuotaKey("f", "gpu"): Quota(nominal=8000),
}

condition = partial(things.stated_condition, at=LATER)


def a_view(**queue: Any) -> ClusterView:  # noqa: ANN401 # fields of QueueFacts
    view = ClusterView("c1", ended_stay=STAY)
    view.local_queue(Key("team-a", "main"), LocalQueueFacts(queue="cq"))
    facts = QueueFacts(**({"name": "cq", "quotas": QUOTAS} | queue))
    view.cluster_queue(Key("", facts.name), facts)
    return view


def raw(*conditions: KubeObject, **changes: object) -> KubeObject:
    item = things.workload("one", "team-a", "main", {"cpu": 1, "gpu": 2}, pods=3)
    item["metadata"] |= {"uid": "u1", "creationTimestamp": CREATED}
    item["status"] = {"conditions": list(conditions)}
    for path, value in changes.items():
        *parts, last = path.split("__")
        inner = item
        for part in parts:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return item


def facts_of(item: KubeObject) -> WorkloadFacts:
    found = workload_facts(msgspec.convert(item, Workload))
    assert isinstance(found, WorkloadFacts)
    return found


def job_of(item: KubeObject, view: ClusterView | None = None, now: int = NOW) -> JobState:
    view = view or a_view()
    view.workload(KEY, facts_of(item))
    view.settle(now)
    [job] = view.jobs()
    return job


RESERVED = condition("QuotaReserved", message="Quota reserved in ClusterQueue cq")
ADMITTED = condition("Admitted", reason="Admitted")
PENDING = condition("QuotaReserved", "False", "WaitingForQuota", "couldn't assign flavors")


def test_what_waits_is_stated_in_full() -> None:
    assert job_of(raw(PENDING)) == JobState(
        cluster="c1",
        epoch=0,
        rev=0,
        id="one",
        uid="u1",
        scope="team-a",
        queue="cq",
        demand={"cpu": 3000, "gpu": 6000},
        phase=Phase.WAITING,
        submitted=instant(CREATED),
        queue_time=instant(CREATED),
        pods=3,
        equivalence=equivalence(msgspec.convert(raw(PENDING), Workload)),
        local_queue="main",
        said="couldn't assign flavors",
    )


def pod_set(name: str, count: int, cpu: str, **spec: object) -> KubeObject:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return {"name": name, "count": count, "template": {"spec": {"containers": containers, **spec}}}


def test_pods_are_stated_one_by_one_where_the_demand_does_not_say_it_all() -> None:
    assert job_of(raw(PENDING)).shapes == (), "all alike: demand and pods say it"
    several = [pod_set("leader", 1, "500m"), pod_set("workers", 3, "2", nodeSelector={"gpu": "h100"})]
    job = job_of(raw(PENDING, spec__podSets=several))
    assert job.shapes == (
        JobShape(name="leader", pods=1, demand={"cpu": 500}),
        JobShape(name="workers", pods=3, demand={"cpu": 2000}, selector={"gpu": "h100"}),
    )
    assert (job.pods, job.demand) == (4, {"cpu": 6500})
    running = job_of(raw(RESERVED, spec__podSets=several))
    assert running.shapes == (), "nobody asks any more where it fits"
    fewer = job_of(raw(PENDING, spec__podSets=[pod_set("main", 3, "2") | {"minCount": 2}]))
    assert (fewer.pods, fewer.demand, fewer.shapes) == (2, {"cpu": 4000}, ()), "as many as it starts with"


def test_what_kueue_counts_otherwise_is_not_what_the_pods_ask_for() -> None:
    counted = [{"name": "main", "resources": {"cpu": "2", "example.com/credits": "10"}}]
    sets = [pod_set("main", 1, "2")]
    job = job_of(raw(PENDING, spec__podSets=sets, status__resourceRequests=counted))
    assert job.demand == {"cpu": 2000, "example.com/credits": 10_000}
    assert job.shapes == (JobShape(name="main", pods=1, demand={"cpu": 2000}),)


def test_reserved_quota_means_running() -> None:
    admission = {
        "clusterQueue": "other",
        "podSetAssignments": [{"name": "main", "count": 2, "resourceUsage": {"cpu": "2", "gpu": "4"}}],
    }
    job = job_of(raw(RESERVED, status__admission=admission))
    assert (job.phase, job.queue, job.started) == (Phase.RUNNING, "other", instant(LATER))
    assert (job.demand, job.pods) == ({"cpu": 2000, "gpu": 4000}, 2)
    assert job.charged == {}


def test_a_running_job_states_which_flavors_quota_it_holds() -> None:
    assigned = {"name": "main", "count": 2, "flavors": {"cpu": "x86"}, "resourceUsage": {"cpu": "2"}}
    admission = {"clusterQueue": "other", "podSetAssignments": [assigned]}
    assert job_of(raw(RESERVED, status__admission=admission)).charged == {"x86": {"cpu": 2000}}


def test_the_flavors_of_held_quota_are_told_where_the_pool_has_several() -> None:
    sets = [
        {"name": "a", "flavors": {"gpu": "old", "cpu": "f"}, "resourceUsage": {"cpu": "1", "gpu": "2"}},
        {"name": "b", "flavors": {"gpu": "old", "cpu": "new"}, "resourceUsage": {"cpu": "1", "gpu": "1"}},
    ]
    admitted = raw(RESERVED, status__admission={"clusterQueue": "cq", "podSetAssignments": sets})
    several = QUOTAS | {QuotaKey("old", "gpu"): Quota(nominal=1000)}
    assert job_of(admitted, a_view(quotas=several)).flavors == {"gpu": "old"}, (
        "not of CPUs: it holds two kinds"
    )
    assert job_of(admitted).flavors == {}, "one flavor gives it all"
    assert job_of(raw(PENDING), a_view(quotas=several)).flavors == {}


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("Succeeded", Outcome.SUCCEEDED),
        ("JobFinished", Outcome.SUCCEEDED),
        ("Failed", Outcome.FAILED),
        ("OwnerNotFound", Outcome.CANCELLED),
    ],
)
def test_what_finished_is_stated_for_a_while(reason: str, outcome: Outcome) -> None:
    view, now = a_view(), instant("2026-11-21T10:08:00Z")
    ended_at = instant("2026-11-21T10:07:00Z")
    finished = condition("Finished", reason=reason, message="done", at="2026-11-21T10:07:00Z")
    job = job_of(raw(RESERVED, finished), view, now)
    assert (job.phase, job.outcome, job.started, job.ended) == (
        Phase.ENDED,
        outcome,
        instant(LATER),
        ended_at,
    )
    assert job.said == "done"
    assert view.next_due() == ended_at + STAY
    assert view.settle(ended_at + STAY - 1) == {}
    [gone] = view.settle(ended_at + STAY).values()
    assert gone is None
    assert view.end_of(job) == End(uid="u1", at=ended_at, outcome=outcome, started=instant(LATER))
    assert view.end_of(msgspec.structs.replace(job, uid="u2")) is None


def test_of_what_finished_long_ago_only_the_end_is_kept() -> None:
    finished = condition("Finished", reason="Failed", at="2026-11-21T10:07:00Z")
    kept = workload_facts(msgspec.convert(raw(RESERVED, finished), Workload), ended_after=NOW)
    assert isinstance(kept, End)
    view = a_view()
    view.workload(KEY, kept)
    view.settle(NOW)
    assert not list(view.jobs())
    assert view.end_of(job_of(raw(RESERVED), a_view(), NOW)) == kept


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (raw(spec__active=False), "deactivated"),
        (raw(metadata__annotations={"kueue.x-k8s.io/admission-gated-by": "example.com/a"}), "example.com/a"),
        (raw(condition("Requeued", "False", "Preempted")), "not queued again"),
        (raw(status__requeueState={"requeueAt": "2026-11-21T11:00:01Z"}), "backing off until"),
        (raw(spec__queueName="nowhere"), "no LocalQueue 'nowhere'"),
    ],
)
def test_what_cannot_start_is_held_and_says_why(item: KubeObject, why: str) -> None:
    job = job_of(item)
    assert job.phase is Phase.HELD
    assert why in job.held_by
    assert job.said == "", "Kueue has said nothing of it"


def test_why_it_is_held_is_said_beside_what_kueue_last_said() -> None:
    said = condition("QuotaReserved", "False", "Pending", "insufficient quota")
    job = job_of(raw(said, spec__active=False))
    assert (job.said, job.held_by) == ("insufficient quota", "it is deactivated (spec.active)")
    assert job_of(raw(said)).held_by == ""
    over = condition("Evicted", reason="DeactivatedDueToMaximumExecutionTimeExceeded")
    assert job_of(raw(said, over, spec__active=False)).held_by == (
        "it is deactivated (spec.active): Kueue stopped it, as it ran for longer than its limit"
    )
    for refusal in ("resources didn't satisfy LimitRange constraints: a", "resources validation failed: b"):
        refused = job_of(raw(condition("QuotaReserved", "False", "Pending", refusal)))
        assert (refused.said, refused.phase, refused.limited) == (refusal, Phase.WAITING, True)
    oversize = job_of(raw(said, spec__queueName="main"), a_view(quotas={}))
    assert "ClusterQueue cq has no quota of it" in oversize.held_by


def test_what_kueue_deactivated_runs_no_more_although_nobody_clears_its_reservation() -> None:
    """Kueue gives its quota to others at once: counted as running it would be on top of theirs, for ever."""
    evicted = condition("Evicted", reason="Deactivated")
    gone = job_of(raw(RESERVED, ADMITTED, evicted, spec__active=False))
    assert (gone.phase, gone.held_by) == (Phase.HELD, "it is deactivated (spec.active)")
    # Until Kueue has seen it, it runs; so does what is being preempted, until its job has let go.
    assert job_of(raw(RESERVED, ADMITTED, spec__active=False)).phase is Phase.RUNNING
    assert job_of(raw(RESERVED, ADMITTED, condition("Evicted", reason="Preempted"))).phase is Phase.RUNNING


@pytest.mark.parametrize(
    ("queue", "why"),
    [
        ({"stopped": True}, "on hold"),
        ({"active": False}, "is not active"),
        ({"active": False, "why_inactive": "lacks a flavor"}, "is not active: lacks a flavor"),
        ({"name": "another"}, "does not exist"),
    ],
)
def test_what_a_queue_does_not_let_start_is_held(queue: dict[str, object], why: str) -> None:
    job = job_of(raw(), a_view(**queue))
    assert job.phase is Phase.HELD
    assert why in job.held_by
    assert job.said == "", "Kueue has said nothing of it"


def test_what_a_drained_queue_put_back_is_held_by_the_queue() -> None:
    put_back = raw(condition("Requeued", "False", "ClusterQueueStopped"))
    assert job_of(put_back, a_view(stopped=True)).held_by == "ClusterQueue cq is on hold (its stopPolicy)"


def test_a_stopped_local_queue_holds() -> None:
    view = a_view()
    view.local_queue(Key("team-a", "main"), LocalQueueFacts(queue="cq", stopped=True))
    assert job_of(raw(), view).phase is Phase.HELD


def test_what_is_larger_than_its_queue_can_ever_hold_is_held_with_a_fault() -> None:
    item = things.workload("one", "team-a", "main", {"gpu": 9})
    item["metadata"] |= {"uid": "u1", "creationTimestamp": CREATED}
    job = job_of(item)
    assert job.phase is Phase.HELD
    [fault] = job.faults
    assert (fault.field, fault.value) == ("spec.podSets gpu", "9")
    assert "at most 8" in fault.remedy
    item = things.workload("one", "team-a", "main", {"tpu": 1})
    item["metadata"] |= {"uid": "u1", "creationTimestamp": CREATED}
    assert "has no quota of it" in job_of(item).faults[0].remedy


def test_an_unknown_queue_is_a_fault_that_names_the_field() -> None:
    [fault] = job_of(raw(spec__queueName="nowhere")).faults
    assert (fault.field, fault.value) == ("spec.queueName", "nowhere")
    assert "in the label kueue.x-k8s.io/queue-name" in fault.remedy, "users write Jobs, not Workloads"


def test_a_demand_that_cannot_be_read_is_held_with_a_fault() -> None:
    item = things.workload("one", "team-a", "main", {"gpu": "many"})
    item["metadata"] |= {"uid": "u1", "creationTimestamp": CREATED}
    job = job_of(item)
    assert (job.phase, job.demand) == (Phase.HELD, {})
    assert "gpu" in job.faults[0].field


def test_pods_count_where_the_queue_has_quota_for_them() -> None:
    quotas = QUOTAS | {QuotaKey("f", "pods"): Quota(nominal=5000)}
    assert job_of(raw(), a_view(quotas=quotas)).demand == {"cpu": 3000, "gpu": 6000, "pods": 3000}
    few = QUOTAS | {QuotaKey("f", "pods"): Quota(nominal=2000)}
    assert job_of(raw(), a_view(quotas=few)).phase is Phase.HELD


def test_a_back_off_ends_by_itself() -> None:
    view = a_view()
    item = raw(status__requeueState={"requeueAt": "2026-11-21T11:00:01Z"})
    assert job_of(item, view).phase is Phase.HELD
    due = view.next_due()
    assert due == NOW + SECOND
    [job] = view.settle(due).values()
    assert isinstance(job, JobState)
    assert job.phase is Phase.WAITING


@pytest.mark.parametrize(
    ("reason", "status", "expected"),
    [
        ("PodsReadyTimeout", "True", LATER),
        ("AdmissionCheck", "True", LATER),
        ("Preempted", "True", CREATED),
        ("PodsReadyTimeout", "False", CREATED),
    ],
)
def test_the_queue_time_is_that_of_kueue(reason: str, status: str, expected: str) -> None:
    evicted = condition("Evicted", status, reason)
    job = job_of(raw(evicted))
    assert job.queue_time == instant(expected)
    assert job.submitted == instant(CREATED), "what Kueue forgets, the order keeps"


@pytest.mark.parametrize(
    ("annotations", "priority", "level"),
    [
        ({}, None, 0),
        ({}, 7, 7),
        ({"kueue.x-k8s.io/priority-boost": "5"}, 7, 12),
        ({"kueue.x-k8s.io/priority-boost": "-5"}, None, -5),
        ({"kueue.x-k8s.io/priority-boost": "x"}, 7, 7),
        ({"kueue.x-k8s.io/priority-boost": "4294967296"}, 7, 7),
    ],
)
def test_the_level_is_the_effective_priority(
    annotations: dict[str, str], priority: int | None, level: int
) -> None:
    assert job_of(raw(metadata__annotations=annotations, spec__priority=priority)).level == level


@pytest.mark.parametrize(
    ("selector", "labels", "held"),
    [
        (LabelSelector(), {}, False),
        (None, {}, True),
        (LabelSelector(match_labels={"gpu": "yes"}), {"gpu": "no"}, True),
        (LabelSelector(match_labels={"gpu": "yes"}), {"gpu": "yes"}, False),
        (LabelSelector(match_labels={"gpu": "yes"}), None, False),  # nothing is known of the namespace
    ],
)
def test_a_queue_that_does_not_take_the_namespace_holds(
    selector: LabelSelector | None, labels: dict[str, str] | None, *, held: bool
) -> None:
    view = a_view(selector=selector)
    view.namespace(Key("", "team-a"), labels)
    job = job_of(raw(), view)
    assert (job.phase is Phase.HELD) is held
    if held:
        assert "takes no Workloads of namespace team-a" in job.held_by
        assert [fault.field for fault in job.faults] == ["spec.queueName"]
        view.namespace(Key("", "team-a"), {"gpu": "yes"})
        moved = [one for one in view.settle(NOW).values() if isinstance(one, JobState)]
        assert [one.phase for one in moved] == ([Phase.WAITING] if selector is not None else [])


def test_a_boost_that_kueue_does_not_read_is_no_part_of_the_level() -> None:
    view = a_view()
    view.workload(KEY, facts_of(raw(metadata__annotations={PRIORITY_BOOST: "5"}, spec__priority=7)))
    view.settle(NOW)
    assert [job.level for job in view.jobs()] == [12]
    view.boosts(read=False)
    assert [one.level for one in view.settle(NOW).values() if isinstance(one, JobState)] == [7]
    view.boosts(read=True)
    assert [one.level for one in view.settle(NOW).values() if isinstance(one, JobState)] == [12]


@pytest.mark.parametrize(
    ("reference", "classes", "requested", "told"),
    [
        (None, {}, None, []),
        (
            {"kind": "WorkloadPriorityClass", "name": "high"},
            {("WorkloadPriorityClass", "high"): 9},
            "high",
            [],
        ),
        (
            {"kind": "WorkloadPriorityClass", "name": "high"},
            {("WorkloadPriorityClass", "high"): 3},
            "high",
            [
                "WorkloadPriorityClass high says 3, and Fairlead orders by the class: set it to that, or leave it, where the class was changed since"
            ],
        ),
        (
            {"kind": "PriorityClass", "name": "high"},
            {("PriorityClass", "high"): 2},
            None,
            [
                "PriorityClass high says 2, and Fairlead orders by the class: set it to that, or leave it, where the class was changed since"
            ],
        ),
        ({"kind": "WorkloadPriorityClass", "name": "gone"}, {}, "gone", []),
    ],
)
def test_the_base_is_what_a_boost_is_added_to_and_who_set_it_beside_its_class_is_told(
    reference: dict[str, str] | None,
    classes: dict[tuple[Any, str], int],
    requested: str | None,
    told: list[str],
) -> None:
    view = a_view()
    for (kind, name), value in classes.items():
        view.class_value(kind, Key("", name), value)
    job = job_of(raw(spec__priority=9, spec__priorityClassRef=reference), view)
    assert (job.base, job.requested_class) == (9, requested)
    assert [(one.field, one.value, one.remedy) for one in job.faults] == [
        ("spec.priority", "9", remedy) for remedy in told
    ]


def test_v1beta1_names_its_class_in_other_words() -> None:
    view = a_view()
    view.class_value("WorkloadPriorityClass", Key("", "high"), 3)
    item = raw(
        spec__priority=9,
        spec__priorityClassName="high",
        spec__priorityClassSource="kueue.x-k8s.io/workloadpriorityclass",
    )
    assert "WorkloadPriorityClass high" in job_of(item, view).faults[0].remedy


def an_owner(uid: str, **annotations: str) -> PartialObject:
    found = {f"wdrf.x-k8s.io/{key}": value for key, value in annotations.items()}
    metadata = {
        "name": "train",
        "namespace": "team-a",
        "uid": uid,
        "labels": {"team": "x"},
        "annotations": found,
    }
    return msgspec.convert({"metadata": metadata}, PartialObject)


def owned() -> KubeObject:
    reference = {"kind": "Job", "name": "train", "uid": "j1", "controller": True}
    return raw(metadata__ownerReferences=[reference])


def test_words_of_the_owner_count_and_the_nearer_place_wins() -> None:
    view = a_view()
    view.owner("Job", Key("team-a", "train"), owner_facts(an_owner("j1", urgent="true")))
    item = owned()
    template = item["spec"]["podSets"][0]["template"]
    template["metadata"] = {
        "labels": {"team": "y", "app": "z"},
        "annotations": {"fairlead.dev/submission": "s-1", "fairlead.dev/traceparent": "00-t"},
    }
    job = job_of(item, view)
    assert (job.owner, job.requested_class) == ("Job/train", "urgent")
    assert job.labels == {"team": "y", "app": "z"}
    assert (job.submission, job.traceparent) == ("s-1", "00-t")
    template["metadata"]["annotations"] = {"wdrf.x-k8s.io/approved": "true"}
    assert job_of(item, view).requested_class == "approved"
    item["metadata"]["annotations"] = {"wdrf.x-k8s.io/approved": "no", "wdrf.x-k8s.io/urgent": "true"}
    job = job_of(item, view)
    assert job.requested_class == "urgent"
    assert [fault.field for fault in job.faults] == ["metadata.annotations[wdrf.x-k8s.io/approved]"]


def test_another_object_of_the_owners_name_is_not_the_owner() -> None:
    view = a_view()
    view.owner("Job", Key("team-a", "train"), owner_facts(an_owner("j0", urgent="true")))
    assert job_of(owned(), view).requested_class is None
    view.owner("Job", Key("team-a", "train"), owner_facts(an_owner("j1", urgent="true")))
    [job] = view.settle(NOW).values()
    assert isinstance(job, JobState)
    assert job.requested_class == "urgent"


def test_a_pod_group_is_known_by_the_groups_name() -> None:
    view = a_view()
    pods = [{"kind": "Pod", "name": f"one-{n}", "uid": f"p{n}"} for n in range(20)]
    view.owner("Pod", Key("team-a", "one-3"), owner_facts(an_owner("p3", approved="true")))
    job = job_of(raw(metadata__ownerReferences=pods), view)
    assert (job.owner, job.requested_class) == ("PodGroup/one", "approved")
    single = [pods[0] | {"controller": True}]
    assert job_of(raw(metadata__ownerReferences=single), view).owner == "Pod/one-0"


def test_a_run_limit_is_what_is_left_of_it() -> None:
    item = raw(spec__maximumExecutionTimeSeconds=100, status__accumulatedPastExecutionTimeSeconds=30)
    assert job_of(item).run_limit == 70 * SECOND


def test_long_words_are_cut_and_masses_of_them_are_a_fault() -> None:
    assert len(job_of(raw(condition("QuotaReserved", "False", "x", "y" * 5000))).said) == 512
    many = {f"k{number}": "v" * 250 for number in range(500)}
    job = job_of(raw(metadata__annotations=many))
    assert [fault.field for fault in job.faults] == ["metadata"]
    assert len(msgspec.msgpack.encode(job)) < 100_000


def test_most_writes_to_a_status_are_no_change() -> None:
    first = facts_of(raw(PENDING))
    again = raw(PENDING | {"lastTransitionTime": "2026-11-21T10:09:00Z", "observedGeneration": 3})
    again["metadata"] |= {"resourceVersion": "99", "generation": 3, "managedFields": []}
    assert facts_of(again) == first


def pods_of_a_group(view: ClusterView, annotations: Callable[[int], dict[str, str]]) -> list[KubeObject]:
    """Makes as many owners as are read, each with annotations; returns the references to them."""
    references: list[KubeObject] = []
    for number in range(MOST_OWNERS):
        name, uid = f"one-{number:02}", f"p{number}"
        metadata = {"name": name, "namespace": "team-a", "uid": uid, "annotations": annotations(number)}
        facts = owner_facts(msgspec.convert({"metadata": metadata}, PartialObject))
        view.owner("Pod", Key("team-a", name), facts)
        references.append({"kind": "Pod", "name": name, "uid": uid, "controller": False})
    return references


def test_the_words_of_all_places_together_fit_into_one_message() -> None:
    view = a_view()
    # Each pod says something else, in characters that JSON writes with six.
    pods = pods_of_a_group(
        view, lambda pod: {f"k{pod:02}-{number:03}": "\x01" * 250 for number in range(120)}
    )
    own = {SUBMISSION: "s-1", "wdrf.x-k8s.io/urgent": "true"}
    job = job_of(raw(metadata__ownerReferences=pods, metadata__annotations=own), view)
    assert len(encode_state(job)) < 2**20 // 2
    assert (job.submission, job.requested_class) == ("s-1", "urgent")
    [fault] = job.faults
    said = MOST_OWNERS * 120 + len(own)
    assert fault.value == f"{said - len(job.annotations)} entries were left out"


def test_of_many_wishes_that_cannot_be_read_the_first_are_told_and_the_others_counted() -> None:
    view = a_view()
    pods = pods_of_a_group(
        view, lambda pod: {f"wdrf.x-k8s.io/{pod}-{number}": "\x01" for number in range(90)}
    )
    job = job_of(raw(metadata__ownerReferences=pods), view)
    told = [fault.value for fault in job.faults if fault.value != "\x01"]
    assert len(job.faults) - len(told) == MOST_FAULTS
    many, left_out = MOST_OWNERS * 90 - MOST_FAULTS, MOST_OWNERS * 90 - len(job.annotations)
    expected = [f"{many - left_out} more cannot be read"]
    assert told == expected + ([f"{left_out} entries were left out"] if left_out else [])
    assert len(encode_state(job)) < 2**20 // 2
