"""The outcome of a plan: what became of each of its writes, as data for whoever decides next."""

import msgspec

from fairlead_admitter.decide.steering import LevelWrite
from fairlead_admitter.observe.expectations import LevelVerdict, WriteConfirmation


class PlanOutcome(msgspec.Struct):
    """The outcome of a plan's writes."""

    landed: list[tuple[LevelWrite, WriteConfirmation]] = []
    drifted: list[tuple[LevelWrite, LevelVerdict]] = []
    """Writes that turned out to repair what somebody had overwritten before it was seen."""
    refused_lifts: list[LevelWrite] = []
    """Lifts of running jobs that the frontend will not protect: no reason to keep the order from those that wait."""
    balked: list[LevelWrite] = []
    """Writes that failed while others may go well."""
    gone: int = 0
    """Number of writes to jobs that waited no more."""
    took: list[float] = []
    """Seconds until the frontend answered, by request."""
    failed: int = 0
    """Number of writes that failed, balked ones, too."""
    withheld: int = 0
    """Number of writes that were not sent: the right to write, or the room in this pass, ended before them."""
    missed: list[LevelWrite] = []
    """Writes that failed, or were not sent: after a failed one, or because the job is in backoff."""
    trouble: str = ""
    """The reason for which the last failed write failed."""
    down: bool = False
    """Whether the frontend did not answer: it should be left alone for a while."""
    retry_after: float = 0.0
    forbidden: bool = False
    """Whether a right was missing."""
