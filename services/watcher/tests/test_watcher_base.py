"""The base of a Workload's priority, and what is told where somebody else wrote it; `found_priority` has the rule."""

from typing import Literal

import msgspec
import pytest

from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.frontend.marks import BASE_PRIORITY, LEVEL_WRITER
from fairlead_contracts.messages.state import JobState
from fairlead_kube.kinds.workloads import Workload
from fairlead_kube.reflector import Key
from fairlead_testkit.kubelab import KubeObject, things
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.objects.quota import QueueFacts, Quota, QuotaKey
from fairlead_watcher.objects.workload_context import LocalQueueFacts
from fairlead_watcher.objects.workload_facts import workload_facts

CLASS: Literal["WorkloadPriorityClass"] = "WorkloadPriorityClass"
NOTE = f"metadata.annotations[{BASE_PRIORITY}]"
T0 = 1_800_000_000 * SECOND


def job_of(priority: int, *, note: str | None, written: dict[str, list[str]], value: int | None) -> JobState:
    """The job that a Workload is.

    Args:
        priority: its priority.
        note: the base that is noted on it, if any.
        written: the managers that wrote the priority and the note.
        value: the value of its class; None where it has none.
    """
    item = things.workload("one", "team-a", "main", {"cpu": 1})
    fields: dict[str, KubeObject] = {
        "priority": {"f:spec": {"f:priority": {}}},
        "note": {"f:metadata": {"f:annotations": {f"f:{BASE_PRIORITY}": {}}}},
    }
    item["metadata"] |= {
        "uid": "u1",
        "creationTimestamp": "2026-11-21T10:00:00Z",
        "annotations": {} if note is None else {BASE_PRIORITY: note},
        "managedFields": [
            {"manager": manager, "operation": "Update", "fieldsV1": fields[field]}
            for field, managers in written.items()
            for manager in managers
        ],
    }
    item["spec"] |= {"priority": priority}
    view = ClusterView("c1", ended_stay=SECOND)
    if value is not None:
        view.class_value(CLASS, Key("", "high"), value)
        item["spec"] |= {"priorityClassRef": {"kind": CLASS, "name": "high"}}
    view.local_queue(Key("team-a", "main"), LocalQueueFacts(queue="cq"))
    quotas = {QuotaKey("f", "cpu"): Quota(nominal=64_000)}
    view.cluster_queue(Key("", "cq"), QueueFacts(name="cq", quotas=quotas))
    view.workload(Key("team-a", "one"), workload_facts(msgspec.convert(item, Workload)))
    view.settle(T0)
    [job] = view.jobs()
    return job


@pytest.mark.parametrize(("writer", "base", "told"), [(LEVEL_WRITER, 50, []), ("kueue", 700, [(NOTE, "50")])])
def test_the_base_is_what_an_admitter_noted_and_who_else_notes_one_is_told(
    writer: str, base: int, told: list[tuple[str, str]]
) -> None:
    job = job_of(700, note="50", written={"priority": [writer], "note": [writer]}, value=None)
    assert (job.base, job.level) == (base, 700)
    assert [(fault.field, fault.value) for fault in job.faults] == told


def test_whose_note_beside_our_priority_is_forged_is_told_of_the_note_alone() -> None:
    written = {"priority": [LEVEL_WRITER], "note": ["kubectl-edit"]}
    job = job_of(2900, note="9000", written=written, value=2000)
    assert job.base == 0
    assert [(fault.field, fault.value) for fault in job.faults] == [(NOTE, "9000")]


def test_a_priority_of_nothing_beside_a_class_is_told_as_any() -> None:
    job = job_of(0, note=None, written={"priority": ["kubectl-create"]}, value=2000)
    assert [(fault.field, fault.value) for fault in job.faults] == [("spec.priority", "0")]
