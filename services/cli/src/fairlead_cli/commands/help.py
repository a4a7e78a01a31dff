"""Help whose paragraphs fill the terminal, however the docstrings are wrapped that they come from."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions


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
