"""`fairlead approve`, `pause`, `resume`, `release`, `policy`: an operator's word."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from fairlead_cli.commands.options import HERE, STEER, Output, Reach

if TYPE_CHECKING:
    from fairlead_contracts.control import Mode

policy = App(name="policy", help="Look at the policy, or put another one in force.", group=STEER)


def pause(pool: str | None = None, /, *, by: str | None = None, why: str = "", reach: Reach = HERE) -> None:
    """Stop writing levels; what stands, stands.

    Parameters
    ----------
    pool:
        Only this pool; all of them unless given.
    by:
        Who says so; the user of this machine unless given.
    why:
        The reason, for those who come after.
    """
    from fairlead_contracts.control import Mode

    _steer(Mode.PAUSED, pool, by, why, reach)


def resume(pool: str | None = None, /, *, by: str | None = None, why: str = "", reach: Reach = HERE) -> None:
    """Let levels follow the order again.

    Parameters
    ----------
    pool:
        Only this pool; all of them unless given.
    by:
        Who says so; the user of this machine unless given.
    why:
        The reason, for those who come after.
    """
    from fairlead_contracts.control import Mode

    _steer(Mode.ACTIVE, pool, by, why, reach)


def release(pool: str | None = None, /, *, by: str | None = None, why: str = "", reach: Reach = HERE) -> None:
    """Take every level away again, then write nothing.

    Parameters
    ----------
    pool:
        Only this pool; all of them unless given.
    by:
        Who says so; the user of this machine unless given.
    why:
        The reason, for those who come after.
    """
    from fairlead_contracts.control import Mode

    _steer(Mode.RELEASED, pool, by, why, reach)


def approve(
    job: str,
    /,
    *,
    urgency: Annotated[str | None, Parameter(name="--class")] = None,
    tenant: str | None = None,
    withdraw: Annotated[bool, Parameter(negative="")] = False,
    by: str | None = None,
    why: str = "",
    reach: Reach = HERE,
) -> None:
    """Grant a class to one job, recorded in the policy with who granted it and why.

    Parameters
    ----------
    job:
        Its id, uid, submission id or `<scope>/<id>`, or the name of the Job that it was made for.
    urgency:
        The class; unless given, the one that the job asked for and was not granted, or else the highest.
    tenant:
        Whose job it is, where several have one of that name.
    withdraw:
        Take back what was granted to the job.
    by:
        Who says so; the user of this machine unless given.
    why:
        The reason, for those who come after.
    """
    from fairlead_cli import approving
    from fairlead_cli.connection import run
    from fairlead_cli.steering import this_user

    approval = approving.Approval(job=job, urgency=urgency, tenant=tenant, by=by or this_user(), why=why)
    run((approving.withdraw if withdraw else approving.approve)(reach.nats, approval))


def _steer(mode: "Mode", pool: str | None, by: str | None, why: str, reach: Reach) -> None:
    from fairlead_cli.connection import run
    from fairlead_cli.steering import set_mode, this_user

    run(set_mode(reach.nats, mode, pool=pool, by=by or this_user(), why=why))


@policy.command
def apply(file: Path, /, *, reach: Reach = HERE) -> None:
    """Check a policy file and put it in force; an equal one changes nothing.

    Parameters
    ----------
    file:
        YAML or JSON; see docs/policy.md.
    """
    from fairlead_cli.connection import run
    from fairlead_cli.policy_files import put_in_force

    run(put_in_force(reach.nats, file))


@policy.command
def check(file: Path, /) -> None:
    """Check a policy file without putting it in force; tells every problem at once.

    Parameters
    ----------
    file:
        YAML or JSON, or a configuration of the DRF or WDRF controller; see docs/policy.md.
    """
    from fairlead_cli.console import say
    from fairlead_cli.policy_files import read_policy

    found = read_policy(file)
    say(f"{file} is valid: {len(found.tenants)} tenants, {len(found.pools)} pools")


@policy.command
def diff(file: Path, /, *, reach: Reach = HERE) -> None:
    """Print what putting a policy file in force would change; exits with 1 where that is anything.

    Parameters
    ----------
    file:
        YAML or JSON, or a configuration of the DRF or WDRF controller; see docs/policy.md.
    """
    from fairlead_cli.connection import run
    from fairlead_cli.policy_files import print_differences

    if run(print_differences(reach.nats, file)):
        raise SystemExit(1)


@policy.command
def show(file: Path | None = None, /, *, output: Output = "table", reach: Reach = HERE) -> None:
    """Print the policy that is in force, or a file as the policy that it means.

    Parameters
    ----------
    file:
        A policy, or a configuration of the DRF or WDRF controller.
    output:
        YAML as a person edits it (table), or JSON.
    """
    from fairlead_cli.connection import run
    from fairlead_cli.policy_files import print_file, print_policy

    if file is not None:
        print_file(file, as_json=output == "json")
    else:
        run(print_policy(reach.nats, as_json=output == "json"))
