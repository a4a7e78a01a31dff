"""The answers about fit as a person gets them: where, why not, and in which words."""

import pytest

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.frontend.cards import CardState
from fairlead_contracts.frontend.observed import LabelRequirement, Taint, Toleration
from fairlead_policy.fit.placing import place
from fairlead_policy.fit.results import Placement, Unfit
from fairlead_policy.fit.shapes import FitNode, Gang, PodShape
from fairlead_policy.fit.unschedulable import (
    CardRefusals,
    CardShort,
    GangShort,
    NoCards,
    NodeShort,
    NoNodeHasAll,
    NoZoneHoldsAll,
    PodsShort,
    TooFewCards,
    TotalShort,
    all_in_words,
)
from fairlead_policy.hami.annotations import CardAnnotations, CardStrategy
from fairlead_policy.hami.requests import VgpuRequest
from fairlead_testkit.inputs.builders import a_card

GI = 2**30
GPU = "nvidia.com/gpu"


def node(
    name: str, cards: tuple[CardState, ...] = (), labels: dict[str, str] | None = None, **free: int
) -> FitNode:
    return FitNode(name=name, free=amounts(free), labels=labels or {}, cards=cards)


def amounts(stated: dict[str, int]) -> dict[str, int]:
    units = {"cpu": ("cpu", 1000), "memory": ("memory", GI), "gpu": (GPU, 1000)}
    return {units[name][0]: units[name][1] * amount for name, amount in stated.items()}


def workers(count: int, name: str = "workers", **demand: int) -> PodShape:
    return PodShape(count=count, name=name, demand=amounts(demand))


def gang(*shapes: PodShape, zone_key: str | None = None) -> Gang:
    return Gang(shapes=shapes, zone_key=zone_key)


def unfit(answer: Placement | Unfit) -> Unfit:
    assert isinstance(answer, Unfit)
    return answer


def placed(answer: Placement | Unfit) -> Placement:
    assert isinstance(answer, Placement), answer
    return answer


def said(answer: Placement | Unfit) -> list[str]:
    assert unfit(answer).exact
    return list(map(str, unfit(answer).reasons))


NODES = [node("a", gpu=4), node("b", gpu=8), node("c", gpu=6)]


def test_binpack_takes_the_fewest_nodes_and_the_last_as_tight_as_can_be() -> None:
    assert placed(place(gang(workers(4, gpu=2)), NODES)).nodes == {"b": 4}
    assert placed(place(gang(workers(3, gpu=2)), NODES)).nodes == {"c": 3}
    assert placed(place(gang(workers(6, gpu=2)), NODES)).nodes == {"a": 2, "b": 4}


def test_spread_takes_the_most_nodes_evenly() -> None:
    assert placed(place(gang(workers(6, gpu=2)), NODES, CardStrategy.SPREAD)).nodes == {
        "a": 2,
        "b": 2,
        "c": 2,
    }
    assert placed(place(gang(workers(2, gpu=2)), NODES, CardStrategy.SPREAD)).nodes == {"b": 1, "c": 1}


def test_a_gang_of_no_pods_fits_anywhere() -> None:
    assert placed(place(gang(), [])).pods == ()
    assert placed(place(gang(workers(0, gpu=99)), [])).pods == ()


def test_two_shapes_are_placed_together() -> None:
    answer = place(
        gang(workers(1, "leader", cpu=2), workers(2, gpu=8)), [node("a", cpu=9, gpu=8), node("b", gpu=8)]
    )
    assert placed(answer).nodes == {"a": 2, "b": 1}


def test_a_small_gang_that_greed_would_miss_is_found() -> None:
    # Two nodes of 9 are filled only by 5 + 4 and 3 + 3 + 3; the next largest after 5 that fits must not be a 3.
    shapes = (workers(1, "five", gpu=5), workers(1, "four", gpu=4), workers(3, "three", gpu=3))
    answer = place(gang(*shapes), [node("a", gpu=9), node("b", gpu=9)])
    assert placed(answer).nodes in ({"a": 2, "b": 3}, {"a": 3, "b": 2})


def test_no_nodes() -> None:
    assert said(place(gang(workers(1, cpu=1)), [])) == ["There are no nodes."]
    assert said(place(gang(workers(1), zone_key="zone"), NODES)) == [
        "No node has the label zone, by which the gang is to stay together."
    ]


