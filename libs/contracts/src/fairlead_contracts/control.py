"""An operator's word on whether levels are written: `fairlead pause`, `resume` and `release`.

Stored in the `policy` bucket under `control.<pool>`, or `control._` for every pool; the strictest of the two holds.
"""

import enum

from fairlead_contracts.codec import Codec, Message
from fairlead_contracts.instants import Moment


class Mode(enum.StrEnum):
    """What the admitter may write, from the least strict to the strictest."""

    ACTIVE = "active"
    """Levels follow the order."""
    PAUSED = "paused"
    """Nothing is written; what stands, stands."""
    RELEASED = "released"
    """Every level is taken away again, then nothing is written."""


class Control(Message, frozen=True, kw_only=True):
    """The mode of a pool, who set it and why."""

    mode: Mode
    at: Moment
    by: str = ""
    why: str = ""


CONTROL: Codec[Control] = Codec(Control, "control", packed=False)
