"""Traces of scoring: each decision that is kept is a trace of its own, linked to the jobs whose position it changed.

A job's stage `scored` ends with the first decision that gives it a position among the heads. Nothing of a trace decides.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.job_traces import (
    SCORED,
    Attributes,
    Span,
    TraceContext,
    about_job,
    kept_trace,
    stage_span,
    trace_of_job,
)
from fairlead_contracts.messages.state import JobState
from fairlead_runtime.spans import Spans
from fairlead_scorer.decide.decision import DecisionContent
from fairlead_scorer.decide.shard_ownership import ShardDecision, ShardName, ShardObserver

_LINKS = 32
"""Jobs that a pass is linked to at most: nobody looks through more."""


class _PendingPass(NamedTuple):
    """A decision that is on its way."""

    context: TraceContext | None
    """Context of its trace; None where that is not kept."""
    began: Micros
    epoch: int
    turn: int
    positions: Mapping[str, Position]
    entered: list[tuple[JobState, TraceContext]]
    """Kept jobs that were not among the heads before."""
    moved: list[TraceContext]
    overtaken: int
    """Number of jobs that were among the heads before and have changed their order among each other."""


class PassObserver(ShardObserver, Protocol):
    """An observer that counts moves, too."""

    def moved(self, shard: ShardName, jobs: int) -> None:
        """Hears how many jobs changed their order among each other."""


@dataclass(eq=False)
class PassTraces:
    """Tells passes as they are published; hears of owned shards in the place of the record, and hands everything on."""

    observer: PassObserver
    spans: Spans
    job: Callable[[str], JobState | None]
    """A waiting job, by its uid."""
    replica: str
    """Our name."""
    clock: Callable[[], Micros]
    """Gives the instant of now."""

    def __post_init__(self) -> None:
        self._positions: dict[ShardName, Mapping[str, Position]] = {}
        """The positions of each shard's last decision, by uid; only of shards that are ours."""
        self._passes: dict[ShardName, _PendingPass] = {}

    def begin(self, shard: ShardName, content: DecisionContent, epoch: int, turn: int) -> str | None:
        """Begins the trace of a decision about to be published; returns its traceparent, None where it is not kept."""
        positions = {position.uid: position for heads in content.queue_heads for position in heads.positions}
        before = self._positions.get(shard, {})
        overtaken = _reordered(before, positions)
        entered: list[tuple[JobState, TraceContext]] = []
        moved: list[TraceContext] = []
        context = None
        if self.spans.on:
            entered = [
                kept for uid in positions.keys() - before.keys() if (kept := self._kept(uid)) is not None
            ]
            moved = [root for _, root in entered]
            moved += [kept[1] for uid in overtaken if (kept := self._kept(uid)) is not None]
            context = kept_trace(
                "pass", shard.pool, shard.number, epoch, turn, ratio=self.spans.ratio, anyway=bool(entered)
            )
        self._passes[shard] = _PendingPass(
            context, self.clock(), epoch, turn, positions, entered, moved[:_LINKS], len(overtaken)
        )
        return None if context is None else context.traceparent

    def _kept(self, uid: str) -> tuple[JobState, TraceContext] | None:
        job = self.job(uid)
        if job is None:
            return None
        root = trace_of_job(job, self.spans.ratio)
        return (job, root) if root.kept else None

    # The observer --------------------------------------------------------------------------------------------------

    def claimed(self, shard: ShardName, epoch: int) -> None:
        """Hears that we own the shard; its last owner may have died before it told its last passes."""
        self.observer.claimed(shard, epoch)
        begun = self._passes.get(shard)
        said = self._attributes(shard) | {"fairlead.epoch": epoch, "fairlead.role": "scorer"}
        self.spans.trouble("take over", said, links=() if begun is None else begun.moved)

    def lost(self, shard: ShardName) -> None:
        """Hears that somebody else has claimed the shard."""
        self.observer.lost(shard)
        self._positions.pop(shard, None)
        self._passes.pop(shard, None)

    def published(self, shard: ShardName, decided: ShardDecision) -> None:
        """Hears that a decision was acknowledged."""
        self.observer.published(shard, decided)
        done = self._passes.pop(shard, None)
        if done is not None:
            self._positions[shard] = done.positions
            self.observer.moved(shard, done.overtaken)
            if done.context is not None:
                self.spans.tell(self._spans_of(shard, done, done.context))

    def failed(self, shard: ShardName, error: Exception) -> None:
        """Hears that a decision could not be published now."""
        self.observer.failed(shard, error)
        begun = self._passes.get(shard)
        links = () if begun is None else (begun.context, *begun.moved)
        self.spans.trouble("publish", self._attributes(shard), links=links, error=str(error))

    def _spans_of(self, shard: ShardName, done: _PendingPass, context: TraceContext) -> Iterator[Span]:
        now = self.clock()
        about = self._attributes(shard) | {"fairlead.epoch": done.epoch, "fairlead.turn": done.turn}
        yield Span(
            name="pass",
            context=context,
            start=done.began,
            end=now,
            attributes=about
            | {"fairlead.placed": len(done.positions), "fairlead.entered": len(done.entered)},
            links=tuple(done.moved),
        )
        for job, root in done.entered:
            position = done.positions[job.uid]
            said: Attributes = {
                "fairlead.tenant": position.tenant,
                "fairlead.class": position.job_class,
                "fairlead.tag": position.tag,
                "fairlead.dominant": position.dominant,
            }
            of_job = about_job(job.cluster, job.scope, job.id, job.uid)
            yield stage_span(root, SCORED, done.began, now, of_job | about | said, links=(context,))

    def _attributes(self, shard: ShardName) -> Attributes:
        return {
            "fairlead.pool": shard.pool,
            "fairlead.shard": shard.number,
            "fairlead.replica": self.replica,
        }


def _reordered(before: Mapping[str, Position], after: Mapping[str, Position]) -> list[str]:
    """The jobs that were among the heads before and have changed their order among each other."""
    stood = [uid for uid in before if uid in after]
    stand = [uid for uid in after if uid in before]
    return [uid for uid, other in zip(stand, stood, strict=True) if uid != other]
