"""Errors of somebody who typed a command wrongly: like every other, one line, and one on what to do."""

import inspect
import shlex

from cyclopts import CoercionError, CycloptsError, MissingArgumentError, UnusedCliTokensError

from fairlead_cli.errors import InputError

_KINDS = {int: "a whole number", float: "a number"}
"""Values that a flag takes, in words by type: the command line's own words are Python's."""


def misused(error: CycloptsError) -> InputError:
    """The error in words, with the help that shows what the command takes."""
    typed = " ".join(("fairlead", *(error.command_chain or ())))
    return InputError(_what_is_wrong(error, typed), hint=f"`{typed} --help` shows what it takes.")


def _what_is_wrong(error: CycloptsError, typed: str) -> str:
    match error:
        case UnusedCliTokensError(unused_tokens=[*words]):
            return f"`{typed}` does not take {shlex.join(words)}.{_meant(error, words)}"
        case MissingArgumentError(argument=argument, keyword=flag) if argument and not argument.tokens:
            return f"{flag} needs a value" if flag else f"`{typed}` needs {argument.name}"
        case CoercionError(msg=None, argument=argument, token=token, target_type=kind) if (
            argument and token and kind in _KINDS
        ):
            return f"{token.keyword or argument.name} must be {_KINDS[kind]}, not {token.value!r}"
        case _:
            return str(error)


def _meant(error: CycloptsError, words: list[str]) -> str:
    """The hint for whoever names a pool by itself, as `pause gpu` takes it, where the command takes a flag."""
    pool = None if error.target is None else inspect.signature(error.target).parameters.get("pool")
    if pool is None or pool.kind is not pool.KEYWORD_ONLY or len(words) != 1:
        return ""
    return f" Did you mean --pool {shlex.quote(words[0])}?"
