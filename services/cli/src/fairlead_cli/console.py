"""Where words go: results to standard output, everything else to standard error. Colours on terminals alone."""

import sys
from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

# A table that is piped into a file shall not be cut at the 80 columns that rich assumes there.
PIPED_WIDTH = 200


def output(*, wide: bool = False) -> Console:
    """For results: tables, reports. A wide one has room for every column, whatever the terminal has."""
    width = None if sys.stdout.isatty() and not wide else PIPED_WIDTH
    return Console(highlight=False, width=width)


def remarks() -> Console:
    """For tables and reports that are not the result itself."""
    width = None if sys.stderr.isatty() else PIPED_WIDTH
    return Console(stderr=True, highlight=False, width=width)


def messages() -> Console:
    """For progress, warnings and errors."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def write_line(text: str) -> None:
    """One line of a result, as it is: JSON must not meet markup or wrapping."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """One line of progress."""
    messages().print(escape(text))


def warn(text: str) -> None:
    """One line that a person should not overlook."""
    messages().print(f"[yellow]warning:[/] {escape(text)}")


def fail(text: str, *, problems: Iterable[str] = (), hint: str = "") -> None:
    """Why a command ends without success, each problem a line, and what to do."""
    console = messages()
    console.print(f"[red]error:[/] {escape(text)}")
    for problem in problems:
        sys.stderr.write(f"  {problem}\n")
    if hint:
        console.print(escape(hint))
