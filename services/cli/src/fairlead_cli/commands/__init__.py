"""The words that a person types. Nothing heavy is imported here: each command imports what it runs."""

from fairlead_cli.commands.application import application

__all__ = ["application"]
