"""Strict queues that are let go while nobody leads, and taken back: when, and how.

What was done is noted on the object: a restart loses nothing.

Kueue takes the change of `spec.queueingStrategy` on a living queue, and acts by it from the next cycle on.
"""

import enum
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fairlead_contracts.frontend.marks import WATCHDOG
from fairlead_contracts.frontend.shipped import KUEUE_BLOCKING, KUEUE_PARKING
from fairlead_kube.client import KubeClient
from fairlead_kube.kinds.resources import CLUSTER_QUEUES


class QueueAction(enum.StrEnum):
    """An action on the queues."""

    WAIT = "wait"
    """Leave the queues as they are: neither a lead nor the lack of one has lasted for long enough."""
    LOOSEN = "loosen"
    """Let the queues fill their gaps: nobody has led for too long."""
    TIGHTEN = "tighten"
    """Let the queues keep the head's place again: somebody leads for good."""


@dataclass(eq=False)
class LeadClock:
    """Judges by what it sees.

    Who begins to watch knows nothing of what was before: from then on it counts.
    """

    after: float
    """Seconds without a leader until queues are loosened."""
    back_after: float
    """Seconds with one and the same leader until they are tightened."""
    _leader: str | None = field(default=None, init=False)
    _since: float | None = field(default=None, init=False)

    def see(self, leader: str | None, now: float) -> QueueAction:
        """Judge at an instant.

        Args:
            leader: tells one lead from another; None where nobody is known to lead.
            now: monotonic seconds.
        """
        if self._since is None or leader != self._leader:
            self._leader, self._since = leader, now
        lasted = now - self._since
        if leader is None:
            return QueueAction.LOOSEN if lasted >= self.after else QueueAction.WAIT
        return QueueAction.TIGHTEN if lasted >= self.back_after else QueueAction.WAIT


FIELD_MANAGER = "fairlead-watchdog"


async def carry_out(client: KubeClient, queue: str, verdict: QueueAction) -> str:
    """Do to a queue what the verdict says, unless it is done.

    A queue that somebody made non-strict by hand is theirs: without our note it is never made strict.

    Returns:
        What was done, in words; empty for nothing.

    Raises:
        KubeError: it cannot be read or changed just now; or it was changed in between, and is looked at again.
    """
    if verdict is QueueAction.WAIT:
        return ""
    found = await client.get(CLUSTER_QUEUES, queue)
    noted = found.metadata.annotation(WATCHDOG)
    strategy = found.spec.queueing_strategy
    if verdict is QueueAction.LOOSEN and strategy == KUEUE_BLOCKING:
        at = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        note: str | None = f"was {KUEUE_BLOCKING}; let go at {at}: nobody led"
        wanted = KUEUE_PARKING
        done = f"{queue} is {KUEUE_PARKING} from now on: no admitter leads, and small jobs need not wait"
    elif verdict is QueueAction.TIGHTEN and noted is not None:
        note = None
        wanted, done = KUEUE_BLOCKING, f"{queue} is {KUEUE_BLOCKING} again: an admitter leads"
    else:
        return ""
    patch = {"metadata": {"annotations": {WATCHDOG: note}}, "spec": {"queueingStrategy": wanted}}
    await client.merge_patch(
        CLUSTER_QUEUES,
        queue,
        patch,
        resource_version=found.metadata.resource_version,
        field_manager=FIELD_MANAGER,
    )
    return done
