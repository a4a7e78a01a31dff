"""`fairlead order FILE --explain JOB`: one job of a snapshot, and what would move it."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from fairlead_cli.client.words import ahead_in_words
from fairlead_cli.console import write_line
from fairlead_cli.errors import CommandError
from fairlead_cli.options import Format
from fairlead_cli.paper.arranging import Arranged, ArrangedPool, arranged
from fairlead_cli.paper.fitting import FitLine, fit_in_words, fit_line
from fairlead_cli.paper.reading import read_file, refused
from fairlead_cli.paper.reserving import reserve_reasons
from fairlead_cli.printing import as_text, print_names
from fairlead_cli.published import published
from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.messages.decisions import Place, Standing
from fairlead_contracts.messages.explanations import Prospects
from fairlead_contracts.messages.questions import AheadOf
from fairlead_contracts.snapshot.types import Snapshot
from fairlead_policy.reserve.easy import reserves
from fairlead_policy.snapshot.explained import ExplainedJob, explain_in_snapshot
from fairlead_policy.snapshot.placement import JobFit

_NEIGHBOURS = 3
"""Told of the order that is printed, where it is not the one by fairness alone."""


class PaperExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """One waiting job of a snapshot, with the keys that `fairlead explain` has of it."""

    pool: str
    place: Place
    rank: int
    """From 0."""
    waiting: int
    ahead: list[AheadOf]
    standing: Standing | None
    prospects: Prospects
    reasons: list[str]


class PaperExplanations(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of one name."""

    found: list[PaperExplanation]
    fits: dict[str, FitLine] | msgspec.UnsetType = msgspec.UNSET
    """By uid, where the policy has a strategy to place jobs by."""


def explain_on_paper(path: Path, job: str, *, form: Format) -> None:
    """Read a snapshot and print why one of its jobs stands where it stands, and what would move it.

    Raises:
        InputError: the snapshot cannot be read or does not validate.
        CommandError: no job of that name waits in it.
    """
    snapshot = read_file(path)
    try:
        found = explain_in_snapshot(snapshot, job)
        pools, walk = arranged(snapshot) if _takes_more_than_fairness(snapshot) else Arranged([], None)
    except DocumentError as error:
        raise refused(path, error) from error
    by_name = {one.pool.name: one for one in pools}
    found = [_as_reserved(one, by_name[one.pool]) if one.pool in by_name else one for one in found]
    fits = {one.place.uid: walk.jobs[one.place.uid] for one in found} if walk is not None else None
    match form:
        case "json" | "yaml":
            write_line(as_text(published(_document(found, fits)), form))
        case "name":
            print_names(one.place.id for one in found)
        case _:
            sys.stdout.writelines(f"{line}\n" for one in found for line in _lines(one, fits))
    sys.stdout.flush()
    if not found:
        raise CommandError(
            f"no job {job!r} waits in the snapshot", hint="`fairlead order` lists those that do."
        )


def _document(found: Sequence[ExplainedJob], fits: Mapping[str, JobFit] | None) -> PaperExplanations:
    lines = msgspec.UNSET if fits is None else {uid: fit_line(fit) for uid, fit in fits.items()}
    return PaperExplanations(found=[_published(one) for one in found], fits=lines)


def _published(one: ExplainedJob) -> PaperExplanation:
    return PaperExplanation(
        pool=one.pool,
        place=one.place,
        rank=one.rank,
        waiting=one.waiting,
        ahead=[AheadOf(tenant=tenant, jobs=jobs) for tenant, jobs in one.ahead.items()],
        standing=one.standing,
        prospects=one.prospects,
        reasons=one.reasons,
    )


def _takes_more_than_fairness(snapshot: Snapshot) -> bool:
    """Whether nodes or a reservation have a say, too: all pools have to be put in order then."""
    reserved = any(reserves(snapshot.policy, pool.name) for pool in snapshot.pools)
    return reserved or snapshot.policy.fit.strategy != "none"


def _as_reserved(one: ExplainedJob, arranged_pool: ArrangedPool) -> ExplainedJob:
    """With the number that `fairlead order` prints in reserve mode, and why."""
    pool, reservation = arranged_pool
    if reservation is None:
        return one
    if reservation.why_not:
        return _with_reasons(one, f"No start can be promised in pool {pool.name}: {reservation.why_not}.")
    ids = {place.uid: place.id for place in pool.places}
    rank = list(ids).index(one.place.uid)
    ahead = Counter(place.tenant for place in islice(pool.places, rank))
    reasons = [told] if (told := reserve_reasons(reservation, ids).get(one.place.uid)) else []
    right_before = pool.places[max(0, rank - _NEIGHBOURS) : rank][::-1]
    by_fairness = [neighbour.uid for neighbour in one.prospects.nearest]
    if rank != one.rank or [place.uid for place in right_before][: len(by_fairness)] != by_fairness:
        reasons.append(_both_orders(one, right_before))
    by_count = sorted(ahead.items(), key=lambda part: (-part[1], part[0]))
    return _with_reasons(msgspec.structs.replace(one, rank=rank, ahead=dict(by_count)), *reasons)


def _both_orders(one: ExplainedJob, right_before: Sequence[Place]) -> str:
    """That the order as it is printed is another one than the order that the other reasons speak of."""
    if right_before:
        named = ", then ".join(f"{place.id} of {place.tenant}" for place in right_before)
        printed = f"In this order, directly before it stands {named}."
    else:
        printed = "In this order nobody stands before it."
    return f"{printed} By fairness alone it is number {one.rank + 1}; what is said below of others, and what would move it, is of that order."


def _with_reasons(one: ExplainedJob, *reasons: str) -> ExplainedJob:
    """With these before the others: they say how the others are to be read."""
    return msgspec.structs.replace(one, reasons=[*reasons, *one.reasons])


def _lines(one: ExplainedJob, fits: Mapping[str, JobFit] | None) -> Iterator[str]:
    place = one.place
    yield f"{place.id} of {place.tenant}: number {one.rank + 1} of {one.waiting} in pool {one.pool}"
    if one.ahead:
        yield f"  before it: {ahead_in_words(list(one.ahead.items()))}"
    for reason in one.reasons:
        yield f"  · {reason}"
    if fits is not None:
        yield f"  · {fit_in_words(fits[place.uid])}"
    yield ""
