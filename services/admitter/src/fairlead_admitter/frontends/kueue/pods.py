"""The pods of a submission, from the fields that a template may have. Pure.

What isn't named in a template can't be asked for: pods get no token of their service account, no privileges, no
volumes of the host. `demand` is the whole job's and is divided evenly over its pods.
"""

import re
from collections.abc import Mapping

from fairlead_admitter.frontends.kueue.names import check_key, is_value
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.quantities import base_units, format_quantity
from fairlead_contracts.frontend.templates import JobTemplate
from fairlead_contracts.messages.submissions import Submission

type PodDocument = dict[str, object]

_NATIVE = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES = "hugepages-"
_COMPRESSIBLE = "cpu"
"""Resources of which a pod may use more while nobody else does; of all others its request is its limit."""
_EXTENDED = re.compile(
    r"(?!requests\.)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
"""An extended resource, such as a device: Kubernetes documentation, "Extended resources"."""


def template_of(submission: Submission) -> JobTemplate:
    """The pod template.

    Raises:
        FieldError: the submission says nothing of it, or what Kubernetes cannot take.
    """
    template = submission.template
    if template is None or not template.image:
        raise FieldError(
            "template", None, 'is missing: a job on Kubernetes needs at least {"image": …}, what its pods run'
        )
    for key in template.annotations:
        check_key(f"template.annotations.{key}", key)
    _check_selector(template.node_selector)
    return template


def pod_spec(submission: Submission, *, container: str, account: str) -> PodDocument:
    """The spec of each pod.

    Args:
        submission: the submission that the pod is a part of; with a template.

    Raises:
        FieldError: see `template_of` and `requests_of`.
    """
    template = template_of(submission)
    spec: PodDocument = {
        "restartPolicy": "Never",
        "serviceAccountName": account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(submission, template, container)],
    }
    if template.node_selector:
        spec["nodeSelector"] = dict(template.node_selector)
    return spec


def requests_of(submission: Submission) -> dict[str, str]:
    """The requests of each pod, as Kubernetes writes them.

    Raises:
        FieldError: the demand doesn't divide evenly, or names what no container can ask for.
    """
    return {
        resource: format_quantity(resource, _share(resource, amount, submission.pods))
        for resource, amount in sorted(submission.demand.items())
    }


def _share(resource: str, amount: int, pods: int) -> int:
    field, found = f"demand.{resource}", format_quantity(resource, amount)
    if resource == "pods":
        raise FieldError(field, found, "pods are counted by themselves: say how many in `pods`")
    native = resource in _NATIVE or resource.startswith(_HUGE_PAGES)
    if not native and not _EXTENDED.fullmatch(resource):
        raise FieldError(
            field,
            found,
            "is not a resource of a pod: those are cpu, memory, ephemeral-storage and <domain>/<name>",
        )
    unit = 1 if native else base_units(resource)
    if amount % (unit * pods):
        near = " or ".join(_near(resource, amount, pods, unit))
        evenly = f"divide evenly by {pods} pods" if pods > 1 else "be whole"
        raise FieldError(field, found, f"must {evenly}, e.g. {near}")
    return amount // pods


def _near(resource: str, amount: int, pods: int, least: int) -> list[str]:
    """The nearest amounts that divide, the larger one first, in units that people write: whole ones, Gi, Mi, else the least."""
    units = (base_units(resource), least) if base_units(resource) > 1 else (2**30, 2**20, least)
    step = pods * next((unit for unit in units if unit * pods <= amount), units[-1])
    below = amount // step * step
    return [format_quantity(resource, near) for near in (below + step, below) if near]


def _container(submission: Submission, template: JobTemplate, name: str) -> PodDocument:
    requests = requests_of(submission)
    container: PodDocument = {
        "name": name,
        "image": template.image,
        "securityContext": {"allowPrivilegeEscalation": False},
        "resources": {
            "requests": requests,
            "limits": {
                resource: amount for resource, amount in requests.items() if resource != _COMPRESSIBLE
            },
        },
    }
    optional: dict[str, object] = {
        "command": template.command,
        "args": template.args,
        "env": [{"name": variable, "value": value} for variable, value in template.env.items()],
        "workingDir": template.working_dir,
    }
    return container | {key: value for key, value in optional.items() if value}


def _check_selector(selector: Mapping[str, str]) -> None:
    for key, value in selector.items():
        check_key(f"template.node_selector.{key}", key)
        if not is_value(value):
            raise FieldError(f"template.node_selector.{key}", value, "must be a value that a label may have")
