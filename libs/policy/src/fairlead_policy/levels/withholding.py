"""Reasons for which levels are withheld from a cluster, and the fate of those that stand.

The one judgement that writers follow and people are told.
"""

import enum
from collections.abc import Collection, Mapping

import msgspec

from fairlead_contracts.messages.control import Mode
from fairlead_contracts.messages.leave import Leave, LeverFound, Revocation
from fairlead_contracts.messages.state import JobState, QueueState
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_policy.levels.bands import NarrowBand, narrow_bands
from fairlead_policy.levels.class_bands import LevelQueue
from fairlead_policy.levels.operators import ControlWord


class LevelFate(enum.StrEnum):
    """The fate of levels that stand, where an order is not written."""

    FOLLOW = "follow"
    """Levels follow the order."""
    STAND = "stand"
    """Levels stay as they are: nothing is written, not even a level taken back."""
    GO = "go"
    """Levels are taken away, then nothing is written."""


class Withholding(msgspec.Struct, frozen=True, kw_only=True):
    """Reason for which a pool's order is not written to a cluster, in words, and its levels' fate there."""

    why: str = ""
    """Reason in words; empty where the order is written."""
    fate: LevelFate = LevelFate.FOLLOW
    unsafe: bool = False
    """Whether a level that stands could stop a running job, and the policy does not take that."""
    everywhere: bool = False
    """Whether marks go from what runs or has ended, too, and those that the frontend does not read."""


_FOLLOWED = Withholding()


def why_uncleared(queues: Collection[QueueState], leave: Leave | None) -> str:
    """The reason for which nothing may be written to the queues' cluster, not even levels removed; else empty."""
    if leave is not None or not any(queue.able.needs_leave for queue in queues):
        return ""
    queue = next(iter(queues))
    if not queue.check_command:
        return f"cluster {queue.cluster} is not cleared: nobody gave leave to write there"
    return f"cluster {queue.cluster} is not cleared: `{queue.check_command}` looks at it and gives leave to write"


def judge_withholding(
    document: PolicyDocument,
    queues: Collection[QueueState],
    leave: Leave | None,
    *,
    control: ControlWord,
    values: Mapping[str, int],
    found: LeverFound | None = None,
    revocation: Revocation | None = None,
    dry_run: bool = False,
) -> Withholding:
    """Whether a pool's order is written to a cluster, and if not, why, and what becomes of the levels that stand there.

    Levels go only for a reason that somebody stated: an operator's word, a setting of a queue, a lever that was found
    twice. What is merely not known (no leave and nobody took it back, an unreadable word) leaves them as they are.

    Args:
        queues: the pool's queues in one cluster.
        control: the operators' strictest word on the pool.
        values: the cluster's values of the classes that it knows.
        found: the lever that the cluster was last found to obey.
        revocation: the word that took leave back, if any.
        dry_run: it is only said what would be written: that needs no leave.
    """
    uncleared = "" if dry_run else why_uncleared(queues, leave)
    if uncleared and revocation is None:
        return Withholding(why=uncleared, fate=LevelFate.STAND)
    preempting = why_preempting(document, queues)
    unsafe = bool(preempting)
    if control.mode is Mode.PAUSED:
        # A pause stops every write. Who paused has to hear what that leaves in place.
        danger = f"; they could stop running jobs: {preempting}" if unsafe else ""
        why = f"{control.in_words()}: levels stay as they are{danger}. {control.ended_in_words()}"
        return Withholding(why=why, fate=LevelFate.STAND, unsafe=unsafe)
    if why := _why_none_is_left(revocation if uncleared else None, control, leave, found):
        return Withholding(why=why, fate=LevelFate.GO, unsafe=unsafe, everywhere=True)
    if preempting:
        return Withholding(why=preempting, fate=LevelFate.GO, unsafe=True)
    # Two classes are rarely changed in one instant, and these levels stop nobody.
    crossed = why_crossed(document, queues, values)
    return Withholding(why=crossed, fate=LevelFate.STAND) if crossed else _FOLLOWED


def _why_none_is_left(
    revocation: Revocation | None, control: ControlWord, leave: Leave | None, found: LeverFound | None
) -> str:
    """The reason for which no mark of ours is to be left anywhere; else empty."""
    if revocation is not None:
        who = f" by {revocation.by}" if revocation.by else ""
        return (
            f"leave to write to {revocation.cluster} was taken back{who} at {revocation.at:%Y-%m-%d %H:%M} UTC: "
            f"no level of ours is left. {revocation.given_again_by} gives it again"
        )
    if control.mode is Mode.RELEASED:
        return f"{control.in_words()}: no level of ours is left. {control.ended_in_words()}"
    return "" if leave is None else leave.why_ineffective(found)


def why_crossed(document: PolicyDocument, queues: Collection[LevelQueue], values: Mapping[str, int]) -> str:
    """The reason for which bands overlap: a level of a lower class could stand above a higher one; else empty.

    Narrow bands are followed. What the cluster says of classes are the `values`.
    """
    banded = next((queue for queue in queues if queue.bands_by_class), None)
    if banded is None:
        return ""
    for found in narrow_bands(document.classes, values, width=document.bands.width):
        if found.room < 1:
            return (
                f"class {found.upper} has its floor at {found.upper_floor} and class {found.lower} at "
                f"{found.lower_floor}: levels of {found.lower} would stand above {found.upper}; "
                f"{_mended(found, banded.able.priority_class)}"
            )
    return ""


def _mended(found: NarrowBand, priority_class: str) -> str:
    if found.upper_floor <= found.lower_floor:
        return (
            f"the policy has {found.upper} before {found.lower}: give its {priority_class} the higher value, "
            "or turn them round in `classes`"
        )
    several = priority_class + ("es" if priority_class.endswith("s") else "s")
    return f"give them {several} further apart, or smaller `bands.width` in the policy"


def unsteered_level(job: JobState, queue: QueueState | None) -> int:
    """The level that a job has in its queue when nobody steers."""
    return job.base if queue is None or queue.bands_by_class else queue.default_level


def may_preempt(queues: Collection[QueueState]) -> bool:
    """Whether a level in one of these queues could stop a running job."""
    return any(queue.preempting for queue in queues)


def reclaimable(queues: Collection[QueueState]) -> list[str]:
    """Names of queues whose borrowed quota others may reclaim: levels of running jobs decide who loses it."""
    reclaiming = {queue.name for queue in queues if queue.reclaims}
    return [queue.name for queue in queues if reclaiming - {queue.name}]


def why_preempting(document: PolicyDocument, queues: Collection[LevelQueue]) -> str:
    """The reason for which a level could stop a running job, if the policy does not take that; else empty."""
    if document.preemption != "never":
        return ""
    for queue in sorted(queues, key=lambda queue: queue.name):
        if queue.preempting:
            told = ", ".join(f"{name} {value}" for name, value in sorted(queue.preempting.items()))
            harmless = " or ".join(queue.mending)
            mended = f"it to {harmless} in the queue, or " if harmless else ""
            return (
                f"queue {queue.name} has {told}: a level could stop a running job, and the policy says "
                "`preemption: never`, so no waiting job of the pool has a level; set "
                f"{mended}`preemption: protect` or `accept` in the policy"
            )
    return ""
