"""The command line, put together: all of it, or of one command that alone.

Its help fills the terminal with each paragraph, however the docstrings are wrapped that they come from.
"""

import importlib
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING

from cyclopts import App, Group

from fairlead_cli.options import CHECK, RUN, STEER, TRY, USE

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

HELP = """Fair order for the waiting jobs of shared clusters.

Start here: `fairlead demo` shows it at work, `fairlead up` runs it on this machine.

Exit codes: 0 all went well; 1 refused or failed; 2 wrong usage or input; 3 nobody is there to answer; 4 a process of our own
could not be run (its port is taken, say), or a part of Fairlead is not installed; 130 ended by Ctrl-C.
"""
_GROUPS: dict[Group, dict[str, tuple[str, ...]]] = {
    RUN: {"instances": ("demo", "up", "feed"), "clusters": ("watchdog",)},
    USE: {"submitting": ("submit", "cancel"), "asking": ("queue", "tenants", "explain", "top")},
    TRY: {"ordering": ("order", "snapshot")},
    CHECK: {"clusters": ("doctor",)},
    STEER: {"operator_words": ("approve", "pause", "resume", "release")},
}
"""The commands of each module, under their own names."""
_FAMILIES = {"policy": "policies", "nats": "nats", "slurm": "slurm"}
"""Commands that have commands of their own."""


def application(words: Sequence[str] = ()) -> App:
    """The command line.

    Args:
        words: as typed. Where they begin with a command, it alone is there: to build all takes as long as to ask a
            question.

    Returns:
        What runs a line of words. It raises CycloptsError where they are no command; see `misuse`.
    """
    app = App(
        name="fairlead",
        help=HELP,
        help_format="plaintext",
        help_formatter=FlowingHelp(),
        print_error=False,
        exit_on_error=False,
        version=_version,
        usage="Usage: fairlead COMMAND",
        result_action=_carried_out,
    )
    typed = words[0] if words else ""
    commands = [
        (group, module, name)
        for group, modules in _GROUPS.items()
        for module, names in modules.items()
        for name in names
    ]
    known = {name for *_, name in commands} | set(_FAMILIES)
    wanted = {typed} if typed in known else known
    for group, module, name in commands:
        if name in wanted:
            app.command(_found(module, name), group=group)
    for name, module in _FAMILIES.items():
        if name in wanted:
            app.command(_found(module, name))
    return app


def _found(module: str, name: str) -> Callable[..., object] | App:
    found: object = getattr(importlib.import_module(f"fairlead_cli.commands.{module}"), name)
    if not isinstance(found, App) and not callable(found):
        raise TypeError(f"{name} of {module} is no command")
    return found


def _carried_out(answer: object) -> object:
    """The answer of a command: of one that talks to somebody, what it comes to once that is done."""
    if not isinstance(answer, Coroutine):
        return answer
    from fairlead_cli.client.connection import run  # only who talks to somebody waits for it

    return run(answer)


def _version() -> str:
    from importlib.metadata import version

    return version("fairlead-cli")


class FlowingHelp:
    """The command line's own help, its lines joined to paragraphs first. Only who asks for help waits for its parts."""

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        """Prints one panel of commands or parameters."""
        from cyclopts.help.formatters import DefaultFormatter

        for entry in panel.entries:
            _flow(entry.description)
        DefaultFormatter()(console, options, panel)

    def render_usage(self, console: "Console", options: "ConsoleOptions", usage: object) -> None:
        """Prints how the command is called."""
        from cyclopts.help.formatters import DefaultFormatter

        DefaultFormatter().render_usage(console, options, usage)

    def render_description(self, console: "Console", options: "ConsoleOptions", description: object) -> None:
        """Prints what a command does."""
        del options
        _flow(description)
        console.print(description)


def _flow(description: object) -> None:
    """Join the lines of each paragraph; one that is no plain text stays as it is."""
    from cyclopts.help import InlineText
    from rich.text import Text

    if isinstance(description, InlineText) and isinstance(description.primary_renderable, Text):
        paragraphs = description.primary_renderable.plain.split("\n\n")
        description.primary_renderable = Text("\n\n".join(" ".join(one.split()) for one in paragraphs))