def test_more_than_any_node_has_even_empty_is_told_from_busy_nodes() -> None:
    busy = [FitNode(name=name, free={"memory": 10 * GI}, allocatable={"memory": 64 * GI}) for name in "ab"]
    never = gang(workers(1, memory=100))
    assert said(place(never, busy)) == [
        "workers: a pod asks for 100Gi memory, more than any node has, even empty (64Gi)."
    ]
    assert said(place(never, busy, empty=True)) == said(place(never, busy))
    now = gang(workers(1, memory=16))
    assert said(place(now, busy)) == [
        "workers: 20Gi memory free in all, but no node has 16Gi; the most on one is 10Gi."
    ]
    placed(place(now, busy, empty=True))
    assert unfit(place(now, busy)).reasons == (
        NodeShort(
            shape="workers", resource="memory", wanted=16 * GI, largest=10 * GI, free=20 * GI, ever=64 * GI
        ),
    )
    assert said(place(gang(workers(1, memory=30)), busy)) == [
        "workers: a pod asks for 30Gi memory; 20Gi free in all, 10Gi at most on one node."
    ]


def test_each_resource_somewhere_but_nowhere_all() -> None:
    answer = place(gang(workers(1, cpu=4, gpu=2)), [node("a", cpu=8), node("b", cpu=1, gpu=4)])
    assert unfit(answer).reasons == (NoNodeHasAll(shape="workers", resources=("cpu", GPU)),)
    assert said(answer) == [
        "workers: no node has enough cpu and nvidia.com/gpu free at once, though each is there by itself."
    ]


def test_some_of_the_pods_fit() -> None:
    answer = place(gang(workers(4, gpu=5)), [node("a", gpu=8), node("b", gpu=8), node("c", gpu=8)])
    assert unfit(answer).reasons == (PodsShort(shape="workers", wanted=4, fits=3),)
    assert said(answer) == ["workers: 3 of 4 pods fit."]
    assert said(place(gang(workers(8, gpu=5)), [node("a", gpu=8)])) == [
        "workers: 1 of 8 pods fits.",
        "workers ask for 40 nvidia.com/gpu together; 8 free in all.",
    ]


def test_shapes_that_fit_only_one_without_the_other() -> None:
    shapes = (workers(2, "big", gpu=5), workers(2, "small", gpu=3))
    answer = place(gang(*shapes), [node("a", gpu=7), node("b", gpu=8), node("c", gpu=2)])
    assert unfit(answer).reasons == (GangShort(wanted=4, fits=3),)
    assert said(answer) == ["Each kind of pod fits by itself, but not all 4 together: 3 of them were placed."]
    short = unfit(place(gang(*shapes), [node("a", gpu=7), node("b", gpu=8)]))
    assert short.reasons[0] == TotalShort(shape="the gang's pods", resource=GPU, wanted=16000, free=15000)


def test_labels_that_no_node_has() -> None:
    nodes = [
        node("a", labels={"gpu": "a100", "zone": "1"}, cpu=4),
        node("b", labels={"gpu": "t4", "zone": "2"}, cpu=4),
    ]
    shape = PodShape(count=1, name="workers", selector={"gpu": "h100", "zone": "1"})
    assert said(place(gang(shape), nodes)) == ["workers: no node has the label gpu=h100."]
    shape = PodShape(count=1, name="workers", selector={"gpu": "a100", "zone": "2"})
    assert said(place(gang(shape), nodes)) == ["workers: no node has the labels gpu=a100 and zone=2."]


@pytest.mark.parametrize(
    ("requirement", "names"),
    [
        (LabelRequirement(key="n", operator="In", values=("1", "5")), {"a"}),
        (LabelRequirement(key="n", operator="NotIn", values=("1",)), {"b", "c"}),
        (LabelRequirement(key="n", operator="Exists"), {"a", "b"}),
        (LabelRequirement(key="n", operator="DoesNotExist"), {"c"}),
        (LabelRequirement(key="n", operator="Gt", values=("1",)), {"b"}),
        (LabelRequirement(key="n", operator="Lt", values=("3",)), {"a"}),
        (LabelRequirement(key="n", operator="Gt", values=("x",)), set()),
        (LabelRequirement(key="n", operator="Near", values=("1",)), set()),
    ],
)
def test_node_affinity(requirement: LabelRequirement, names: set[str]) -> None:
    nodes = [node("a", labels={"n": "1"}), node("b", labels={"n": "3"}), node("c")]
    shape = PodShape(count=1, name="workers", affinity=((requirement,),))
    found = {one.name for one in nodes if isinstance(place(gang(shape), [one]), Placement)}
    assert found == names
    if not names:
        assert said(place(gang(shape), nodes)) == ["workers: no node meets the required node affinity."]


