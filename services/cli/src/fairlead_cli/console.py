"""Output of commands: results to standard output, everything else to standard error. Colours on terminals alone.

Who only says a line does without `rich`, which takes a fifth of what a short command takes.
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TextIO

if TYPE_CHECKING:
    from rich.console import Console

# A table that is piped into a file shall not be cut at the 80 columns that rich assumes there.
PIPED_WIDTH = 200
MOST_PROBLEMS = 200
"""Problems printed; the rest are counted."""
_STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "yellow": "33",
    "cyan": "36",
    "bold red": "1;31",
    "mark": "1;7;36",
}


def output(*, wide: bool = False, stderr: bool = False) -> "Console":
    """The console of tables and reports, on standard error those that are not the result itself.

    A wide one has room for every column, whatever the terminal has.
    """
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        stderr=stderr, highlight=False, width=None if stream.isatty() and not wide else PIPED_WIDTH
    )


type Style = Callable[[str, str], str]
"""Puts a text in bold, dim or a colour."""


def styled(text: str, style: str, *, stream: TextIO | None = None) -> str:
    """The text in a style where the stream, standard output unless given, is a terminal that shows it."""
    shows = (stream or sys.stdout).isatty() and not os.environ.get("NO_COLOR")
    plain = not shows or os.environ.get("TERM") in ("dumb", "unknown")
    return text if plain else coloured(text, style)


def coloured(text: str, style: str) -> str:
    """The text in a style, wherever it goes: for who takes that out again where it is not wanted."""
    return f"\033[{_STYLES[style]}m{text}\033[0m"


def unstyled(text: str, style: str) -> str:
    """The text as it is."""
    del style
    return text


class Screen(NamedTuple):
    """The place that texts are made for: so many columns of a terminal, or of a file, in colours or without."""

    columns: int = 120
    style: Style = unstyled

    def line(self, text: str, style: str = "", *, indent: str = "", hanging: str = "") -> str:
        """A text as the lines that fit; see `wrapped`."""
        told = wrapped(text, self.columns, indent=indent, hanging=hanging)
        return self.style(told, style) if style else told


WIDE, PIPED = Screen(), Screen(PIPED_WIDTH)
"""Pages without colours: one to read, and a file."""


def cells(text: str) -> int:
    """The cells of a terminal that a text takes: of some scripts a letter takes two, and an accent none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def wrapped(text: str, columns: int, *, indent: str = "", hanging: str = "") -> str:
    """A line as the lines that fit so many columns; words stay whole.

    Args:
        indent: text before the first line.
        hanging: text before the others.
    """
    return textwrap.fill(
        text,
        max(columns, len(hanging) + 10),
        initial_indent=indent,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def output_columns(*, wide: bool = False) -> int:
    """The columns of standard output: those of the terminal, or of a file."""
    if wide or not sys.stdout.isatty():
        return PIPED_WIDTH
    return shutil.get_terminal_size().columns


def write_line(text: str) -> None:
    """Writes one line of a result as it is: JSON must not meet markup or wrapping."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """Writes one line of progress to standard error, if there is one: the caller may have closed it (`2>&-`)."""
    if sys.stderr is not None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def warn(text: str) -> None:
    """Writes one line that a person should not overlook."""
    say(f"{_marked('warning:', 'yellow')} {text}")


def fail(text: str, *, problems: Sequence[str] = (), hint: str = "") -> None:
    """Writes the reason for which a command ends without success, each problem a line, and what to do."""
    say(f"{_marked('error:', 'red')} {text}")
    for problem in problems[:MOST_PROBLEMS]:
        say(f"  {problem}")
    if len(problems) > MOST_PROBLEMS:
        say(f"  … and {len(problems) - MOST_PROBLEMS} more")
    if hint:
        say(hint)


def _marked(word: str, style: str) -> str:
    return word if sys.stderr is None else styled(word, style, stream=sys.stderr)
