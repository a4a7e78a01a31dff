"""The contents of a report."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from fairlead_cli.demo.report.figures import DemoFigures, OrderedRun

_START = 0.05
"""Seconds that would be shown as none."""


def made_in_words(at: datetime, version: str, command: str) -> str:
    """The line under a report's headline: when, with which release and by which command it was made."""
    return f"Made on {at:%Y-%m-%d %H:%M} UTC by Fairlead {version} with: {command}"


class ExplainedJob(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `fairlead explain` on a job while it waited."""

    job: str
    tenant: str
    demand: str
    waited_then: float
    """Seconds from its submission to the answer."""
    text: str


class JobStory(msgspec.Struct, frozen=True, kw_only=True):
    """A job's whole way, and what it would have been under FIFO."""

    told: ExplainedJob
    submitted: float
    """Seconds since the first submission; so are the others."""
    waited: float
    waited_fifo: float | None

    def in_words(self) -> str:
        """The story in two sentences."""
        # Of those that stood in the queue when the first was submitted, clocks may say just before.
        at = "at the start" if self.submitted < _START else f"at {self.submitted:.1f} s"
        fifo = (
            "" if self.waited_fifo is None else f"; under FIFO it would have waited {self.waited_fifo:.1f} s"
        )
        return (
            f"{self.told.tenant}/{self.told.job} asked for {self.told.demand} {at} and started "
            f"{self.waited:.1f} s later{fifo}. When it had waited {self.told.waited_then:.1f} s, `fairlead explain` said of it:"
        )


class DemoReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report's contents: all that the text and the page say."""

    figures: DemoFigures
    runs: Sequence[OrderedRun]
    """The run of the jobs under each order: Fairlead's first, then FIFO, then strict priority."""
    facts: Sequence[str]
    """Sentences on what was run and how: the trace and its licence, the speed-up, the cluster."""
    made: str = ""
    """The line on how it was made; empty for none."""
    story: JobStory | None = None
    overload: str = ""
    """Sentence that the machine did not keep up, where it did not: the figures tell of it more than of the
    order."""
