"""`fairlead approve`, `pause`, `resume`, `release`: an operator's word."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from fairlead_cli.options import Output, Reach, Underway


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SaidFlags:
    """The flags beside an operator's word: who says it, and why."""

    by: str | None = None
    """Name of the operator; the user of this machine unless given."""
    why: str = ""
    """The reason, for those who come after."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SteerFlags(SaidFlags):
    """The flags beside a word on whether levels are written."""

    output: Output = "table"
    """Words; json, yaml: see docs/output.md; name: the clusters where it holds."""
    reach: Reach = Reach()


OfPool = Annotated[str | None, Parameter(help="Only this pool; all of them unless given.")]


def pause(pool: OfPool = None, /, *, flags: SteerFlags = SteerFlags()) -> Underway:
    """Stop writing levels. Priorities stay as they are."""
    return _steer("paused", pool, flags)


def resume(pool: OfPool = None, /, *, flags: SteerFlags = SteerFlags()) -> Underway:
    """Let levels follow the order again."""
    return _steer("active", pool, flags)


def release(pool: OfPool = None, /, *, flags: SteerFlags = SteerFlags()) -> Underway:
    """Take every level away again, then write nothing."""
    return _steer("released", pool, flags)


def approve(
    job: str,
    /,
    *,
    job_class: Annotated[str | None, Parameter(name="--class")] = None,
    tenant: str | None = None,
    withdraw: Annotated[bool, Parameter(negative="")] = False,
    said: SaidFlags = SaidFlags(),
    output: Output = "table",
    reach: Reach = Reach(),
) -> Underway:
    """Grant a class to one job, recorded in the policy with who granted it and why.

    Args:
        job: Its name as `fairlead queue` shows it, alone or as `<scope>/<name>`; or its uid, submission id or Workload.
        job_class: The class; unless given, the one that the job asked for and was not granted, or else the highest.
        tenant: Tenant of the job, where several have one of that name.
        withdraw: Take back what was granted to the job.
        output: Words; json, yaml: see docs/output.md; name: the job as `<scope>/<name>`.
    """
    from fairlead_cli.client.steering_mode import this_user
    from fairlead_cli.policy import approving

    approval = approving.ApprovalRequest(
        job=job, job_class=job_class, tenant=tenant, by=said.by or this_user(), why=said.why
    )
    return (approving.withdraw if withdraw else approving.approve)(reach.nats, approval, form=output)


def _steer(word: str, pool: str | None, flags: SteerFlags) -> Underway:
    from fairlead_cli.client.steering_mode import set_mode, this_user
    from fairlead_contracts.messages.control import Mode

    by = flags.by or this_user()
    return set_mode(flags.reach.nats, Mode(word), pool=pool, by=by, why=flags.why, form=flags.output)
