"""`fairlead order FILE --explain JOB`: one job of a snapshot, and what would move it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from fairlead_cli.client.explained import explain_text
from fairlead_cli.console import Screen
from fairlead_cli.errors import CommandError
from fairlead_cli.options import Format
from fairlead_cli.paper.arranging import PlannedPool, ids_of, order
from fairlead_cli.paper.fitting import FitLine, fit_in_words, fit_line
from fairlead_cli.paper.reading import read_file, refused
from fairlead_cli.paper.reserving import reserve_reasons
from fairlead_cli.printing import is_for_people, print_answer
from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.questions import ExplainReply, Explanation
from fairlead_contracts.snapshot.types import name_in_snapshot
from fairlead_policy.explain.waiting_text import most_first
from fairlead_policy.reserve.easy import reserves
from fairlead_policy.snapshot.explained import explain_in_snapshot
from fairlead_policy.snapshot.placement import FitVerdict, JobFit

_NEIGHBOURS = 3
"""Jobs right before the one in the printed order that are named, where it is not the order by fairness
alone."""


class PaperExplanations(ExplainReply, frozen=True, kw_only=True):
    """The jobs of one name: the answer of `fairlead explain`, and what the nodes have room for."""

    fits: dict[str, FitLine] | msgspec.UnsetType = msgspec.UNSET
    """Fits of the jobs by uid, where the policy has a strategy to place jobs by."""


class ReplyWithFits(NamedTuple):
    """Explanations as they are printed."""

    reply: PaperExplanations
    fits: Mapping[str, JobFit] | None
    """Fits of the jobs by uid; None where the policy places no jobs."""


def explanations(path: Path, job: str) -> ReplyWithFits:
    """The jobs of that name, explained by a snapshot alone.

    Raises:
        InputError: the snapshot cannot be read or does not validate.
    """
    snapshot = read_file(path)
    policy = snapshot.policy
    # Where nodes or a reservation have a say, too, all pools have to be put in order.
    reserved = any(reserves(policy, pool.name) for pool in snapshot.pools)
    try:
        found = explain_in_snapshot(snapshot, job)
        pools = order(snapshot) if reserved or policy.fit.strategy != "none" else []
    except DocumentError as error:
        raise refused(path, error) from error
    by_name = {one.pool.name: one for one in pools}
    found = [_as_reserved(one, by_name[str(one.pool)]) if one.pool in by_name else one for one in found]
    fits = None
    if policy.fit.strategy != "none":
        walked = next((one.fits for one in pools if one.fits is not None), {})
        fits = {one.uid: walked[one.uid] for one in found}
        found = [_as_nodes_have_it(one, fits[one.uid]) for one in found]
    reply = PaperExplanations(
        at=to_datetime(snapshot.now),
        found=found,
        fits=msgspec.UNSET if fits is None else {uid: fit_line(fit) for uid, fit in fits.items()},
    )
    return ReplyWithFits(reply, fits)


def print_explanations(found: ReplyWithFits, job: str, *, form: Format, verbose: bool = False) -> None:
    """Print the jobs of a name that are explained.

    Raises:
        CommandError: there is none.
    """
    reply, fits = found
    if reply.found or not is_for_people(form):
        print_answer(
            reply,
            form,
            view=lambda screen: _text(reply, fits, screen, verbose=verbose or form == "wide"),
            names=(name_in_snapshot(one.scope, one.id) for one in reply.found),
        )
    if not reply.found:
        raise CommandError(
            f"no job {job!r} waits in the snapshot", hint="`fairlead order` lists those that do."
        )


def _text(
    reply: PaperExplanations, fits: Mapping[str, JobFit] | None, screen: Screen, *, verbose: bool
) -> str:
    """The text of the answer: each job as `fairlead explain` tells it, and what the nodes have for it."""
    told = []
    for one in reply.found:
        alone = ExplainReply(at=reply.at, found=[one])
        told.append(explain_text(alone, screen, verbose=verbose))
        if fits is not None and not one.never and not one.no_room:
            told.append(screen.line(fit_in_words(fits[one.uid]), indent="  · ", hanging="    "))
        told.append("")
    return "\n".join(told[:-1])


def _as_reserved(one: Explanation, planned: PlannedPool) -> Explanation:
    """The explanation with the number that `fairlead order` prints in reserve mode, and why."""
    pool, reservation = planned.pool, planned.reservation
    if reservation is None:
        return one
    if reservation.why_not:
        return _with_reasons(one, f"No start can be promised in pool {pool.name}: {reservation.why_not}.")
    ids = ids_of(pool)
    rank = list(ids).index(one.uid)
    ahead = Counter(position.tenant for position in islice(pool.positions, rank))
    reasons = [told] if (told := reserve_reasons(reservation, ids).get(one.uid)) else []
    right_before = pool.positions[max(0, rank - _NEIGHBOURS) : rank][::-1]
    nearest = [] if one.what_if is None else one.what_if.nearest
    by_fairness = [neighbour.uid for neighbour in nearest]
    if rank != one.rank or [position.uid for position in right_before][: len(by_fairness)] != by_fairness:
        reasons.append(_both_orders(one, right_before))
    return _with_reasons(msgspec.structs.replace(one, rank=rank, ahead=most_first(ahead)), *reasons)


def _as_nodes_have_it(one: Explanation, fit: JobFit) -> Explanation:
    """The explanation with what the nodes say against it in front: a pool may have room that no node has."""
    match fit.answer:
        case FitVerdict.NEVER:
            return msgspec.structs.replace(one, never=[fit_in_words(fit)])
        case FitVerdict.NO_ROOM:
            return msgspec.structs.replace(one, no_room=[fit_in_words(fit)])
        case _:
            return one


def _both_orders(one: Explanation, right_before: Sequence[Position]) -> str:
    """The sentence that tells two orders apart: the one that is printed, and the one by fairness alone."""
    if right_before:
        named = ", then ".join(f"{position.id} of {position.tenant}" for position in right_before)
        printed = f"In this order, directly before it stands {named}."
    else:
        printed = "In this order nobody stands before it."
    return f"{printed} By fairness alone it is number {(one.rank or 0) + 1}; what is said below of others, and what would move it, is of that order."


def _with_reasons(one: Explanation, *reasons: str) -> Explanation:
    """The explanation with these reasons before the others: they say how the others are to be read."""
    return msgspec.structs.replace(one, reasons=[*reasons, *one.reasons])