def test_one_group_of_an_affinity_is_enough_but_all_of_it() -> None:
    first = (LabelRequirement(key="n", operator="Exists"), LabelRequirement(key="m", operator="Exists"))
    second = (LabelRequirement(key="k", operator="Exists"),)
    shape = PodShape(count=1, affinity=(first, second))
    assert isinstance(place(gang(shape), [node("a", labels={"n": ""})]), Unfit)
    assert isinstance(place(gang(shape), [node("a", labels={"n": "", "m": ""})]), Placement)
    assert isinstance(place(gang(shape), [node("a", labels={"k": ""})]), Placement)


def test_taints_that_are_not_tolerated_are_named() -> None:
    taints = (
        Taint(key=GPU, value="yes", effect="NoSchedule"),
        Taint(key="old", effect="NoExecute"),
        Taint(key="x", effect="PreferNoSchedule"),
    )
    nodes = [FitNode(name="a", free=amounts({"gpu": 8}), taints=taints)]
    assert said(place(gang(workers(1, gpu=1)), nodes)) == [
        "workers: taints nvidia.com/gpu=yes:NoSchedule and old:NoExecute are not tolerated, on every node that matches."
    ]
    answer = place(gang(workers(2, gpu=4)), [*nodes, node("b", gpu=4)])
    assert said(answer)[0] == "workers: 1 of 2 pods fits."
    assert said(answer)[-1] == (
        "workers: taints nvidia.com/gpu=yes:NoSchedule and old:NoExecute are not tolerated, on 1 node."
    )


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", value="v", operator=""), True),
        (Toleration(key="k", value="w"), False),
        (Toleration(key="j", value="v"), False),
        (Toleration(key="k", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(value="v"), False),
        (Toleration(key="k", value="v", effect="NoSchedule"), True),
        (Toleration(key="k", value="v", effect="NoExecute"), False),
        (Toleration(key="k", value="v", operator="Lt"), False),
    ],
)
def test_tolerations_as_kubernetes_reads_them(toleration: Toleration, tolerates: bool) -> None:
    tainted = FitNode(name="a", free={}, taints=(Taint(key="k", value="v", effect="NoSchedule"),))
    shape = PodShape(count=1, tolerations=(toleration,))
    assert isinstance(place(gang(shape), [tainted]), Placement) == tolerates


def zoned() -> list[FitNode]:
    return [
        node(name, labels={"zone": zone}, gpu=8)
        for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b"), ("n4", "b"))
    ]


def test_a_gang_stays_in_one_zone() -> None:
    answer = placed(place(gang(workers(4, gpu=4), zone_key="zone"), [*zoned(), node("n5", gpu=64)]))
    assert answer.zone == "a"
    assert set(answer.nodes) == {"n1", "n2"}


def test_a_gang_that_fits_only_across_zones() -> None:
    answer = place(gang(workers(6, gpu=4), zone_key="zone"), zoned())
    assert unfit(answer).reasons == (NoZoneHoldsAll(zone_key="zone", zones=2, across=("a", "b")),)
    assert said(answer) == ["No zone holds the whole gang: it fits only across a and b."]
    assert said(place(gang(workers(9, gpu=4), zone_key="zone"), zoned())) == [
        "No value of zone (2 in all) holds the whole gang, nor do all together.",
        "workers: 8 of 9 pods fit.",
        "workers ask for 36 nvidia.com/gpu together; 32 free in all.",
    ]


def cards(*used: int, memory: int = 24_576) -> tuple[CardState, ...]:
    return tuple(
        a_card(uuid=f"GPU-{at}", count=10, memory=memory, used_memory=taken, used_count=taken > 0)
        for at, taken in enumerate(used)
    )


