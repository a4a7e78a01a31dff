"""A result in the form that was asked for: words, JSON, YAML, or names alone."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from fairlead_cli.console import output, output_columns, write_line
from fairlead_cli.options import Format

if TYPE_CHECKING:
    from rich.console import RenderableType


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a command. Each form is made only when it is asked for."""

    document: Callable[[], object]
    """Plain values, for JSON and YAML."""
    view: Callable[[int], "RenderableType"]
    """Words and tables, for so many columns. A text is printed as it is."""
    names: Callable[[], Iterable[str]]
    """Names of what the result lists, as other commands take them."""


def print_result(result: Result, form: Format) -> None:
    """Print it on standard output."""
    match form:
        case "table" | "wide":
            view = result.view(output_columns(wide=form == "wide"))
            if isinstance(view, str):
                write_line(view)
            else:
                output(wide=form == "wide").print(view, crop=False)  # a command runs over
        case "name":
            print_names(result.names())
        case "json" | "yaml":
            write_line(as_text(result.document(), form))


def print_names(names: Iterable[str]) -> None:
    """Prints the names, one a line."""
    for name in names:
        write_line(name)


def print_stream(documents: Iterable[object], form: Format) -> None:
    """Documents one after the other: JSON lines, or YAML documents."""
    for document in documents:
        write_line(("---\n" if form == "yaml" else "") + as_text(document, form))


def as_text(document: object, form: Format) -> str:
    """Plain values as one JSON line, or as YAML."""
    if form != "yaml":
        return msgspec.json.encode(document).decode()
    from fairlead_contracts.base.yaml_text import write_yaml  # only who asks for it waits for it

    return write_yaml(document, columns=120).rstrip()
