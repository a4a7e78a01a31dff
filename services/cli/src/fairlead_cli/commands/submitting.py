"""`fairlead submit`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fairlead_cli.commands.options import HERE, Output, Reach


def submit(
    file: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *,
    tenant: str | None = None,
    cpu: str | None = None,
    memory: str | None = None,
    gpus: str | None = None,
    demand: Annotated[list[str] | None, Parameter(negative="")] = None,
    urgency: Annotated[str | None, Parameter(name="--class")] = None,
    pods: int | None = None,
    queue: str | None = None,
    run_seconds: float | None = None,
    run_limit_seconds: float | None = None,
    id: str | None = None,  # noqa: A002 - the flag's name
    cluster: str = "any",
    follow: bool = True,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
    output: Output = "table",
    reach: Reach = HERE,
) -> int:
    """Publish jobs and follow them to their end; exit code 0 only if all were accepted and succeeded.

    Parameters
    ----------
    file:
        JSON or YAML with one job or many, JSON lines (.jsonl), or `-` for JSON lines on standard input. Flags complete
        what a job of the file leaves out.
    tenant:
        Whose job it is.
    cpu:
        Of the whole job: 4, 500m.
    memory:
        Of the whole job: 64Gi.
    gpus:
        Whole GPUs of the whole job (resource nvidia.com/gpu).
    demand:
        Any other resource, as NAME=QUANTITY; may be given several times.
    urgency:
        The class asked for: above the policy's last one only where it is granted.
    pods:
        Gang size.
    queue:
        Queue to stand in; the tenant's unless given.
    run_seconds:
        How long it is expected to run; a simulated cluster runs it so long.
    run_limit_seconds:
        After how long it must end.
    id:
        Names the job; the same id twice is one job. Made up unless given.
    cluster:
        Where to; `any` lets Fairlead choose.
    follow:
        Stay until every job has ended or was refused.
    quiet:
        Say only what went wrong, and the sum.
    output:
        Lines in words, or the answers as JSON lines.
    """
    from fairlead_cli.connection import run
    from fairlead_cli.submitting.gathering import JobFlags, gather
    from fairlead_cli.submitting.session import submit_all

    flags = JobFlags(
        tenant=tenant,
        cluster=cluster,
        cpu=cpu,
        memory=memory,
        gpus=gpus,
        demand=demand or [],
        urgency=urgency,
        pods=pods,
        queue=queue,
        run_seconds=run_seconds,
        run_limit_seconds=run_limit_seconds,
        id=id,
    )
    drafts = gather(file, flags)
    return run(submit_all(reach.nats, drafts, follow=follow, quiet=quiet, as_json=output == "json"))
