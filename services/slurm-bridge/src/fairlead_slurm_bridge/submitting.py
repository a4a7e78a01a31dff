"""Translation of a submission into the batch job that Slurm is asked for. Pure."""

from collections.abc import Mapping

from fairlead_contracts.base.instants import MINUTE
from fairlead_contracts.frontend.templates import JobTemplate
from fairlead_contracts.frontend.verbs import CreateJob
from fairlead_slurm.submitting import BatchJob, SubmissionMark
from fairlead_slurm.submitting.batch_job import script_of
from fairlead_slurm_bridge.statements.partition_pools import Naming

_THOUSANDTHS = 1000
_MEBI = 1024**2
_CPU, _MEMORY, _GPU = "cpu", "mem", "gres/gpu"
_THEIRS = ("SLURM_", "SBATCH_", "SLURMD_")


class NoBatchJobError(Exception):
    """The submission is nothing that Slurm can be asked for; says which field, and why."""


def batch_job_of(
    wanted: CreateJob, *, naming: Naming, qos_classes: Mapping[str, str], partition: str | None
) -> BatchJob:
    """The batch job of a submission.

    Args:
        wanted: the submission.
        naming: Fairlead's names of Slurm's resources.
        qos_classes: the class that a job of a QOS asks for.
        partition: partition of the job; None for the default one.

    Raises:
        NoBatchJobError: the submission asks for what no batch job has.
    """
    template = _template(wanted)
    amounts = _amounts(wanted.demand, naming, wanted.pods)
    origin = SubmissionMark(
        submission=wanted.submission, digest=wanted.digest, traceparent=wanted.traceparent
    )
    return BatchJob(
        account=wanted.scope,
        name=wanted.id,
        comment=origin.comment(template.image),
        script=script_of([*template.command, *template.args], template.env),
        partition=partition,
        qos=_qos(wanted.requested_class, qos_classes),
        tasks=wanted.pods,
        cpus=-(-amounts.get(_CPU, 0) // _THOUSANDTHS) or 1,
        memory_mib=-(-amounts.get(_MEMORY, 0) // _MEBI),
        gpus=amounts.get(_GPU, 0) // _THOUSANDTHS,
        # Rounded up: Slurm has no shorter unit for it.
        minutes=None if wanted.run_limit is None else max(1, -(-wanted.run_limit // MINUTE)),
        working_dir=template.working_dir,
    )


def _template(wanted: CreateJob) -> JobTemplate:
    template = wanted.template
    if template is None or not template.command:
        raise NoBatchJobError("template.command is missing: a batch job needs a command to run")
    odd = {"template.node_selector": template.node_selector, "template.annotations": template.annotations}
    for name, found in {**odd, "labels": wanted.labels}.items():
        if found:
            raise NoBatchJobError(f"{name}: Slurm's jobs have none")
    if template.kind != "job":
        raise NoBatchJobError(f"template.kind: {template.kind} is of Kubernetes")
    for name in template.env:
        if name.startswith(_THEIRS):
            raise NoBatchJobError(
                f"template.env.{name}: Slurm's own variables are not for submissions to set"
            )
    texts = [*template.command, *template.args, *template.env.values(), template.working_dir or ""]
    if any("\0" in text for text in texts):
        raise NoBatchJobError("template: no word of a command, and no value, may hold a zero byte")
    return template


def _amounts(demand: Mapping[str, int], naming: Naming, tasks: int) -> dict[str, int]:
    """The amounts of one task, by Slurm's names."""
    by_name = {name: tres for tres, name in naming.by_tres.items()}
    amounts = {}
    for name, amount in demand.items():
        if name not in by_name:
            raise NoBatchJobError(f"demand.{name}: this cluster counts {', '.join(sorted(by_name))} alone")
        whole = _THOUSANDTHS * tasks if by_name[name] == _GPU else 1
        if amount % whole:
            raise NoBatchJobError(f"demand.{name}: must divide evenly over {tasks} pods, in whole ones")
        amounts[by_name[name]] = -(-amount // tasks)
    return amounts


def _qos(asked: str | None, qos_classes: Mapping[str, str]) -> str | None:
    if asked is None:
        return None
    found = [qos for qos, job_class in qos_classes.items() if job_class == asked]
    if not found:
        raise NoBatchJobError(
            f"class: no QOS of this cluster stands for {asked!r}; without a class it has the last"
        )
    return found[0]
