"""Cards that nodes state, and what stated jobs ask of them: what cannot fit, and the way over a snapshot to an order."""

from collections.abc import Mapping

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.frontend.cards import CARD_POLICY, CardState
from fairlead_contracts.messages.state import JobShape, JobState, NodeState, Phase, State, subject_of
from fairlead_contracts.policyfile.document import Fit, PolicyDocument
from fairlead_contracts.snapshot.read import decode_snapshot
from fairlead_contracts.snapshot.types import Snapshot
from fairlead_contracts.snapshot.write import encode_snapshot
from fairlead_policy.fit.facts import cards_on
from fairlead_policy.fit.feasibility import StatedNodes
from fairlead_policy.fit.placing import place
from fairlead_policy.fit.results import Unfit
from fairlead_policy.fit.shapes import FitNode, Gang, PodShape
from fairlead_policy.fit.unschedulable import CardShort, UnschedulableReason
from fairlead_policy.hami.annotations import CardStrategy
from fairlead_policy.hami.requests import vgpu_requests
from fairlead_policy.snapshot.from_state import snapshot_of
from fairlead_policy.snapshot.ordering import order_snapshot
from fairlead_policy.snapshot.placement import FitVerdict, PlacementWalk, walk
from fairlead_testkit.inputs.builders import NOW, a_card, a_document, a_job, a_node, a_pool, a_queue
from fairlead_testkit.inputs.cases import cases

GPU, MEMORY, PERCENT = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage"
DOCUMENT: PolicyDocument = msgspec.structs.replace(a_document(), fit=Fit(strategy="binpack"))


def card(uuid: str, memory: int = 16384, used: int = 0) -> CardState:
    return a_card(uuid=uuid, memory=memory, used_count=int(used > 0), used_memory=used)


def node(name: str, *cards: CardState, **more: object) -> NodeState:
    allocatable = {"cpu": 64_000, GPU: 10_000 * len(cards)}
    return a_node(name=name, allocatable=allocatable, cards=list(cards), **more)


def job(*asks: dict[str, int], pods: int = 1, name: str = "j", scope: str = "team-a") -> JobState:
    """A job whose pods ask for this, container by container, in whole units."""
    counted = [{resource: 1000 * amount for resource, amount in ask.items()} for ask in asks]
    summed = {r: sum(one.get(r, 0) for one in counted) for r in {r for one in counted for r in one}}
    shape = JobShape(name="main", pods=pods, demand=summed, card_asks=counted)
    demand = {resource: amount * pods for resource, amount in summed.items()}
    return a_job(name, scope=scope, demand=demand, pods=pods, shapes=[shape])


def said(reasons: tuple[UnschedulableReason, ...]) -> list[str]:
    return list(map(str, reasons))


def test_more_memory_than_any_card_has_never_fits() -> None:
    nodes = [node("n1", card("a"), card("b")), node("n2", card("c", 8192))]
    assert said(StatedNodes().outgrown(job({GPU: 1, MEMORY: 20480}), nodes))[0] == (
        "main: a vGPU asks for 20480 MiB of card memory, more than any card has (16384 MiB)."
    )
    assert StatedNodes().outgrown(job({GPU: 1, MEMORY: 16384}), nodes) == ()
    assert StatedNodes().outgrown(job({GPU: 2, MEMORY: 16384}), nodes) == ()
    assert said(StatedNodes().outgrown(job({GPU: 3, MEMORY: 1}), nodes))[0].endswith(
        "no node has more than 2."
    )


def test_memory_of_containers_is_not_that_of_one_vgpu() -> None:
    nodes = [node("n1", card("a"))]
    assert StatedNodes().outgrown(job({GPU: 1, MEMORY: 9000}, {GPU: 1, MEMORY: 7000}), nodes) == ()
    assert StatedNodes().outgrown(job({GPU: 1, MEMORY: 9000}, {GPU: 1, MEMORY: 9000}), nodes) != ()


def test_no_card_has_it_free_though_all_together_have_it() -> None:
    nodes = [node("n1", card("a", 24576, 12000), card("b", 24576, 12576))]
    asked = job({GPU: 1, MEMORY: 20480})
    assert StatedNodes().outgrown(asked, nodes) == ()
    assert said(StatedNodes().crowded_out(asked, nodes))[0] == (
        "main: 24576 MiB of card memory free in all, but no card has 20480 MiB; the most on one is 12576 MiB."
    )
    assert StatedNodes().crowded_out(asked, [*nodes, node("n2", card("c", 24576))]) == ()
    assert StatedNodes().crowded_out(asked, [*nodes, node("n2", card("c", 24576), ready=False)]) != ()
    assert StatedNodes().crowded_out(a_job(gpu=0), nodes) == ()


