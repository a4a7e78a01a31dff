"""Steering as people are told of it, by the leases of the admitter and of who states the cluster."""

import msgspec
import pytest

from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.frontend.capabilities import Capabilities
from fairlead_contracts.messages.members import LeaderLease, LeftAlone, OutOfTurn
from fairlead_contracts.messages.questions import Steering
from fairlead_contracts.messages.state import JobState, Phase, QueueState, State, subject_of
from fairlead_policy.levels.operators import OperatorWords
from fairlead_scorer.query.reservations import ReserveView
from fairlead_scorer.query.steering_view import SteeringView, as_a_tenant_hears
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_testkit.by_hand.scorer_ports import StatedLeaders
from fairlead_testkit.inputs.builders import NOW, a_document, a_job, a_pool, a_queue
from fairlead_testkit.timing.in_hand import all_steps


def a_lease(role: str, **said: object) -> LeaderLease:
    lease = LeaderLease(role=role, cluster="c1", replica="a", epoch=1, renewed=NOW)
    return msgspec.structs.replace(lease, **said)


WATCHED = a_lease("watcher")
JOBS = [a_job(f"job-{name}", uid=name, owner=f"Job/{name}") for name in ("gang", "small")]


def all_marked(pool: str) -> list[str]:
    """No cluster holds the pool's order up."""
    del pool
    return []


def steered(*leases: LeaderLease, queue: QueueState | None = None) -> tuple[Steering, SteeringView]:
    cache = ClusterCache()
    all_steps(cache.adopting(a_document(), 1))
    stated: list[State] = [a_pool(), queue or a_queue(), *JOBS]
    all_steps(cache.learning({subject_of(state): state for state in stated}))
    leaders = StatedLeaders(*leases)
    view = SteeringView(cache, OperatorWords(), leaders, ReserveView(cache, leaders), all_marked)
    [steering] = view.of("c1/gpu")
    return steering, view


@pytest.mark.parametrize("needs_leave", [False, True])
def test_who_holds_up_the_order_of_a_shared_pool_is_told_beside_each_of_its_clusters(
    needs_leave: bool,
) -> None:
    cache, leaders = ClusterCache(), StatedLeaders(WATCHED, a_lease("admitter"))
    all_steps(cache.adopting(a_document(), 1))
    queue = a_queue(capabilities=Capabilities(needs_leave=needs_leave))
    all_steps(cache.learning({subject_of(state): state for state in (a_pool(), queue)}))
    view = SteeringView(
        cache, OperatorWords(), leaders, ReserveView(cache, leaders), {"c1/gpu": ["west"]}.__getitem__
    )
    [steering] = view.of("c1/gpu")
    *before, still = steering.withheld.split("; ")
    assert still.startswith("the order stands still: west has not confirmed its state")
    assert bool(before) == needs_leave, "both are said"


@pytest.mark.parametrize(
    ("why", "more"),
    [
        ("owner-gone (shard 3) for 12 s", ""),
        ("mixed-basis (shard 2) for 20 s", "; scorers differ in their clocks"),
    ],
)
def test_that_the_admitter_cannot_follow_the_decisions_is_said_of_that_pool(why: str, more: str) -> None:
    steering, _ = steered(WATCHED, a_lease("admitter", stale={"c1/gpu": why, "c1/cpu": "missing"}))
    assert steering.withheld.startswith(f"the scorers' decisions cannot be followed: {why}{more}")
    assert "missing" not in steering.withheld
    assert not steered(WATCHED, a_lease("admitter", stale={"c1/cpu": "missing"}))[0].withheld


def test_a_scorer_whose_lease_nats_does_not_keep_says_that_what_it_knows_may_be_old() -> None:
    """No lease that ended meanwhile is told: the server cannot write that it did."""
    _, view = steered(WATCHED, a_lease("admitter"))
    assert view.unheard() == {}
    view.cut_off = lambda: "NATS does not keep its lease"
    [steering] = view.of("c1/gpu")
    assert view.unheard() == {"c1": steering.unheard} == {"c1": "NATS does not keep its lease"}


def test_who_was_stopped_by_levels_that_should_have_been_gone_is_said_of_its_pool_alone() -> None:
    for preemptions, told in (({"c1/gpu": 2, "c1/cpu": 1}, 2), ({"c1/cpu": 1}, 0)):
        steering, _ = steered(a_lease("admitter", preemptions_by_left_levels=preemptions))
        assert steering.preemptions_by_left_levels == told


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("fairlead doctor", ". `fairlead doctor` says what is broken"),
        ("fairlead slurm check", ". `fairlead slurm check` says what is broken"),
        ("", ""),
    ],
)
def test_levels_that_cannot_reach_a_frontend_are_told_as_not_written(command: str, told: str) -> None:
    queue = a_queue(capabilities=Capabilities(needs_leave=False, check_command=command))
    silent = a_lease("admitter", silent="it has not answered for 24 s: no webhook")
    assert steered(WATCHED, silent, queue=queue)[0].withheld == f"{silent.silent}{told}"
    steering, _ = steered(WATCHED, a_lease("admitter"), queue=queue)
    assert steering.withheld == ""


