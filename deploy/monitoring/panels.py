"""What a dashboard of ours is made of."""

from typing import NamedTuple


class Query(NamedTuple):
    """A PromQL expression and what its series are called."""

    expr: str
    legend: str = ""
    exemplars: bool = False
    unit: str | None = None
    """Where it is another than the panel's: on an axis of its own, to the right."""


class Panel(NamedTuple):
    """One panel: a question, its answer, and what to do when it looks bad."""

    title: str
    advice: str
    queries: list[Query]
    unit: str = "short"
    kind: str = "timeseries"
    most: float | None = None
    """Where the axis ends; None where the values say it."""


class Dashboard(NamedTuple):
    """One page."""

    uid: str
    title: str
    about: str
    panels: list[Panel]
    by_pool: bool = True
