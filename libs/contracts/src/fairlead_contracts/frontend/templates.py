"""Templates of the pods of submitted jobs: an allow-list of fields, each with its own rule."""

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.reading import Strict, StructReader

LONGEST = 32 * 1024
"""Characters of one string: commands may carry a script."""
MOST_ENTRIES = 256
_NO_BLANKS = re.compile(r"[^\s\x00-\x1f\x7f]{1,1024}")
# Names and values of labels: Kubernetes documentation, "Labels and Selectors", syntax and character set.
_KEY = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}")
_STEERING = ("kubernetes.io", "k8s.io", "fairlead.dev", "kubeflow.org")
"""Domains, with those below them, whose keys steer controllers, ours among them: templates may set none."""


class JobTemplate(Strict, frozen=True, kw_only=True):
    """The template of a job's pods, where it becomes pods.

    These fields and no others: what is not named here, such as host paths, privileges or another service account,
    cannot be asked for.
    """

    image: str = ""
    """Image of its pods; a batch job of Slurm's that runs as no pod needs none."""
    kind: Literal["job", "pod-group", "pytorch-job"] = "job"
    """A Kubernetes Job, plain pods that are admitted together, or a PyTorchJob of one master and workers."""
    command: list[str] = []
    args: list[str] = []
    env: dict[str, str] = {}
    working_dir: str | None = None
    node_selector: dict[str, str] = {}
    annotations: dict[str, str] = {}
    """Annotations of the pods."""


def read_template(found: Mapping[str, object]) -> JobTemplate:
    """The template in plain values.

    Raises:
        FieldError: the first thing that is wrong with it.
    """
    reader = StructReader()
    keys: dict[object, object] = {key: value for key, value in found.items()}  # noqa: C416 # a key of the reader is any value
    template = reader.struct(JobTemplate, keys, "template.")
    if reader.problems or template is None:
        raise reader.problems[0]
    for problem in _check(template):
        raise problem
    return template


def _check(template: JobTemplate) -> Iterator[FieldError]:
    if not template.image and not template.command:
        yield FieldError(
            "template", None, "needs an image (on Kubernetes) or a command (on Slurm): what to run"
        )
    if template.image and not _NO_BLANKS.fullmatch(template.image):
        yield FieldError("template.image", template.image, "must be the name of an image, without blanks")
    if template.working_dir is not None and not template.working_dir.startswith("/"):
        yield FieldError("template.working_dir", template.working_dir, "must be an absolute path")
    for name, strings in (("command", template.command), ("args", template.args)):
        if len(strings) > MOST_ENTRIES or any(len(string) > LONGEST for string in strings):
            reason = f"may have {MOST_ENTRIES} strings of {LONGEST} characters"
            yield FieldError(f"template.{name}", f"{len(strings)} strings", reason)
    for name, value in template.env.items():
        if not _VARIABLE.fullmatch(name) or len(value) > LONGEST:
            yield FieldError(f"template.env.{name}", value[:64], "is not an environment variable")
    for key, value in template.node_selector.items():
        if not (_KEY.fullmatch(key) and _VALUE.fullmatch(value)):
            yield FieldError(f"template.node_selector.{key}", value, "is not a label of a node")
    yield from _check_annotations(template.annotations)


def _check_annotations(annotations: Mapping[str, str]) -> Iterator[FieldError]:
    for key, value in annotations.items():
        field = f"template.annotations.{key}"
        if not _KEY.fullmatch(key) or len(value) > LONGEST:
            yield FieldError(field, value[:64], "is not an annotation")
        elif is_steering(key):
            yield FieldError(field, value[:64], "is not for submissions to set: others steer by it")


def is_steering(key: str) -> bool:
    """Whether others steer by a label or annotation of this key, so that a submission may not set it.

    Classes are asked for by the submission's `class`.
    """
    prefix = key.rpartition("/")[0]
    # "kueue.x-k8s.io" is not below "k8s.io" by name, but by intent.
    return any(prefix == domain or prefix.endswith((f".{domain}", f"-{domain}")) for domain in _STEERING)