def fraction(pods: int = 1, **ask: int) -> PodShape:
    return PodShape(count=pods, name="workers", vgpus=(VgpuRequest(**{"count": 1, **ask}),))


def test_memory_free_in_all_but_on_no_card() -> None:
    nodes = [node("a", cards=cards(12_288, 12_288))]
    answer = place(gang(fraction(memory=20_480)), nodes)
    assert unfit(answer).reasons == (
        CardShort(shape="workers", of="memory", wanted=20_480, largest=12_288, free=24_576, ever=24_576),
        CardRefusals(shape="workers", cards=2, refused={"memory": 2}),
    )
    assert said(answer) == [
        "workers: 24576 MiB of card memory free in all, but no card has 20480 MiB; the most on one is 12288 MiB.",
        "workers: all 2 cards are short of memory.",
    ]
    placed(place(gang(fraction(memory=20_480)), nodes, empty=True))
    assert said(place(gang(fraction(memory=30_000)), nodes))[0] == (
        "workers: a vGPU asks for 30000 MiB of card memory, more than any card has (24576 MiB)."
    )


def test_cores_that_no_card_has() -> None:
    busy = tuple(
        a_card(uuid=f"GPU-{at}", count=10, memory=9, used_cores=60, used_count=1, used_memory=0)
        for at in range(2)
    )
    assert said(place(gang(fraction(cores=50, memory=1)), [node("a", cards=busy)])) == [
        "workers: 80 % of card cores free in all, but no card has 50 %; the most on one is 40 %.",
        "workers: all 2 cards are short of cores.",
    ]


def test_cards_too_few_or_none() -> None:
    assert said(place(gang(fraction(memory=1)), NODES)) == [
        "workers: no node that they may use has registered a card."
    ]
    nodes = [node("a", cards=cards(0, 0)), node("b", cards=cards(0, 24_576))]
    assert said(place(gang(shape_of_cards(3)), nodes))[0] == (
        "workers: a container asks for 3 cards; no node has more than 2."
    )
    assert said(place(gang(shape_of_cards(2)), nodes[1:])) == [
        "workers: a container asks for 2 cards; no node has more than 1 that can take it.",
        "workers: of 2 cards, 1 is in use, and the pod wants a card for itself.",
    ]


def shape_of_cards(count: int) -> PodShape:
    return PodShape(count=1, name="workers", vgpus=(VgpuRequest(count=count, cores=100),))


def test_the_cards_of_each_pod_are_named() -> None:
    shape = PodShape(count=2, name="workers", vgpus=(VgpuRequest(count=2, cores=40, memory=9000),))
    answer = placed(place(gang(shape), [node("a", cards=cards(0, 0))]))
    assert [pod.cards for pod in answer.pods] == [(("GPU-0", "GPU-1"),)] * 2


def test_a_card_in_mig_mode_leaves_the_answer_open() -> None:
    mig = a_card(uuid="GPU-0", count=7, memory=81_920, mode="mig")
    answer = unfit(place(gang(fraction(memory=1000)), [node("a", cards=(mig,))]))
    assert not answer.exact
    assert str(answer.reasons[0]) == ("workers: the only card is in MIG mode, which Fairlead does not count.")


def test_some_pods_on_cards_and_why_not_more() -> None:
    nodes = [node("a", cards=cards(0, 20_000)), node("b", cards=cards(0))]
    assert said(place(gang(fraction(6, memory=10_000)), nodes)) == [
        "workers: 4 of 6 pods fit.",
        "workers: of 3 cards, 1 is short of memory.",
    ]


def test_why_cards_refuse_is_counted() -> None:
    found = (
        a_card(uuid="1", count=10, memory=9, health=False),
        a_card(uuid="2", count=10, memory=9, cordoned=True),
        a_card(uuid="3", count=1, memory=9, used_count=1),
        a_card(uuid="4", count=9, memory=9, used_count=1, used_cores=100),
        a_card(uuid="5", count=9, memory=9, model="T4"),
    )
    shape = PodShape(
        count=1,
        name="workers",
        vgpus=(VgpuRequest(count=1, memory=1),),
        card_annotations=CardAnnotations(avoid_models=("t4",)),
    )
    assert said(place(gang(shape), [node("a", cards=found)])) == [
        (
            "workers: of 5 cards, 1 is cordoned, 1 is without cores left, 1 is of another model or mode than the pod "
            "accepts, 1 is shared by as many pods as HAMi puts on one and 1 is not healthy."
        )
    ]


