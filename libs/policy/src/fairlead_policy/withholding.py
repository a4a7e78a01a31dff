"""Why levels are withheld from a cluster: the one judgement that writers follow and people are told."""

from collections.abc import Collection, Mapping
from typing import Protocol

from fairlead_contracts.clearance import Clearance, LeverFound
from fairlead_contracts.control import Mode
from fairlead_contracts.document import PolicyDocument
from fairlead_contracts.state import QueueState
from fairlead_policy.bands import NarrowBand, narrow_bands
from fairlead_policy.preemption import preempting_settings


class MayPreempt(Protocol):
    """A queue, as far as preemption goes: as a cluster states it, or a snapshot."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def preemption(self) -> Mapping[str, str]:
        """What its frontend may stop for a waiting job, in its own words."""
        ...


_NEEDS_NO_CLEARANCE = "sim"
"""A simulated cluster is nobody's: nothing can be broken there."""


def why_uncleared(queues: Collection[QueueState], clearance: Clearance | None) -> str:
    """Why nothing at all may be written to the cluster of these queues, not even a level taken back; empty where it may."""
    if clearance is not None or all(queue.frontend == _NEEDS_NO_CLEARANCE for queue in queues):
        return ""
    cluster = next(queue.cluster for queue in queues)
    return f"cluster {cluster} is not cleared: `fairlead doctor` looks at it and gives leave to write"


def why_withheld(
    document: PolicyDocument,
    queues: Collection[QueueState],
    clearance: Clearance | None,
    *,
    mode: Mode,
    values: Mapping[str, int],
    found: LeverFound | None = None,
    rehearsed: bool = False,
) -> str:
    """Why a pool's order is not written to a cluster, in words; empty where it is.

    Args:
        document: the policy.
        queues: the pool's queues in one cluster.
        clearance: the leave to steer that cluster.
        mode: the operators' strictest word on the pool.
        values: what the cluster says of the classes that it knows.
        found: what the cluster was last found to obey.
        rehearsed: it is only said what would be written: that needs no leave.
    """
    if not rehearsed and (uncleared := why_uncleared(queues, clearance)):
        return uncleared
    if mode is Mode.PAUSED:
        return "paused by an operator: the levels that stand, stand"
    if mode is Mode.RELEASED:
        return "released by an operator: no level of ours is left"
    if ineffective := why_ineffective(clearance, found):
        return ineffective
    if any(queue.bands_by_class for queue in queues) and (crossed := why_crossed(document, values)):
        return crossed
    return why_preempting(document, queues)


def why_ineffective(clearance: Clearance | None, found: LeverFound | None) -> str:
    """Why levels by the leave's lever would change nothing; empty where they count, or nobody knows better.

    A priority always counts. A boost does where Kueue's feature gate PriorityBoost is on, and Kueue may be restarted
    without it at any time.
    """
    if clearance is None or found is None or found.at <= clearance.at:
        return ""
    if clearance.lever != "boost" or found.lever == "boost":
        return ""
    return (
        f"Kueue on {clearance.cluster} does not read boosts any more (seen {found.at:%Y-%m-%d %H:%M} UTC), and leave was "
        "given for these: turn its feature gate PriorityBoost on again, or run `fairlead doctor`, which gives leave for "
        "the lever that it finds"
    )


def why_crossed(document: PolicyDocument, values: Mapping[str, int]) -> str:
    """Why the bands of classes overlap, so that a level of the lower class could stand above the higher one; else empty.

    Narrow bands are followed. What the cluster says of classes are the `values`.
    """
    for found in narrow_bands(document.classes, values, width=document.bands.width):
        if found.room < 1:
            return (
                f"class {found.upper} has its floor at {found.upper_floor} and class {found.lower} at "
                f"{found.lower_floor}: levels of {found.lower} would stand above {found.upper}; {_mended(found)}"
            )
    return ""


def _mended(found: NarrowBand) -> str:
    if found.upper_floor <= found.lower_floor:
        return (
            f"the policy has {found.upper} before {found.lower}: give its WorkloadPriorityClass the higher value, "
            "or turn them round in `classes`"
        )
    return "give them WorkloadPriorityClasses further apart, or smaller `bands.width` in the policy"


def may_preempt(queues: Collection[QueueState]) -> bool:
    """Whether a level in one of these queues could stop a running job."""
    return any(preempting_settings(queue.preemption) for queue in queues)


def why_preempting(document: PolicyDocument, queues: Collection[MayPreempt]) -> str:
    """Why a level could stop a running job, where the policy does not take that; else empty."""
    if document.preemption != "never":
        return ""
    for queue in sorted(queues, key=lambda queue: queue.name):
        settings = preempting_settings(queue.preemption)
        if settings:
            told = ", ".join(f"{name} {value}" for name, value in sorted(settings.items()))
            return (
                f"queue {queue.name} has {told}: a level could stop a running job, and the policy says "
                "`preemption: never`; set it to Never in the queue, or `preemption: protect` or `accept` in the policy"
            )
    return ""
