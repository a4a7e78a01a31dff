"""An operator's leave to steer a cluster: given by `fairlead doctor`, without it nothing is written there.

Stored in the `policy` bucket under `clearance.<cluster>`. A simulated cluster needs none.
"""

from typing import Literal

from fairlead_contracts.codec import Codec, Message
from fairlead_contracts.instants import Moment

type Lever = Literal["boost", "priority"]
"""What is written: the annotation `kueue.x-k8s.io/priority-boost`, or `spec.priority`."""


class Clearance(Message, frozen=True, kw_only=True):
    """What was found of a cluster, and that it may be steered all the same."""

    cluster: str
    lever: Lever
    at: Moment
    by: str = ""
    accepted: list[str] = []
    """The findings that stand against it and were accepted, by name."""


CLEARANCE: Codec[Clearance] = Codec(Clearance, "clearance", packed=False)
