"""`fairlead order FILE --explain JOB`: one job of a snapshot, and what would move it."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from fairlead_cli.errors import CommandError
from fairlead_cli.ordering.arranging import arranged
from fairlead_cli.ordering.fitting import FitLine, fit_in_words, fit_line
from fairlead_cli.ordering.reading import read_file, refused
from fairlead_contracts.errors import DocumentError
from fairlead_policy import ExplainedJob, JobFit, explain_in_snapshot


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of one name."""

    found: list[ExplainedJob]
    fits: dict[str, FitLine] | msgspec.UnsetType = msgspec.UNSET
    """By uid, where the policy has a strategy to place jobs by."""


def explain_on_paper(path: Path, job: str, *, json: bool) -> None:
    """Read a snapshot and print why one of its jobs stands where it stands, and what would move it.

    Raises:
        InputError: the snapshot cannot be read or does not validate.
        CommandError: no job of that name waits in it.
    """
    snapshot = read_file(path)
    try:
        found = explain_in_snapshot(snapshot, job)
        walk = None if snapshot.policy.fit.strategy == "none" else arranged(snapshot).walk
    except DocumentError as error:
        raise refused(path, error) from error
    fits = {one.place.uid: walk.jobs[one.place.uid] for one in found} if walk is not None else None
    if json:
        lines = msgspec.UNSET if fits is None else {uid: fit_line(fit) for uid, fit in fits.items()}
        sys.stdout.buffer.write(msgspec.json.encode(Explained(found=found, fits=lines)) + b"\n")
    else:
        sys.stdout.writelines(f"{line}\n" for one in found for line in _lines(one, fits))
    sys.stdout.flush()
    if not found:
        raise CommandError(
            f"no job {job!r} waits in the snapshot", hint="`fairlead order` lists those that do."
        )


def _lines(one: ExplainedJob, fits: Mapping[str, JobFit] | None) -> Iterator[str]:
    place = one.place
    yield f"{place.id} of {place.tenant}: number {one.rank + 1} of {one.waiting} in pool {one.pool}"
    if one.ahead:
        yield f"  before it: {', '.join(f'{count} of {tenant}' for tenant, count in one.ahead.items())}"
    for reason in one.reasons:
        yield f"  · {reason}"
    if fits is not None:
        yield f"  · {fit_in_words(fits[place.uid])}"
    yield ""
