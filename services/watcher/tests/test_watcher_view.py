"""Kept up to date object by object, the view says what a translation of everything from scratch says. And fast."""

import time
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fairlead_bus.facts.event_diff import LastEviction
from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_contracts.frontend.cards import Allocation, CardState
from fairlead_contracts.frontend.marks import SUBMISSION
from fairlead_contracts.messages.state import (
    ClassState,
    JobState,
    NodeState,
    Outcome,
    Phase,
    State,
    TenantState,
)
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.objects import LabelSelector
from fairlead_kube.reflector import Key
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.objects.cards import CardHolding
from fairlead_watcher.objects.metadata import MetadataWords
from fairlead_watcher.objects.quota import CohortFacts, QueueFacts, Quota, QuotaKey
from fairlead_watcher.objects.refused_flavors import PodSetRefusal
from fairlead_watcher.objects.shape_verdicts import FlavorVerdict
from fairlead_watcher.objects.workload_context import ClassKind, LocalQueueFacts
from fairlead_watcher.objects.workload_facts import (
    EVICTED_BY_CHECK,
    End,
    Known,
    Owner,
    OwnerFacts,
    PriorityFacts,
    QuotaHold,
    WorkloadFacts,
)
from fairlead_watcher.statements.pools import node

STAY = 600 * SECOND
T0 = 1_800_000_000 * SECOND
GPU = QuotaKey("f", "gpu")


class KubeObjects(msgspec.Struct):
    """The objects that there are."""

    workloads: dict[Key, Known] = {}
    local_queues: dict[Key, LocalQueueFacts] = {}
    queues: dict[Key, QueueFacts] = {}
    cohorts: dict[Key, CohortFacts] = {}
    classes: dict[tuple[ClassKind, Key], int] = {}
    owners: dict[tuple[str, Key], OwnerFacts] = {}
    nodes: dict[Key, NodeState] = {}
    holders: dict[Key, CardHolding] = {}
    namespaces: dict[str, dict[str, str]] = {}
    reads_boosts: bool = True

    def view(self) -> ClusterView:
        """The view made from scratch, in an order of its own."""
        view = ClusterView("c1", ended_stay=STAY)
        for key, facts in reversed(self.workloads.items()):
            view.workload(key, facts)
        for (kind, key), owner in self.owners.items():
            view.owner(kind, key, owner)
        for (word, key), value in self.classes.items():
            view.class_value(word, key, value)
        for key, cohort in self.cohorts.items():
            view.cohort(key, cohort)
        for key, queue in self.queues.items():
            view.cluster_queue(key, queue)
        for key, local_queue in self.local_queues.items():
            view.local_queue(key, local_queue)
        for key, holding in reversed(self.holders.items()):
            view.card_holder(key, holding)
        for key, state in self.nodes.items():
            view.node(key, state)
        for name, labels in self.namespaces.items():
            view.namespace(Key("", name), labels)
        view.boosts(read=self.reads_boosts)
        return view


QUEUES = st.sampled_from(["a", "b", "c"])
COHORTS = st.sampled_from(["r", "s", ""])
LOCAL_QUEUE_KEYS = st.sampled_from([Key("n1", "main"), Key("n1", "side"), Key("n2", "main")])
CLASSES = st.sampled_from(["high", "low"])
KINDS: st.SearchStrategy[ClassKind] = st.sampled_from(["WorkloadPriorityClass", "PriorityClass"])
OWNERS = st.sampled_from(["x", "y"])
NAMES = st.sampled_from([Key("n1", "one"), Key("n1", "two"), Key("n2", "one"), Key("n2", "three")])
UIDS = st.sampled_from(["u1", "u2"])
CARDS = st.lists(st.sampled_from(["g1", "g2"]), unique=True).map(
    lambda names: [CardState(uuid=name, count=10, memory=100, cores=100) for name in names]
)
HOLDINGS = st.builds(
    CardHolding,
    node=st.sampled_from(["n", "m"]),
    held=st.lists(
        st.builds(
            Allocation,
            uuid=st.sampled_from(["g1", "g2", "g3"]),
            memory=st.integers(0, 9),
            cores=st.integers(0, 9),
        ),
        max_size=3,
    ).map(tuple),
)
QUOTA = st.builds(lambda amount: {GPU: Quota(nominal=amount)}, st.integers(0, 3))
INSTANTS = st.integers(0, 20).map(lambda minutes: T0 + minutes * 60 * SECOND)
WORDS = st.sampled_from(
    [
        MetadataWords(),
        MetadataWords(labels={"team": "a"}, annotations={"wdrf.x-k8s.io/urgent": "true"}),
        MetadataWords(annotations={"wdrf.x-k8s.io/urgent": "false", "wdrf.x-k8s.io/priority-override": "?"}),
    ]
)
VERDICTS = st.builds(
    FlavorVerdict,
    INSTANTS,
    st.sampled_from([(), (PodSetRefusal(frozenset({"f"})),), (PodSetRefusal(no_node=True),)]),
)
ENDS = st.builds(End, uid=UIDS, at=INSTANTS, outcome=st.sampled_from(Outcome), started=st.none() | INSTANTS)


