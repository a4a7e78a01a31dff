"""`fairlead submit`, `cancel`: jobs go in, and are taken back."""

from collections.abc import Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, Token

from fairlead_cli.client.submitting.flags import JobFlags
from fairlead_cli.options import OfTenant, Output, Reach, Underway

_FLAG_OF = {"job_class": "class"}
_OTHERS = ("no-follow", "quiet", "output", "nats")
"""Flags that say nothing of a job."""


def _file(wanted: type[Path], tokens: Sequence[Token]) -> Path:
    """The file's path. `-` is one and begins as flags do, so that a misspelt flag gets here, too."""
    del wanted
    text = tokens[0].value
    if text.startswith("-") and text != "-":
        flags = [_FLAG_OF.get(one.name, one.name.replace("_", "-")) for one in fields(JobFlags)]
        near = get_close_matches(text.lstrip("-").partition("=")[0], [*flags, *_OTHERS], 1)
        meant = f" Did you mean --{near[0]}?" if near else ""
        raise ValueError(f"{text} is not a flag of submit.{meant} A file of that name is ./{text}")
    return Path(text)


def submit(
    file: Annotated[Path | None, Parameter(allow_leading_hyphen=True, converter=_file)] = None,
    /,
    *,
    job: JobFlags = JobFlags(),
    follow: bool = True,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
    output: Output = "table",
    reach: Reach = Reach(),
) -> Underway:
    """Publish jobs and follow them to their end; exit code 0 only if all were accepted and succeeded.

    Args:
        file: JSON or YAML with one job or many, JSON lines (.jsonl), or `-` for JSON lines on standard input. Flags
            complete what a job of the file leaves out.
        follow: Stay until every job has ended or was refused.
        quiet: Say only what went wrong, and the sum.
        output: Lines in words (wide: the same); json: the answers as JSON lines; yaml: as documents; name:
            `<tenant>/<id>` of each job that was accepted.
    """
    from fairlead_cli.client.submitting.gathering import gather
    from fairlead_cli.client.submitting.session import submit_all

    drafts = gather(file, job)
    return submit_all(reach.nats, drafts, follow=follow, quiet=quiet, form=output)


def cancel(
    job: str,
    /,
    *more: str,
    cluster: str,
    tenant: OfTenant = None,
    output: Output = "table",
    reach: Reach = Reach(),
) -> Underway:
    """Take jobs back that were submitted: one that waits leaves the queue, one that runs is stopped.

    Args:
        job: Id under which it was submitted.
        more: Ids of more jobs of the tenant in that cluster.
        cluster: Cluster that has the job: its answer `accepted` names it.
        tenant: Tenant of the job.
        output: A line in words (wide: the same); json: the answers as JSON lines; yaml: as documents; name:
            `<tenant>/<id>` of each job that is being cancelled.
    """
    from fairlead_cli.client.submitting.cancelling import cancel_all
    from fairlead_cli.client.submitting.reading import Defaults, draft

    whose = Defaults(cluster=cluster, tenant=tenant)
    drafts = [draft({"id": name, "cancel": True}, whose) for name in (job, *more)]
    return cancel_all(reach.nats, drafts, form=output)
