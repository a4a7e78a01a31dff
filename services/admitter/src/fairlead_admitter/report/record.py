"""The admitter's record of itself: metrics, log lines and the event of each level written."""

from collections.abc import Iterable
from functools import cache
from typing import get_args

import structlog

from fairlead_admitter.decide.steering import LevelWrite, WriteCause
from fairlead_admitter.observe.decision_gate import DecisionVerdict
from fairlead_admitter.observe.expectations import LevelVerdict
from fairlead_admitter.report.job_traces import JobTraces
from fairlead_admitter.report.withheld_levels import LeftAloneRecord, WithheldLevels
from fairlead_contracts.base.instants import to_seconds
from fairlead_contracts.messages.decisions import Decision
from fairlead_contracts.messages.job_traces import exemplar_of
from fairlead_contracts.messages.state import JobState
from fairlead_contracts.messages.submissions import AnyAnswer, RefusalReason
from fairlead_runtime.metrics import Metrics

_WAIT_BUCKETS = (1, 5, 15, 60, 300, 900, 3600, 10_800, 43_200, 86_400, 259_200, 604_800)
"""Seconds: from an instant to a week."""
_REFUSALS: frozenset[str] = frozenset(get_args(RefusalReason.__value__))


class AdmitterRecord:
    """The admitter's metrics and log. Labels are few and known: pools, reasons, kinds; never a job or a tenant."""

    def __init__(self, metrics: Metrics, cluster: str, traces: JobTraces) -> None:
        self._traces = traces
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger().bind(cluster=cluster)
        self.leading = metrics.gauge("leading", "1 while this replica leads for its cluster.")
        self._written = metrics.counter("levels_written", "Levels written.", labels=["pool", "kind"])
        self._kept = metrics.gauge(
            "levels_kept",
            "Jobs of the window whose standing level could stay, at the last plan.",
            labels=["pool"],
        )
        self._window = metrics.gauge(
            "window", "Jobs among the heads that carry levels, at the last plan.", labels=["pool"]
        )
        self.withheld_levels = WithheldLevels(metrics, cluster)
        self._drift = metrics.counter("drift_seen", "Levels of ours that another writer changed.")
        self._repaired = metrics.counter("drift_repaired", "Levels written again after a drift.")
        self._fights = metrics.counter(
            "fights", "Jobs that another writer relabelled so often that they are left alone."
        )
        self.left_alone = LeftAloneRecord(metrics)
        self.resting = metrics.gauge(
            "resting", "Queued jobs that rest after a failed write while others went well; tried again later."
        )
        self._failed = metrics.counter("writes_failed", "Level writes without a confirmation.")
        self._gone = metrics.counter("writes_too_late", "Level writes to jobs that waited no more.")
        self._decisions = metrics.counter(
            "decisions", "Decisions read, by what became of them.", labels=["verdict"]
        )
        self.admissions = metrics.counter("admissions", "Jobs seen to be started by the frontend.")
        self._prepare_intake(metrics)
        self._prepare_times(metrics)

    def _prepare_times(self, metrics: Metrics) -> None:
        self._latency = metrics.histogram(
            "event_to_level",
            "Time from the newest state change that a decision knew, as seen here, to the level written.",
        )
        self._waits = metrics.histogram(
            "wait",
            "Time from the submission of a job to its start.",
            labels=["pool", "class"],
            buckets=_WAIT_BUCKETS,
        )
        self.pass_time = metrics.histogram(
            "pass", "Time of one plan of one pool: merging, taking the window, planning.", labels=["pool"]
        )

    def _prepare_intake(self, metrics: Metrics) -> None:
        submissions = metrics.counter("submissions", "Submissions handled, by outcome.", labels=["outcome"])
        # Of each submission: to find a labelled counter costs more than to count with it.
        self._submission = cache(submissions.labels)
        self._refused = metrics.counter(
            "submissions_refused", "Submissions refused, by reason.", labels=["reason"]
        )
        self._creations_failed = metrics.counter(
            "creations_failed", "Attempts to make a job of a submission that failed and are made again."
        )
        answers = metrics.counter("answers", "Answers published, by kind.", labels=["kind"])
        self._answer = cache(answers.labels)

    def judged(self, decision: Decision, verdict: DecisionVerdict) -> None:
        """Records that a decision was read."""
        self._decisions.labels(verdict.value).inc()
        if verdict.dropped:
            self._log.warning(
                "decision dropped",
                pool=decision.pool,
                shard=decision.shard,
                owner=decision.owner,
                epoch=decision.epoch,
                turn=decision.turn,
                verdict=verdict.value,
            )

    def waited(self, pool: str, job_class: str, job: JobState, exemplar: dict[str, str] | None) -> None:
        """Records that a job was started, so long after it was submitted."""
        if job.started is not None:
            seconds = to_seconds(max(0, job.started - job.submitted))
            self._waits.labels(pool, job_class).observe(seconds, exemplar)

    def level_compared(self, job: JobState, verdict: LevelVerdict) -> None:
        """Records that a job's level was not what we left there."""
        if verdict is LevelVerdict.EXPECTED:
            return
        self._drift.inc()
        self._log.info("drift", job=job.id, scope=job.scope, level=job.level)
        if verdict is LevelVerdict.FIGHT:
            self._fights.inc()
            self._log.error(
                "fight",
                job=job.id,
                scope=job.scope,
                level=job.level,
                why="another writer keeps changing the level of this job; it is left alone from now on",
            )

    def planned(self, pool: str, *, kept: int, window: int) -> None:
        """Records that a plan was made."""
        self._kept.labels(pool).set(kept)
        self._window.labels(pool).set(window)

    def reacted(self, seconds: float, traceparent: str | None) -> None:
        """Records that a state change became levels."""
        self._latency.observe(seconds, exemplar=exemplar_of(traceparent))

    def wrote(self, pool: str, write: LevelWrite) -> None:
        """Records that a level was written."""
        kind = _KINDS.get(write.cause) or ("raised" if write.level > write.before else "lowered")
        self._written.labels(pool, kind).inc()
        if write.drifted:
            self._repaired.inc()
        self._log.debug("level", pool=pool, **_told(write))

    def would_write(self, pool: str, write: LevelWrite) -> None:
        """Records a level that a dry run decided on."""
        self._log.info("would write", pool=pool, **_told(write))

    def troubled(self, pool: str, *, failed: int, gone: int, trouble: str, jobs: Iterable[JobState]) -> None:
        """Records that writes to these jobs did not land; the next pass sees to them."""
        self._failed.inc(failed)
        self._gone.inc(gone)
        if failed:
            self._log.warning("levels not written", pool=pool, failed=failed, why=trouble)
            self._traces.failed(pool, failed, trouble, jobs)

    def taken(self, outcome: str) -> None:
        """Records that a submission was handled: "accepted", "repeated", or the reason of its refusal."""
        if outcome in _REFUSALS:
            self._submission("refused").inc()
            self._refused.labels(outcome).inc()
        else:
            self._submission(outcome).inc()

    def creation_failed(self, scope: str, why: str, *, new: bool) -> None:
        """Records that no job could be made for a tenant's submission just now; it is held and tried again."""
        self._creations_failed.inc()
        if new:
            self._log.warning("submissions held", scope=scope, why=why)
            self._traces.held(scope, why)

    def answered(self, answer: AnyAnswer) -> None:
        """Records that an answer was published."""
        self._answer(type(answer).__name__.lower()).inc()

    def events_lost(self, count: int, why: str) -> None:
        """Records that events were not stored: the event log has a gap, what was done stands."""
        self._log.warning("events not stored", count=count, why=why)

    def lead(self, epoch: int | None) -> None:
        """Records that this replica leads from now on, or stands by."""
        self.leading.set(epoch is not None)
        self._log.info("leading" if epoch is not None else "standing by", epoch=epoch)


_KINDS = {
    WriteCause.LEFT: "default",
    WriteCause.RELEASE: "default",
    WriteCause.OUT_OF_BAND: "out-of-band",
    WriteCause.PROTECT: "protected",
    WriteCause.STARTED: "started",
    WriteCause.CHECKED: "checked",
    WriteCause.WAKE: "woken",
}


def _told(write: LevelWrite) -> dict[str, object]:
    """The fields of a level write in the log."""
    return {
        "job": write.job.name,
        "scope": write.job.scope,
        "before": write.before,
        "to": write.level,
        "because": write.because,
    }