@st.composite
def workloads(draw: st.DrawFn, key: Key) -> Known:
    uid = draw(UIDS)
    end = draw(st.none() | ENDS)
    if end is not None and draw(st.booleans()):
        return msgspec.structs.replace(end, uid=uid)
    return WorkloadFacts(
        namespace=key.namespace,
        name=key.name,
        uid=uid,
        created=T0,
        queue_time=T0,
        local_queue=draw(st.sampled_from(["main", "side", "none"])),
        owners=[Owner("Job", draw(OWNERS), draw(UIDS))] if draw(st.booleans()) else [],
        own=draw(WORDS),
        template=draw(WORDS),
        active=draw(st.booleans()),
        priority=PriorityFacts(
            value=draw(st.integers(0, 2)),
            boost=draw(st.integers(0, 2)),
            class_kind=draw(KINDS),
            class_name=draw(CLASSES | st.just("")),
        ),
        demand={draw(st.sampled_from(["gpu", "slices"])): draw(st.integers(0, 5))},
        counted=draw(st.booleans()),
        counted_otherwise=draw(st.booleans()),
        counted_in_namespace=draw(st.booleans()),
        pods=1,
        run=draw(st.none() | st.builds(QuotaHold, queue=QUEUES, since=INSTANTS)),
        requeue_at=draw(st.none() | INSTANTS),
        retried=draw(st.integers(0, 2)),
        eviction=draw(st.none() | st.builds(LastEviction, reason=st.just(EVICTED_BY_CHECK), at=INSTANTS)),
        equivalence=draw(st.sampled_from(["", "x", "y"])),
        verdict=draw(st.none() | VERDICTS),
        end=None if end is None else msgspec.structs.replace(end, uid=uid),
    )


