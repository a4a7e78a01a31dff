"""Slurm clusters that a command is pointed at."""

from pathlib import Path

import msgspec

from fairlead_cli.errors import ClusterError, InputError, unreadable
from fairlead_slurm.controller import CommandController
from fairlead_slurm.slurm_token import SlurmToken

INCLUDE = "include"


class SlurmTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A slurmctld: the name that Fairlead has for it, and its slurm.conf."""

    cluster: str
    conf: Path
    users: Path | None = None
    """File of lines `ACCOUNT USER`: as whom submissions run; unless given, as the user of the account's
    name."""


def controller(conf: Path | None, *, seconds: float, token: Path | None = None) -> CommandController:
    """Slurm's commands for a slurm.conf; for the one that they find themselves, if None.

    Args:
        seconds: the longest time of a command.
        token: a file with a token by which slurmctld knows us; by default munge says who asks.

    Raises:
        ClusterError: there is no such file. Slurm's commands would ask the DNS for another one, for long.
    """
    if conf is not None and not conf.is_file():
        raise ClusterError(
            f"{conf} is not a file", hint="--slurm-conf FILE or SLURM_CONF says where slurm.conf is."
        )
    return CommandController(conf, seconds=seconds, token=None if token is None else SlurmToken(token))


def target(conf: Path, users: Path | None = None) -> SlurmTarget:
    """The cluster of a slurm.conf.

    Raises:
        InputError: it cannot be read, or names no cluster.
    """
    if conf.is_dir():
        raise InputError(
            f"--slurm-conf: {conf} is a directory, and not a slurm.conf",
            hint="An empty variable names the directory that one stands in: is SLURM_CONF set?",
        )
    name = settings_of(conf).get("clustername")
    if not name:
        raise InputError(f"{conf} has no ClusterName", hint="Is it a slurm.conf?")
    return SlurmTarget(
        cluster=name,
        conf=conf.expanduser().absolute(),
        users=None if users is None else users.expanduser().absolute(),
    )


def settings_of(conf: Path) -> dict[str, str]:
    """The settings of a slurm.conf, by key; of several lines the last counts.

    Keys are spelled as slurm.conf(5) does, in small letters. Included files are not read.

    Raises:
        InputError: it cannot be read.
    """
    try:
        lines = conf.read_text(errors="replace").splitlines()
    except OSError as error:
        raise unreadable(conf, error) from error
    found = {}
    for line in lines:
        key, equals, value = line.partition("#")[0].partition("=")
        if equals or key.lower().split()[:1] == [INCLUDE]:
            found[key.strip().lower()] = value.strip()
    return found
