"""`fairlead approve`, `pause`, `resume`, `release`: an operator's word."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fairlead_cli.options import HERE, Format, Output, Reach

if TYPE_CHECKING:
    from fairlead_contracts.messages.control import Mode


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SaidFlags:
    """The flags beside an operator's word: who says it, and why."""

    by: str | None = None
    """Name of the operator; the user of this machine unless given."""
    why: str = ""
    """The reason, for those who come after."""


NO_MORE = SaidFlags()
"""The flags of an operator who gives none."""

OfPool = Annotated[str | None, Parameter(help="Only this pool; all of them unless given.")]
SteerOutput = Annotated[
    Format,
    Parameter(
        name=["--output", "-o"],
        help="Words; json, yaml: see docs/output.md; name: the clusters where it holds.",
    ),
]


def pause(
    pool: OfPool = None, /, *, said: SaidFlags = NO_MORE, output: SteerOutput = "table", reach: Reach = HERE
) -> None:
    """Stop writing levels. Priorities stay as they are."""
    from fairlead_contracts.messages.control import Mode

    _steer(Mode.PAUSED, pool, said, output, reach)


def resume(
    pool: OfPool = None, /, *, said: SaidFlags = NO_MORE, output: SteerOutput = "table", reach: Reach = HERE
) -> None:
    """Let levels follow the order again."""
    from fairlead_contracts.messages.control import Mode

    _steer(Mode.ACTIVE, pool, said, output, reach)


def release(
    pool: OfPool = None, /, *, said: SaidFlags = NO_MORE, output: SteerOutput = "table", reach: Reach = HERE
) -> None:
    """Take every level away again, then write nothing."""
    from fairlead_contracts.messages.control import Mode

    _steer(Mode.RELEASED, pool, said, output, reach)


def approve(
    job: str,
    /,
    *,
    job_class: Annotated[str | None, Parameter(name="--class")] = None,
    tenant: str | None = None,
    withdraw: Annotated[bool, Parameter(negative="")] = False,
    said: SaidFlags = NO_MORE,
    output: Output = "table",
    reach: Reach = HERE,
) -> None:
    """Grant a class to one job, recorded in the policy with who granted it and why.

    Parameters
    ----------
    job:
        Its name as `fairlead queue` shows it, alone or as `<scope>/<name>`; or its uid, submission id or Workload.
    job_class:
        The class; unless given, the one that the job asked for and was not granted, or else the highest.
    tenant:
        Tenant of the job, where several have one of that name.
    withdraw:
        Take back what was granted to the job.
    output:
        Words; json, yaml: see docs/output.md; name: the job as `<scope>/<name>`.
    """
    from fairlead_cli.client.connection import run
    from fairlead_cli.client.steering_mode import this_user
    from fairlead_cli.policy import approving

    approval = approving.ApprovalRequest(
        job=job, job_class=job_class, tenant=tenant, by=said.by or this_user(), why=said.why
    )
    run((approving.withdraw if withdraw else approving.approve)(reach.nats, approval, form=output))


def _steer(mode: "Mode", pool: str | None, said: SaidFlags, form: Format, reach: Reach) -> None:
    from fairlead_cli.client.connection import run
    from fairlead_cli.client.steering_mode import set_mode, this_user

    run(set_mode(reach.nats, mode, pool=pool, by=said.by or this_user(), why=said.why, form=form))
