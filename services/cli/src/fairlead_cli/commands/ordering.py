"""`fairlead order` and `fairlead snapshot`: an order on paper."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fairlead_cli.options import Output, Reach, Underway


def order(
    file: Annotated[Path, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    levels: Annotated[bool, Parameter(negative="")] = False,
    explain: str | None = None,
    verbose: Annotated[bool, Parameter(name=["--verbose", "-v"], negative="")] = False,
    output: Output = "table",
) -> None:
    """Put a snapshot in order, and say why each job stands there. Needs no NATS and no cluster.

    Args:
        file: JSON or YAML, as `fairlead snapshot` writes it, or `-` for standard input; see docs/policy.md.
        levels: Also the levels that make the frontends follow, and the writes that they cost.
        explain: Instead of the order, this job by its id: why it stands where it stands, and what would move it.
        verbose: With --explain, also its start tag, key and level, and every reason.
        output: Lines in words (wide: the same); json, yaml: see docs/output.md; name: ids alone, in order.
    """
    if explain is not None:
        from fairlead_cli.paper.explaining import explanations, print_explanations

        print_explanations(explanations(file, explain), explain, form=output, verbose=verbose)
        return
    from fairlead_cli.paper.order_run import leave, put_in_order

    _held = put_in_order(file, levels=levels, form=output)
    leave()


def snapshot(*, pool: str | None = None, output: Output = "table", reach: Reach = Reach()) -> Underway:
    """Write what runs and waits now, with the policy, as a file for `fairlead order`.

    Args:
        pool: Only this pool.
        output: JSON, made to be edited (table, wide and json); yaml: the same as YAML; name: its jobs that wait.
    """
    from fairlead_cli.paper.snapshot_taking import take_snapshot

    return take_snapshot(reach.nats, pool=pool, form=output)
