"""Levels in Kueue: the boost annotation of a Workload, or its priority.

Kueue orders by the effective priority, `spec.priority` plus the boost (Kueue KEP-7990). So the boost of a level is
level - base, and no annotation at all where they are equal. Where the gate PriorityBoost is off, `spec.priority` is
the level, and the base is noted in an annotation at the first write: it is never read back from what we wrote. What
of that note is believed: `found_priority`.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass

import msgspec

from fairlead_admitter.apply.level_applier import WriteResult
from fairlead_admitter.decide.steering import LevelWrite
from fairlead_admitter.errors import (
    AdmitterError,
    FrontendDownError,
    FrontendForbiddenError,
    FrontendRefusedError,
)
from fairlead_admitter.frontends.kueue.calls import KueueCalls
from fairlead_admitter.observe.expectations import WriteConfirmation
from fairlead_contracts.frontend.marks import BASE_PRIORITY, NO_PRIORITY
from fairlead_contracts.messages.leave import LeverName
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_kube.errors import InternalError
from fairlead_kube.kinds.quantities import HIGHEST_INT32, LOWEST_INT32, int32
from fairlead_kube.kinds.workloads import MULTIKUEUE_ORIGIN, PRIORITY_BOOST, Workload, found_priority

_REMEMBERED = 4096


@dataclass(eq=False)
class KueueLevels:
    """Writes levels to Workloads.

    A write is one merge patch. Whether the Workload still waits is seen in the answer: to ask for it before would
    cost a request a level, and still not be sure. A boost that lands on a Workload that was just admitted changes
    nothing: it has one anyway if it came from the front.
    """

    calls: KueueCalls
    lever: Callable[[], LeverName | None]
    """The lever that the operator's leave to steer names; None without a leave."""
    _: KW_ONLY
    outage: Callable[[], None]
    """Called when Kueue's webhook did not answer, as far as anybody can tell."""

    def __post_init__(self) -> None:
        self._last_written: OrderedDict[str, tuple[LeverName, int]] = OrderedDict()
        """The level last written, by uid: where the same is asked for again, somebody may have overwritten it."""
        self._without_priority: OrderedDict[str, bool] = OrderedDict()
        """Whether a Workload had no priority before we wrote one, by uid; noted for base 0 alone."""

    keeps_order = False
    """False: an API server carries out concurrent requests in any order."""

    async def write(self, batch: Sequence[LevelWrite]) -> Sequence[WriteResult]:
        """Give waiting or running Workloads their levels, one by one; see LevelWriter."""
        return [await self._try(write.job, write.level) for write in batch]

    async def _try(self, job: JobState, level: int) -> WriteResult:
        try:
            return await self.set_level(job, level)
        except AdmitterError as error:
            return error

    async def set_level(self, job: JobState, level: int) -> WriteConfirmation | None:
        """Give a waiting or a running Workload a level.

        Returns:
            The confirmation; None where it is not in that phase any more.

        Raises:
            AdmitterError: the write may not have been done; see WriteResult.
        """
        lever = self.lever()
        if lever is None:
            raise FrontendForbiddenError(f"cluster {job.cluster} is not cleared any more")
        if not (_is_int32(level - job.base) and _is_int32(level)):
            raise FrontendRefusedError(f"{job.scope}/{job.id}: no boost leads from {job.base} to {level}")
        if lever == "priority" and level != job.base and MULTIKUEUE_ORIGIN in job.labels:
            raise FrontendRefusedError(
                f"{job.scope}/{job.id}: MultiKueue deletes a copy of another priority than its original's"
            )
        if self._last_written.get(job.uid) == (lever, level):
            workload = await self.calls.look(job.scope, job.id, job.uid)
            if workload is None or _has_level(workload, level, lever):
                return self._confirmation(job, level, lever, workload, stood=True)
        try:
            workload = await self._patch_level(job, level, lever)
        except FrontendDownError as error:
            if isinstance(error.__cause__, InternalError):
                self.outage()
            raise
        return self._confirmation(job, level, lever, workload, stood=False)

    async def _patch_level(self, job: JobState, level: int, lever: LeverName) -> Workload | None:
        if lever == "priority":
            return await self._patch_priority(job, level)
        by, _ = self._last_written.get(job.uid, ("priority", 0))
        if by == "priority" and job.level != job.base != level:
            # It may be a priority of the other lever: a boost on top of it would lift the job above its level.
            workload = await self.calls.look(job.scope, job.id, job.uid)
            return workload and await self._patch_boost_of(job, level, workload)
        marks = {PRIORITY_BOOST: boost(level - job.base)}
        workload = await self.calls.patch(job.scope, job.id, job.uid, annotations=marks)
        if workload is None or effective_priority(workload) == level:
            return workload
        return await self._patch_boost_of(job, level, workload)

    async def _patch_priority(self, job: JobState, level: int) -> Workload | None:
        without_priority = await self._had_no_priority(job)
        if level != job.base:
            marks = {BASE_PRIORITY: NO_PRIORITY if without_priority else str(job.base), PRIORITY_BOOST: None}
            return await self.calls.patch(job.scope, job.id, job.uid, annotations=marks, priority=level)
        marks = {BASE_PRIORITY: None, PRIORITY_BOOST: None}
        before = None if without_priority else level
        return await self.calls.patch(job.scope, job.id, job.uid, annotations=marks, priority=before)

    async def _had_no_priority(self, job: JobState) -> bool:
        """Whether the Workload had no priority before us: one that is made by hand has none, which counts as 0."""
        if job.base != 0:
            return False
        known = self._without_priority.get(job.uid)
        if known is None:
            workload = await self.calls.look(job.scope, job.id, job.uid)
            known = False
            if workload is not None:
                found = found_priority(workload)
                known = (workload.spec.priority if found is msgspec.UNSET else found) is None
            _remember(self._without_priority, job.uid, known)
        return known

    async def _patch_boost_of(self, job: JobState, level: int, workload: Workload) -> Workload | None:
        """Patches the boost by the priority that stands there; one of the other lever is taken back on the way."""
        found = found_priority(workload)
        standing = workload.spec.priority if found is msgspec.UNSET else found
        # Without a level nothing is left on it, whatever somebody made of its priority meanwhile.
        amount = 0 if level == job.base else level - (standing or 0)
        marks = {PRIORITY_BOOST: boost(amount), BASE_PRIORITY: None}
        return await self.calls.patch(job.scope, job.id, job.uid, annotations=marks, priority=found)

    def _confirmation(
        self, job: JobState, level: int, lever: LeverName, workload: Workload | None, *, stood: bool
    ) -> WriteConfirmation | None:
        phase = Phase.WAITING if job.phase is Phase.HELD else job.phase
        if workload is None or phase_of(workload) is not phase:
            self._last_written.pop(job.uid, None)
            return None
        if effective_priority(workload) != level:
            raise FrontendRefusedError(f"{job.scope}/{job.id}: stands at {effective_priority(workload)}")
        _remember(self._last_written, job.uid, (lever, level))
        return WriteConfirmation(mark=workload.metadata.resource_version, stood=stood)


