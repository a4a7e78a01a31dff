"""The flags of `fairlead demo`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from fairlead_cli.errors import InputError

PAGE = "fairlead-demo.html"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DemoFlags:
    """The flags of `fairlead demo`; None where they say nothing."""

    seconds: Annotated[float | None, Parameter(validator=Number(gte=1, lte=100))] = None
    """Seconds for which jobs are submitted."""
    trace: Path | None = None
    """Another trace in the form of the one that ships (CSV, also gzipped: vc, job, submit_s, gpus, duration_s)."""
    weights: str | None = None
    """Tenants and weights, as `a=3,b=2`."""
    scorers: Annotated[int, Parameter(validator=Number(gte=1, lte=16))] = 2
    """Number of scorers that share the work."""
    seed: int = 0
    """Seed of everything that is drawn by chance."""
    report: Path | None = None
    """File for the report, as one HTML page; fairlead-demo.html here, and nowhere with --json, unless given."""
    json: Annotated[bool, Parameter(negative="")] = False
    """Print the figures as JSON and nothing else."""

    @property
    def page(self) -> Path | None:
        """The file that the page is written to; printed figures alone need none."""
        return self.report or (None if self.json else Path(PAGE))


def read_weights(text: str | None) -> Mapping[str, float] | None:
    """The weights of `a=3,b=2`.

    Raises:
        InputError: it is not of that form, or a weight is not a positive number.
    """
    if text is None:
        return None
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, amount = part.strip().partition("=")
        try:
            weight = float(amount)
        except ValueError:
            weight = 0.0
        if not (name and equals and 0 < weight < float("inf")):
            raise InputError(
                f"--weights {part.strip()!r}: must be NAME=NUMBER with a number above 0, as in a=3,b=2"
            )
        found[name] = weight
    return found


def check_writable(page: Path | None) -> None:
    """Refuses a page that cannot be written, before the run rather than after it."""
    if page is not None and not (page.parent.is_dir() and os.access(page.parent, os.W_OK)):
        raise InputError(
            f"the report cannot be written to {page}", hint="Choose another place with --report."
        )
