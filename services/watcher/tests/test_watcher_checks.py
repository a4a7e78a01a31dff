"""A Workload and its admission checks: when it starts, and when it is queued again. Objects as the API server has them."""

from functools import partial

import msgspec
import pytest

from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_kube.kinds.objects import instant
from fairlead_kube.kinds.workloads import Workload
from fairlead_kube.reflector import Key
from fairlead_testkit.kubelab import KubeObject, things
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.objects.quota import QueueFacts, Quota, QuotaKey
from fairlead_watcher.objects.workload_context import LocalQueueFacts
from fairlead_watcher.objects.workload_facts import (
    workload_facts,
)

CREATED = "2026-11-21T10:00:00Z"
LATER = "2026-11-21T10:05:00Z"
NOW = instant("2026-11-21T11:00:00Z")
KEY = Key("team-a", "one")

condition = partial(things.stated_condition, at=LATER)


def a_view() -> ClusterView:
    view = ClusterView("c1", ended_stay=600 * SECOND)
    view.local_queue(Key("team-a", "main"), LocalQueueFacts(queue="cq"))
    quotas = {QuotaKey("f", "gpu"): Quota(nominal=8000)}
    view.cluster_queue(Key("", "cq"), QueueFacts(name="cq", quotas=quotas))
    return view


def raw(*conditions: KubeObject, **status: object) -> KubeObject:
    item = things.workload("one", "team-a", "main", {"gpu": 2}, pods=3)
    item["metadata"] |= {"uid": "u1", "creationTimestamp": CREATED}
    return item | {"status": {"conditions": list(conditions), **status}}


def job_of(item: KubeObject, view: ClusterView | None = None) -> JobState:
    view = view or a_view()
    view.workload(KEY, workload_facts(msgspec.convert(item, Workload)))
    view.settle(NOW)
    [job] = view.jobs()
    return job


RESERVED = condition("QuotaReserved", message="Quota reserved in ClusterQueue cq")
ADMITTED = condition("Admitted", reason="Admitted")


CHECK = {"name": "gang-fit", "state": "Pending", "message": "Not all of its pods have room."}
CHECK_SAID = "admission check gang-fit is Pending: Not all of its pods have room."


@pytest.mark.parametrize(
    ("checks", "admitted", "told"),
    [
        ([CHECK], False, CHECK_SAID),
        ([CHECK, {"name": "other", "state": "Ready"}], False, CHECK_SAID),
        ([{"name": "other", "state": "Ready"}], False, "Kueue has not admitted it yet"),
        ([{"name": "other", "state": "Ready"}], True, ""),
    ],
)
def test_quota_is_no_start_before_kueue_admits(
    checks: list[KubeObject], admitted: bool, told: str
) -> None:  # a parameter
    job = job_of(raw(RESERVED, *([ADMITTED] if admitted else []), admissionChecks=checks))
    assert (job.phase, job.unchecked) == (Phase.RUNNING, told)
    assert (job.open_checks or []) == (["gang-fit"] if told == CHECK_SAID else [])


def test_when_its_checks_let_it_start_is_stated_beside_when_it_got_its_quota() -> None:
    quota, admitted = instant(LATER), instant("2026-11-21T10:08:00Z")
    let_in = condition("Admitted", at="2026-11-21T10:08:00Z")
    job = job_of(raw(RESERVED, let_in))
    assert (job.started, job.admitted, job.began) == (quota, admitted, admitted)
    finished = condition("Finished", reason="Failed", at="2026-11-21T10:59:00Z")
    over = job_of(raw(RESERVED, let_in, finished))
    assert (over.started, over.admitted) == (quota, admitted)
    at_once = job_of(raw(RESERVED, ADMITTED))
    assert (at_once.admitted, at_once.began) == (msgspec.UNSET, quota)
    assert job_of(raw(RESERVED)).began is None


def test_who_was_put_back_by_a_check_is_told_what_the_check_said() -> None:
    evicted = condition("Evicted", reason="AdmissionCheck")
    at = {"requeueAt": "2026-11-21T12:00:00Z"}
    job = job_of(raw(evicted, admissionChecks=[CHECK], requeueState=at))
    assert job.held_by == f"backing off until 2026-11-21T12:00:00+00:00; {CHECK_SAID}"
    timeout, out = condition("Evicted", reason="PodsReadyTimeout"), condition("Requeued", "False")
    job = job_of(raw(timeout, out, admissionChecks=[CHECK], requeueState=at))
    assert job.held_by == "backing off until 2026-11-21T12:00:00+00:00; its pods were not ready in time"
    past = {"requeueAt": "2026-11-21T10:59:00Z"}
    job = job_of(raw(timeout, out, requeueState=past))
    assert job.held_by == "evicted, and not queued again yet; its pods were not ready in time"


@pytest.mark.parametrize(
    ("retried", "seconds", "times"),
    [(1, 2, "once"), (3, 8, "3 times in a row"), (2**31 - 1, 300, "2147483647 times in a row")],
)
def test_others_go_before_what_a_check_put_back_for_longer_each_time(
    retried: int, seconds: int, times: str
) -> None:
    """Kueue queues it at once. As the first of the order it would take the same room again, for ever."""
    view = a_view()
    evicted = condition("Evicted", reason="AdmissionCheck", at="2026-11-21T11:00:00Z")
    check = {"name": "nodes", "state": "Pending", "message": "none to be had", "retryCount": retried}
    job = job_of(raw(evicted, admissionChecks=[check]), view)
    assert (job.phase, view.next_due()) == (Phase.HELD, NOW + seconds * SECOND)
    assert job.held_by.startswith(f"a check put it back {times}: others go first until ")
    assert job.held_by.endswith("admission check nodes is Pending: none to be had")
    [later] = view.settle(NOW + seconds * SECOND).values()
    assert isinstance(later, JobState)
    assert later.phase is Phase.WAITING


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        ({"name": "gang-fit", "retryCount": 3}, "AdmissionCheck"),  # Kueue keeps it out of its queue
        ({"name": "nodes"}, "AdmissionCheck"),
        ({"name": "nodes", "retryCount": 3}, "Preempted"),
    ],
)
def test_who_was_put_back_otherwise_waits_in_its_place(check: KubeObject, reason: str) -> None:
    evicted = condition("Evicted", reason=reason, at="2026-11-21T11:00:00Z")
    checks = [{"state": "Pending", "message": "", **check}]
    assert job_of(raw(evicted, admissionChecks=checks)).phase is Phase.WAITING
