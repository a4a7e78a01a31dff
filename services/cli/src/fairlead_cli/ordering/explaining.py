"""`fairlead order FILE --explain JOB`: one job of a snapshot, and what would move it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from fairlead_cli.errors import CommandError
from fairlead_cli.ordering.reading import read_file, refused
from fairlead_contracts.errors import DocumentError
from fairlead_policy import ExplainedJob, explain_in_snapshot


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of one name."""

    found: list[ExplainedJob]


def explain_on_paper(path: Path, job: str, *, json: bool) -> None:
    """Read a snapshot and print why one of its jobs stands where it stands, and what would move it.

    Raises:
        InputError: the snapshot cannot be read or does not validate.
        CommandError: no job of that name waits in it.
    """
    snapshot = read_file(path)
    try:
        found = explain_in_snapshot(snapshot, job)
    except DocumentError as error:
        raise refused(path, error) from error
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(Explained(found=found)) + b"\n")
    else:
        sys.stdout.writelines(f"{line}\n" for one in found for line in _lines(one))
    sys.stdout.flush()
    if not found:
        raise CommandError(
            f"no job {job!r} waits in the snapshot", hint="`fairlead order` lists those that do."
        )


def _lines(one: ExplainedJob) -> Iterator[str]:
    place = one.place
    yield f"{place.id} of {place.tenant}: number {one.rank + 1} of {one.waiting} in pool {one.pool}"
    if one.ahead:
        yield f"  before it: {', '.join(f'{count} of {tenant}' for tenant, count in one.ahead.items())}"
    for reason in one.reasons:
        yield f"  · {reason}"
    yield ""
