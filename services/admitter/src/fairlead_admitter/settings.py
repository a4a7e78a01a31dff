"""What an admitter can be told."""

from typing import Annotated, Literal

import msgspec

from fairlead_runtime import ServiceSettings


class AdmitterSettings(ServiceSettings, frozen=True, kw_only=True):
    """Settings of one admitter: the cluster that it serves, and how it writes."""

    cluster: Annotated[str, msgspec.Meta(min_length=1, max_length=253)] = "sim"
    """The cluster that it serves; one leads per cluster, the others stand by."""
    frontend: Literal["sim"] = "sim"
    """The queueing system of the cluster."""
    stale_after_seconds: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    """How long a pool may lack an order that can be followed before the admitter says so. It writes nothing from the
    first moment."""
    tick_seconds: Annotated[float, msgspec.Meta(gt=0, le=60)] = 1.0
    """How long until a pass is made although nothing changed: past the aging cap the order moves by time alone."""
    writes_in_flight: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 16
    """Level writes that may be on their way to the frontend at once."""
    writes_per_pass: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 256
    """Level writes of one plan before what stands is looked at again."""
    frontend_timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=60)] = 2.0
    """How long to wait for the frontend's reply to one write or creation."""
    submissions_in_progress: Annotated[int, msgspec.Meta(ge=1, le=2048)] = 64
    """Submissions that are taken in at once."""
