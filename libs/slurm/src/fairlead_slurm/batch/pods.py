"""A batch script against what a partition asks of jobs that run as pods, and what Kubernetes asks of names. Pure."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from fairlead_slurm.batch.options import Remark
from fairlead_slurm.batch.values import fewest_nodes
from fairlead_slurm.batch.wants import Given, line_of, value_of
from fairlead_slurm.errors import PodCommentError
from fairlead_slurm.images.reference import ImageNameError, image_reference
from fairlead_slurm.pod_comment import pod_words

LONGEST_SCRIPT = 200_000
"""Largest script of a job that runs as a pod, in bytes: it travels as an annotation, of which a pod may have
256 KiB in all."""
_LABEL = re.compile(r"([A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?)?", re.ASCII)


class PodSite(msgspec.Struct, frozen=True, kw_only=True):
    """A site whose jobs run as pods."""

    partition: str
    image: str = ""
    """The image of jobs that name none; empty where that is not known here."""


def unfit_for_pods(given: Given, asked: Sequence[str], size: int, site: PodSite) -> Iterator[Remark]:
    """Remarks on options that the pods' partition refuses, or that would end the job as soon as it starts."""
    partition, line = site.partition, line_of(given, "partition")
    if len(asked) > 1:
        yield Remark(
            line=line, says=f"a job that runs as a pod, in {partition}, cannot ask for other partitions"
        )
    if size > LONGEST_SCRIPT:
        yield Remark(
            line=0,
            says=f"the script has {size} bytes: one that runs in a pod has at most {LONGEST_SCRIPT}",
            mend="Let it call another one that lies in the image or on a volume.",
        )
    nodes = fewest_nodes(value_of(given, "nodes"))
    if nodes > 1:
        yield Remark(
            line=line_of(given, "nodes"),
            says=f"{nodes} nodes: a job of partition {partition} runs as one pod, on one node",
        )
    if "no-requeue" in given:
        yield Remark(
            line=line_of(given, "no-requeue"),
            says=f"--no-requeue does not hold in partition {partition}: a job that finds no room goes back into the queue",
            refused=False,
        )
    yield from _names(given)


def _names(given: Given) -> Iterator[Remark]:
    """Check the user's names that Kubernetes is told; the job's own, in an annotation, may be anything."""
    comment, line = value_of(given, "comment"), line_of(given, "comment")
    try:
        image = pod_words(comment).image
        if image is not None:
            image_reference(image)
    except (PodCommentError, ImageNameError) as error:
        yield Remark(line=line, says=str(error))
    account = value_of(given, "account")
    if not _LABEL.fullmatch(account):
        yield Remark(
            line=line_of(given, "account"),
            says=f"Kubernetes takes no label with the value {account}: pods of that account do not carry it",
            refused=False,
        )


def image_of(given: Given, site: PodSite) -> tuple[int, str] | None:
    """The image of the job's pod, behind the line that names it; None where it is unknown or unreadable."""
    comment = value_of(given, "comment")
    try:
        image = pod_words(comment).image or site.image
        if not image:
            return None
        image_reference(image)
    except (PodCommentError, ImageNameError):
        return None
    return line_of(given, "comment"), image
