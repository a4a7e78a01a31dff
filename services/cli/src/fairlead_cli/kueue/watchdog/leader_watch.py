"""When to let go of strict queues, and when to take them back: by how long somebody has led, or nobody has. Pure."""

import enum


class QueueAction(enum.StrEnum):
    """What to do with the queues."""

    WAIT = "wait"
    """Neither has lasted for long enough."""
    LOOSEN = "loosen"
    """Nobody has led for too long: let the queues fill their gaps."""
    TIGHTEN = "tighten"
    """Somebody leads for good: let them keep the head's place again."""


class Vigil:
    """Judges by what it sees.

    Who begins to watch knows nothing of what was before: from then on it counts.

    Args:
        after: seconds without a leader until queues are loosened.
        back_after: seconds with one and the same leader until they are tightened.
    """

    def __init__(self, after: float, back_after: float) -> None:
        self._after = after
        self._back_after = back_after
        self._leader: str | None = None
        self._since: float | None = None

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
            return QueueAction.LOOSEN if lasted >= self._after else QueueAction.WAIT
        return QueueAction.TIGHTEN if lasted >= self._back_after else QueueAction.WAIT
