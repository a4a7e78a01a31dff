"""Rights that are refused: for good, or because the API server has only just started.

An API server answers before its authorizer has read all roles: for a second or two it refuses everybody everything
that is not built in. A submission that was refused then would be lost by a restart of somebody else's process. So a
refusal is believed once it has been the only answer to its request for a while; what else is allowed in the namespace
says nothing of it.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

FORGOTTEN_SECONDS = 20.0
"""A refusal that was not repeated for so long says nothing of the next one: whoever is refused asks again every two
seconds, and between two starts of an API server nobody may have asked."""


class AccessRight(NamedTuple):
    """A right that is asked for."""

    namespace: str
    verb: str
    plural: str


class FreshRefusals:
    """Refusals of rights by the API server: each is believed once that right has been refused for long enough.

    Args:
        seconds: time after which a refusal is believed.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._refused: dict[AccessRight, tuple[float, float]] = {}
        """Monotonic seconds of the first and the last refusal of an unbroken row, by right."""

    def believe(self, right: AccessRight) -> bool:
        """Whether the refusal of a right, which was just met, is to be believed by now."""
        now = self._clock()
        # A refusal that was not repeated for so long says nothing of the next one.
        self._refused = {old: row for old, row in self._refused.items() if now - row[1] <= FORGOTTEN_SECONDS}
        first, _ = self._refused.get(right, (now, now))
        self._refused[right] = (first, now)
        return now - first >= self._seconds

    def begin_anew(self) -> None:
        """Forgets all rows: while another replica led, it may have been granted what this one was refused."""
        self._refused.clear()

    def granted(self, right: AccessRight) -> None:
        """Notes that the right was granted: its next refusal is a new one."""
        self._refused.pop(right, None)
