"""The Slurm lab that outlives the command which started it: `make lab-slurm`, `make lab-down`."""

import contextlib
import getpass
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir

from fairlead_testkit.labs.supervised import Supervised, Supervision
from fairlead_testkit.slurmlab.lab import SlurmLab
from fairlead_testkit.slurmlab.options import TREE, SlurmOptions
from fairlead_testkit.slurmlab.packages import ensure


class DetachedSlurmLab(Supervised, frozen=True, kw_only=True):
    """A lab that is up.

    Attributes:
        accounts: accounts that have no others below them.
        accounting: whether it has a database.
    """

    conf: str
    logs: str
    accounts: list[str]
    accounting: bool


class SlurmLabSupervision(Supervision[DetachedSlurmLab]):
    """The Slurm lab."""

    module = "fairlead_testkit.slurmlab"
    kind = DetachedSlurmLab
    name = "Slurm lab"

    def prepare(self) -> None:
        """See that Slurm's packages are installed."""
        ensure(accounting=SlurmOptions().accounting)

    @contextlib.contextmanager
    def lab(self) -> Iterator[DetachedSlurmLab]:
        """Run the lab. Not below a home: plain users of its Slurm have to reach its files, and munged insists on the same."""
        data = Path(gettempdir()) / f"fairlead-slurmlab-{getpass.getuser()}"
        shutil.rmtree(data, ignore_errors=True)
        with SlurmLab(SlurmOptions(rest=SlurmOptions().accounting), directory=data) as lab:
            yield DetachedSlurmLab(
                conf=str(lab.conf),
                logs=str(lab.layout.logs),
                accounts=[account for account in TREE if account not in TREE.values()],
                accounting=lab.options.accounting,
                parts=lab.pids(),
            )

    def described(self, found: DetachedSlurmLab) -> str:
        """Tells where the lab is, and what to do with it."""
        parts = ", ".join(f"{name} {pid}" for name, pid in found.parts.items())
        accounting = (
            "MariaDB and slurmdbd"
            if found.accounting
            else "none: that needs root; accounts are whatever a job says, and only your own jobs run"
        )
        example = found.accounts[0]
        return f"""\
  processes    {parts}
  logs         {found.logs}
  nodes        n1 to n4 with 16 CPUs, 64 GB and 8 GPUs each, all of them on this machine; partition `gpu`
  accounts     {", ".join(found.accounts)}
  accounting   {accounting}

Use it:
  export SLURM_CONF={found.conf}
  sbatch --account={example} --gres=gpu:2 --output=/dev/null --wrap='sleep 60'
  squeue --sort=-p

Order it fairly:
  fairlead up --slurm-conf $SLURM_CONF

End it: make lab-down"""
