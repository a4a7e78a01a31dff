"""Debian's packages that the lab runs: whether they are there, and their installation in CI."""

import os
import shutil
from pathlib import Path

from fairlead_testkit.processes import apt
from fairlead_testkit.slurmlab.errors import SlurmMissingError

SMALL = {"munged": "munge", "slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "squeue": "slurm-wlm"}
"""Package by program, of a lab without accounting."""
FULL = SMALL | {"slurmdbd": "slurmdbd", "mariadbd": "mariadb-server", "slurmrestd": "slurmrestd"}
"""Programs of a lab with accounting and REST, and the packages that they are in."""
_PLUGIN = "slurm-wlm-jwt-plugin"
"""Package that holds no program; slurmctld and slurmrestd read tokens by it."""
_PLUGIN_FILE = "*/slurm-wlm/auth_jwt.so"
_LIBRARIES = Path("/usr/lib")
_SYSTEM_FOLDERS = "/usr/sbin:/usr/bin:/sbin:/bin"
"""A user's PATH need not have the folders of daemons."""


def program(name: str) -> str:
    """Path of an installed program.

    Raises:
        SlurmMissingError: the program is not installed.
    """
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_SYSTEM_FOLDERS}")
    if found is None:
        raise SlurmMissingError(_how_to_get({FULL[name]} if name in FULL else {name}))
    return found


def ensure(*, accounting: bool) -> None:
    """Return when all programs are there; in CI, as root, what is missing is installed by apt.

    Raises:
        SlurmMissingError: some package is missing and may not, or could not, be installed.
    """
    missing = _missing(FULL if accounting else SMALL)
    if missing and apt.may_install():
        try:
            apt.install({*FULL.values(), _PLUGIN})
        except apt.AptError as error:
            raise SlurmMissingError(str(error)) from error
        missing = _missing(FULL if accounting else SMALL)
    if missing:
        raise SlurmMissingError(_how_to_get(missing))


def _missing(programs: dict[str, str]) -> set[str]:
    searched = f"{os.environ.get('PATH', '')}:{_SYSTEM_FOLDERS}"
    missing = {package for name, package in programs.items() if shutil.which(name, path=searched) is None}
    # A part of its plugins is in the packages of the daemons, and a lab without the rest dies at its start.
    if programs == FULL and not any(_LIBRARIES.glob(_PLUGIN_FILE)):
        missing.add(_PLUGIN)
    return missing


def _how_to_get(packages: set[str]) -> str:
    wanted = " ".join(sorted(packages))
    return f"the Slurm lab needs Debian's packages: apt-get install --no-install-recommends {wanted}"
