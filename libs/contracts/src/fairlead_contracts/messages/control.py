"""An operator's word on whether levels are written: `fairlead pause`, `resume` and `release`.

Stored in the `policy` bucket under `control.<pool>`, or `control._` for every pool; the strictest of the two holds.
"""

import enum

from fairlead_contracts.base.codec import Codec, Message
from fairlead_contracts.base.instants import Moment


class Mode(enum.StrEnum):
    """The writes that the admitter may make, from the least strict to the strictest."""

    ACTIVE = "active"
    """Levels follow the order."""
    PAUSED = "paused"
    """Levels stay as they stand; none is written."""
    RELEASED = "released"
    """Every level is taken away again, then nothing is written."""


class Control(Message, frozen=True, kw_only=True):
    """The mode of a pool, who set it and why."""

    mode: Mode
    at: Moment
    by: str = ""
    why: str = ""

    def in_words(self) -> str:
        """The mode with who set it, since when and why: `paused by ann since 2026-11-22 18:30 UTC (disks are changed)`."""
        why = f" ({self.why})" if self.why else ""
        return f"{self.mode.value} by {self.by or 'an operator'} since {self.at:%Y-%m-%d %H:%M} UTC{why}"


STRICTNESS = (Mode.ACTIVE, Mode.PAUSED, Mode.RELEASED)
"""The least strict mode first: of a pool's word and the one on all pools the strictest holds."""


CONTROL: Codec[Control] = Codec(Control, "control", packed=False)
