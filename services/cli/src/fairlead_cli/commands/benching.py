"""`fairlead bench`: what Fairlead's core costs on this machine."""

from typing import Annotated

from cyclopts import App, Parameter

from fairlead_cli.options import TRY

bench = App(name="bench", help="Measure the core on this machine.", group=TRY)


@bench.command
def order(
    *,
    jobs: int = 100_000,
    tenants: int = 200,
    resources: int = 3,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Put a pool that is made up in order, from arrays in memory to ranks; beside it, the same by a plain heap.

    Also one event among up to 100,000 jobs, and the levels of a window. Uses one processor.

    Parameters
    ----------
    jobs:
        That wait.
    tenants:
        Whose they are.
    resources:
        That shares are measured by.
    json:
        A line of JSON each; the last is the order, `seconds` the best of three turns.
    """
    from fairlead_cli.benching.pools import Size
    from fairlead_cli.benching.running import bench_order

    bench_order(Size(jobs=jobs, tenants=tenants, resources=resources), json=json)
