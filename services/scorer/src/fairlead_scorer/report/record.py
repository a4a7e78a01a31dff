"""The metrics and log of a scorer."""

import structlog

from fairlead_runtime.metrics import Metrics
from fairlead_scorer.decide.shard_ownership import ShardDecision, ShardName

_SCORE_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class ScorerRecord:
    """The scorer's metrics and log lines.

    Args:
        metrics: the registry in which they are declared.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        self._changes = metrics.counter("changes", "State changes taken in, after coalescing.")
        self._passes = metrics.counter("passes", "Turns of the loop: observe, decide, apply, record.")
        self._rescore = metrics.histogram(
            "rescore", "Time to decide one shard.", unit="seconds", buckets=_SCORE_BUCKETS
        )
        self._decisions = metrics.counter("decisions", "Decisions published.")
        self._moves = metrics.counter(
            "positions_moved",
            "Jobs among the heads that were overtaken, or overtook others.",
            labels=["pool"],
        )
        self._shortened = metrics.counter("decisions_shortened", "Decisions cut to keep the payload limit.")
        self._failures = metrics.counter(
            "publish_failures", "Publishes that will be tried again.", labels=["error"]
        )
        self._claims = metrics.counter("claims", "Shards claimed.")
        self._losses = metrics.counter("lost_ownership", "Shards lost to another scorer's claim.")
        self._questions = metrics.counter("questions", "Questions answered.", labels=["question", "outcome"])
        self._routes = metrics.counter("routes", "Submissions for any cluster.", labels=["outcome"])
        self._runs = metrics.counter(
            "past_runs", "Runs that are over, as events told them: past use is made of them."
        )
        self._ahead = metrics.counter(
            "past_ahead",
            "Decisions whose past use is settled to later than now: a clock is, or was, a minute ahead.",
            labels=["owner"],
        )
        self._said_ahead: set[tuple[str, int]] = set()
        self._policies = metrics.counter("policies", "Policy documents read.", labels=["outcome"])

    # Owned shards -------------------------------------------------------------------------------------------------

    def claimed(self, shard: ShardName, epoch: int) -> None:
        """Hears that we own the shard."""
        self._claims.inc()
        self._log.info("claimed", shard=str(shard), epoch=epoch)

    def lost(self, shard: ShardName) -> None:
        """Hears that somebody else has claimed the shard."""
        self._losses.inc()
        self._log.warning("lost ownership, stepping down", shard=str(shard))

    def published(self, shard: ShardName, decided: ShardDecision) -> None:
        """Hears that a decision was acknowledged."""
        self._decisions.inc()
        if decided.content.shortened:
            self._shortened.inc()
            self._log.warning("decision shortened to keep the payload limit", shard=str(shard))

    def moved(self, shard: ShardName, jobs: int) -> None:
        """Counts jobs among the heads that changed their order among each other since the decision before."""
        self._moves.labels(shard.pool).inc(jobs)

    def failed(self, shard: ShardName, error: Exception) -> None:
        """Hears that a decision could not be published now."""
        self._failures.labels(type(error).__name__).inc()
        self._log.warning("publish failed, trying again", shard=str(shard), error=str(error))

    # The loop -----------------------------------------------------------------------------------------------------

    def observed(self, changes: int) -> None:
        """Hears how many changes a pass took in."""
        self._passes.inc()
        self._changes.inc(changes)

    def heard(self, runs: int) -> None:
        """Hears of how many ended runs events told."""
        self._runs.inc(runs)

    def clock_ahead(self, pool: str, shard: int, *, ours: bool) -> None:
        """Hears that a shard's past use is settled to an instant that is yet to come; of a shard this is said once."""
        self._ahead.labels("this" if ours else "other").inc()
        if (pool, shard) not in self._said_ahead:
            self._said_ahead.add((pool, shard))
            self._log.warning("past use is ahead of our clock", shard=f"{pool}/{shard}", ours=ours)

    def decided(self, seconds: float) -> None:
        """Hears that a shard was decided."""
        self._rescore.observe(seconds)

    def arranged(self, gained: list[ShardName], given_up: list[ShardName]) -> None:
        """Hears that the assignment of shards changed for us."""
        self._log.info(
            "assignment changed",
            gained=[str(shard) for shard in gained],
            given_up=[str(shard) for shard in given_up],
        )

    def withheld(self, pool: str, clusters: list[str]) -> None:
        """Hears that a pool is not scored: clusters have not confirmed their state."""
        self._log.warning("order withheld", pool=pool, why="no current sync mark", clusters=clusters)

    def released(self, pool: str) -> None:
        """Hears that a pool is scored again."""
        self._log.info("order released", pool=pool)

    def would_publish(self, shard: ShardName, decided: ShardDecision) -> None:
        """Hears what a dry run would publish."""
        self._log.info(
            "would publish",
            shard=str(shard),
            state_seq=decided.state_seq,
            heads={
                f"{one.cluster}/{one.queue}": [position.id for position in one.positions[:10]]
                for one in decided.content.startable_heads
            },
        )

    # Policy, questions, routes ------------------------------------------------------------------------------------

    def adopted(self, revision: int) -> None:
        """Hears that a policy document was taken on."""
        self._policies.labels("adopted").inc()
        self._log.info("policy adopted", revision=revision)

    def refused_policy(self, revision: int, why: str, *, instead: int) -> None:
        """Hears of a policy document that does not validate; `instead` is the last one kept that does, 0 where none is."""
        self._policies.labels("refused").inc()
        self._log.error(
            "policy refused: the last revision that validates holds",
            revision=revision,
            why=why,
            holds=instead or "what was read before, if anything",
        )

    def answered(self, question: str, outcome: str) -> None:
        """Hears that a question was answered, or refused."""
        self._questions.labels(question, outcome).inc()

    def routed(self, submission: str, tenant: str, cluster: str) -> None:
        """Hears that a submission for any cluster was sent to one."""
        self._routes.labels("sent").inc()
        self._log.debug("routed", submission=submission, tenant=tenant, cluster=cluster)

    def not_routed(self, submission: str, tenant: str, why: str) -> None:
        """Hears that a submission for any cluster was refused: its sender's business, who is told and may send any number."""
        self._routes.labels("refused").inc()
        self._log.debug("not routed", submission=submission, tenant=tenant, why=why)
