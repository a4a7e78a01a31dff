"""Errors as a person is told of them: plain words, a next step, no stack trace."""

import os
from collections.abc import Iterator, Mapping, Sequence

_PARTS = frozenset(
    {
        "aiohttp",
        "fairlead_kube",
        "fairlead_sim",
        "fairlead_slurm",
        "kubernetes_asyncio",
        "numpy",
    }
)
"""Modules that commands import and an extra brings; another one that is missing is a fault of ours, and shown
as one."""
_EXTRAS = {"doctor": "kube", "watchdog": "kube", "slurm": "slurm"}
"""Extras by command; all others that need more need what runs Fairlead on this machine (`local`)."""
_MEMBERS = {
    "kube": "libs/kube",
    "slurm": "libs/slurm",
    "local": "libs/{kube,runtime,sim,slurm} services/{admitter,scorer,slurm-bridge,watcher}",
}
"""Folders of a clone that an extra is made of: by their names alone pip would ask an index, which has none of them."""


class CommandError(Exception):
    """An expected failure. `hint` says what to do next; `exit_code` tells scripts."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class InputError(CommandError):
    """A file, a flag or a policy of the person's cannot be read. Each problem is one line."""

    exit_code = 2

    def __init__(self, message: str, *, problems: list[str] | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.problems = problems or []


def leaves[E: BaseException](group: BaseExceptionGroup[E]) -> Iterator[E]:
    """The errors themselves: those of tasks come in groups within groups."""
    for part in group.exceptions:
        if isinstance(part, BaseExceptionGroup):
            yield from leaves(part)
        else:
            yield part


def unreadable(path: object, error: OSError | UnicodeDecodeError) -> InputError:
    """The error of a file that the system does not give, or that is no text."""
    if isinstance(error, UnicodeDecodeError):
        from fairlead_contracts.base.places import not_utf8  # only who meets one waits for it

        return InputError(f"{path} cannot be read: {not_utf8(error)}")
    return InputError(f"{path} cannot be read: {error.strerror or error}")


def refuse_other_bytes(words: Sequence[str], environ: Mapping[str, str]) -> None:
    """Refuse what is no text, before it comes into a message: a terminal in another encoding than UTF-8 gives such words.

    Raises:
        InputError: an argument, or a variable of ours, is no text. The name of a file that is there may be of any bytes.
    """
    given = {f"argument {number}": word for number, word in enumerate(words, start=1)}
    given |= {name: value for name, value in environ.items() if name.startswith("FAIRLEAD_")}
    for place, text in given.items():
        if any("\udc80" <= letter <= "\udcff" for letter in text) and not os.path.lexists(text):
            found = os.fsencode(text).decode(errors="backslashreplace")
            # It may hold a password: then it is told by its place alone.
            shown = "" if place in environ or "@" in found else f" (found '{found}')"
            raise InputError(f"{place}: must be text in UTF-8{shown}")


class OvertakenError(InputError):
    """A file was made from a state that is in force no more; each problem is a line of what changed."""

    exit_code = 1


class UnreadPolicyError(InputError):
    """The policy that is stored is none that this release reads; each problem is a line."""

    exit_code = 1


class NoPolicyError(CommandError):
    """No policy was ever put in force."""

    def __init__(self) -> None:
        super().__init__("there is no policy yet", hint="Put one in force with `fairlead policy apply FILE`.")


class NotRunningError(CommandError):
    """No instance is known, or nobody is behind the address of the one that is."""

    exit_code = 3


class NoScorerAnswersError(NotRunningError):
    """NATS is there, but no scorer answers questions."""


class ClusterError(CommandError):
    """A Kubernetes cluster cannot be reached, or does not let us in."""

    exit_code = 3


class ProcessFailedError(CommandError):
    """A child process that cannot be run; the tail of its log tells why."""

    exit_code = 4


class PartMissingError(ProcessFailedError):
    """The command needs what an extra brings. It ends with 4, as without a nats-server: `doctor` and others use 1 to 3."""


def missing_part(command: str, error: ModuleNotFoundError) -> PartMissingError | None:
    """The error of a module that is not there; None where no extra brings it.

    Args:
        command: the command as typed, without what belongs to it.
    """
    if (error.name or "").partition(".")[0] not in _PARTS:
        return None
    extra = _EXTRAS.get(command, "local")
    return PartMissingError(
        f"`fairlead {command}` needs a part of Fairlead that is not installed, the extra {extra!r}: "
        f"in a clone of Fairlead `pip install {_MEMBERS[extra]} 'services/cli[{extra}]'` brings it; "
        "`make setup` makes a .venv with all of Fairlead"
    )
