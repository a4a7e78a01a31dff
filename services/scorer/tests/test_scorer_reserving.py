"""Promises and passes as a person is told of them, by the lease of the admitter that makes them."""

import msgspec
import pytest

from fairlead_contracts.messages.members import LeaderLease, ReservedStarts
from fairlead_contracts.messages.questions import Explanation
from fairlead_contracts.messages.state import Phase, subject_of
from fairlead_policy.levels.operators import OperatorWords
from fairlead_scorer.query.explaining import Explainer
from fairlead_scorer.query.reservations import ReserveView
from fairlead_scorer.query.shard_asking import ShardAsker
from fairlead_scorer.query.steering_view import SteeringView
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_testkit.by_hand.scorer_ports import NobodyElse, StatedLeaders
from fairlead_testkit.inputs.builders import NOW, a_document, a_job, a_pool, a_queue
from fairlead_testkit.timing.in_hand import all_steps

HEAD = a_job(uid="head", id="gang")
NOON = 1_760_000_000_000_000


def leader_that_says(reserved: ReservedStarts | None) -> StatedLeaders:
    """The admitter of cluster c1; none where it says nothing."""
    if reserved is None:
        return StatedLeaders()
    return StatedLeaders(
        LeaderLease(role="admitter", cluster="c1", replica="a", epoch=1, renewed=NOW, reserved=[reserved])
    )


def told(
    uid: str, reserved: ReservedStarts | None, *, open_names: bool = True, phase: str = "waiting"
) -> str:
    cache = ClusterCache()
    all_steps(cache.learning({subject_of(HEAD): HEAD}))
    asked = Explanation(cluster="c1", scope="team-a", id=uid, uid=uid, phase=phase, queue="main", pool="gpu")
    return " ".join(ReserveView(cache, leader_that_says(reserved)).reasons(asked, open_names=open_names))


PROMISED = ReservedStarts(pool="gpu", head="head", shadow=NOON, passing=["small"])


@pytest.mark.parametrize(
    ("uid", "reserved", "words"),
    [
        ("head", PROMISED, "starts by 2025-10-09 08:53:20 UTC at the latest"),
        ("small", PROMISED, "passes gang, the first that does not fit,"),
        (
            "head",
            ReservedStarts(pool="gpu", head="head", why_none="runs without a limit are in the way"),
            "no start",
        ),
        ("head", ReservedStarts(pool="gpu", why_not="it is BestEffortFIFO"), "it is BestEffortFIFO"),
    ],
)
def test_what_concerns_a_job_is_told(uid: str, reserved: ReservedStarts, words: str) -> None:
    assert words.lower() in told(uid, reserved).lower()


def test_where_somebody_passes_it_is_said_that_numbers_are_those_by_fairness_alone() -> None:
    assert all("by fairness alone" in told(uid, PROMISED) for uid in ("head", "small"))
    assert "by fairness alone" not in told("head", ReservedStarts(pool="gpu", head="head", shadow=NOON))


def test_others_jobs_are_not_named_to_a_tenant() -> None:
    assert "gang" not in told("small", PROMISED, open_names=False)


@pytest.mark.parametrize("uid", ["run", "unknown"])
def test_a_run_that_keeps_the_head_from_a_promise_is_named_but_to_another_tenant(uid: str) -> None:
    cache = ClusterCache()
    all_steps(cache.adopting(a_document(), 1))
    run = a_job(uid="run", id="nl", scope="team-b", phase=Phase.RUNNING)
    all_steps(cache.learning({subject_of(one): one for one in (HEAD, run)}))
    reserved = ReservedStarts(pool="gpu", head="head", why_none="runs without a limit", in_its_way=[uid])
    view = ReserveView(cache, leader_that_says(reserved))
    asked = Explanation(
        cluster="c1", scope="team-a", id="gang", uid="head", phase="waiting", queue="main", pool="gpu"
    )
    [told] = view.reasons(asked, open_names=True)
    assert told.endswith("runs without a limit: team-b/nl." if uid == "run" else "runs without a limit.")
    [told] = view.reasons(asked, open_names=False)
    assert told.endswith("runs without a limit.")
    promised = view.promised("c1", "gpu")
    assert promised is not None
    assert promised.in_its_way == (["team-b/nl"] if uid == "run" else msgspec.UNSET)


@pytest.mark.parametrize("reserved", [None, PROMISED, ReservedStarts(pool="cpu", why_not="other")])
def test_what_does_not_concern_it_is_not_told(reserved: ReservedStarts | None) -> None:
    assert told("another", reserved) == ""
    assert told("head", reserved, phase="running") == ""


async def test_a_promised_start_is_the_first_thing_that_explain_says() -> None:
    cache = ClusterCache()
    all_steps(cache.adopting(a_document(), 1))
    all_steps(cache.learning({subject_of(state): state for state in (a_pool(), a_queue(), HEAD)}))
    leader = leader_that_says(msgspec.structs.replace(PROMISED, pool="c1/gpu"))
    reserved = ReserveView(cache, leader)
    steering = SteeringView(cache, OperatorWords(), leader, reserved, lambda _: [])
    asker = ShardAsker(NobodyElse(), lambda _: True, timeout=1)
    explainer = Explainer(cache, asker, steering, reserved, traced=0)
    [found] = await explainer.explain("head", None, NOW)
    assert "starts by 2025-10-09 08:53:20 UTC at the latest" in found.reasons[0]
    assert len(found.reasons) > 2, "its place is told, too"
