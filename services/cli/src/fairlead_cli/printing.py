"""A result in the form that was asked for: words, JSON, YAML, or names alone."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from fairlead_cli.console import Screen, output, output_columns, say, styled, write_line
from fairlead_cli.options import Format
from fairlead_contracts.base.errors import printable

if TYPE_CHECKING:
    from rich.console import RenderableType


def is_for_people(form: Format) -> bool:
    """Whether words are asked for."""
    return form in ("table", "wide")


def print_answer(
    answer: msgspec.Struct, form: Format, *, view: Callable[[Screen], "RenderableType"], names: Iterable[str]
) -> None:
    """Print an answer on standard output.

    Args:
        answer: all of it, for programs.
        view: makes words and tables for a terminal or a file, where people asked. A text is printed as it is.
        names: names of what it lists, as other commands take them.
    """
    if not is_for_people(form):
        print_outcome(answer, names, form)
        return
    shown = view(Screen(output_columns(wide=form == "wide"), styled))
    if isinstance(shown, str):
        write_line(shown)
    else:
        output(wide=form == "wide").print(shown, crop=False)  # a command runs over


def print_outcome(found: msgspec.Struct, names: Iterable[str], form: Format) -> None:
    """Print what a command came to for programs; people have read it already."""
    if form == "name":
        print_names(names)
    elif not is_for_people(form):
        from fairlead_cli.published import published  # only who asks for it waits for it

        write_line(as_text(published(found), form))


def print_sentence(text: str, form: Format) -> None:
    """Print a sentence on what a command did: on standard output for people, else on standard error beside the document."""
    (write_line if is_for_people(form) else say)(text)


def print_names(names: Iterable[str]) -> None:
    """Prints the names, one a line.

    A name is what somebody submitted: one with a line break stays one line, and none of them drives a terminal.
    """
    for name in names:
        write_line(printable(name))


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