def test_of_cards_that_are_all_taken_it_is_said_that_they_are_and_not_how_much_is_left() -> None:
    half = node("n1", card("a", 24576, 8000), card("b", 24576, 8000))
    taken = "main: all 2 cards are in use, and the pod wants a card for itself."
    assert said(StatedNodes().crowded_out(job({GPU: 1, "nvidia.com/gpucores": 100}), [half])) == [taken]
    full = node("n1", card("a", 24576, 24576), card("b", 24576, 24576))
    assert said(StatedNodes().crowded_out(job({GPU: 1, MEMORY: 8000}), [full])) == [
        "main: a vGPU asks for 8000 MiB of card memory; none is free.",
        "main: all 2 cards are short of memory.",
    ]


def test_what_is_not_known_of_cards_is_nobodys_fault() -> None:
    wide = job({GPU: 1, MEMORY: 20480})
    plain = a_node(name="plain", allocatable={"cpu": 64_000, GPU: 8000})
    assert StatedNodes().outgrown(wide, [plain]) == (), "no node registers a card"
    summed = a_job(demand={GPU: 1000, MEMORY: 20_480_000})
    assert StatedNodes().outgrown(summed, [node("n1", card("a"))]) == (), (
        "an older watcher: perhaps of several containers"
    )
    whole = a_job(demand={GPU: 4000})
    assert StatedNodes().outgrown(whole, [node("n1", card("a"))]) != ()
    assert StatedNodes().outgrown(whole, [node("n1", card("a")), plain]) == (), (
        "a node that HAMi does not serve"
    )
    unreadable = msgspec.structs.replace(plain, cards_refused="?")
    for asked in (whole, wide):
        assert StatedNodes().outgrown(asked, [node("n1", card("a")), unreadable]) == (), (
            "a HAMi that is newer than we are may give its cards away, as doctor and gate have it"
        )
    full = node("n1", card("a", 24576, 24576))
    assert StatedNodes().crowded_out(wide, [full]) != ()
    assert StatedNodes().crowded_out(wide, [full, unreadable]) == ()
    assert StatedNodes().outgrown(a_job(gpu=0, demand={"cpu": 99_000}), [unreadable]) != (), (
        "it asks for no card"
    )


def test_an_ask_that_hami_refuses_never_runs_and_harms_nobody() -> None:
    asked = job({GPU: 1, PERCENT: 150}, name="odd")
    words = "HAMi does not take 150 nvidia.com/gpumem-percentage: a percentage is between 0 and 100."
    assert said(StatedNodes().outgrown(asked, [node("n1", card("a"))])) == [words]
    found = walked(state(asked, job({GPU: 1, MEMORY: 100}, name="good"), node("n1", card("a"))))
    assert {name: answer for name, (answer, _) in found.items()} == {
        "odd": FitVerdict.NEVER,
        "good": FitVerdict.PLACED,
    }
    assert found["odd"][1] == [words]


def state(*facts: State) -> dict[str, State]:
    pool = a_pool(capacity={"cpu": 128_000, GPU: 80_000, MEMORY: 10**9, PERCENT: 10**6})
    return {subject_of(fact): fact for fact in (pool, a_queue(frontend="kueue"), *facts)}


def taken(states: Mapping[str, State]) -> Snapshot:
    snapshot = snapshot_of(states, DOCUMENT, NOW)
    again = decode_snapshot(encode_snapshot(snapshot))
    assert again == snapshot
    return again


def walked(states: Mapping[str, State]) -> dict[str, tuple[FitVerdict, list[str]]]:
    snapshot = taken(states)
    found: PlacementWalk = walk(
        snapshot,
        {pool.name: [position.uid for position in pool.positions] for pool in order_snapshot(snapshot)},
        CardStrategy.BINPACK,
    )
    return {job.id: (found.jobs[job.uid].answer, said(found.jobs[job.uid].reasons)) for job in snapshot.jobs}


def test_a_snapshot_of_stated_facts_has_cards_and_what_containers_ask() -> None:
    two = job({GPU: 1, MEMORY: 9000}, {GPU: 1, MEMORY: 7000}, name="two")
    shape = msgspec.structs.replace(two.shapes[0], card_annotations={CARD_POLICY: "mutex"})
    two = msgspec.structs.replace(two, shapes=[shape])
    snapshot = taken(state(two, node("n1", card("a", used=100), card("b"))))
    [first, _] = snapshot.nodes[0].cards
    assert (first.uuid, first.used.count, first.used.memory) == ("a", 1, 100)
    [found] = snapshot.jobs
    assert found.gang is not None
    assert found.gang.annotations == {CARD_POLICY: "mutex"}
    assert found.gang.shapes[0].containers == shape.card_asks
    assert found.demand == two.demand, "what it weighs is what its cluster counts"
    assert snapshot.pools[0].card_shares
    assert snapshot.pools[0].capacity[MEMORY] == 2 * 16384 * 1000


counted = st.integers(0, 2**31 - 1)
any_card = st.builds(
    CardState,
    uuid=st.text(min_size=1, max_size=8),
    count=counted,
    memory=counted,
    cores=counted,
    model=st.text(max_size=8),
    index=counted,
    numa=st.integers(-(2**31), 2**31 - 1),
    mode=st.sampled_from(["hami-core", "mig", "mps", ""]),
    health=st.booleans(),
    cordoned=st.booleans(),
    used_count=counted,
    used_memory=counted,
    used_cores=counted,
)


