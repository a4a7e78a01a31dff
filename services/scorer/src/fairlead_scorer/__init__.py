"""The scorer: decides the order of each pool's waiting jobs, in any number of replicas.

`scorer` is the loop over the rooms, and each room knows only those before it:

- `state`: the `state_view` mirrors what is stated, the `cluster_cache` and its pools (`pool`) hold it in order (pure);
  `past` use is counted from runs, from what owners stated (`past_sources`) and the `run_history`.
- `decide`: a `decision` is what a shard's owner publishes (pure); `shard_assignment` says which shards are ours,
  `shard_ownership` claims one and publishes.
- `report`: `record` counts and logs, `fairness_metrics` are worked out when scraped, `pass_traces` trace decisions.
- `query`: the `query_server` takes people's questions, `questions` and `explaining` answer them, in the sentences of `job_sentences`.
- `route`: the `router` sends jobs that name no cluster to the one that `choice` finds.

`dry_run` is the loop that publishes nothing; `app` wires it.
"""

from fairlead_scorer.app import main
from fairlead_scorer.settings import ScorerSettings

__all__ = ["ScorerSettings", "main"]
