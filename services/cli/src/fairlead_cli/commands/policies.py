"""`fairlead policy`: what is in force, what a file would change, what was in force before."""

from pathlib import Path

from cyclopts import App

from fairlead_cli.commands.options import HERE, STEER, Output, Reach

policy = App(name="policy", help="Look at the policy, or put another one in force.", group=STEER)


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


@policy.command
def history(*, output: Output = "table", reach: Reach = HERE) -> None:
    """List the last revisions of the policy: since when, and what each changed.

    Parameters
    ----------
    output:
        Words, or each revision with its whole document as JSON.
    """
    from fairlead_cli.connection import run
    from fairlead_cli.policy_history import print_history

    run(print_history(reach.nats, as_json=output == "json"))


@policy.command
def revert(revision: int | None = None, /, *, reach: Reach = HERE) -> None:
    """Put an earlier revision of the policy in force again, as a new one.

    Parameters
    ----------
    revision:
        As `fairlead policy history` names it; the one before the last unless given.
    """
    from fairlead_cli.connection import run
    from fairlead_cli.policy_history import put_back

    run(put_back(reach.nats, revision))


@policy.command
def schema() -> None:
    """Print the JSON Schema of policy files, for editors and CI."""
    from fairlead_cli.console import write_line
    from fairlead_contracts.document_schema import schema_text

    write_line(schema_text().rstrip())
