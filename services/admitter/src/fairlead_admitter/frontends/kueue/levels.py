"""Levels in Kueue: the boost annotation of a Workload, or its priority.

Kueue orders by the effective priority, `spec.priority` plus the boost (Kueue KEP-7990). So the boost of a level is
level - base, and no annotation at all where they are equal. Where the gate PriorityBoost is off, `spec.priority` is
the level, and the base is noted in an annotation at the first write: it is never read back from what we wrote.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence

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
from fairlead_admitter.observe.expectations import Landed
from fairlead_contracts.frontend.marks import BASE_PRIORITY, NO_PRIORITY
from fairlead_contracts.messages.leave import LeverName
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_kube.errors import InternalError
from fairlead_kube.quantities import HIGHEST_INT32, LOWEST_INT32, int32
from fairlead_kube.workloads import PRIORITY_BOOST, Workload

_REMEMBERED = 4096


class KueueLevels:
    """Writes levels to Workloads.

    A write is one merge patch. Whether the Workload still waits is seen in the answer: to ask for it before would
    cost a request a level, and still not be sure. A boost that lands on a Workload that was just admitted changes
    nothing: it has one anyway if it came from the front.

    Args:
        calls: on the cluster's Workloads.
        lever: the one that the operator's leave to steer names; None without a leave.
        outage: called when Kueue's webhook did not answer, as far as anybody can tell.
    """

    keeps_order = False
    """An API server carries out concurrent requests in any order."""

    def __init__(
        self, calls: KueueCalls, lever: Callable[[], LeverName | None], *, outage: Callable[[], None]
    ) -> None:
        self._calls = calls
        self._lever = lever
        self._outage = outage
        self._last: OrderedDict[str, int] = OrderedDict()
        """The level last written, by uid: asked for the same again, somebody may have overwritten it."""
        self._bare: OrderedDict[str, bool] = OrderedDict()
        """Whether there was no priority before us, by uid; of base 0 alone."""

    async def write(self, batch: Sequence[LevelWrite]) -> Sequence[WriteResult]:
        """Give waiting or running Workloads their levels, one by one; see LevelWriter."""
        return [await self._try(write.job, write.level) for write in batch]

    async def _try(self, job: JobState, level: int) -> WriteResult:
        try:
            return await self.set_level(job, level)
        except AdmitterError as error:
            return error

    async def set_level(self, job: JobState, level: int) -> Landed | None:
        """Give a waiting or a running Workload a level.

        Returns:
            The confirmation; None where it is not in that phase any more.

        Raises:
            AdmitterError: it may not have been done; see WriteResult.
        """
        lever = self._lever()
        if lever is None:
            raise FrontendForbiddenError(f"cluster {job.cluster} is not cleared any more")
        if not (_fits(level - job.base) and _fits(level)):
            raise FrontendRefusedError(f"{job.scope}/{job.id}: no boost leads from {job.base} to {level}")
        if self._last.get(job.uid) == level:
            workload = await self._calls.look(job.scope, job.id, job.uid)
            if workload is None or _stands(workload, level, lever):
                return self._landed(job, level, workload, stood=True)
        try:
            workload = await self._give(job, level, lever)
        except FrontendDownError as error:
            if isinstance(error.__cause__, InternalError):
                self._outage()
            raise
        return self._landed(job, level, workload, stood=False)

    async def _give(self, job: JobState, level: int, lever: LeverName) -> Workload | None:
        if lever == "priority":
            return await self._give_priority(job, level)
        marks = {PRIORITY_BOOST: boost(level - job.base)}
        workload = await self._calls.patch(job.scope, job.id, job.uid, annotations=marks)
        if workload is None or effective_priority(workload) == level:
            return workload
        return await self._correct(job, level, workload)

    async def _give_priority(self, job: JobState, level: int) -> Workload | None:
        bare = await self._was_bare(job)
        if level != job.base:
            marks = {BASE_PRIORITY: NO_PRIORITY if bare else str(job.base), PRIORITY_BOOST: None}
            return await self._calls.patch(job.scope, job.id, job.uid, annotations=marks, priority=level)
        marks = {BASE_PRIORITY: None, PRIORITY_BOOST: None}
        before = None if bare else level
        return await self._calls.patch(job.scope, job.id, job.uid, annotations=marks, priority=before)

    async def _was_bare(self, job: JobState) -> bool:
        """Whether the Workload had no priority before us. Only made by hand it has none, and that counts as 0."""
        if job.base != 0:
            return False
        known = self._bare.get(job.uid)
        if known is None:
            workload = await self._calls.look(job.scope, job.id, job.uid)
            known = workload is not None and _had_none(workload)
            _remember(self._bare, job.uid, known)
        return known

    async def _correct(self, job: JobState, level: int, workload: Workload) -> Workload | None:
        """The priority below our boost is not the base: the lever was the other one before, or somebody edited it."""
        noted = noted_priority(workload)
        if noted is not msgspec.UNSET:
            marks = {PRIORITY_BOOST: boost(level - (noted or 0)), BASE_PRIORITY: None}
            return await self._calls.patch(job.scope, job.id, job.uid, annotations=marks, priority=noted)
        if level == job.base:
            raise FrontendRefusedError(
                f"{job.scope}/{job.id}: its priority {workload.spec.priority} was set by somebody else; "
                f"its class gives it {job.base}"
            )
        # With this lever we never write the priority: what stands there is what the boost is added to.
        marks = {PRIORITY_BOOST: boost(level - (workload.spec.priority or 0))}
        return await self._calls.patch(job.scope, job.id, job.uid, annotations=marks)

    def _landed(self, job: JobState, level: int, workload: Workload | None, *, stood: bool) -> Landed | None:
        if workload is None or phase_of(workload) is not _one_of_two(job.phase):
            self._last.pop(job.uid, None)
            return None
        if effective_priority(workload) != level:
            raise FrontendRefusedError(f"{job.scope}/{job.id}: stands at {effective_priority(workload)}")
        _remember(self._last, job.uid, level)
        return Landed(mark=workload.metadata.resource_version, stood=stood)


def boost(amount: int) -> str | None:
    """The value of the annotation; None for none."""
    return str(amount) if amount else None


def effective_priority(workload: Workload) -> int:
    """The priority that Kueue orders by. An invalid boost counts as none."""
    return (workload.spec.priority or 0) + (int32(workload.metadata.annotation(PRIORITY_BOOST)) or 0)


def _stands(workload: Workload, level: int, lever: LeverName) -> bool:
    """Whether the level stands by that lever. A boost from before says nothing where only priorities are heeded."""
    by_boost = workload.metadata.annotation(PRIORITY_BOOST) is not None
    return effective_priority(workload) == level and not (by_boost and lever == "priority")


def noted_priority(workload: Workload) -> int | msgspec.UnsetType | None:
    """The priority that we found when we first wrote to it, None for none at all; UNSET where we never did."""
    text = workload.metadata.annotation(BASE_PRIORITY)
    if text == NO_PRIORITY:
        return None
    noted = int32(text)
    return msgspec.UNSET if noted is None else noted


def _had_none(workload: Workload) -> bool:
    noted = noted_priority(workload)
    return (workload.spec.priority if noted is msgspec.UNSET else noted) is None


def _remember[T](known: OrderedDict[str, T], uid: str, value: T) -> None:
    known[uid] = value
    known.move_to_end(uid)
    if len(known) > _REMEMBERED:
        known.popitem(last=False)


def phase_of(workload: Workload) -> Phase:
    """RUNNING, ENDED, or WAITING: whether it is held is the watcher's to say."""
    if workload.holds("Finished") or workload.metadata.deletion_timestamp is not None:
        return Phase.ENDED
    return Phase.RUNNING if workload.holds("QuotaReserved") else Phase.WAITING


def _fits(number: int) -> bool:
    """Whether a number is an int32, as both the boost and the priority are."""
    return LOWEST_INT32 <= number <= HIGHEST_INT32


def _one_of_two(phase: Phase) -> Phase:
    return Phase.WAITING if phase is Phase.HELD else phase
