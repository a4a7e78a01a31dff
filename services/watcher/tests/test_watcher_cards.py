"""Cards as nodes register them, with what pods hold of them; and what pods of jobs ask of cards."""

import json

import msgspec

from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.frontend.cards import ALLOCATED, CARD_POLICY, CORDON, HOLDER, REGISTER, CardState
from fairlead_contracts.messages.state import JobShape, NodeState
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.objects import PartialObject
from fairlead_kube.kinds.workloads import Workload
from fairlead_kube.reflector import Key
from fairlead_testkit.by_hand.kube_observer_log import KubeObserverLog
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.objects.cards import Refusals, holding_of
from fairlead_watcher.objects.workload_facts import WorkloadFacts, workload_facts
from fairlead_watcher.statements.pools import node

A30 = {
    "id": "GPU-1",
    "count": 10,
    "devmem": 24576,
    "devcore": 100,
    "type": "NVIDIA-A30",
    "mode": "hami-core",
    "health": True,
}
OLD = "GPU-2,10,16384,100,NVIDIA-V100,1,true:"
T0 = 1_800_000_000 * SECOND


def a_node(name: str = "n1", /, **annotations: str) -> NodeState:
    keys = {"register": REGISTER, "cordon": CORDON, "handshake": "hami.io/node-handshake"}
    metadata = {"name": name, "annotations": {keys[word]: value for word, value in annotations.items()}}
    return node("c1", msgspec.convert({"metadata": metadata}, Node))


def a_pod(name: str, annotations: dict[str, str]) -> PartialObject:
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": "a", "annotations": annotations}}, PartialObject
    )


def test_both_encodings_are_stated_with_what_is_cordoned() -> None:
    new = a_node(register=json.dumps([A30]), cordon="GPU-1")
    assert new.cards == [
        CardState(uuid="GPU-1", count=10, memory=24576, cores=100, model="NVIDIA-A30", cordoned=True)
    ]
    [old] = a_node(register=OLD).cards
    assert (old.uuid, old.memory, old.numa, old.health) == ("GPU-2", 16384, 1, True)
    assert a_node().cards == []


def test_the_handshake_changes_nothing_that_is_stated() -> None:
    view = ClusterView("c1", ended_stay=SECOND)
    view.node(Key("", "n1"), a_node(register=OLD, handshake="Requesting_2026-11-21 10:00:00"))
    assert len(view.settle(T0)) == 1
    view.node(Key("", "n1"), a_node(register=OLD, handshake="Requesting_2026-11-21 10:00:30"))
    assert view.settle(T0) == {}


def test_a_register_that_cannot_be_read_is_refused_with_its_node_named() -> None:
    bad = a_node("n7", register="GPU-1,ten,1")
    assert bad.cards == []
    assert '"n7"' in bad.cards_refused
    assert REGISTER in bad.cards_refused
    twice = a_node("n8", register=json.dumps([A30, A30]))
    assert "each card needs a name of its own" in twice.cards_refused


def test_what_pods_hold_is_used_until_they_are_over() -> None:
    view = ClusterView("c1", ended_stay=SECOND)
    noted = {HOLDER: "n1", ALLOCATED: "GPU-2,NVIDIA,3000,30:;GPU-2,NVIDIA,1000,0:GPU-9,NVIDIA,5,5:;"}
    one, two = holding_of(a_pod("one", noted)), holding_of(a_pod("two", noted | {HOLDER: "elsewhere"}))
    view.card_holder(Key("a", "one"), one)
    view.card_holder(Key("a", "two"), two)
    view.node(Key("", "n1"), a_node(register=OLD))
    [state] = view.settle(T0).values()
    assert isinstance(state, NodeState)
    [card] = state.cards
    assert (card.used_count, card.used_memory, card.used_cores) == (2, 4000, 30)
    view.card_holder(Key("a", "one"), None)
    [state] = view.settle(T0).values()
    assert state == a_node(register=OLD)


def test_a_pod_whose_note_cannot_be_read_holds_nothing_and_is_counted() -> None:
    assert holding_of(a_pod("plain", {})) is None
    assert holding_of(a_pod("nowhere", {ALLOCATED: ";"})) is None
    bad = holding_of(a_pod("bad", {HOLDER: "n1", ALLOCATED: "GPU-2,NVIDIA:;"}))
    assert bad is not None
    assert bad.held == ()
    assert '"a/bad"' in bad.refused
    view = ClusterView("c1", ended_stay=SECOND)
    view.card_holder(Key("a", "bad"), bad)
    view.node(Key("", "n2"), a_node("n2", register="?"))
    assert view.cards_refused == {"node": 1, "pod": 1}
    view.card_holder(Key("a", "bad"), None)
    view.node(Key("", "n2"), a_node("n2", register=OLD))
    assert view.cards_refused == {"node": 0, "pod": 0}


