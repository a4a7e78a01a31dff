"""Parts of our dashboards."""

from typing import NamedTuple


class Query(NamedTuple):
    """A PromQL expression and what its series are called."""

    expr: str
    legend: str = ""
    exemplars: bool = False
    unit: str | None = None
    """Unit of the series where it is another than the panel's: on an axis of its own, to the right."""


class Panel(NamedTuple):
    """A panel: a question, its answer, and what to do when it looks bad."""

    title: str
    advice: str
    queries: list[Query]
    unit: str = "short"
    kind: str = "timeseries"
    most: float | None = None
    """The end of the axis; None where the values say it."""


class Dashboard(NamedTuple):
    """A page of panels."""

    uid: str
    title: str
    about: str
    panels: list[Panel]
    by_pool: bool = True
