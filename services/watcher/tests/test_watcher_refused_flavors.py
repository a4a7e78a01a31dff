"""Jobs that no flavor takes, by Kueue's own words. The messages are those of Kueue 0.19."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec
import pytest

from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.messages.state import JobState
from fairlead_kube.kinds.objects import instant
from fairlead_kube.kinds.workloads import Workload
from fairlead_kube.reflector import Key
from fairlead_testkit.kubelab import KubeObject, things
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.objects.quota import QueueFacts, Quota, QuotaKey, Quotas
from fairlead_watcher.objects.workload_context import LocalQueueFacts
from fairlead_watcher.objects.workload_facts import LONGEST_SAID, workload_facts

AT = "2026-11-21T10:00:00Z"
KEY = Key("team-a", "one")
SPOT, BASE, NET = "flavor spot doesn't match node affinity", "flavor base doesn't match node affinity", "net"
TAINTED = "untolerated taint {spot true NoSchedule %!s(*v1.Time=<nil>)} in flavor spot"
SHORT = "insufficient unused quota for cpu in flavor base, 2 more needed"
TOO_LARGE = (
    "insufficient quota for cpu in flavor base, previously considered podsets requests (0)"
    " + current podset request (70) > maximum capacity (64)"
)
BYPASSED = "Bypassed scheduling evaluation because an equivalent workload recently failed"
NO_NODE = 'topology "racks" doesn\'t allow to fit any of 1 pod(s). Total nodes: 3; excluded: '
UNSUITED = NO_NODE + 'nodeSelector: 1, affinity: 1, taint "gpu=only:NoSchedule": 1'


def quotas(*flavors: str, resource: str = "cpu") -> Quotas:
    return {QuotaKey(flavor, resource): Quota(nominal=64_000) for flavor in flavors}


def refusal(*reasons: str, pod_set: str = "main") -> str:
    return f"couldn't assign flavors to pod set {pod_set}: {', '.join(sorted(reasons))}"


def job_of(
    message: str,
    given: Quotas,
    *,
    status: str = "False",
    active: bool = True,
    strategy: str = "",
    min_count: int | None = None,
    beside: Mapping[str, str] = MappingProxyType({}),
) -> JobState:
    """The job of a Workload of which Kueue says so; `beside` are the statuses of further conditions."""
    view = ClusterView("c1", ended_stay=600 * SECOND)
    view.local_queue(Key("team-a", "main"), LocalQueueFacts(queue="cq"))
    view.cluster_queue(Key("", "cq"), QueueFacts(name="cq", quotas=given, strategy=strategy))
    item: KubeObject = things.workload("one", "team-a", "main", {"cpu": 1, "gpu": 1})
    item["spec"]["active"] = active
    item["spec"]["podSets"][0]["minCount"] = min_count
    item["metadata"] |= {"uid": "u1", "creationTimestamp": AT}
    said = {"type": "QuotaReserved", "status": status, "reason": "Pending", "message": message}
    further = [{"type": kind, "status": value, "reason": "", "message": ""} for kind, value in beside.items()]
    item["status"] = {"conditions": [one | {"lastTransitionTime": AT} for one in (said, *further)]}
    view.workload(KEY, workload_facts(msgspec.convert(item, Workload)))
    view.settle(instant(AT))
    [job] = view.jobs()
    return job


GPUS = quotas("cards", resource="gpu")
BOTH = quotas("spot", "base") | GPUS


@pytest.mark.parametrize(
    ("message", "given", "flavorless"),
    [
        (refusal(SPOT), quotas("spot") | GPUS, True),
        (refusal(TAINTED), quotas("spot") | GPUS, True),
        (refusal(SPOT, BASE), BOTH, True),
        (refusal(TAINTED, BASE), BOTH, True),
        (refusal(SPOT, SHORT), BOTH, False),
        (refusal(TAINTED, TOO_LARGE), BOTH, True),
        # What another pod set of the job takes of a flavor may come from the other one next time.
        (refusal(TAINTED, TOO_LARGE.replace("requests (0)", "requests (40)")), BOTH, False),
        # Quota was added since: Kueue has not said anything new of it.
        (refusal(TAINTED, TOO_LARGE.replace("request (70)", "request (64)")), BOTH, False),
        (refusal(TAINTED, TOO_LARGE.replace("request (70)", "request (64001m)")), BOTH, True),
        (refusal(SHORT.replace("cpu", "gpu"), TOO_LARGE), quotas("base") | GPUS, True),
        (refusal('Flavor "spot" does not support TopologyAwareScheduling'), quotas("spot") | GPUS, True),
        (refusal('Flavor "spot" supports only TopologyAwareScheduling', SHORT), BOTH, False),
        (refusal('Flavor "base" does not contain the requested level', SPOT), BOTH, True),
        (
            refusal('Flavor "spot.v1" is refused for a reason of a later Kueue'),
            quotas("spot.v1") | GPUS,
            True,
        ),
        (refusal(SHORT), BOTH, False),
        ("", BOTH, False),
        ("Workload no longer fits after processing another workload", BOTH, False),
        # Kueue went on with the flavor behind the one that it tried last.
        (refusal(BASE), BOTH, False),
        # No pod set is refused by both.
        ("; ".join([refusal(SPOT, SHORT), refusal(BASE, pod_set="worker")]), BOTH, False),
        # One of them finds none, and the job starts as a whole.
        ("; ".join([refusal(SHORT), refusal(SPOT, BASE, pod_set="worker")]), BOTH, True),
        # Of one resource no flavor is left, whatever is short of the other.
        (refusal(SHORT, "flavor cards doesn't match node affinity"), BOTH, True),
        # Nobody asks for what this flavor alone gives.
        (refusal(SPOT, SHORT), BOTH | quotas("spot", resource=NET), False),
        (refusal(SPOT), quotas("spot-new") | GPUS, False),
    ],
)
def test_a_job_is_flavorless_where_every_flavor_of_a_resource_is_named(
    message: str, given: Quotas, *, flavorless: bool
) -> None:
    assert bool(job_of(message, given).flavorless) is flavorless


@pytest.mark.parametrize(
    ("message", "refused_by"),
    [
        (refusal(SPOT, SHORT), ("spot",)),
        (refusal(TAINTED, SHORT), ("spot",)),
        (refusal(SHORT), ()),
        # Another pod set may get another flavor.
        (refusal(SPOT, SHORT) + "; " + refusal(BASE, pod_set="other"), ()),
    ],
)
def test_a_job_tells_the_flavors_that_refuse_it_while_another_is_used_up(
    message: str, refused_by: tuple[str, ...]
) -> None:
    job = job_of(message, BOTH)
    assert (job.refused_by or (), bool(job.flavorless)) == (refused_by, False)
    assert not job_of(message, BOTH, active=False).refused_by, "it is held"


@pytest.mark.parametrize(
    ("message", "limited"),
    [
        (refusal(UNSUITED), True),
        (refusal(UNSUITED, SHORT), False),
        (refusal(NO_NODE + 'nodeSelector: 2, resource "nvidia.com/gpu": 1'), False),
        (refusal(NO_NODE + "nodeSelector: 2"), False),
        (refusal('topology "racks" allows to fit only 2 out of 3 pod(s)'), False),
    ],
)
def test_a_job_whose_nodes_are_missing_is_tried_in_its_turn_and_counts_nothing(
    message: str, *, limited: bool
) -> None:
    """Nodes come and go, and of jobs of one shape Kueue says so of the first alone."""
    job = job_of(message, quotas("spot") | GPUS)
    assert (bool(job.flavorless), bool(job.limited)) == (False, limited)
    assert not job_of(message, quotas("spot") | GPUS, strategy="StrictFIFO").limited


def test_what_kueue_does_not_queue_was_not_evicted() -> None:
    """It says so of claims of a DeviceClass that its configuration does not know, of a Workload that never ran."""
    said = "DeviceClass gpu.example.com is not mapped in DRA configuration"
    refused = job_of(said, GPUS, beside={"Requeued": "False"})
    assert refused.held_by == f"Kueue does not queue it: {said}"
    evicted = job_of(said, GPUS, beside={"Requeued": "False", "Evicted": "True"})
    assert evicted.held_by == "evicted, and not queued again yet"


def test_that_all_pods_are_too_many_is_no_refusal_where_fewer_may_start() -> None:
    given = quotas("base") | GPUS
    assert job_of(refusal(TOO_LARGE), given).flavorless
    assert not job_of(refusal(TOO_LARGE), given, min_count=1).flavorless
    assert job_of(refusal(BASE), given, min_count=1).flavorless


def test_the_whole_message_is_read_however_much_of_it_is_told() -> None:
    names = [f"flavor-{number}" for number in range(30)]
    message = refusal(*(f"flavor {name} doesn't match node affinity" for name in names))
    job = job_of(message, quotas(*names) | GPUS)
    assert len(job.said) == LONGEST_SAID < len(message)
    assert job.flavorless


def test_only_a_job_that_waits_is_passed_by_and_a_strict_queue_passes_nobody_by() -> None:
    given = quotas("spot") | GPUS
    assert job_of(refusal(SPOT), given, strategy="BestEffortFIFO").flavorless
    assert not job_of(refusal(SPOT), given, strategy="StrictFIFO").flavorless
    assert not job_of(refusal(SPOT), given, status="True").flavorless
    assert not job_of(refusal(SPOT), given, active=False).flavorless, "it is held"


def test_a_flavor_that_is_added_may_take_it() -> None:
    assert job_of(refusal(SPOT, BASE), BOTH).flavorless
    assert not job_of(refusal(SPOT, BASE), BOTH | quotas("new")).flavorless


def told(name: str, message: str, *, at: str, queue: str = "main", cpu: int = 1) -> KubeObject:
    """A Workload of which Kueue said something at a time, at first or anew: the condition's own time stays."""
    item = things.workload(name, "team-a", queue, {"cpu": cpu})
    item["metadata"] |= {"uid": name, "creationTimestamp": AT}
    if message:
        item["metadata"]["managedFields"] = [
            {"manager": "kueue-admission", "operation": "Apply", "subresource": "status", "time": at},
            {"manager": "fairlead-admitter", "operation": "Update", "time": "2026-11-21T12:00:00Z"},
        ]
        said = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message}
        item["status"] = {"conditions": [said | {"lastTransitionTime": AT}]}
    return item