def test_a_refusal_is_told_once_until_it_is_another() -> None:
    told = KubeObserverLog()
    refusals = Refusals(told)
    for register in ("?", "?", "??", OLD, "?"):
        refusals.note(Key("", "n1"), a_node(register=register).cards_refused)
    assert (told.notes, told.counts) == (["cards.refused"] * 3, {"cards.refused": 3})


def workload(
    *containers: dict[str, int],
    annotations: dict[str, str] | None = None,
    status: dict[str, object] | None = None,
) -> list[JobShape]:
    raw = {
        "metadata": {"name": "w", "namespace": "a", "uid": "u", "creationTimestamp": "2026-11-21T10:00:00Z"},
        "spec": {
            "podSets": [
                {
                    "name": "main",
                    "count": 2,
                    "template": {
                        "metadata": {"annotations": annotations or {}},
                        "spec": {"containers": [{"resources": {"limits": one}} for one in containers]},
                    },
                }
            ]
        },
        "status": status or {},
    }
    facts = workload_facts(msgspec.convert(raw, Workload))
    assert isinstance(facts, WorkloadFacts)
    return facts.shapes


GPU, MEMORY = "nvidia.com/gpu", "nvidia.com/gpumem"


def test_parts_of_cards_are_stated_container_by_container() -> None:
    [only] = workload({GPU: 1, MEMORY: 8000, "cpu": 1}, {GPU: 1, MEMORY: 4000}, {"cpu": 1})
    assert only.card_asks == [{GPU: 1000, MEMORY: 8_000_000}, {GPU: 1000, MEMORY: 4_000_000}]
    assert only.demand == {GPU: 2000, MEMORY: 12_000_000, "cpu": 2000}
    [only] = workload({MEMORY: 8000})
    assert only.card_asks == [{MEMORY: 8_000_000}], "HAMi makes one vGPU of it"


def test_whole_cards_need_no_word_unless_the_pods_choose_among_them() -> None:
    assert workload({GPU: 2, "cpu": 1}, {"cpu": 1}) == []
    class_request = {
        CARD_POLICY: "mutex",
        "nvidia.com/use-gputype": "A30",
        "other": "x",
        "nvidia.com/numa-bind": "",
    }
    [only] = workload({GPU: 1}, annotations=class_request)
    assert only.card_asks == [{GPU: 1000}]
    assert only.card_annotations == {CARD_POLICY: "mutex", "nvidia.com/use-gputype": "A30"}
    assert workload({"cpu": 1}, annotations=class_request) == []


def test_of_what_holds_quota_the_pods_that_are_left_say_what_they_hold_of_cards() -> None:
    reserved = {
        "type": "QuotaReserved",
        "status": "True",
        "reason": "QuotaReserved",
        "message": "",
        "lastTransitionTime": "2026-11-21T10:00:00Z",
    }

    def holding(usage: dict[str, str], ended: int = 0) -> dict[str, object]:
        assigned = {"name": "main", "count": 2, "resourceUsage": usage}
        return {
            "conditions": [reserved],
            "admission": {"clusterQueue": "cq", "podSetAssignments": [assigned]},
            "reclaimablePods": [{"name": "main", "count": ended}],
        }

    parts = {GPU: 1, MEMORY: 8000}
    [only] = workload(parts, status=holding({GPU: "2", MEMORY: "16000"}, ended=1))
    assert (only.pods, only.card_asks) == (1, [{GPU: 1000, MEMORY: 8_000_000}])
    done = {
        "type": "Finished",
        "status": "True",
        "reason": "Succeeded",
        "lastTransitionTime": reserved["lastTransitionTime"],
    }
    ended = holding({GPU: "2", MEMORY: "16000"}) | {"conditions": [reserved, done]}
    [only] = workload(parts, status=ended)
    assert (only.pods, only.card_asks) == (2, [{GPU: 1000, MEMORY: 8_000_000}]), "its run is past use"
    assert workload(parts, status={"conditions": [done]}) == [], "it never ran"
    assert workload({GPU: 1}, status=holding({GPU: "2"})) == [], "its demand says it all"
    [only] = workload({GPU: 1}, status=holding({"credits": "200"}))
    assert only.demand == {GPU: 1000}, "Kueue counts its cards otherwise"
    assert workload({"cpu": 1}, status=holding({"credits": "200"})) == [], "it has none"
