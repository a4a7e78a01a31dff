"""The command line, put together: all of it, or of one command that alone."""

import importlib
from collections.abc import Callable, Sequence

from cyclopts import App, Group

from fairlead_cli.commands.help import FlowingHelp
from fairlead_cli.options import CHECK, RUN, STEER, TRY, USE

HELP = """Fair order for the waiting jobs of shared clusters.

Start here: `fairlead demo` shows it at work, `fairlead up` runs it on this machine.

Exit codes: 0 all went well; 1 refused or failed; 2 wrong usage or input; 3 nobody is there to answer; 4 a process of our own
could not be run (its port is taken, say), or a part of Fairlead is not installed; 130 ended by Ctrl-C.
"""
_GROUPS: dict[Group, dict[str, str]] = {
    RUN: {"demo": "running", "up": "running", "feed": "running", "watchdog": "guarding"},
    USE: {
        "submit": "submitting",
        "queue": "asking",
        "tenants": "asking",
        "explain": "asking",
        "top": "asking",
    },
    TRY: {"order": "ordering", "snapshot": "ordering"},
    CHECK: {"doctor": "checking"},
    STEER: {"approve": "steering", "pause": "steering", "resume": "steering", "release": "steering"},
}
"""Each command with the module that has it, under its own name."""
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
    )
    typed = words[0] if words else ""
    known = {name for commands in _GROUPS.values() for name in commands} | set(_FAMILIES)
    wanted = {typed} if typed in known else known
    for group, commands in _GROUPS.items():
        for name, module in commands.items():
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


def _version() -> str:
    from importlib.metadata import version

    return version("fairlead-cli")
