"""A job that is left alone, as `explain` tells it."""

import pytest

from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.messages.members import LeaderLease, LeftAlone
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

NOON = 1_760_000_000_000_000
SINCE = (
    "The admitter has left its level alone since 2025-10-09 08:53:20 UTC: "
    "somebody else kept changing it. Fairlead cannot see who."
)
STANDS = (
    "Level 214747 stands, and the job starts by that, whatever its position here. "
    "Once nobody else sets its level, `fairlead resume c1/gpu` has the admitter write it again."
)
TOLD = [SINCE, STANDS]


async def explained(phase: Phase, since: dict[str, int]) -> Explanation:
    cache = ClusterCache()
    all_steps(cache.adopting(a_document(), 1))
    job = a_job("lifted", uid="lifted", phase=phase, level=214_747)
    all_steps(cache.learning({subject_of(state): state for state in (a_pool(), a_queue(), job)}))
    lease = LeaderLease(
        role="admitter",
        cluster="c1",
        replica="a",
        epoch=1,
        renewed=NOW,
        left_alone=[LeftAlone(pool="c1/gpu", jobs=1, since=since)],
    )
    leaders = StatedLeaders(lease)
    reserved = ReserveView(cache, leaders)
    steering = SteeringView(cache, OperatorWords(), leaders, reserved, lambda _: [])
    asker = ShardAsker(NobodyElse(), lambda _: True, timeout=1)
    explainer = Explainer(cache, asker, steering, reserved, traced=0)
    [found] = await explainer.explain("lifted", "team-a", NOW)
    return found


async def test_a_job_that_is_left_alone_hears_it_first_with_what_stands_and_what_ends_it() -> None:
    found = await explained(Phase.WAITING, {"lifted": NOON})
    assert found.reasons[:2] == TOLD
    assert len(found.reasons) > 2, "its position is told, too"
    assert found.left_alone == to_datetime(NOON)


async def test_of_a_held_job_that_it_is_held_comes_first() -> None:
    found = await explained(Phase.HELD, {"lifted": NOON})
    assert found.reasons[0].startswith("Held")
    assert found.reasons[1:] == TOLD


@pytest.mark.parametrize(
    ("phase", "uid"), [(Phase.WAITING, "another"), (Phase.HELD, "another"), (Phase.ENDED, "lifted")]
)
async def test_another_job_and_one_that_is_over_hear_nothing_of_it(phase: Phase, uid: str) -> None:
    found = await explained(phase, {uid: NOON})
    assert not found.left_alone
    assert not any("left its level alone" in line for line in found.reasons)
