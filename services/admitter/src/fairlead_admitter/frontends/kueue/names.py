"""Names and labels of the objects that submissions become, as Kubernetes lets them be. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.frontend.templates import is_steering
from fairlead_contracts.messages.submissions import Submission

LONGEST_NAME = 63
"""The most characters in the name of a Job, and of a pod with its index: both become labels and host names (RFC
1123)."""
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_SUBDOMAIN = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
# Kubernetes documentation, "Labels and Selectors", syntax and character set.
_KEY = re.compile(rf"(?:(?P<prefix>{_SUBDOMAIN})/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{{0,61}}[A-Za-z0-9])?")
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_LONGEST_PREFIX = 253
_OF_JOBS = ("job-name", "controller-uid")
"""Labels that Kubernetes sets on the pods of a Job; it refuses Jobs that bring them along."""


def name_of(submission: Submission) -> str:
    """The name of the object: the submission's id in lower case. Pods are named after it with their index.

    Raises:
        FieldError: the id cannot be a name.
    """
    name = submission.id.lower()
    longest = LONGEST_NAME - len(_longest_suffix(submission))
    if not _LABEL.fullmatch(name) or len(name) > longest:
        raise FieldError(
            "id",
            submission.id,
            f"becomes a name in Kubernetes: up to {longest} letters, digits and '-', the first and last no '-'",
        )
    template = submission.template
    if template is not None and template.kind == "pytorch-job" and not name[0].isalpha():
        raise FieldError("id", submission.id, "becomes the name of a service: it must begin with a letter")
    return name


def check_labels(field: str, labels: Mapping[str, str]) -> None:
    """Checks that a submission may set these labels.

    Raises:
        FieldError: the first that may not.
    """
    for key, value in labels.items():
        where = f"{field}.{key}"
        if not is_key(key) or not is_value(value):
            raise FieldError(
                where,
                value,
                "must be a label of Kubernetes: [domain/]name, name and value of up to 63 letters, digits, '-', '_', '.'",
            )
        if key in _OF_JOBS or is_steering(key):
            raise FieldError(where, value, "is not for submissions to set: others steer by it")


def check_annotations(field: str, annotations: Iterable[str], prefixes: Collection[str]) -> None:
    """Checks that a submission may set annotations of these keys.

    An allow-list: controllers of other projects give rights to what carries their annotations, such as a cloud role or
    an interface in another network, and nobody can name them all.

    Args:
        prefixes: prefixes that may be set, with the `/`.

    Raises:
        FieldError: the first that it may not.
    """
    for key in annotations:
        prefix, slash, _ = key.rpartition("/")
        if slash and prefix + slash not in prefixes:
            known = ", ".join(sorted(prefixes)) or "none"
            raise FieldError(
                f"{field}.{key}",
                key,
                f"may not be set here; of those with a prefix these may: {known} "
                "(the admitter's setting template_annotation_prefixes)",
            )


def check_key(field: str, key: str) -> None:
    """Checks that this may be the key of a label or an annotation.

    Raises:
        FieldError: the key may not be one.
    """
    if not is_key(key):
        raise FieldError(
            field, key, "must be a key of Kubernetes: [domain/]name, the name of up to 63 characters"
        )


def is_key(key: str) -> bool:
    """Whether this is the key of a label or an annotation, by form."""
    match = _KEY.fullmatch(key)
    return match is not None and len(match["prefix"] or "") <= _LONGEST_PREFIX


def is_value(value: str) -> bool:
    """Whether this can be the value of a label."""
    return _VALUE.fullmatch(value) is not None


def _longest_suffix(submission: Submission) -> str:
    """The longest suffix of a pod's name behind the job's, where the length of that counts."""
    kind = submission.template.kind if submission.template is not None else "job"
    last = submission.pods - 1
    match kind:
        case "pytorch-job":
            return f"-worker-{last}"
        case "pod-group":
            return f"-{last}"
        case "job":
            return f"-{last}" if last else ""
