"""The Slurm lab that outlives the command which started it: `make lab-slurm`, `make lab-down`."""

import shutil
from pathlib import Path
from tempfile import gettempdir
from typing import Self

from fairlead_testkit.slurmlab.lab import SlurmLab
from fairlead_testkit.slurmlab.options import SlurmOptions
from fairlead_testkit.slurmlab.packages import ensure
from fairlead_testkit.supervised import Supervised, Supervision


class DetachedSlurmLab(Supervised, frozen=True, kw_only=True):
    """A lab that is up.

    Attributes:
        conf: its slurm.conf.
        logs: the folder of the logs.
        accounts: those that have no others below them.
        accounting: whether it has a database.
    """

    conf: str
    logs: str
    accounts: list[str]
    accounting: bool

    @classmethod
    def of(cls, lab: SlurmLab) -> Self:
        """What the supervisor, which calls this, writes down."""
        tree = lab.options.accounts
        return cls(
            conf=str(lab.conf),
            logs=str(lab.layout.logs),
            accounts=[account for account in tree if account not in tree.values()],
            accounting=lab.options.accounting,
            parts=lab.pids(),
        )


_SUPERVISION = Supervision("fairlead_testkit.slurmlab", DetachedSlurmLab)


def running() -> DetachedSlurmLab | None:
    """The lab that is up, or None."""
    return _SUPERVISION.running()


def up() -> tuple[DetachedSlurmLab, bool]:
    """Start the lab unless it is up; and whether it was up already.

    Raises:
        SlurmMissingError: a package is missing.
        KubeLabError: it did not start; carries the supervisor's log.
    """
    ensure(accounting=SlurmOptions().accounting)
    return _SUPERVISION.up()


def down() -> bool:
    """End the lab; whether there was one.

    Raises:
        NeverReadyError: something still runs.
    """
    return _SUPERVISION.down()


def serve() -> None:
    """Be the supervisor: start the lab, say so in the state file, and keep it until SIGTERM."""
    import getpass

    # Not below a home: plain users of the lab's Slurm have to reach its files, and munged insists on the same.
    data = Path(gettempdir()) / f"fairlead-slurmlab-{getpass.getuser()}"
    shutil.rmtree(data, ignore_errors=True)
    with SlurmLab(SlurmOptions(rest=SlurmOptions().accounting), directory=data) as lab:
        _SUPERVISION.keep(DetachedSlurmLab.of(lab))
