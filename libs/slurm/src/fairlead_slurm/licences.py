"""Licences that accounting hands out (Slurm calls them remote): their number can be changed while Slurm runs."""

import re
from pathlib import Path

import msgspec

from fairlead_slurm.cluster import Licence, licences
from fairlead_slurm.commands import Commands
from fairlead_slurm.slurm_token import SlurmToken

_NAME = re.compile(r"([\w.-]{1,64})@([\w.-]{1,64})", re.ASCII)


class LicenceName(msgspec.Struct, frozen=True):
    """A name as jobs ask for it: `NAME@SERVER`.

    Raises:
        ValueError: the text is no name that Slurm would take.
    """

    name: str
    server: str

    @classmethod
    def read(cls, text: str) -> "LicenceName":
        """The name in a setting."""
        found = _NAME.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no licence of accounting's, as NAME@SERVER")
        return cls(found[1], found[2])

    def __str__(self) -> str:
        return f"{self.name}@{self.server}"


class AccountedLicence:
    """A licence of accounting's, read and changed by Slurm's commands.

    Args:
        conf: slurm.conf; by default where Slurm's commands look.
        seconds: longest time of one command.
        token: names us to slurmctld; by default munge does.
    """

    def __init__(
        self, conf: Path | None, name: LicenceName, *, seconds: float = 20.0, token: SlurmToken | None = None
    ) -> None:
        self._commands = Commands(conf, seconds=seconds, token=token)
        self._name = name

    async def now(self) -> Licence | None:
        """The licence as slurmctld has it; None where it has none of that name.

        Raises:
            SlurmError: slurmctld does not answer.
        """
        shown = await self._commands.output("scontrol", "--oneliner", "show", "licenses")
        return next((one for one in licences(shown) if one.name == str(self._name)), None)

    async def set_total(self, count: int) -> None:
        """Set the number of licences there are. Jobs that hold some keep them, also where that is more.

        Raises:
            SlurmError: slurmdbd does not answer, or refuses it.
        """
        which = (f"name={self._name.name}", f"server={self._name.server}")
        words = ("--immediate", "modify", "resource", "where", *which, "set", f"count={count:d}")
        await self._commands.output("sacctmgr", *words)
