"""`fairlead order`: a snapshot in, its order out."""

import contextlib
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import msgspec

from fairlead_cli.console import warn, write_line
from fairlead_cli.options import Format
from fairlead_cli.paper.arranging import PlannedPool, order
from fairlead_cli.paper.forks import processes
from fairlead_cli.paper.lines import as_lines
from fairlead_cli.paper.reading import read_file, refused
from fairlead_cli.paper.results import as_json
from fairlead_cli.policy.effects import without_effect
from fairlead_cli.printing import as_text
from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.snapshot.types import Snapshot, name_in_snapshot

_MANY = 50_000
"""Number of jobs from which several processes write sooner than one."""


def put_in_order(path: Path, *, levels: bool, form: Format) -> Sequence[PlannedPool]:
    """Read a snapshot and print its order; nothing else is needed, no NATS and no cluster.

    Returns:
        What was printed: whoever ends the process then holds on to it, since to free a million jobs takes seconds.

    Raises:
        InputError: the snapshot cannot be read or does not validate.
    """
    # The process ends with its answer: looking for garbage among a million jobs costs more than the order.
    gc.disable()
    snapshot = read_file(path)
    for sentence in without_effect(snapshot.policy):
        warn(sentence)
    try:
        planned = order(snapshot, levels=levels)
    except DocumentError as error:
        raise refused(path, error) from error
    for one in planned:
        if one.plan is not None and one.plan.dropped:
            warn(
                f"pool {one.pool.name}: {one.plan.dropped} jobs of the window get no level, the band is too narrow"
            )
    _print(planned, snapshot, form)
    sys.stdout.flush()
    return planned


def _print(planned: Sequence[PlannedPool], snapshot: Snapshot, form: Format) -> None:
    match form:
        case "json":
            with contextlib.closing(as_json(planned, snapshot.now, by=_writers(planned))) as parts:
                sys.stdout.buffer.writelines(parts)
            sys.stdout.buffer.write(b"\n")
        case "yaml":
            whole = b"".join(as_json(planned, snapshot.now, by=_writers(planned)))
            write_line(as_text(msgspec.json.decode(whole), form))
        case "name":
            jobs = (job for one in planned for job in one.pool.jobs())
            sys.stdout.writelines(f"{name_in_snapshot(job.scope, job.id)}\n" for job in jobs)
        case _:
            sys.stdout.writelines(f"{line}\n" for line in as_lines(planned, snapshot))


def _writers(planned: Sequence[PlannedPool]) -> int:
    """The number of processes that the order is best written by."""
    return processes() if sum(len(one.pool.positions) for one in planned) >= _MANY else 1


def leave() -> NoReturn:
    """End with success, without freeing anything: of a million jobs that takes longer than their order.

    No exit handler runs: nothing but the standard streams may be open. They are flushed first.

    Raises:
        OSError: what was said does not go out.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
