"""How far each cluster follows a pool's order, for people: by the same judgement as the admitter's."""

from fairlead_contracts.questions import Steering
from fairlead_contracts.state import PoolState, QueueState
from fairlead_policy import OperatorWords, why_withheld
from fairlead_scorer.ledger import Ledger

_FIRMNESS = ("exact", "within-queue", "tie-break")
"""What a pool's enforcement may be, the firmest first."""


class SteeringView:
    """Says of pools where their levels are written.

    Args:
        ledger: what is known.
        words: what operators said.
    """

    def __init__(self, ledger: Ledger, words: OperatorWords) -> None:
        self._ledger = ledger
        self._words = words

    def of(self, pool: str) -> list[Steering]:
        """Of each cluster that is joined into the pool and has queues there, by name."""
        queues: dict[str, list[QueueState]] = {}
        for queue in self._ledger.queues_of(pool):
            queues.setdefault(queue.cluster, []).append(queue)
        return [self._of_cluster(pool, cluster, queues[cluster]) for cluster in sorted(queues)]

    def of_cluster(self, pool: str, cluster: str) -> Steering | None:
        """Of one cluster; None where the pool has no queue there."""
        return next((one for one in self.of(pool) if one.cluster == cluster), None)

    def _of_cluster(self, pool: str, cluster: str, queues: list[QueueState]) -> Steering:
        stated = [one for one in self._ledger.stated_in(pool) if one.cluster == cluster]
        loosest = max(stated, key=_looseness, default=None)
        return Steering(
            cluster=cluster,
            frontend=queues[0].frontend,
            enforcement=_FIRMNESS[0] if loosest is None else loosest.enforcement,
            enforcement_why="" if loosest is None else loosest.enforcement_why,
            withheld=self._why_withheld(pool, cluster, queues),
        )

    def _why_withheld(self, pool: str, cluster: str, queues: list[QueueState]) -> str:
        rulebook = self._ledger.rulebook
        if rulebook is None:
            return "there is no policy"
        clearance, mode = self._words.clearance(cluster), self._words.mode(pool)
        values = self._ledger.class_values(cluster)
        found = self._words.lever_found(cluster)
        return why_withheld(rulebook.document, queues, clearance, mode=mode, values=values, found=found)


def _looseness(pool: PoolState) -> int:
    """A word that is not known counts as the loosest: nothing is promised by it."""
    return _FIRMNESS.index(pool.enforcement) if pool.enforcement in _FIRMNESS else len(_FIRMNESS)