class ViewMachine(RuleBasedStateMachine):
    """Any changes in any order, settled now and then, in whole or in parts."""

    def __init__(self) -> None:
        super().__init__()
        self.world = KubeObjects()
        self.view = ClusterView("c1", ended_stay=STAY)
        self.now: Micros = T0
        self.heard: dict[str, State] = {}

    @rule(key=NAMES, data=st.data())
    def workload(self, key: Key, data: st.DataObject) -> None:
        facts = data.draw(st.none() | workloads(key))
        put(self.world.workloads, key, facts)
        self.view.workload(key, facts)

    @rule(
        key=LOCAL_QUEUE_KEYS,
        facts=st.none() | st.builds(LocalQueueFacts, queue=QUEUES, stopped=st.booleans()),
    )
    def local_queue(self, key: Key, facts: LocalQueueFacts | None) -> None:
        put(self.world.local_queues, key, facts)
        self.view.local_queue(key, facts)

    @rule(
        name=QUEUES,
        parent=COHORTS,
        quotas=QUOTA,
        gone=st.booleans(),
        active=st.booleans(),
        selector=st.none() | st.just(LabelSelector()) | st.just(LabelSelector(match_labels={"gpu": "yes"})),
    )
    def cluster_queue(
        self,
        *,
        name: str,
        parent: str,
        quotas: dict[QuotaKey, Quota],
        gone: bool,
        active: bool,
        selector: LabelSelector | None,
    ) -> None:
        facts = None
        if not gone:
            facts = QueueFacts(name=name, parent=parent, quotas=quotas, active=active, selector=selector)
        put(self.world.queues, Key("", name), facts)
        self.view.cluster_queue(Key("", name), facts)

    @rule(name=COHORTS.filter(bool), parent=COHORTS, quotas=QUOTA, gone=st.booleans())
    def cohort(self, name: str, parent: str, quotas: dict[QuotaKey, Quota], gone: bool) -> None:
        facts = None if gone else CohortFacts(name=name, parent=parent, quotas=quotas)
        put(self.world.cohorts, Key("", name), facts)
        self.view.cohort(Key("", name), facts)

    @rule(kind=KINDS, name=CLASSES, value=st.none() | st.integers(0, 3))
    def class_value(self, kind: ClassKind, name: str, value: int | None) -> None:
        put(self.world.classes, (kind, Key("", name)), value)
        self.view.class_value(kind, Key("", name), value)

    @rule(
        namespace=st.sampled_from(["n1", "n2"]),
        name=OWNERS,
        facts=st.none() | st.builds(OwnerFacts, uid=UIDS, words=WORDS),
    )
    def owner(self, namespace: str, name: str, facts: OwnerFacts | None) -> None:
        put(self.world.owners, ("Job", Key(namespace, name)), facts)
        self.view.owner("Job", Key(namespace, name), facts)

    @rule(name=st.sampled_from(["n", "m"]), ready=st.none() | st.booleans(), cards=CARDS)
    def node(self, name: str, ready: bool | None, cards: list[CardState]) -> None:
        state = None
        if ready is not None:
            state = NodeState(
                cluster="c1", epoch=0, rev=0, name=name, allocatable={}, ready=ready, cards=cards
            )
        put(self.world.nodes, Key("", name), state)
        self.view.node(Key("", name), state)

    @rule(key=NAMES, holding=st.none() | HOLDINGS)
    def card_holder(self, key: Key, holding: CardHolding | None) -> None:
        put(self.world.holders, key, holding)
        self.view.card_holder(key, holding)

    @rule(name=st.sampled_from(["n1", "n2"]), labels=st.none() | st.just({}) | st.just({"gpu": "yes"}))
    def namespace(self, name: str, labels: dict[str, str] | None) -> None:
        put(self.world.namespaces, name, labels)
        self.view.namespace(Key("", name), labels)

    @rule(read=st.booleans())
    def boosts(self, *, read: bool) -> None:
        self.world.reads_boosts = read
        self.view.boosts(read=read)

    @rule(minutes=st.integers(0, 15))
    def time_goes_by(self, minutes: int) -> None:
        self.now += minutes * 60 * SECOND

    @rule(at_most=st.none() | st.integers(1, 3))
    def settle(self, at_most: int | None) -> None:
        self.hear(self.view.settle(self.now, at_most=at_most))

    def hear(self, statements: Mapping[str, State | None]) -> None:
        for subject, state in statements.items():
            assert self.heard.get(subject) != state, "only what is different is told"
            put(self.heard, subject, state)

    @invariant()
    def says_the_same_as_from_scratch(self) -> None:
        self.hear(self.view.settle(self.now))
        assert not self.view.unsettled
        fresh = self.world.view()
        assert fresh.settle(self.now) == self.view.stated == self.heard
        assert fresh.next_due() is None or self.view.next_due() is not None


