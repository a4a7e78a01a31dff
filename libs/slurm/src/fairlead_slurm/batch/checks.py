"""Checks of a batch script, all in one: the same for `fairlead slurm validate`, job_submit and submissions.

Before them `batch_target` asks slurmctld for the site that scripts are measured by.
"""

import enum
from collections.abc import Sequence
from typing import Protocol

from fairlead_slurm.batch.fit import BatchTarget, fit
from fairlead_slurm.batch.options import BatchOption, OptionWord, Remark, options
from fairlead_slurm.batch.pods import PodSite, image_of
from fairlead_slurm.batch.script import BatchScript
from fairlead_slurm.cluster import SlurmNode, SlurmPartition, SlurmSettings
from fairlead_slurm.images.reference import ImageReference, image_reference
from fairlead_slurm.images.registry import ImageAnswer, Presence
from fairlead_slurm.limits import AccountLimits

_LIMITED = frozenset(("limits", "safe", "all"))
"""Words of AccountingStorageEnforce by which limits count."""


class ImageRule(enum.StrEnum):
    """A site's rule for scripts whose image is not there, or whose registry does not say."""

    OFF = "off"
    """No registry is asked."""
    WARN = "warn"
    """Warn of such images; no script is refused."""
    REFUSE = "refuse"
    """Refuse images that are not there; warn where the registry does not say."""
    STRICT = "strict"
    """Refuse images that are not there, and those of which the registry does not say."""


class Registry(Protocol):
    """A registry that knows of images."""

    async def ask(self, image: ImageReference) -> ImageAnswer:
        """Whether the image is there."""


async def image_remarks(line: int, image: str, registry: Registry, rule: ImageRule) -> list[Remark]:
    """The remark on an image, if any; the image's name was checked before."""
    if rule is ImageRule.OFF:
        return []
    found = await registry.ask(image_reference(image))
    match found.presence:
        case Presence.THERE:
            return []
        case Presence.MISSING:
            return [Remark(line=line, says=f"image {found.why}", refused=rule is not ImageRule.WARN)]
        case Presence.UNASKED:
            says = f"whether the image is there is not known: {found.why}"
            return [Remark(line=line, says=says, refused=rule is ImageRule.STRICT)]


class TargetSource(Protocol):
    """Questions to slurmctld about a site, by which batch scripts are measured."""

    async def settings(self) -> SlurmSettings:
        """The cluster's settings."""

    async def partitions(self) -> list[SlurmPartition]:
        """The cluster's partitions."""

    async def nodes(self) -> list[SlurmNode]:
        """The cluster's nodes."""

    async def accounts(self) -> list[str]:
        """The accounts."""

    async def limits(self) -> AccountLimits:
        """Limits of accounts, users and QOS."""


async def batch_target(source: TargetSource, settings: SlurmSettings, pods: PodSite | None) -> BatchTarget:
    """Ask slurmctld for the site that all users' scripts are measured by.

    Raises:
        SlurmError: slurmctld does not answer.
    """
    accounts = await source.accounts() if settings.enforces_associations else []
    limited = bool(_LIMITED & set(settings.enforced))
    return BatchTarget(
        partitions=await source.partitions(),
        nodes=await source.nodes(),
        # None of them: slurmctld does not tell whoever asks.
        accounts=frozenset({*accounts, "root"}) if accounts else None,
        array_size=settings.array_size,
        limits=await source.limits() if limited else AccountLimits(),
        pods=pods,
    )


def script_of_words(words: Sequence[str]) -> BatchScript:
    """A script's options, where they come as words of sbatch's rather than as lines."""
    found, remarks = options([OptionWord(0, word) for word in words])
    return BatchScript(parts=(tuple(found),), remarks=tuple(remarks))


async def check_batch(
    script: BatchScript, target: BatchTarget, registry: Registry, rule: ImageRule
) -> list[Remark]:
    """Remarks on a script that can be read: what the site, then a registry, would refuse or warn of."""
    remarks = fit(script, target)
    for line, image in dict.fromkeys(filter(None, (_image(part, target) for part in script.parts))):
        remarks += await image_remarks(line, image, registry, rule)
    return remarks


def _image(part: Sequence[BatchOption], target: BatchTarget) -> tuple[int, str] | None:
    """The image of a part's pod, with the line that names it; None for a part that does not run as a pod."""
    given = {option.name: option for option in part}
    if target.pods is None:
        return None
    partition = target.pods.partition
    if "partition" in given:
        is_pod = partition in given["partition"].value.split(",")
    else:
        is_pod = any(one.is_default and one.name == partition for one in target.partitions)
    return image_of(given, target.pods) if is_pod else None
