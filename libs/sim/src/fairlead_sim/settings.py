"""Settings of the simulated cluster's service."""

from typing import Annotated

import msgspec

from fairlead_runtime.settings import ServiceSettings
from fairlead_sim.store import Durability


class SimSettings(ServiceSettings, frozen=True, kw_only=True):
    """The settings of `python -m fairlead_sim`."""

    cluster: Annotated[str, msgspec.Meta(min_length=1)] = "sim"
    """Name of the simulated cluster."""
    store: str = "sim.sqlite"
    """Path of the SQLite file that holds the cluster's truth; made where there is none."""
    cluster_file: str | None = None
    """YAML file with the cluster's nodes, queues and accounts; a small one for three teams without it."""
    durability: Durability = "normal"
    """`normal`: a killed process loses nothing. `full`: a power loss loses nothing either, at a sync each
    commit."""
    ended_keep_seconds: Annotated[float, msgspec.Meta(gt=0)] = 600.0
    """Time for which an ended job stays stated, so that questions about it are answered. Each takes two or
    three KB of memory in every service that long."""
    names_keep_seconds: Annotated[float, msgspec.Meta(ge=0)] = 604_800.0
    """Time for which the name of an ended job is remembered after that, so that a late copy of its submission
    does not run again."""