def test_a_pool_whose_sizes_differ_is_followed_as_its_cluster_says_of_mixed_ones() -> None:
    cache = ClusterCache()
    all_steps(cache.adopting(a_document(), 1))
    pool = a_pool(enforcement_mixed="close", enforcement_mixed_why="sizes")

    leaders = StatedLeaders()

    def said(*jobs: JobState, gone: JobState | None = None) -> tuple[str, str]:
        all_steps(cache.learning({subject_of(job): job for job in jobs}))
        all_steps(cache.learning({} if gone is None else {subject_of(gone): None}))
        [steering] = SteeringView(
            cache, OperatorWords(), leaders, ReserveView(cache, leaders), all_marked
        ).of("c1/gpu")
        return steering.enforcement, steering.enforcement_why

    all_steps(cache.learning({subject_of(state): state for state in (pool, a_queue())}))
    small, large = a_job("a", demand={"gpu": 1}), a_job("b", demand={"gpu": 2})
    alike, runs = a_job("c", demand={"gpu": 1}), msgspec.structs.replace(large, phase=Phase.RUNNING, rev=5)
    exact, close = ("exact", ""), ("close", "sizes")
    assert [said(), said(small, alike), said(large), said(runs)] == [exact, exact, close, exact]
    assert said(msgspec.structs.replace(large, rev=6)) == close
    assert said(gone=small) == close
    assert said(gone=alike) == exact
    all_steps(cache.learning({subject_of(pool): a_pool(rev=2)}))
    assert said(small) == exact


RUSHED = "jobs start faster than levels reach them (main)"


@pytest.mark.parametrize(
    ("stated", "why", "told"),
    [
        ("exact", "", ("loose", RUSHED)),
        ("standing", "its head", ("loose", f"{RUSHED}; its head")),
        ("within-queue", "no borrowing", ("loose", f"{RUSHED}; no borrowing")),
        ("tie-break", "own quotas", ("tie-break", "own quotas")),
        ("of a later release", "", ("of a later release", "")),
    ],
)
def test_a_pool_whose_queue_outpaces_levels_is_followed_loosely_at_best(
    stated: str, why: str, told: tuple[str, str]
) -> None:
    cache = ClusterCache()
    all_steps(cache.adopting(a_document(), 1))
    known: list[State] = [a_pool(enforcement=stated, enforcement_why=why), a_queue()]
    all_steps(cache.learning({subject_of(state): state for state in known}))

    def said(outpaced: dict[str, list[str]]) -> tuple[str, str]:
        leaders = StatedLeaders(WATCHED, a_lease("admitter", outpaced=outpaced))
        [steering] = SteeringView(
            cache, OperatorWords(), leaders, ReserveView(cache, leaders), all_marked
        ).of("c1/gpu")
        return steering.enforcement, steering.enforcement_why

    assert said({"c1/gpu": ["main"]}) == told
    assert said({"c1/cpu": ["main"]}) == said({}) == (stated, why)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (OutOfTurn(starts=20, passed=6), "6 took room that a job before them should have had"),
        (
            OutOfTurn(starts=20, passed=0, newcomers=4),
            "4 had just come, and took room that others waited for",
        ),
        (
            OutOfTurn(starts=20, passed=6, newcomers=4),
            "6 took room that a job before them should have had and 4 had just come, and took room that others waited for",
        ),
    ],
)
def test_a_pool_in_which_many_start_out_of_turn_is_followed_loosely_at_best(
    found: OutOfTurn, words: str
) -> None:
    for stated, many, told in (
        ("exact", True, ("loose", f"of the last 20 starts {words}")),
        ("exact", False, ("close", f"of the last 20 starts {words}")),
        ("within-queue", False, ("within-queue", f"of the last 20 starts {words}; own quotas")),
        ("tie-break", True, ("tie-break", "own quotas")),
    ):
        starts = {"c1/gpu": msgspec.structs.replace(found, many=many)}
        cache, leaders = ClusterCache(), StatedLeaders(WATCHED, a_lease("admitter", out_of_turn=starts))
        all_steps(cache.adopting(a_document(), 1))
        pool = a_pool(enforcement=stated, enforcement_why="" if stated == "exact" else "own quotas")
        all_steps(cache.learning({subject_of(state): state for state in (pool, a_queue())}))
        [steering] = SteeringView(
            cache, OperatorWords(), leaders, ReserveView(cache, leaders), all_marked
        ).of("c1/gpu")
        assert (steering.enforcement, steering.enforcement_why) == told


ALONE = [LeftAlone(pool="c1/gpu", jobs=1, since={"small": NOW}), LeftAlone(pool="c1/cpu", jobs=2, since={})]
ONE = "the admitter leaves 1 job alone, as somebody else keeps changing its level: the order holds but for it"


