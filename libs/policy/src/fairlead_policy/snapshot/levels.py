"""The levels that the order of a snapshot takes: what admitters would write from the same facts.

Each frontend of each cluster is steered by itself, by the class bands that its queues and the policy give; the same ones
as an admitter's. On paper everything is written at once: what an admitter leaves to its next passes is in the plan. Where
starts are promised, it is by the promise on paper; what was promised before, a snapshot does not say.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from fairlead_contracts.frontend.capabilities import Capabilities
from fairlead_contracts.messages.state import QueueState
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.snapshot.types import Snapshot, SnapshotJob, SnapshotQueue
from fairlead_policy.levels.class_band_plan import plan_class_bands
from fairlead_policy.levels.class_bands import ClassBand, class_bands_by
from fairlead_policy.levels.plan import Band, LabelledJob
from fairlead_policy.levels.ties import tie_of, tied_within
from fairlead_policy.levels.window import Candidate, WindowSize, take_window
from fairlead_policy.levels.withholding import why_crossed, why_preempting
from fairlead_policy.snapshot.ordering import OrderedPool
from fairlead_policy.snapshot.reserve import PaperReservation

_PLAIN_QUEUE = QueueState(cluster="", epoch=0, rev=0, name="", pool="", frontend="")
PLAIN_BAND = Band(
    default=_PLAIN_QUEUE.default_level, lowest=_PLAIN_QUEUE.lowest_level, highest=_PLAIN_QUEUE.highest_level
)
"""The levels that a queue takes of which nothing else is said."""

type SteeredFrontend = tuple[str, str]
"""Frontend that follows levels by itself: (cluster, frontend)."""


class PaperSteering(msgspec.Struct, frozen=True, kw_only=True):
    """Levels that one frontend takes."""

    class_bands: Sequence[ClassBand]
    """Class bands, the highest first."""
    why_none: str = ""
    """Reason for which no level is written there, in words; else empty."""
    able: Mapping[str, Capabilities] = {}
    """Abilities of frontends by the queue's name; of a queue that is not in there the frontend's name says them."""


_PLAIN = PaperSteering(class_bands=[ClassBand(band=PLAIN_BAND)])


class PlannedLevels(msgspec.Struct, frozen=True, kw_only=True):
    """The levels after which the frontends of one pool follow its order."""

    levels: dict[str, int]
    """Level of each waiting job once all is written, by uid."""
    writes: list[tuple[str, int]]
    """Writes as (uid, level), in a safe order."""
    dropped: int = 0
    """Number of jobs at windows' ends that there is no level for."""
    withheld: dict[SteeredFrontend, str] = {}
    """Frontends that get no level, and why, in words."""


def steering_of(snapshot: Snapshot, pool: str) -> dict[SteeredFrontend, PaperSteering]:
    """The levels that the pool's queues take by cluster and frontend, as far as the snapshot states queues."""
    queues: dict[SteeredFrontend, list[SnapshotQueue]] = {}
    for queue in snapshot.queues:
        if queue.pool == pool:
            queues.setdefault((queue.cluster, queue.frontend), []).append(queue)
    values: dict[str, dict[str, int]] = {}
    for found in snapshot.class_values:
        values.setdefault(found.cluster, {})[found.job_class] = found.value
    return {
        steered: _steering(snapshot.policy, stated, values.get(steered[0], {}))
        for steered, stated in sorted(queues.items())
    }


def _steering(
    document: PolicyDocument, queues: Collection[SnapshotQueue], values: Mapping[str, int]
) -> PaperSteering:
    if preempting := why_preempting(document, queues):
        return PaperSteering(class_bands=[], why_none=preempting)
    if crossed := why_crossed(document, queues, values):
        return PaperSteering(class_bands=[], why_none=crossed)
    class_bands = class_bands_by(document, queues, values)
    return PaperSteering(
        class_bands=class_bands,
        why_none="" if class_bands else "its queues have no band in common",
        able={queue.name: queue.able for queue in queues},
    )


