"""Rights that are refused: for good, or because the API server has only just started.

An API server answers before its authorizer has read all roles: for a second or two it refuses everybody everything
that is not built in. A submission that was refused then would be lost by a restart of somebody else's process. So a
refusal is believed once it has been the only answer for a while.
"""

import time
from collections.abc import Callable

FORGOTTEN_SECONDS = 60.0
"""A refusal that was not repeated for so long says nothing of the next one."""


class FreshRefusals:
    """How long rights have been refused, by namespace.

    Args:
        seconds: after which a refusal is believed.
        clock: monotonic seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._refused: dict[str, tuple[float, float]] = {}
        """The first and the last of an unbroken row."""

    def believe(self, namespace: str) -> bool:
        """A right was just refused: whether that is to be believed by now."""
        now = self._clock()
        first, last = self._refused.get(namespace, (now, now))
        if now - last > FORGOTTEN_SECONDS:
            first = now
        self._refused[namespace] = (first, now)
        return now - first >= self._seconds

    def granted(self, namespace: str) -> None:
        """Something was allowed: the next refusal is a new one."""
        self._refused.pop(namespace, None)