@pytest.mark.parametrize(
    ("stated", "why", "outpaced", "told"),
    [
        ("exact", "", {}, ("loose", ONE)),
        ("standing", "its head", {}, ("loose", f"{ONE}; its head")),
        ("exact", "", {"c1/gpu": ["main"]}, ("loose", f"{RUSHED}; {ONE}")),
        ("tie-break", "own quotas", {"c1/gpu": ["main"]}, ("tie-break", f"{ONE}; own quotas")),
    ],
)
def test_a_pool_of_whose_jobs_some_are_left_alone_is_not_followed_exactly(
    stated: str, why: str, outpaced: dict[str, list[str]], told: tuple[str, str]
) -> None:
    cache = ClusterCache()
    all_steps(cache.adopting(a_document(), 1))
    known: list[State] = [a_pool(enforcement=stated, enforcement_why=why), a_queue()]
    all_steps(cache.learning({subject_of(state): state for state in known}))

    def said(left_alone: list[LeftAlone]) -> Steering:
        leaders = StatedLeaders(WATCHED, a_lease("admitter", outpaced=outpaced, left_alone=left_alone))
        [steering] = SteeringView(
            cache, OperatorWords(), leaders, ReserveView(cache, leaders), all_marked
        ).of("c1/gpu")
        return steering

    found = said(ALONE)
    assert (found.enforcement, found.enforcement_why, found.left_alone) == (*told, 1)
    assert as_a_tenant_hears(found) == found
    assert said(ALONE[1:]).left_alone is msgspec.UNSET
    assert "leaves 3 jobs alone" in said([LeftAlone(pool="c1/gpu", jobs=3, since={})]).enforcement_why


def test_a_pool_of_whose_jobs_some_are_contested_is_not_followed_exactly_meanwhile() -> None:
    for jobs, what in ((1, "the level of 1 job"), (2, "the levels of 2 jobs")):
        found, _ = steered(WATCHED, a_lease("admitter", contested={"c1/gpu": jobs, "c1/cpu": 7}))
        said = f"somebody else changed {what} within the last ten seconds"
        assert (found.enforcement, found.enforcement_why) == ("loose", said)
        assert found.left_alone is msgspec.UNSET


def test_where_two_write_levels_by_one_name_the_operator_hears_of_a_second_fairlead() -> None:
    found, _ = steered(WATCHED, a_lease("admitter", rival=True))
    told = "another Fairlead writes levels to this cluster, too: end one of the two"
    assert (found.enforcement, found.enforcement_why) == ("loose", told)


def test_since_when_a_job_is_left_alone_is_told_of_those_that_are_named() -> None:
    _, view = steered(WATCHED, a_lease("admitter", left_alone=ALONE))
    assert view.left_alone_since("small") == to_datetime(NOW)
    assert view.left_alone_since("gang") is None


ALIKE = a_job("a", demand={"gpu": 1}, equivalence="f01")


@pytest.mark.parametrize("changes", [{"base": 5}, {"equivalence": "f00"}, {"demand": {"gpu": 1, "cpu": 1}}])
def test_jobs_differ_by_class_and_by_all_that_their_frontend_tells_them_apart_by(
    changes: dict[str, object],
) -> None:
    cache = ClusterCache()
    all_steps(cache.adopting(a_document(), 1))
    for uid, more, differ in (("b", {}, False), ("c", changes, True)):
        other = msgspec.structs.replace(ALIKE, id=uid, uid=uid, **more)
        all_steps(cache.learning({subject_of(job): job for job in (ALIKE, other)}))
        assert cache.waiting_differ([a_queue()]) == differ


GANG = msgspec.structs.replace(
    a_job("gang", phase=Phase.RUNNING), started=NOW, unchecked="gang-fit is Pending", open_checks=["gang-fit"]
)


def test_jobs_whose_check_nobody_answers_are_counted_while_no_checker_leads() -> None:
    cache = ClusterCache()
    all_steps(cache.adopting(a_document(), 1))
    other = msgspec.structs.replace(GANG, id="other", uid="other", open_checks=["provisioning"])
    all_steps(cache.learning({subject_of(one): one for one in (a_pool(), a_queue(), GANG, other)}))

    def told(*leases: LeaderLease) -> tuple[object, list[bool]]:
        leaders = StatedLeaders(*leases)
        view = SteeringView(cache, OperatorWords(), leaders, ReserveView(cache, leaders), all_marked)
        [steering] = view.of("c1/gpu")
        assert as_a_tenant_hears(steering).unanswered is msgspec.UNSET
        return steering.unanswered, [view.is_unanswered(job) for job in (GANG, other)]

    assert told() == (1, [True, False])
    assert told(a_lease("checker")) == (msgspec.UNSET, [False, False])
    started = msgspec.structs.replace(GANG, unchecked="", open_checks=msgspec.UNSET, rev=2)
    all_steps(cache.learning({subject_of(started): started}))
    assert told() == (msgspec.UNSET, [True, False]), "the one that is asked about is as it was"
