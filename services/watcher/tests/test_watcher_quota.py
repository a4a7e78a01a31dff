"""Pools: what they hold, what a queue can ever have, and how exactly Kueue follows an order there."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.base.quantities import MAX_QUANTITY
from fairlead_contracts.frontend.shipped import KUEUE
from fairlead_contracts.messages.state import CohortQuota, FlavorQuota, PoolState, QueueState
from fairlead_kube.kinds.queues import ClusterQueue, Cohort
from fairlead_testkit.kubelab import things
from fairlead_watcher.objects.quota import (
    CohortFacts,
    Forest,
    QueueFacts,
    Quota,
    QuotaKey,
    cohort_facts,
    queue_facts,
)
from fairlead_watcher.objects.workload_context import queue_view
from fairlead_watcher.statements.enforcement import Enforcement, enforcement, where_jobs_differ
from fairlead_watcher.statements.pools import pools_and_queues

GPU = QuotaKey("f", "gpu")


def quota(nominal: int, borrowing: int | None = None, lending: int | None = None) -> dict[QuotaKey, Quota]:
    return {GPU: Quota(nominal=nominal, borrowing=borrowing, lending=lending)}


def a_queue(
    name: str,
    nominal: int = 0,
    parent: str = "",
    *,
    borrowing: int | None = None,
    lending: int | None = None,
    usage_first: bool = False,
    fair_sharing: bool = False,
    strategy: str = "BestEffortFIFO",
) -> QueueFacts:
    return QueueFacts(
        name=name,
        parent=parent,
        quotas=quota(nominal, borrowing, lending),
        usage_first=usage_first,
        fair_sharing=fair_sharing,
        strategy=strategy,
    )


def a_cohort(name: str, nominal: int | None = None, parent: str = "", **limits: int | None) -> CohortFacts:
    return CohortFacts(name=name, parent=parent, quotas={} if nominal is None else quota(nominal, **limits))


def how(queues: list[QueueFacts], cohorts: list[CohortFacts]) -> dict[str, Enforcement]:
    forest = Forest(queues, cohorts)
    return {tree.name: enforcement(tree, forest) for tree in forest.trees()}


def test_a_queue_alone_is_followed_exactly() -> None:
    assert how([a_queue("a", 4)], []) == {"a": ("exact", "")}
    assert how([a_queue("a", 4, "only")], []) == {"only": ("exact", "")}
    assert how([a_queue("a", 4, fair_sharing=True)], []) == {"a": ("exact", "")}


def test_quota_on_the_cohort_alone_is_followed_exactly() -> None:
    queues = [a_queue("a", 0, "root"), a_queue("b", 0, "root")]
    assert how(queues, [a_cohort("root", 8)]) == {"root": ("exact", "")}


@pytest.mark.parametrize(
    ("queues", "named"),
    [
        ([a_queue("a", 4, strategy="StrictFIFO")], "of a StrictFIFO queue (a) Kueue admits the head"),
        (
            [a_queue("a", 0, "r", strategy="StrictFIFO"), a_queue("b", 0, "r")],
            "of a StrictFIFO queue (a) Kueue admits the head",
        ),
    ],
)
def test_a_head_that_is_never_parked_follows_the_order_that_stood(
    queues: list[QueueFacts], named: str
) -> None:
    [(word, why)] = how(queues, [a_cohort("r", 4)] if len(queues) > 1 else []).values()
    assert word == "standing"
    assert why.startswith(named)


def test_use_before_priority_makes_it_a_tie_break() -> None:
    [(word, why)] = how([a_queue("a", 4, usage_first=True)], []).values()
    assert word == "tie-break"
    assert "AdmissionFairSharing in a" in why


@pytest.mark.parametrize(
    ("queues", "cohorts"),
    [
        ([a_queue("a", 4, "r", lending=0), a_queue("b", 4, "r", lending=0)], []),
        ([a_queue("a", 4, "r", borrowing=0), a_queue("b", 4, "r", borrowing=0)], [a_cohort("r", 8)]),
    ],
)
def test_queues_that_cannot_borrow_have_each_an_order_of_their_own(
    queues: list[QueueFacts], cohorts: list[CohortFacts]
) -> None:
    assert how(queues, cohorts)["r"][0] == "within-queue"


@pytest.mark.parametrize(
    ("queues", "cohorts", "reason"),
    [
        ([a_queue("a", 4, "r"), a_queue("b", 4, "r")], [], "quota of their own (a, b)"),
        ([a_queue("a", 0, "r"), a_queue("b", 4, "r")], [a_cohort("r", 2)], "quota of their own (b)"),
        (
            [a_queue("a", 0, "r", fair_sharing=True), a_queue("b", 0, "r", fair_sharing=True)],
            [a_cohort("r", 2)],
            "FairSharing",
        ),
        (
            [a_queue("a", 0, "team"), a_queue("b", 0, "r")],
            [a_cohort("r", 2), a_cohort("team", None, "r")],
            "nested cohorts (team)",
        ),
        (
            [a_queue(f"q{n}", 1, "r") for n in range(5)],
            [],
            "q0, q1, q2 and 2 more",
        ),
    ],
)
def test_everything_else_is_a_tie_break_and_says_why(
    queues: list[QueueFacts], cohorts: list[CohortFacts], reason: str
) -> None:
    word, why = how(queues, cohorts)["r"]
    assert word == "tie-break"
    assert reason in why


def test_cohorts_in_a_circle_are_one_pool_and_harm_nobody() -> None:
    queues = [a_queue("a", 1, "x"), a_queue("b", 1, "y"), a_queue("c", 1, "below"), a_queue("alone", 1)]
    cohorts = [a_cohort("x", 1, "y"), a_cohort("y", 1, "x"), a_cohort("below", 1, "y")]
    found = how(queues, cohorts)
    assert found["alone"] == ("exact", "")
    assert found["x"][0] == "tie-break"
    assert "parents of one another" in found["x"][1]
    assert set(found) == {"alone", "x"}


def test_a_lone_queue_with_the_name_of_a_cohort_is_another_pool() -> None:
    found = how([a_queue("r", 1), a_queue("a", 1, "r")], [])
    assert set(found) == {"r", "r/queue"}


def test_capacity_is_all_nominal_quota_of_the_tree() -> None:
    queues = [a_queue("a", 1, "r"), a_queue("b", 2, "team"), a_queue("c", MAX_QUANTITY, "big")]
    cohorts = [a_cohort("r", 4), a_cohort("team", 8, "r"), a_cohort("empty", 16, "r"), a_cohort("big", 1)]
    stated = {state.name: state for state in pools_and_queues("c1", Forest(queues, cohorts))}
    pool, big = stated["r"], stated["big"]
    assert isinstance(pool, PoolState)
    assert isinstance(big, PoolState)
    assert pool.capacity == {"gpu": 1 + 2 + 4 + 8 + 16}
    assert big.capacity == {"gpu": MAX_QUANTITY}


@pytest.mark.parametrize(
    ("queues", "cohorts", "expected"),
    [
        ([a_queue("a", 4)], [], 4),
        ([a_queue("a", 4, "r"), a_queue("b", 6, "r")], [], 10),
        ([a_queue("a", 4, "r", borrowing=3), a_queue("b", 6, "r")], [], 7),
        ([a_queue("a", 4, "r"), a_queue("b", 6, "r", lending=2)], [], 6),
        ([a_queue("a", 4, "r", lending=1), a_queue("b", 6, "r", lending=2)], [], 3 + 1 + 2),
        ([a_queue("a", 4, "t")], [a_cohort("t", 1, "r", borrowing=2), a_cohort("r", 100)], 4 + 1 + 2),
        ([a_queue("a", 0, "t")], [a_cohort("t", 5, "r"), a_cohort("r", 7), a_cohort("s", 8, "r")], 20),
    ],
)
def test_what_a_queue_can_ever_have(
    queues: list[QueueFacts], cohorts: list[CohortFacts], expected: int
) -> None:
    forest = Forest(queues, cohorts)
    assert forest.potential(queues[0])[GPU] == expected
    assert queue_view(queues[0], forest).most == {"gpu": expected}


NAMES = st.sampled_from(["r", "s", "t", "u"])
LIMIT = st.none() | st.integers(0, 9)


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[QueueFacts], list[CohortFacts]]:
    quotas = st.builds(quota, st.integers(0, 9), LIMIT, LIMIT)
    cohorts = {
        name: CohortFacts(name=name, parent=draw(NAMES | st.just("")), quotas=draw(quotas))
        for name in draw(st.sets(NAMES))
    }
    queues = [
        QueueFacts(name=f"q{number}", parent=draw(NAMES | st.just("")), quotas=draw(quotas))
        for number in range(draw(st.integers(1, 5)))
    ]
    return queues, list(cohorts.values())


@given(forests())
def test_any_forest_is_split_into_pools_that_hold_every_queue_once(
    found: tuple[list[QueueFacts], list[CohortFacts]],
) -> None:
    queues, cohorts = found
    forest = Forest(queues, cohorts)
    trees = forest.trees()
    assert sorted(queue.name for tree in trees for queue in tree.queues) == sorted(q.name for q in queues)
    for tree in trees:
        followed = enforcement(tree, forest)
        assert (followed.how == "exact") == (followed.why == "")
        mixed = where_jobs_differ(followed)
        assert mixed.how == "close" if followed.how == "exact" else mixed == followed
        assert mixed.why
        for queue in tree.queues:
            if not tree.cyclic:
                assert 0 <= forest.potential(queue)[GPU] <= forest.capacity(tree)["gpu"]


def a_queue_of_kueue() -> ClusterQueue:
    """A ClusterQueue with everything set that we read."""
    return msgspec.convert(
        things.cluster_queue(
            "a",
            {"cpu": "1500m", "nvidia.com/gpu": 8, "memory": "1Gi"},
            flavor="f",
            cohort="r",
            strategy="StrictFIFO",
            preemption={
                "withinClusterQueue": "LowerPriority",
                "borrowWithinCohort": {"policy": "LowerPriority"},
            },
            stopPolicy="Hold",
            admissionScope={"admissionMode": "UsageBasedAdmissionFairSharing"},
        )
        | {
            "status": {
                "conditions": [{"type": "Active", "status": "True"}],
                "fairSharing": {"weightedShare": 1},
            }
        },
        ClusterQueue,
    )


def a_cohort_of_kueue() -> Cohort:
    return msgspec.convert(things.cohort("r", {"cpu": 2}, flavor="f", parentName="top"), Cohort)


def test_the_objects_of_kueue_are_read() -> None:
    facts = queue_facts(a_queue_of_kueue())
    assert {name.resource: one.nominal for name, one in facts.quotas.items()} == {
        "cpu": 1500,
        "nvidia.com/gpu": 8000,
        "memory": 2**30,
    }
    assert (facts.active, facts.stopped, facts.usage_first, facts.fair_sharing) == (True, True, True, True)
    cohort = cohort_facts(a_cohort_of_kueue())
    assert (cohort.name, cohort.parent) == ("r", "top")


def test_the_objects_of_kueue_are_stated() -> None:
    facts = queue_facts(a_queue_of_kueue())
    cohort = cohort_facts(a_cohort_of_kueue())
    [pool, stated] = pools_and_queues("c1", Forest([facts], [cohort]))
    assert isinstance(pool, PoolState)
    assert isinstance(stated, QueueState)
    assert (pool.name, pool.enforcement) == ("top", "tie-break")
    assert stated == QueueState(
        cluster="c1",
        epoch=0,
        rev=0,
        name="a",
        pool="top",
        frontend="kueue",
        bands_by_class=True,
        preemption={
            "withinClusterQueue": "LowerPriority",
            "reclaimWithinCohort": "Never",
            "borrowWithinCohort": "LowerPriority",
        },
        strategy="StrictFIFO",
        active=False,
        cohort=facts.parent,
        quotas=[
            FlavorQuota(flavor="f", nominal={"cpu": 1500, "nvidia.com/gpu": 8000, "memory": 2**30}),
        ],
        capabilities=KUEUE,
    )


@pytest.mark.parametrize(
    ("status", "message", "why"),
    [
        (
            "False",
            "Can't admit new workloads: references missing AdmissionCheck(s): a, references missing ResourceFlavor(s): b.",
            "references missing AdmissionCheck(s): a, references missing ResourceFlavor(s): b",
        ),
        ("False", "Can't admit new workloads; clusterQueue is terminating", "clusterQueue is terminating"),
        ("False", "Can't admit new workloads.", ""),
        # Kueue says so where the queue's Cohort is above itself.
        ("False", "Can admit new workloads", ""),
        ("True", "Can admit new workloads", ""),
    ],
)
def test_why_a_queue_admits_nothing_is_kueues_word(status: str, message: str, why: str) -> None:
    active = {"type": "Active", "status": status, "message": message}
    item = things.cluster_queue("a", {"cpu": 1}, flavor="f") | {"status": {"conditions": [active]}}
    assert queue_facts(msgspec.convert(item, ClusterQueue)).why_inactive == why


def test_a_pool_tells_its_flavors_where_several_give_one_resource() -> None:
    cards = {QuotaKey(name, "gpu"): Quota(nominal=4) for name in ("a100", "h100")}
    plain = {QuotaKey("a100", "gpu"): Quota(nominal=2), QuotaKey("any", "cpu"): Quota(nominal=9)}
    queues = [
        QueueFacts(name="one", parent="team", quotas=cards),
        QueueFacts(name="two", parent="team", quotas=plain),
        QueueFacts(name="alone", quotas=plain),
    ]
    forest = Forest(queues, [])
    found = {
        state.name: state.flavors for state in pools_and_queues("c", forest) if isinstance(state, PoolState)
    }
    assert found == {"alone": {}, "team": {"a100": {"gpu": 6}, "h100": {"gpu": 4}, "any": {"cpu": 9}}}
    assert {queue.name: queue_view(queue, forest).flavored for queue in queues} == {
        "one": True,
        "two": True,
        "alone": False,
    }


def test_cohorts_and_limits_are_stated() -> None:
    queue = things.cluster_queue(
        "a", {"gpu": 2}, flavor="f", cohort="r", limits={"borrowingLimit": 1, "lendingLimit": 0}
    )
    facts = queue_facts(msgspec.convert(queue, ClusterQueue))
    [pool, stated] = pools_and_queues("c1", Forest([facts], [cohort_facts(a_cohort_of_kueue())]))
    assert isinstance(pool, PoolState)
    assert isinstance(stated, QueueState)
    assert stated.cohort == "r"
    assert stated.quotas == [
        FlavorQuota(flavor="f", nominal={"gpu": 2000}, borrowing={"gpu": 1000}, lending={"gpu": 0})
    ]
    assert pool.cohorts == [
        CohortQuota(name="r", parent="top", quotas=[FlavorQuota(flavor="f", nominal={"cpu": 2000})]),
        CohortQuota(name="top"),
    ]


def test_v1beta1_names_its_cohort_by_another_word() -> None:
    raw = {"metadata": {"name": "a"}, "spec": {"cohort": "old"}}
    assert queue_facts(msgspec.convert(raw, ClusterQueue)).parent == "old"
