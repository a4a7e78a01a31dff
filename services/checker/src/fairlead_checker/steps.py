"""The next step of a Workload, by what stands in it. Pure.

The way of a gang that does not fit has three steps, for Kueue 0.19 does not let go of quota while it waits out the
`requeueAfterSeconds` of a check (its Workload controller returns before it evicts). So the check first says `Retry`
without a time: Kueue evicts at once. Then it says `Retry` with a time, of a Workload that has been evicted: Kueue writes
`requeueState.requeueAt` itself, and will end the wait by itself, whoever is alive then. Last it says `Pending` again,
for `Retry` would keep the Workload from being tried.
"""

import enum
from collections.abc import Collection

from fairlead_checker.facts import CheckedWorkload
from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_kube.kinds.objects import instant
from fairlead_kube.kinds.workloads import CheckState

RESET = "Reset to Pending after eviction"
"""Beginning of Kueue's message of a check that it reset (`resetChecksOnEviction`, pkg/workload/evict)."""
_TAKEN_NOTE = 10 * SECOND
"""Time after which Kueue takes no note of a `Retry` any more, which then only stands in the way."""


class CheckStep(enum.StrEnum):
    """The next step of a Workload."""

    NONE = "none"
    ANSWER = "answer"
    """The Workload has quota and waits for our answer."""
    SEND_AWAY = "send away"
    """The Workload was evicted by us: say for how long it is to stay out of its queue."""
    SETTLE = "settle"
    """The Workload stays out of its queue: take `Retry` back."""
    AWAIT = "await"
    """The Workload is out of its queue until its time is up, or until it fits."""
    HOLD = "hold"
    """The Workload was let through: its pods are on nodes, or will be."""


def step_of(workload: CheckedWorkload, ours: Collection[str], now: Micros) -> CheckStep:
    """The next step of a Workload with checks of ours.

    Args:
        workload: the Workload as it stands.
        ours: names of the checks that we answer.
        now: the clock.
    """
    mine = our_checks(workload, ours)
    states = {one.state for one in mine}
    if not mine or "Rejected" in states:
        return CheckStep.NONE
    if "Retry" in states and (workload.evicted or workload.reserved is None):
        noted = workload.requeue_at is not None or all(
            instant(one.last_transition_time) + _TAKEN_NOTE < now for one in mine
        )
        return CheckStep.SETTLE if noted else CheckStep.NONE
    if workload.evicted:
        return _of_evicted(workload, mine, now)
    if workload.reserved is None or "Retry" in states:
        return CheckStep.NONE
    return CheckStep.ANSWER if "Pending" in states else CheckStep.HOLD


def our_checks(workload: CheckedWorkload, ours: Collection[str]) -> list[CheckState]:
    """Our checks as they stand in a Workload."""
    return [one for name, one in workload.checks.items() if name in ours]


def _of_evicted(workload: CheckedWorkload, mine: list[CheckState], now: Micros) -> CheckStep:
    waits = workload.requeue_at is not None and workload.requeue_at > now
    if not waits and any(one.message.startswith(RESET) for one in mine):
        return CheckStep.SEND_AWAY
    return CheckStep.AWAIT if waits and workload.reserved is None else CheckStep.NONE
