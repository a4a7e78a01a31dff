"""Jobs as `explain` tells them: an array by its next task, one that its frontend passes by as such."""

import pytest

from fairlead_contracts.messages.state import JobArray, JobState, Phase, State, subject_of, task_uid
from fairlead_policy.levels.operators import OperatorWords
from fairlead_scorer.query.explaining import Explainer
from fairlead_scorer.query.reservations import ReserveView
from fairlead_scorer.query.shard_asking import ShardAsker
from fairlead_scorer.query.steering_view import SteeringView
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_testkit.by_hand.scorer_ports import NobodyElse, StatedLeaders
from fairlead_testkit.inputs.builders import NOW, a_document, a_job, a_pool, a_queue
from fairlead_testkit.timing.in_hand import all_steps


def a_task(array: str, task: int, phase: Phase) -> JobState:
    return a_job(f"{array}_{task}", uid=task_uid(f"lab-{array}", task), phase=phase, started=NOW)


@pytest.fixture
def explainer() -> Explainer:
    """Explains the jobs of a cluster with two arrays, one that is called as if it were a task, and two that are passed by."""
    cache = ClusterCache()
    all_steps(cache.adopting(a_document(), 1))
    jobs = [
        a_job("7", uid="lab-7", array=JobArray(tasks=9, window=[4, 12])),
        a_task("7", 2, Phase.RUNNING),
        a_task("8", 10, Phase.RUNNING),
        a_task("8", 9, Phase.RUNNING),
        a_job("9_1", uid="by-hand"),
        a_job("lost", uid="lost", flavorless=True),
        a_job("few", uid="few", limited=True),
    ]
    facts: list[State] = [a_pool(), a_queue(), *jobs]
    all_steps(cache.learning({subject_of(state): state for state in facts}))
    leaders = StatedLeaders()
    reserved = ReserveView(cache, leaders)
    steering = SteeringView(cache, OperatorWords(), leaders, reserved, lambda _: [])
    asker = ShardAsker(NobodyElse(), lambda _: True, timeout=1)
    return Explainer(cache, asker, steering, reserved, traced=0)


@pytest.mark.parametrize(
    ("name", "tenant", "found"),
    [
        ("7", None, ["7_4"]),
        ("team-a/7", "team-a", ["7_4"]),
        ("7", "team-b", []),
        ("7_2", None, ["7_2"]),
        ("8", None, ["8_9", "8_10"]),
        ("9", None, []),
    ],
)
async def test_an_array_is_explained_by_its_next_task_or_by_those_that_run(
    explainer: Explainer, name: str, tenant: str | None, found: list[str]
) -> None:
    assert [one.id for one in await explainer.explain(name, tenant, NOW)] == found


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("lost", "No flavor of its queue takes it as things are: "),
        ("few", "More than its turn and room is in its way as things are: "),
        ("9_1", None),
    ],
)
async def test_who_is_passed_by_is_told_so_first(explainer: Explainer, name: str, why: str | None) -> None:
    [found] = await explainer.explain(name, None, NOW)
    told = [said for said in found.reasons[:1] if "others start past it" in said]
    assert [said.startswith(why or "") for said in told] == ([] if why is None else [True])
