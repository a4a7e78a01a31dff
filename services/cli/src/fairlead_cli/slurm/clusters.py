"""Slurm clusters that a command is pointed at."""

from pathlib import Path

import msgspec

from fairlead_cli.errors import InputError

_KEY = "clustername"


class SlurmTarget(msgspec.Struct, frozen=True, kw_only=True):
    """One slurmctld: the name that Fairlead has for it, and its slurm.conf."""

    cluster: str
    conf: Path


def target(conf: Path) -> SlurmTarget:
    """The cluster of a slurm.conf.

    Raises:
        InputError: it cannot be read, or names no cluster.
    """
    try:
        lines = conf.read_text(errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"{conf} cannot be read: {error.strerror}") from error
    # Slurm's own reading: the last of several counts, and words are of either case.
    named = [value for key, value in (_setting(line) for line in lines) if key == _KEY and value]
    if not named:
        raise InputError(f"{conf} has no ClusterName", hint="Is it a slurm.conf?")
    return SlurmTarget(cluster=named[-1], conf=conf.expanduser().absolute())


def _setting(line: str) -> tuple[str, str]:
    key, _, value = line.partition("#")[0].partition("=")
    return key.strip().lower(), value.strip()
