"""Tables of plain text for a terminal: columns as wide as they need, the last one wrapped, and names never cut.

A name that is too long for its column stands on a line of its own, the rest of its row under it: people copy names.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fairlead_cli.console import Screen, Style, cells, wrapped

GAP = "  "
_LEAST_REST = 24
"""Cells that the wrapped column keeps at least, where the terminal has so many."""
_LEAST_NAME = 8


class Column(NamedTuple):
    """A column of a table."""

    title: str
    right: bool = False
    """Whether its cells end under one another: numbers."""
    is_name: bool = False
    """Whether it holds names; one column does."""
    wraps: bool = False
    """Whether its cells are sentences; the last one may."""


class StyledText(NamedTuple):
    """A text and its style, such as `bold`; empty for none."""

    text: str
    style: str = ""


type Cell = str | StyledText | Sequence[StyledText]
"""The text of a cell; several pieces stand beside one another."""


def table_lines(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], screen: Screen) -> Iterator[str]:
    """The table, a line at a time."""
    whole = [[_pieces(cell) for cell in row] for row in rows]
    widths = _widths(columns, whole, screen.columns)
    titles = [(StyledText(column.title, "bold"),) for column in columns]
    yield from _row_lines(columns, titles, widths, screen.style)
    yield "─" * (sum(widths) + len(GAP) * (len(widths) - 1))
    for row in whole:
        yield from _row_lines(columns, row, widths, screen.style)


def _pieces(cell: Cell) -> Sequence[StyledText]:
    if isinstance(cell, str):
        return (StyledText(cell),)
    return (cell,) if isinstance(cell, StyledText) else cell


def _length(cell: Sequence[StyledText]) -> int:
    return sum(cells(piece.text) for piece in cell)


def _widths(
    columns: Sequence[Column], rows: Sequence[Sequence[Sequence[StyledText]]], width: int
) -> list[int]:
    """The width of each column: what its longest cell needs, less for sentences, then for names, where that is too much."""
    needed = [
        max([cells(column.title), *(_length(row[number]) for row in rows)])
        for number, column in enumerate(columns)
    ]
    over = sum(needed) + len(GAP) * (len(columns) - 1) - width
    for kind, least in (("wraps", _LEAST_REST), ("is_name", _LEAST_NAME)):
        for number, column in enumerate(columns):
            if over > 0 and getattr(column, kind):
                kept = max(min(least, needed[number]), needed[number] - over)
                over -= needed[number] - kept
                needed[number] = kept
    return needed


def _row_lines(
    columns: Sequence[Column], row: Sequence[Sequence[StyledText]], widths: Sequence[int], style: Style
) -> Iterator[str]:
    """The lines of a row: before it that of a name too long, under it the rest of its sentence."""
    last = len(columns) - 1
    parts = list(row)
    for number, column in enumerate(columns):
        if column.is_name and _length(parts[number]) > widths[number]:
            yield _line(columns[: number + 1], parts[: number + 1], widths, style)
            parts[: number + 1] = [()] * (number + 1)
    sentence: list[str] = []
    [first, *_] = parts[last] or [StyledText("")]
    if columns[last].wraps and _length(parts[last]) > widths[last]:
        first_line, *sentence = wrapped(first.text, widths[last]).splitlines()
        parts[last] = (StyledText(first_line, first.style),)
    yield _line(columns, parts, widths, style)
    indent = " " * (sum(widths[:last]) + len(GAP) * last)
    yield from (indent + _dressed((StyledText(more, first.style),), style) for more in sentence)


def _line(
    columns: Sequence[Column], parts: Sequence[Sequence[StyledText]], widths: Sequence[int], style: Style
) -> str:
    line = []
    for column, cell, width in zip(columns, parts, widths, strict=False):
        space = " " * max(0, width - _length(cell))
        dressed = _dressed(cell, style)
        line.append(space + dressed if column.right else dressed + space)
    return GAP.join(line).rstrip()


def _dressed(cell: Sequence[StyledText], style: Style) -> str:
    return "".join(style(piece.text, piece.style) if piece.style else piece.text for piece in cell)