@settings(max_examples=cases())
@given(st.lists(any_card, max_size=4, unique_by=lambda card: card.uuid))
def test_any_cards_are_the_same_after_the_way_over_a_snapshot(cards: list[CardState]) -> None:
    snapshot = taken(state(node("n", *cards)))
    assert cards_on(snapshot.nodes[0]) == tuple(cards)


def test_the_order_is_that_of_the_cluster_whatever_cards_its_nodes_register() -> None:
    jobs = [
        job({GPU: 1, MEMORY: 100 * number}, pods=number, name=f"j{number}", scope=f"t{number % 2}")
        for number in range(1, 6)
    ]
    facts = state(*jobs)
    without, with_cards = taken(facts), taken(facts | state(node("n1", card("a"))))
    assert [position.uid for pool in order_snapshot(without) for position in pool.positions] == [
        position.uid for pool in order_snapshot(with_cards) for position in pool.positions
    ]


def test_an_order_of_live_facts_tells_cards_from_quota() -> None:
    cards = node("n1", card("a", 24576, 12000), card("b", 24576, 12576))
    runs = a_job("runs", demand={"cpu": 1000}, phase=Phase.RUNNING, started=NOW)
    found = walked(
        state(
            job({GPU: 1, MEMORY: 32000}, name="never"),
            job({GPU: 1, MEMORY: 20480}, name="crowded"),
            job({GPU: 1, MEMORY: 100}, name="small"),
            a_job("full", demand={"cpu": 127_500}),
            cards,
            runs,
            node("bad", cards_refused="?"),
        )
    )
    assert found["never"][0] is FitVerdict.NEVER
    assert found["crowded"] == (
        FitVerdict.NO_ROOM,
        [
            "pods: 24576 MiB of card memory free in all, but no card has 20480 MiB; the most on one is 12576 MiB.",
            "pods: all 2 cards are short of memory.",
        ],
    )
    assert found["small"][0] is FitVerdict.UNKNOWN, "what else is used of the nodes is not said"
    assert found["full"][0] in {FitVerdict.NO_QUOTA, FitVerdict.NEVER}


amounts = st.integers(0, 40)


@settings(max_examples=cases())
@given(
    st.lists(st.lists(st.tuples(st.integers(1, 40), amounts), max_size=3), min_size=1, max_size=3).filter(
        any
    ),
    st.lists(st.tuples(st.integers(1, 2), amounts), min_size=1, max_size=2),
    st.integers(1, 3),
)
def test_what_is_told_is_what_placing_by_hand_proves(
    nodes: list[list[tuple[int, int]]], asks: list[tuple[int, int]], pods: int
) -> None:
    stated = [
        node(
            f"n{at}",
            *(card(f"{at}-{number}", has, min(used, has)) for number, (has, used) in enumerate(cards)),
        )
        for at, cards in enumerate(nodes)
    ]
    wanted = job(*({GPU: count, MEMORY: memory} for count, memory in asks), pods=pods)
    gang = Gang(shapes=(PodShape(count=pods, vgpus=vgpu_requests(wanted.shapes[0].card_asks)),))
    for empty, told in (
        (True, StatedNodes().outgrown(wanted, stated)),
        (False, StatedNodes().crowded_out(wanted, stated)),
    ):
        on = [FitNode(name=one.name, free={}, cards=tuple(one.cards)) for one in stated]
        found = place(gang, on, empty=empty)
        proven = isinstance(found, Unfit) and found.exact
        used = any(one.used_count for each in stated for one in each.cards)
        assert bool(told) == (proven and (empty or used))


@settings(max_examples=cases())
@given(
    st.lists(
        st.lists(
            st.builds(
                lambda name, ready, cards: node(
                    f"n{name}", *(card(f"c{at}", 20, used) for at, used in enumerate(cards)), ready=ready
                ),
                st.integers(0, 4),
                st.booleans(),
                st.lists(st.integers(0, 20), max_size=2),
            ),
            max_size=5,
            unique_by=lambda one: one.name,
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 30),
)
def test_nodes_asked_again_and_again_say_what_they_say_when_asked_once(
    times: list[list[NodeState]], memory: int
) -> None:
    asked, kept = job({GPU: 1, MEMORY: memory}, pods=2), StatedNodes()
    for nodes in times:
        assert kept.outgrown(asked, nodes) == StatedNodes().outgrown(asked, nodes)
        assert kept.crowded_out(asked, nodes) == StatedNodes().crowded_out(asked, nodes)


def test_reasons_are_data() -> None:
    [short, *_] = StatedNodes().outgrown(job({GPU: 1, MEMORY: 20480}), [node("n1", card("a"))])
    assert short == CardShort(shape="main", of="memory", wanted=20480, largest=16384, free=16384, ever=16384)
