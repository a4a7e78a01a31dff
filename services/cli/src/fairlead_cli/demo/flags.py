"""What `fairlead demo` can be told."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from fairlead_cli.errors import InputError

PAGE = "fairlead-demo.html"


class DemoFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `fairlead demo`; None where they say nothing."""

    seconds: float | None = None
    trace: Path | None = None
    weights: str | None = None
    scorers: int = 2
    seed: int = 0
    report: Path | None = None
    as_json: bool = False

    @property
    def page(self) -> Path | None:
        """The file that the page is written to; printed figures alone need none."""
        return self.report or (None if self.as_json else Path(PAGE))


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
    """Better said now than after the run."""
    if page is not None and not (page.parent.is_dir() and os.access(page.parent, os.W_OK)):
        raise InputError(
            f"the report cannot be written to {page}", hint="Choose another place with --report."
        )