def boost(amount: int) -> str | None:
    """The value of the annotation; None for none."""
    return str(amount) if amount else None


def effective_priority(workload: Workload) -> int:
    """The priority that Kueue orders by. An invalid boost counts as none."""
    return (workload.spec.priority or 0) + (int32(workload.metadata.annotation(PRIORITY_BOOST)) or 0)


def _has_level(workload: Workload, level: int, lever: LeverName) -> bool:
    """Whether the Workload has the level by that lever. Where priorities alone are read, no boost may be left on it."""
    by_boost = workload.metadata.annotation(PRIORITY_BOOST) is not None
    return effective_priority(workload) == level and not (by_boost and lever == "priority")


def _remember[T](known: OrderedDict[str, T], uid: str, value: T) -> None:
    known[uid] = value
    known.move_to_end(uid)
    if len(known) > _REMEMBERED:
        known.popitem(last=False)


def phase_of(workload: Workload) -> Phase:
    """The phase: RUNNING, ENDED or WAITING. Only the watcher tells HELD from WAITING."""
    if workload.holds("Finished") or workload.metadata.deletion_timestamp is not None:
        return Phase.ENDED
    return Phase.RUNNING if workload.holds("QuotaReserved") else Phase.WAITING


def _is_int32(number: int) -> bool:
    """Whether a number is an int32, as both the boost and the priority are."""
    return LOWEST_INT32 <= number <= HIGHEST_INT32
