"""What people are told of how a cluster is steered, by the lease of the admitter that leads there."""

import msgspec

from fairlead_contracts.messages.members import LeaderLease
from fairlead_contracts.messages.state import subject_of
from fairlead_policy.levels.operators import OperatorWords
from fairlead_scorer.query.steering import SteeringView
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_testkit.builders import NOW, a_document, a_pool, a_queue


class Leader:
    """An admitter that heard of this."""

    def __init__(self, preemptions: dict[str, int]) -> None:
        self._preemptions = preemptions

    def leader(self, role: str, cluster: str) -> LeaderLease | None:
        lease = LeaderLease(role=role, cluster=cluster, replica="a", epoch=1, renewed=NOW)
        return msgspec.structs.replace(lease, preemptions_by_left_levels=self._preemptions)


def test_who_was_stopped_by_levels_that_should_have_been_gone_is_said_of_its_pool_alone() -> None:
    cache = ClusterCache()
    cache.adopt(a_document(), 1)
    cache.learn({subject_of(state): state for state in (a_pool(), a_queue())})
    for preemptions, told in (({"c1/gpu": 2, "c1/cpu": 1}, 2), ({"c1/cpu": 1}, 0)):
        [steering] = SteeringView(cache, OperatorWords(), Leader(preemptions)).of("c1/gpu")
        assert steering.preemptions_by_left_levels == told