def test_the_number_of_pods_that_a_node_takes_counts() -> None:
    full = FitNode(name="a", free={"cpu": 64_000, "pods": 2000}, allocatable={"cpu": 64_000, "pods": 110_000})
    assert said(place(gang(workers(3, cpu=1)), [full])) == ["workers: 2 of 3 pods fit."]
    none = FitNode(name="a", free={"cpu": 64_000, "pods": 0}, allocatable={"cpu": 64_000, "pods": 110_000})
    assert said(place(gang(workers(3, cpu=1)), [none])) == [
        "workers: a pod asks for 1 pods; 0 free in all, 0 at most on one node."
    ]


def test_more_used_than_there_is_counts_as_nothing_free() -> None:
    over = FitNode(name="a", free={"cpu": -4000})
    assert isinstance(place(gang(workers(1, cpu=1)), [over]), Unfit)
    assert isinstance(place(gang(workers(1, gpu=0)), [over]), Placement)


def test_nonsense_is_refused_by_name() -> None:
    with pytest.raises(FieldError, match=r"workers\.demand\.cpu"):
        PodShape(count=1, name="workers", demand={"cpu": -1})
    with pytest.raises(FieldError, match=r"workers\.demand\.cpu"):
        PodShape(count=1, name="workers", demand={"cpu": 2**61})
    with pytest.raises(FieldError, match=r"workers\.count"):
        PodShape(count=-1, name="workers")
    with pytest.raises(FieldError, match=r"workers\.vgpus"):
        PodShape(count=1, name="workers", vgpus=(VgpuRequest(count=0),))
    with pytest.raises(FieldError, match="two nodes have this name"):
        place(gang(workers(1)), [node("a"), node("a")])


def test_the_largest_quantities_are_added_without_overflow() -> None:
    nodes = [FitNode(name=f"n{at}", free={"memory": 2**60}) for at in range(40)]
    huge = PodShape(count=40, name="workers", demand={"memory": 2**60})
    placed(place(gang(huge), nodes))
    assert said(place(gang(PodShape(count=41, name="workers", demand={"memory": 2**60})), nodes))[0] == (
        "workers: 40 of 41 pods fit."
    )


def test_a_large_gang_on_a_thousand_nodes() -> None:
    nodes = [
        node(f"n{at:04}", labels={"zone": f"z{at % 4}"}, cpu=96, memory=1024, gpu=8 - at % 5)
        for at in range(1000)
    ]
    shapes = (workers(240, gpu=4, cpu=8), workers(15, "data", cpu=30, memory=64), workers(1, "leader", cpu=1))
    for strategy, used in ((CardStrategy.BINPACK, 128), (CardStrategy.SPREAD, 256)):
        answer = placed(place(gang(*shapes), nodes, strategy))
        assert len(answer.pods) == 256
        assert len(answer.nodes) <= used
    assert len(placed(place(gang(*shapes), nodes, CardStrategy.SPREAD)).nodes) == 256


def test_a_sentence_lists_twenty_names_and_counts_the_rest() -> None:
    names = tuple(f"r-{number}" for number in range(22))
    some = ", ".join(names[:20])
    told = "workers: no node has enough {} free at once, though each is there by itself."
    assert str(NoNodeHasAll(shape="workers", resources=names)) == told.format(f"{some} and 2 more")
    assert str(NoNodeHasAll(shape="workers", resources=names[:3])) == told.format("r-0, r-1 and r-2")


def test_pods_that_several_reasons_in_a_row_are_of_are_named_once() -> None:
    answer = place(gang(workers(8, gpu=5)), [node("a", gpu=8)])
    told = "workers: 1 of 8 pods fits. They ask for 40 nvidia.com/gpu together; 8 free in all."
    assert all_in_words(unfit(answer).reasons) == told
    short, few = NoCards(shape="workers"), NoCards(shape="leader")
    said_of_both = all_in_words([short, TooFewCards(shape="workers", wanted=2, most=0, have=1), few])
    assert said_of_both == (
        "workers: no node that they may use has registered a card. A container asks for 2 cards; no node has more than 1. "
        "leader: no node that they may use has registered a card."
    )