class WaitingShapes:
    """Workloads of two queues as the watcher hears of them."""

    def __init__(self) -> None:
        self.view = ClusterView("c1", ended_stay=600 * SECOND)
        for queue in ("main", "side"):
            self.view.local_queue(Key("team-a", queue), LocalQueueFacts(queue=queue))
            self.view.cluster_queue(Key("", queue), QueueFacts(name=queue, quotas=quotas("spot")))

    def hear(self, *items: KubeObject) -> set[str]:
        """The jobs that are flavorless now."""
        for item in items:
            key = Key("team-a", item["metadata"]["name"])
            self.view.workload(key, workload_facts(msgspec.convert(item, Workload)))
        self.view.settle(instant(AT))
        return {job.id for job in self.view.jobs() if job.flavorless is True}


def test_a_shape_is_judged_by_the_newest_verdict_on_any_of_it() -> None:
    """Kueue tries the first of a shape alone, and of the others its old words stand."""
    waiting = WaitingShapes()
    first, second = "2026-11-21T11:00:00Z", "2026-11-21T11:00:07Z"
    others = [
        told("larger", refusal(SPOT), at=AT, cpu=2),
        told("beside", refusal(SPOT), at=AT, queue="side"),
    ]
    assert waiting.hear(
        told("a", refusal(SPOT), at=first),
        told("b", refusal(SPOT), at=AT),
        told("untried", "", at=""),
        *others,
    ) == {"a", "b", "untried", "larger", "beside"}
    assert waiting.hear(told("b", refusal(SHORT), at=second)) == {"larger", "beside"}
    assert waiting.hear(told("b", BYPASSED, at=second)) == {
        "a", "b", "untried", "larger", "beside",
    }  # fmt: skip
    assert waiting.hear(told("untried", refusal(SHORT), at=first)) == {"larger", "beside"}, (
        "of one second the mildest"
    )
    assert waiting.hear(told("a", refusal(SPOT), at=second)) == {"a", "b", "untried", "larger", "beside"}
    waiting.view.local_queue(Key("team-a", "side"), LocalQueueFacts(queue="main"))
    assert "beside" in waiting.hear()
    waiting.view.workload(Key("team-a", "a"), None)
    assert waiting.hear() == {"larger"}, "a verdict goes with its job"


