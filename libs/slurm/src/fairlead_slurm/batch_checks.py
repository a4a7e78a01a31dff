"""All checks of a batch script in one: the same for `fairlead slurm validate`, for job_submit and for submissions."""

from collections.abc import Sequence

from fairlead_slurm.batch_fit import BatchTarget, fit
from fairlead_slurm.batch_options import BatchOption, OptionWord, Remark, options
from fairlead_slurm.batch_pods import image_of
from fairlead_slurm.batch_script import BatchScript
from fairlead_slurm.images.remarks import ImageRule, Registry, image_remarks


def script_of_words(words: Sequence[str]) -> BatchScript:
    """A script's options, where they come as words of sbatch's rather than as lines."""
    found, remarks = options([OptionWord(0, word) for word in words])
    return BatchScript(parts=(tuple(found),), remarks=tuple(remarks))


async def check_batch(
    script: BatchScript, target: BatchTarget, registry: Registry, rule: ImageRule
) -> list[Remark]:
    """What is wrong with it, beyond its form."""
    remarks = fit(script, target)
    for line, image in dict.fromkeys(filter(None, (_image(part, target) for part in script.parts))):
        remarks += await image_remarks(line, image, registry, rule)
    return remarks


def _image(part: Sequence[BatchOption], target: BatchTarget) -> tuple[int, str] | None:
    """What its pod would run; None for a job that runs as none."""
    given = {option.name: option for option in part}
    if target.pods is None or not _goes_to_pods(given, target, target.pods.partition):
        return None
    return image_of(given, target.pods)


def _goes_to_pods(given: dict[str, BatchOption], target: BatchTarget, partition: str) -> bool:
    if "partition" in given:
        return partition in given["partition"].value.split(",")
    return any(one.is_default and one.name == partition for one in target.partitions)
