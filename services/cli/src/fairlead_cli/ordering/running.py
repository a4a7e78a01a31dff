"""`fairlead order`: a snapshot in, its order out."""

import gc
import sys
from collections.abc import Iterable
from pathlib import Path

from fairlead_cli.console import warn
from fairlead_cli.ordering.reading import read_file, refused
from fairlead_cli.ordering.results import PlannedPool, as_json, as_lines
from fairlead_contracts.errors import DocumentError
from fairlead_contracts.snapshot import Snapshot
from fairlead_policy import OrderedPool, Walk, order_snapshot, plan_snapshot_levels, walk
from fairlead_policy.fractions import Strategy


def put_in_order(path: Path, *, levels: bool, json: bool) -> None:
    """Read a snapshot and print its order; nothing else is needed, no NATS and no cluster.

    Raises:
        InputError: the snapshot cannot be read or does not validate.
    """
    # The process ends with its answer: looking for garbage among a million jobs costs more than the order.
    gc.disable()
    snapshot = read_file(path)
    try:
        planned = order(snapshot, levels=levels)
    except DocumentError as error:
        raise refused(path, error) from error
    for one in planned:
        if one.plan is not None and one.plan.dropped:
            warn(
                f"pool {one.pool.name}: {one.plan.dropped} jobs of the window get no level, the band is too narrow"
            )
    if json:
        sys.stdout.buffer.writelines(as_json(planned, snapshot.now))
        sys.stdout.buffer.write(b"\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in as_lines(planned, snapshot))
    sys.stdout.flush()


def order(snapshot: Snapshot, *, levels: bool) -> list[PlannedPool]:
    """Each pool in order, with the levels that this takes where they are asked for.

    Raises:
        DocumentError: cards or asks for them cannot be read, with every problem.
    """
    window = snapshot.policy.window
    pools = order_snapshot(snapshot)
    walked = _walked(snapshot, pools)
    fits, never = (None, frozenset[str]()) if walked is None else (walked.jobs, walked.never)
    return [
        PlannedPool(
            pool, plan_snapshot_levels(pool, snapshot.jobs, window, never=never) if levels else None, fits
        )
        for pool in pools
    ]


def _walked(snapshot: Snapshot, pools: Iterable[OrderedPool]) -> Walk | None:
    """Where the jobs fit, where the policy asks for that."""
    strategy = snapshot.policy.fit.strategy
    if strategy == "none":
        return None
    orders = {pool.name: [place.uid for place in pool.places] for pool in pools}
    return walk(snapshot, orders, Strategy(strategy))