def test_what_refuses_a_shape_is_not_stated_anew_of_each_job_at_each_start() -> None:
    """Kueue says it of the first one alone, which then starts, and says it again of the next."""
    view = WaitingShapes().view
    view.cluster_queue(Key("", "main"), QueueFacts(name="main", quotas=BOTH))

    def changed(*items: KubeObject | str) -> dict[str, tuple[str, ...]]:
        for item in items:
            key = Key("team-a", item if isinstance(item, str) else item["metadata"]["name"])
            found = None if isinstance(item, str) else workload_facts(msgspec.convert(item, Workload))
            view.workload(key, found)
        stated = view.settle(instant(AT)).values()
        return {job.id: job.refused_by or () for job in stated if isinstance(job, JobState)}

    bypassed = [told(name, BYPASSED, at=AT) for name in "bc"]
    tried = refusal(SPOT, SHORT)
    assert changed(told("a", tried, at=AT), *bypassed) == dict.fromkeys("abc", ("spot",))
    assert changed("a") == {}
    assert changed(told("b", tried, at="2026-11-21T11:00:00Z")) == {"b": ("spot",)}
    assert changed("b") == {}
    assert changed(told("d", "", at="")) == {"d": ("spot",)}
    assert changed(told("c", refusal(SHORT), at="2026-11-21T12:00:00Z")) == {"c": (), "d": ()}
    assert changed(told("c", tried, at="2026-11-21T13:00:00Z")) == dict.fromkeys("cd", ("spot",))
    assert changed("c", "d") == {}
    assert changed(told("e", "", at="")) == {"e": ()}, "nobody of the shape waited meanwhile"
    changed("e")
    deactivated = told("f", tried, at=AT)
    deactivated["spec"]["active"] = False
    assert changed(deactivated) == {"f": ()}
    assert changed("f") == {}
    assert changed(told("g", "", at="")) == {"g": ()}
