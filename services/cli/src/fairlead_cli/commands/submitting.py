"""`fairlead submit`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fairlead_cli.commands.job_flags import NOTHING_SAID, JobFlags
from fairlead_cli.commands.options import HERE, Output, Reach


def submit(
    file: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *,
    job: JobFlags = NOTHING_SAID,
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
    follow:
        Stay until every job has ended or was refused.
    quiet:
        Say only what went wrong, and the sum.
    output:
        Lines in words, or the answers as JSON lines.
    """
    from fairlead_cli.connection import run
    from fairlead_cli.submitting.gathering import gather
    from fairlead_cli.submitting.session import submit_all

    drafts = gather(file, job)
    return run(submit_all(reach.nats, drafts, follow=follow, quiet=quiet, as_json=output == "json"))
