"""Unschedulable reasons as numbers that travel: term, value, unit, who. What has no number is told in words alone."""

from collections.abc import Iterable

from fairlead_contracts.messages.questions import Shortfall
from fairlead_policy.fit.unschedulable import (
    CardShort,
    GangShort,
    NodeShort,
    PodsShort,
    PoolFull,
    TooFewCards,
    TotalShort,
    UnschedulableReason,
)

_UNITS = {"memory": "MiB", "cores": "%"}
"""Of cards."""
_ALL_PODS = "the job's pods"


def shortfalls_of(answer: str, reasons: Iterable[UnschedulableReason]) -> list[Shortfall]:
    """The numbers of the reasons, in their order.

    Args:
        answer: what they come to; see `Shortfall`.
        reasons: of one job.
    """
    found = (_shortfall(answer, reason) for reason in reasons)
    return [one for one in found if one is not None]


def _shortfall(answer: str, reason: UnschedulableReason) -> Shortfall | None:  # noqa: PLR0911 # one line a kind
    match reason:
        case CardShort(shape=who, of=part, wanted=wanted, largest=most, free=free):
            return Shortfall(
                answer=answer,
                term=f"card-{part}",
                wanted=wanted,
                most=most,
                total=free,
                unit=_UNITS[part],
                who=who,
            )
        case TooFewCards(shape=who, wanted=wanted, most=most):
            return Shortfall(answer=answer, term="cards", wanted=wanted, most=most, unit="cards", who=who)
        case NodeShort(shape=who, resource=name, wanted=wanted, largest=most, free=free):
            return Shortfall(answer=answer, term=name, wanted=wanted, most=most, total=free, who=who)
        case TotalShort(shape=who, resource=name, wanted=wanted, free=free):
            return Shortfall(answer=answer, term=name, wanted=wanted, most=free, total=free, who=who)
        case PodsShort(shape=who, wanted=wanted, fits=fits):
            return Shortfall(answer=answer, term="pods", wanted=wanted, most=fits, unit="pods", who=who)
        case GangShort(wanted=wanted, fits=fits):
            return Shortfall(answer=answer, term="pods", wanted=wanted, most=fits, unit="pods", who=_ALL_PODS)
        case PoolFull(pool=who, resource=name, wanted=wanted, left=left):
            return Shortfall(answer=answer, term=name, wanted=wanted, most=left, who=who)
        case _:
            return None
