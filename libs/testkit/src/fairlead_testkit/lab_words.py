"""The words of the commands that start and end a lab: up, down and the like."""

import argparse
import sys
from collections.abc import Callable, Mapping

from fairlead_testkit.kubelab.errors import KubeLabError


def run_word(
    program: str, description: str | None, words: Mapping[str, Callable[[], int]], arguments: list[str] | None
) -> int:
    """Run one word; the exit code is the word's own, and 1 where it failed.

    Args:
        program: how the command is called.
        description: what it is for.
        words: what each of them does.
        arguments: those of the command line unless given.
    """
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("word", choices=[*words])
    word = words[parser.parse_args(arguments).word]
    try:
        return word()
    except KubeLabError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def say(text: str) -> None:
    """A result, on standard output."""
    sys.stdout.write(f"{text}\n")
