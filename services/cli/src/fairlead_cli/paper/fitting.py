"""Fits of jobs on nodes, as JSON and as lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.snapshot.types import Snapshot
from fairlead_policy.fit.unschedulable import UnschedulableReason, all_in_words
from fairlead_policy.hami.annotations import CardStrategy
from fairlead_policy.snapshot.ordering import OrderedPool
from fairlead_policy.snapshot.placement import FitVerdict, JobFit, NodeFit, PlacementWalk, walk

MOST_REASONS = 20
"""Jobs of a pool whose reasons are printed; the rest are counted. JSON has all."""
MOST_NODES = 8
"""Nodes of a job that a sentence names; the rest are counted."""
_CELLS = {
    FitVerdict.NO_QUOTA: "no quota",
    FitVerdict.NO_ROOM: "no room",
    FitVerdict.NEVER: "never",
    FitVerdict.UNKNOWN: "unknown",
}


class FitLine(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, rename={"reasons": "obstacles"}
):
    """Whether and where one job fits after those before it."""

    answer: str
    nodes: Sequence[NodeFit] = ()
    """Nodes that the job is placed on: pods of each and, of fractions, vGPUs by card."""
    proven: bool = True
    """Whether the answer is proven; where it is not, no room was found, and more search might find some."""
    why: Sequence[str] = ()
    """Sentences on why the job is not placed."""
    reasons: Sequence[UnschedulableReason] = ()
    """Reasons for which the job is not placed as data, in base units."""


def walked(
    snapshot: Snapshot, pools: Iterable[OrderedPool], heads: Mapping[str, str] | None = None
) -> PlacementWalk | None:
    """The fits of the jobs, where the policy asks for that; `heads` as in `walk`.

    Raises:
        DocumentError: cards or asks for them cannot be read, with every problem.
    """
    strategy = snapshot.policy.fit.strategy
    if strategy == "none":
        return None
    return walk(
        snapshot,
        {pool.name: [job.uid for job in pool.jobs()] for pool in pools},
        CardStrategy(strategy),
        heads,
    )


def fit_line(fit: JobFit) -> FitLine:
    """The answer as JSON."""
    return FitLine(
        answer=fit.answer.value,
        nodes=fit.nodes,
        proven=fit.exact,
        why=tuple(map(str, fit.reasons)),
        reasons=fit.reasons,
    )


def fit_cell(fit: JobFit) -> str:
    """The answer as a cell of a table: the first node and how many more, or why not."""
    if fit.answer is not FitVerdict.PLACED:
        return _CELLS[fit.answer]
    first = fit.nodes[0].node if fit.nodes else "anywhere"
    return first if len(fit.nodes) <= 1 else f"{first} +{len(fit.nodes) - 1}"


def fit_in_words(fit: JobFit) -> str:
    """The answer as a sentence."""
    if fit.answer is not FitVerdict.PLACED:
        return f"On the nodes: {reason_in_words(fit)}"
    parts = [
        f"{one.pods} on {one.node}" + (f" ({', '.join(one.cards)})" if one.cards else "")
        for one in fit.nodes[:MOST_NODES]
    ]
    rest = len(fit.nodes) - len(parts)
    return f"Its pods fit: {', '.join(parts)}{f' and {rest} nodes more' if rest else ''}."


def fit_reasons(positions: Sequence[Position], fits: Mapping[str, JobFit]) -> Iterator[str]:
    """A line for each job that is not placed."""
    unplaced = [position for position in positions if fits[position.uid].answer is not FitVerdict.PLACED]
    for position in unplaced[:MOST_REASONS]:
        yield f"  {position.id}: {reason_in_words(fits[position.uid])}"
    if len(unplaced) > MOST_REASONS:
        yield f"  … and {len(unplaced) - MOST_REASONS} more; -o json has all"


def reason_in_words(fit: JobFit) -> str:
    """The reason for which a job is not placed."""
    why = all_in_words(fit.reasons)
    match fit.answer:
        case FitVerdict.NEVER:
            return f"can never run as things are. {why}"
        case FitVerdict.NO_ROOM if not fit.exact:
            return f"no room was found, though there may be some. {why}"
        case _:
            return why
