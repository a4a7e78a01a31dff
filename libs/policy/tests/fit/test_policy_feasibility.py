"""Whether stated nodes could hold a stated job at all."""

from collections.abc import Sequence

from fairlead_contracts.base.quantities import MAX_QUANTITY
from fairlead_contracts.messages.state import JobShape, JobState, NodeState
from fairlead_policy.fit.feasibility import StatedNodes
from fairlead_testkit.inputs.builders import a_job, a_node

GPU = "nvidia.com/gpu"
GI = 2**30


def node(name: str, gpu: int = 8, **more: object) -> NodeState:
    allocatable = {"cpu": 64_000, "memory": 1024 * GI, GPU: gpu * 1000, "pods": 110_000}
    return a_node(name=name, allocatable=allocatable, **more)


def job(demand: dict[str, int], *, pods: int = 1, shapes: Sequence[JobShape] = ()) -> JobState:
    return a_job(demand=demand, pods=pods, shapes=list(shapes))


def said(asked: JobState, *nodes: NodeState) -> list[str]:
    return list(map(str, StatedNodes().outgrown(asked, nodes)))


def test_a_pod_larger_than_the_largest_node_is_told() -> None:
    assert said(job({"memory": 2048 * GI}), node("n1"), node("n2")) == [
        "pods: a pod asks for 2Ti memory, more than any node has, even empty (1Ti)."
    ]
    assert said(job({"memory": 2048 * GI}, pods=2), node("n1"), node("n2")) == []
    assert said(job({"memory": 3072 * GI}, pods=3), node("n1"), node("n2"))[0] == "pods: 2 of 3 pods fit."


def test_stated_pods_count_before_even_shares() -> None:
    shapes = [
        JobShape(name="leader", pods=1, demand={GPU: 16_000}),
        JobShape(name="workers", pods=3, demand={"cpu": 1000}, selector={"gpu": "h100"}),
    ]
    assert said(job({GPU: 16_000, "cpu": 3000}, pods=4, shapes=shapes), node("n1"), node("n2")) == [
        "leader: a pod asks for 16 nvidia.com/gpu, more than any node has, even empty (8).",
        "workers: no node has the label gpu=h100.",
    ]


def test_what_is_not_known_is_nobodys_fault() -> None:
    assert said(job({GPU: 9000})) == [], "no nodes are stated"
    assert said(job({GPU: 17_000}, pods=3), node("n1"), node("n2")) == [], (
        "nobody knows what each pod asks for"
    )
    assert said(job({GPU: 1000, "nvidia.com/gpumem": 8_000_000}), node("n1")) == [], "HAMi's own, on no node"
    assert (
        said(job({"pods": 1000, GPU: 1000}), node("n1", taints=["gpu:NoSchedule"], unschedulable=True)) == []
    )
    assert said(job({GPU: 1000}), node("n1", ready=False)) == []
    assert said(job({GPU: MAX_QUANTITY + 1}), node("n1")) == []
    assert said(job({}, pods=0), node("n1")) == []