def plan_snapshot_levels(
    pool: OrderedPool,
    jobs: Iterable[SnapshotJob],
    window: int,
    steering: Mapping[SteeredFrontend, PaperSteering] | None = None,
    *,
    never: Collection[str] = (),
    reservation: PaperReservation | None = None,
) -> PlannedLevels:
    """The fewest writes after which the frontends of the pool follow its order.

    Args:
        pool: the pool in order, as its reservation wants it.
        jobs: waiting jobs; those of other pools are passed over.
        window: number of jobs at the head of each queue that are labelled.
        steering: the levels that each frontend takes; plain ones where it is not in there.
        never: uids of jobs that can never run. They take no position in the window and stand behind it.
        reservation: the promise that the pool's head has; None where the policy wants none.
    """
    reserved = reservation is not None and not reservation.why_not
    last = {*never, *(reservation.last if reservation is not None else ())}
    waiting = {job.uid: job for job in jobs if job.pool == pool.name}
    steered: dict[SteeredFrontend, list[SnapshotJob]] = {}
    for positioned in pool.jobs():
        job = waiting[positioned.uid]
        steered.setdefault((job.cluster, job.frontend), []).append(job)
    levels = {job.uid: job.level for job in waiting.values()}
    known = steering or {}
    writes: list[tuple[str, int]] = []
    withheld: dict[SteeredFrontend, str] = {}
    dropped = 0
    for where, ordered in sorted(steered.items()):
        how = known.get(where, _PLAIN)
        if how.why_none:
            withheld[where] = how.why_none
            continue
        able = [job for job in ordered if job.uid not in last] if last else ordered
        heads = window_of(able, window, pool.apart)
        inside = {job.uid for job in heads}
        behind = [job for job in able if job.uid not in inside]
        behind += [job for job in ordered if job.uid in last]
        queued = _OnPaper(heads, behind, levels, how.able)
        plan = plan_class_bands(how.class_bands, queued, how.able.values(), reserved=reserved)
        writes += [(change.uid, change.level) for change in plan.changes]
        dropped += plan.dropped
    return PlannedLevels(levels=levels | dict(writes), writes=writes, dropped=dropped, withheld=withheld)


@dataclass(eq=False)
class _OnPaper:
    """The jobs of one frontend as a snapshot lists them, all of them: everything is written at once.

    It compares jobs of one level as their queues say, else as the jobs do.
    """

    heads: Sequence[SnapshotJob]
    behind: Sequence[SnapshotJob]
    levels: Mapping[str, int]
    able: Mapping[str, Capabilities]

    def window(self, class_band: ClassBand) -> Iterator[LabelledJob]:
        """See `FrontendQueue`."""
        return (self._labelled(job) for job in self.heads if class_band.takes(job.job_class))

    def outside(self, class_band: ClassBand, most: int) -> Iterator[LabelledJob]:
        """See `FrontendQueue`."""
        del most
        able = (job for job in self.behind if not job.flavorless)
        return (self._labelled(job) for job in able if class_band.takes(job.job_class))

    def out_of_band_jobs(self, class_band: ClassBand) -> Iterator[str]:
        """See `FrontendQueue`."""
        found = (
            self._labelled(job)
            for job in self.behind
            if class_band.takes(job.job_class) and class_band.out_of_band(job.level)
        )
        return (job.uid for job in sorted(found, key=lambda job: (-job.level, job.tie)))

    def lifted_held(self, class_band: ClassBand) -> Iterator[str]:
        """See `FrontendQueue`. Paper knows no held jobs."""
        del class_band
        return iter(())

    def sunken(self, class_band: ClassBand) -> Iterator[str]:
        """See `FrontendQueue`. Paper does not know at which level a job stands if nobody steers."""
        return self.lifted_held(class_band)

    def level_of(self, uid: str) -> int:
        """See `FrontendQueue`."""
        return self.levels[uid]

    def _labelled(self, job: SnapshotJob) -> LabelledJob:
        able = self.able.get(job.queue) or job.able
        tie = tie_of(able.ties, job.queue_time, name=job.id, uid=job.uid)
        return LabelledJob(uid=job.uid, level=job.level, tie=tie, queue=tied_within(able, job.queue))


def window_of(ordered: Sequence[SnapshotJob], size: int, apart: Collection[str] = ()) -> list[SnapshotJob]:
    """The jobs that are labelled: see `take_window`. A level would have the frontend try in vain whom no flavor takes.

    Args:
        ordered: the jobs of one frontend, in order.
        size: number of jobs at the head of each queue that are labelled.
        apart: uids of the jobs that cannot start.
    """
    waiting = Counter(job.queue for job in ordered if job.uid not in apart)
    candidates = (Candidate(job.queue, job, apart=job.uid in apart) for job in ordered)
    window = take_window(candidates, waiting, WindowSize.whole(size))
    return [job for job in window.jobs if not job.flavorless]
