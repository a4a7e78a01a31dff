"""The scorer: decides the order of each pool's waiting jobs, in any number of replicas.

Where to find what: `ledger` and `pools` turn facts and policy into pools of jobs in order (pure); `deciding` says what
a shard's decision holds (pure); `tenure` claims a shard and publishes its decisions; `scorer` is the loop; `questions`,
`explaining` and `words` answer people; `routing` and `router` find a cluster for jobs that name none; `app` wires it.
"""

from fairlead_scorer.app import main
from fairlead_scorer.settings import ScorerSettings

__all__ = ["ScorerSettings", "main"]