def put[K, V](into: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        into.pop(key, None)
    else:
        into[key] = value


ViewMachine.TestCase.settings = settings(stateful_step_count=25, deadline=None)
TestView = pytest.mark.timeout(600)(ViewMachine.TestCase)


def a_busy_cluster(jobs: int) -> KubeObjects:
    world = KubeObjects()
    for number in range(30):
        name = f"q{number}"
        world.queues[Key("", name)] = QueueFacts(
            name=name, parent=f"r{number % 5}", quotas={GPU: Quota(nominal=20)}
        )
        world.local_queues[Key(f"team-{number}", "main")] = LocalQueueFacts(queue=name)
    world.classes["WorkloadPriorityClass", Key("", "high")] = 100
    for number in range(jobs):
        namespace = f"team-{number % 30}"
        key = Key(namespace, f"job-{number}-12345")
        owner = Owner("Job", f"job-{number}", f"owner-{number}")
        world.owners["Job", Key(namespace, owner.name)] = OwnerFacts(
            uid=owner.uid,
            words=MetadataWords(labels={"app": "train"}, annotations={"wdrf.x-k8s.io/urgent": "true"}),
        )
        world.workloads[key] = WorkloadFacts(
            namespace=namespace,
            name=key.name,
            uid=f"{number:08x}-3a51-4b6c-8e0f-000000000000",
            created=T0,
            queue_time=T0,
            local_queue="main",
            owners=[owner],
            template=MetadataWords(labels={"app": "train"}, annotations={"team": "a"}),
            priority=PriorityFacts(class_kind="WorkloadPriorityClass", class_name="high"),
            demand={"gpu": 2},
            pods=2,
        )
    return world


def test_a_large_cluster_is_translated_in_a_moment_and_one_change_at_once() -> None:
    """Measured: 15,000 from scratch in 0.6 s, one change in 0.05 ms. The bounds allow for a busy machine."""
    world = a_busy_cluster(3000)
    view = world.view()
    began = time.process_time()
    view.settle(T0)
    assert time.process_time() - began < 2.0
    assert sum(1 for _ in view.jobs()) == 3000
    key, facts = next(iter(world.workloads.items()))
    assert isinstance(facts, WorkloadFacts)
    began = time.process_time()
    for level in range(1, 101):
        view.workload(
            key, msgspec.structs.replace(facts, priority=msgspec.structs.replace(facts.priority, boost=level))
        )
        assert len(view.settle(T0)) == 1
    assert (time.process_time() - began) / 100 < 0.005


def test_a_change_translates_only_what_looked_it_up() -> None:
    world = a_busy_cluster(300)
    view = world.view()
    view.settle(T0)
    queue = Key("", "q7")
    facts = msgspec.structs.replace(world.queues[queue], active=False)
    view.cluster_queue(queue, facts)
    changed = view.settle(T0)
    jobs = [state for state in changed.values() if isinstance(state, JobState)]
    assert len(jobs) == 10
    assert {job.phase for job in jobs} == {Phase.HELD}
    assert len(changed) == 11, "and the queue itself"


def test_a_job_whose_pods_are_gone_before_it_keeps_its_submission() -> None:
    world = a_busy_cluster(1)
    [(key, facts)] = world.workloads.items()
    assert isinstance(facts, WorkloadFacts)
    pod = Key(key.namespace, "p-0")
    view = world.view()
    view.workload(key, msgspec.structs.replace(facts, owners=[Owner("Pod", pod.name, "p")]))
    words = MetadataWords(annotations={SUBMISSION: "train-1"})
    view.owner("Pod", pod, OwnerFacts(uid="p", words=words))
    view.settle(T0)
    view.owner("Pod", pod, None)
    view.settle(T0)
    assert [job.submission for job in view.jobs()] == ["train-1"]
    view.workload(key, msgspec.structs.replace(facts, uid="another"))
    view.settle(T0)
    assert [job.submission for job in view.jobs()] == [None]


def test_what_stands_beside_the_jobs_is_stated_and_goes() -> None:
    view = ClusterView("c1", ended_stay=STAY)
    view.local_queue(Key("team-a", "main"), LocalQueueFacts(queue="cq"))
    view.class_value("WorkloadPriorityClass", Key("", "high"), 3)
    view.class_value("PriorityClass", Key("", "high"), 4)
    assert set(view.settle(T0).values()) == {
        TenantState(cluster="c1", epoch=0, rev=0, name="main", scope="team-a", queue="cq"),
        ClassState(cluster="c1", epoch=0, rev=0, name="high", value=3),
    }
    view.local_queue(Key("team-a", "main"), None)
    view.class_value("WorkloadPriorityClass", Key("", "high"), None)
    assert list(view.settle(T0).values()) == [None, None]


def test_a_node_is_read_as_it_is_and_heartbeats_change_nothing() -> None:
    raw = {
        "metadata": {"name": "n1", "labels": {"zone": "a"}},
        "spec": {
            "unschedulable": True,
            "taints": [
                {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
                {"key": "x", "effect": "NoExecute"},
            ],
        },
        "status": {
            "allocatable": {"cpu": "3920m", "memory": "1Ki", "nvidia.com/gpu": 8, "odd": "many"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-21T10:00:00Z"}],
        },
    }
    assert node("c1", msgspec.convert(raw, Node)) == NodeState(
        cluster="c1",
        epoch=0,
        rev=0,
        name="n1",
        allocatable={"cpu": 3920, "memory": 1024, "nvidia.com/gpu": 8000},
        labels={"zone": "a"},
        ready=True,
        taints=["gpu=yes:NoSchedule", "x:NoExecute"],
        unschedulable=True,
    )
