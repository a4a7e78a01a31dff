"""The number of tokens for the GPUs of a cluster."""

import json

import msgspec

from fairlead_contracts.frontend.cards import ALLOCATED, HOLDER, REGISTER, USE_MODEL
from fairlead_contracts.frontend.observed import ObservedPods, Taint, Toleration
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.objects import ObjectMeta
from fairlead_kube.kinds.pods import Pod
from fairlead_kube.reflector import Key
from fairlead_policy.fit.shapes import FitNode, PodShape
from fairlead_slurm_bridge.gate.capacity import (
    CapacityCache,
    NoRoom,
    PodDemand,
    RoomKept,
    free_gpus,
    whole_gpus,
)
from fairlead_slurm_bridge.gate.kube_facts import partition_node, pod_ask, pod_facts

GPU = "nvidia.com/gpu"
ANYWHERE = PodShape(count=1)


def node(name: str, gpus: int, *taints: Taint) -> FitNode:
    free = {GPU: gpus * 1000, "cpu": 64_000}
    return FitNode(name=name, free=free, allocatable=free, taints=taints)


def ask(gpus: int) -> ObservedPods:
    return ObservedPods(name="p", count=1, demand={GPU: gpus * 1000}, card_asks=({GPU: gpus * 1000},))


def total(capacity: CapacityCache, *holding: Key) -> int:
    return free_gpus(capacity.nodes().values(), ANYWHERE) + capacity.gpus_of(holding)


def test_the_number_stays_as_a_job_begins_and_ends() -> None:
    capacity, pod = CapacityCache(), Key("slurm", "a")
    capacity.node("n", node("n", 8))
    assert total(capacity) == 8
    assert isinstance(capacity.reserve(pod, ask(3)), RoomKept)
    assert total(capacity, pod) == 8, "promised"
    capacity.pod(pod, PodDemand(node="n", demand={GPU: 3000}))
    assert total(capacity, pod) == 8, "on its node"
    capacity.pod(pod, None)
    assert total(capacity) == 8, "over"


def test_what_others_have_and_what_takes_its_time_to_end_is_missing() -> None:
    capacity, stranger = CapacityCache(), Key("default", "b")
    capacity.node("n", node("n", 8))
    capacity.pod(stranger, PodDemand(node="n", demand={GPU: 5000}))
    assert total(capacity) == 3


def test_nodes_where_no_pod_may_run_have_none() -> None:
    tainted = node("n", 8, Taint(key="dedicated", value="slurm", effect="NoSchedule"))
    assert free_gpus([tainted], ANYWHERE) == 0
    tolerant = PodShape(count=1, tolerations=(Toleration(key="dedicated", value="slurm"),))
    assert free_gpus([tainted], tolerant) == 8


def a_node_under_hami(*uuids: str) -> FitNode:
    """A node as the API server tells it: an annotation names its cards, each for up to ten pods."""
    register = [
        {"id": uuid, "count": 10, "devmem": 24_576, "devcore": 100, "type": "NVIDIA-A30", "mode": "hami-core", "health": True}
        for uuid in uuids
    ]  # fmt: skip
    amounts = {"cpu": "64", "pods": "110", GPU: str(10 * len(uuids))}
    described = {
        "metadata": {"name": "n", "uid": "n", "annotations": {REGISTER: json.dumps(register)}},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    found = partition_node(msgspec.convert(described, Node), {})
    assert found is not None
    assert len(found.cards) == len(uuids)
    return found


def part(name: str, held: str = "", *, memory: int = 8000, cores: int = 30) -> Pod:
    """A pod of one of Slurm's jobs that asks for a part of a card, with the card that HAMi marked it with."""
    amounts = {"cpu": "1", GPU: "1", "nvidia.com/gpumem": str(memory), "nvidia.com/gpucores": str(cores)}
    described = {
        "metadata": {"name": name, "namespace": "slurm", "uid": name, "annotations": {HOLDER: "n", ALLOCATED: held} if held else {}},
        "spec": {"nodeName": "n" if held else "", "containers": [{"name": "job", "resources": {"requests": amounts, "limits": amounts}}]},
        "status": {"phase": "Running" if held else "Pending"},
    }  # fmt: skip
    return msgspec.convert(described, Pod)


def test_parts_of_cards_are_charged_by_their_shares_and_leave_fewer_whole_ones() -> None:
    capacity = CapacityCache()
    capacity.node("n", a_node_under_hami("GPU-1", "GPU-2"))
    assert total(capacity) == 2
    for number in range(6):
        asked = pod_ask(part("p"))
        assert isinstance(capacity.reserve(Key("slurm", f"p{number}"), asked), RoomKept), "three on each card"
    assert isinstance(capacity.reserve(Key("slurm", "p6"), pod_ask(part("p"))), NoRoom)
    assert total(capacity, *capacity.promised) == 0
    for number in range(6):
        facts = pod_facts(part(f"p{number}", f"GPU-{1 + number % 2},NVIDIA,8000,30:;"), "hpc")
        assert facts is not None
        capacity.pod(Key("slurm", f"p{number}"), facts.use)
    assert isinstance(capacity.reserve(Key("slurm", "p6"), pod_ask(part("p"))), NoRoom)
    for number in (0, 2, 4):
        capacity.pod(Key("slurm", f"p{number}"), None)
    assert total(capacity) == 1, "one card is whole again"


def test_a_pod_that_wants_another_model_gets_no_room_on_the_cards_that_are_there() -> None:
    capacity = CapacityCache()
    capacity.node("n", a_node_under_hami("GPU-1"))
    for model, answer in (("A30", RoomKept), ("H100", NoRoom)):
        choosy = msgspec.structs.replace(
            part(model), metadata=ObjectMeta(name=model, annotations={USE_MODEL: model})
        )
        assert isinstance(capacity.reserve(Key("slurm", model), pod_ask(choosy)), answer)


def test_a_card_that_was_promised_and_is_gone_hinders_nobody_else() -> None:
    capacity = CapacityCache()
    capacity.node("n", a_node_under_hami("GPU-1"))
    assert isinstance(capacity.reserve(Key("slurm", "a"), pod_ask(part("a"))), RoomKept)
    capacity.node("n", a_node_under_hami("GPU-2"))
    assert isinstance(capacity.reserve(Key("slurm", "b"), pod_ask(part("b"))), RoomKept)


def test_whole_cards_go_to_nodes_without_hami_first_and_are_counted_there() -> None:
    capacity = CapacityCache()
    capacity.node("h", msgspec.structs.replace(a_node_under_hami("GPU-1"), name="h"))
    capacity.node("p", node("p", 4))
    kept = [capacity.reserve(Key("slurm", f"p{number}"), ask(1)) for number in range(6)]
    assert [isinstance(one, RoomKept) and one.node for one in kept] == [*"pppph", False]
    capacity.release(Key("slurm", "p0"))
    assert capacity.reserve(Key("slurm", "p6"), ask(1)) == RoomKept(node="p")


def test_parts_of_gpus_take_none() -> None:
    assert whole_gpus({GPU: 2000}) == 2
    assert whole_gpus({GPU: 2000, "nvidia.com/gpucores": 30_000}) == 0
