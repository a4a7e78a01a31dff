"""`fairlead policy`: what is in force, what a file would change, what was in force before."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from fairlead_cli.options import STEER, Output, Reach, Underway

policy = App(name="policy", help="Look at the policy, or put another one in force.", group=STEER)


@policy.command
def apply(
    file: Path,
    /,
    *,
    onto: int | None = None,
    force: Annotated[bool, Parameter(negative="")] = False,
    exact: Annotated[bool, Parameter(negative="")] = False,
    by: str | None = None,
    output: Output = "table",
    reach: Reach = Reach(),
) -> Underway:
    """Check a policy file and put it in force; an equal one changes nothing.

    A file that `policy show` printed names the revision that it was made from. It is refused, and the changes are
    shown, where somebody changed the policy since. Grants to single jobs (`fairlead approve`) stay as they are.

    Args:
        file: YAML or JSON, or a configuration of the DRF or WDRF controller, which leaves pools, tenants and grants as
            they are; see docs/policy.md.
        onto: The revision that it may replace; the one that it names unless given.
        force: Put it in force over whatever is.
        exact: Take back grants to single jobs that are in force and not in the file, and renew those that are in it.
        by: Who says so, for the history; the user of this machine unless given.
        output: Words; json, yaml: see docs/output.md; name: the revision.
    """
    from fairlead_cli.client.steering_mode import this_user
    from fairlead_cli.policy.applying import ApplyTerms, put_in_force

    terms = ApplyTerms(onto=onto, force=force, exact=exact, by=by or this_user())
    return put_in_force(reach.nats, file, terms, form=output)


@policy.command
def check(file: Path, /, *, output: Output = "table", reach: Reach = Reach()) -> None:
    """Check a policy file without putting it in force; tells every problem at once, and what its aging comes to.

    Without a running Fairlead to ask for the pools' capacity, that is told in parts of a pool, and nobody says whether
    the pools' members are there.

    Args:
        file: YAML or JSON, or a configuration of the DRF or WDRF controller; see docs/policy.md.
        output: Words; json, yaml: see docs/output.md; name: the file, if it is valid.
    """
    from fairlead_cli.client.connection import run
    from fairlead_cli.policy.file_commands import check_file
    from fairlead_cli.policy.members import known_pools

    check_file(file, lambda: run(known_pools(reach.nats)), form=output)


@policy.command
def diff(
    file: Path,
    /,
    *,
    exact: Annotated[bool, Parameter(negative="")] = False,
    output: Output = "table",
    reach: Reach = Reach(),
) -> Underway:
    """Print what putting a policy file in force would change; exits with 1 where that is anything.

    Args:
        file: YAML or JSON, or a configuration of the DRF or WDRF controller; see docs/policy.md.
        exact: As in `policy apply`.
        output: Words; json, yaml: see docs/output.md; name: the keys that differ.
    """
    from fairlead_cli.policy.applying import ApplyTerms
    from fairlead_cli.policy.file_commands import print_differences

    return print_differences(reach.nats, file, ApplyTerms(exact=exact), form=output)


@policy.command
def show(file: Path | None = None, /, *, output: Output = "table", reach: Reach = Reach()) -> Underway | None:
    """Print the policy that is in force, or a file as the policy that it means.

    Args:
        file: A policy, or a configuration of the DRF or WDRF controller.
        output: YAML as a person edits it (table, wide and yaml), JSON, or `revision N` alone (name).
    """
    if file is None:
        from fairlead_cli.policy.in_force import print_policy

        return print_policy(reach.nats, form=output)
    from fairlead_cli.client.connection import run
    from fairlead_cli.policy.file_commands import print_file
    from fairlead_cli.policy.members import known_pools

    print_file(file, lambda: run(known_pools(reach.nats)), form=output)
    return None


@policy.command
def history(*, output: Output = "table", reach: Reach = Reach()) -> Underway:
    """List the last revisions of the policy: since when, by whom, and what each changed.

    Args:
        output: Words (wide: the same); each revision with its whole document as JSON lines, or as YAML documents; name:
            the revisions of the policy alone.
    """
    from fairlead_cli.policy.history import print_history

    return print_history(reach.nats, form=output)


@policy.command
def revert(
    revision: int | None = None,
    /,
    *,
    exact: Annotated[bool, Parameter(negative="")] = False,
    by: str | None = None,
    output: Output = "table",
    reach: Reach = Reach(),
) -> Underway:
    """Put an earlier revision of the policy in force again, as a new one. Grants to single jobs stay as they are.

    Args:
        revision: As `fairlead policy history` names it; the one before the last unless given.
        exact: Put grants to single jobs back, too: those that were taken back since, and not those that came since.
        by: Who says so, for the history; the user of this machine unless given.
        output: Words; json, yaml: see docs/output.md; name: the revision.
    """
    from fairlead_cli.client.steering_mode import this_user
    from fairlead_cli.policy.history import put_back

    return put_back(reach.nats, revision, exact=exact, by=by or this_user(), form=output)


@policy.command
def schema() -> None:
    """Print the JSON Schema of policy files, for editors and CI."""
    from fairlead_cli.console import write_line
    from fairlead_contracts.policyfile.schema import schema_text

    write_line(schema_text().rstrip())
