"""The checks of `fairlead slurm validate` for jobs in job_submit and for submissions, within moments."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import msgspec
import structlog

from fairlead_slurm.batch.checks import (
    ImageRule,
    Registry,
    TargetSource,
    batch_target,
    check_batch,
    script_of_words,
)
from fairlead_slurm.batch.fit import BatchTarget
from fairlead_slurm.batch.options import Remark
from fairlead_slurm.batch.pods import PodSite
from fairlead_slurm.errors import FatalSlurmError, SlurmError, SlurmUnreachableError
from fairlead_slurm.images.reference import ImageReference
from fairlead_slurm.images.registry import ImageAnswer, Presence

TARGET_SECONDS = 10.0
"""Seconds after which slurmctld is asked again for partitions, nodes and limits."""
_OLDEST_SECONDS = 120.0
"""Age in seconds beyond which nodes and limits say nothing any more."""
_KEPT_SECONDS = {Presence.THERE: 300.0, Presence.MISSING: 15.0, Presence.UNASKED: 15.0}
"""Seconds for which a registry's answer is kept: a missing image may be pushed any moment."""
_REMEMBERED = 4096
_AT_ONCE = 16
"""Number of registries that are asked at a time."""


@dataclass(eq=False)
class CachedRegistry:
    """A registry that asks once for an image that many jobs want, and only hosts that the site names."""

    registry: Registry
    allowed: Collection[str] = ()
    """Hosts that may be asked; empty for all."""
    clock: Callable[[], float] = time.monotonic
    """Monotonic seconds."""
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE), init=False)
    _known: dict[str, tuple[float, ImageAnswer]] = field(default_factory=dict, init=False)
    _asking: dict[str, asyncio.Task[ImageAnswer]] = field(default_factory=dict, init=False)

    async def ask(self, image: ImageReference) -> ImageAnswer:
        """Ask for an image once for all who want it now; an answer is kept for a while, and unnamed hosts are not asked."""
        if self.allowed and image.registry not in self.allowed:
            why = f"{image.registry} is not among the registries that the site's bridge asks (images_registries)"
            return ImageAnswer(presence=Presence.UNASKED, why=why)
        name = str(image)
        kept = self._known.get(name)
        if kept is not None and self.clock() < kept[0]:
            return kept[1]
        task = self._asking.get(name)
        if task is None:
            task = self._asking[name] = asyncio.ensure_future(self._look(name, image))
            task.add_done_callback(lambda _: self._asking.pop(name, None))
        # Who asked first may go away: the others wait on.
        return await asyncio.shield(task)

    async def _look(self, name: str, image: ImageReference) -> ImageAnswer:
        async with self._places:
            found = await self.registry.ask(image)
        self._known.pop(name, None)
        self._known[name] = self.clock() + _KEPT_SECONDS[found.presence], found
        while len(self._known) > _REMEMBERED:
            self._known.pop(next(iter(self._known)))
        return found


@dataclass(eq=False)
class BatchChecks:
    """Checks of one cluster's batch jobs."""

    source: TargetSource
    registry: Registry
    rule: ImageRule
    pods: PodSite | None
    clock: Callable[[], float] = time.monotonic
    """Monotonic seconds."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _target: BatchTarget | None = field(default=None, init=False)
    _asked_at: float = field(default=0.0, init=False)
    _log: structlog.typing.FilteringBoundLogger = field(default_factory=structlog.get_logger, init=False)

    async def remarks(self, words: Sequence[str]) -> list[Remark]:
        """Remarks on a job, by the words of sbatch that ask for it; none where slurmctld is not understood.

        Raises:
            RetryableSlurmError: slurmctld does not answer.
        """
        try:
            target = await self._current()
        except FatalSlurmError as error:
            self._log.warning("batch_job_not_checked", error=str(error))
            return []
        return await self._weighed(words, "", target)

    async def remarks_at_once(self, words: Sequence[str], user: str = "") -> list[Remark]:
        """Remarks without a question to slurmctld, whose answer may have to wait until job_submit ends.

        Raises:
            SlurmUnreachableError: slurmctld told nothing of the site for long.
        """
        if self._target is None or self.clock() - self._asked_at > _OLDEST_SECONDS:
            raise SlurmUnreachableError("what slurmctld has is not known yet, or not any more")
        return await self._weighed(words, user, self._target)

    async def keep_current(self) -> None:
        """Keep what `remarks_at_once` needs as new as it may be, until cancelled."""
        while True:
            try:
                await self._current()
            except SlurmError as error:
                self._log.info("batch_target_not_read", error=str(error))
            await asyncio.sleep(TARGET_SECONDS)

    async def _weighed(self, words: Sequence[str], user: str, target: BatchTarget) -> list[Remark]:
        own = msgspec.structs.replace(target, user=user)
        return await check_batch(script_of_words(words), own, self.registry, self.rule)

    async def _current(self) -> BatchTarget:
        async with self._turn:
            if self._target is None or self.clock() - self._asked_at >= TARGET_SECONDS:
                settings = await self.source.settings()
                self._target = await batch_target(self.source, settings, self.pods)
                self._asked_at = self.clock()
            return self._target
