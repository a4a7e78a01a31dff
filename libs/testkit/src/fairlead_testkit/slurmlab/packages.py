"""Debian's packages that the lab runs: whether they are there, and their installation in CI."""

import os
import shutil
import subprocess
from pathlib import Path

from fairlead_testkit.slurmlab.errors import SlurmMissingError

SMALL = {"munged": "munge", "slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "squeue": "slurm-wlm"}
"""Package by program, of a lab without accounting."""
FULL = SMALL | {"slurmdbd": "slurmdbd", "mariadbd": "mariadb-server", "slurmrestd": "slurmrestd"}
"""Of one with accounting and REST."""
_PLUGIN = "slurm-wlm-jwt-plugin"
"""Holds no program; slurmctld and slurmrestd read tokens by it."""
_PLUGIN_FILE = "*/slurm-wlm/auth_jwt.so"
_LIBRARIES = Path("/usr/lib")
_REGISTRY = "docker-registry"
"""Tests of images ask it; no part of a lab."""
_SYSTEM_FOLDERS = "/usr/sbin:/usr/bin:/sbin:/bin"
"""A user's PATH need not have the folders of daemons."""
_POLICY = Path("/usr/sbin/policy-rc.d")
"""Debian asks this script whether a package may start its service: 101 is no."""
_INSTALL_SECONDS = 600


def program(name: str) -> str:
    """Path of an installed program.

    Raises:
        SlurmMissingError: it is not installed.
    """
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_SYSTEM_FOLDERS}")
    if found is None:
        raise SlurmMissingError(_how_to_get({FULL[name]} if name in FULL else {name}))
    return found


def ensure(*, accounting: bool) -> None:
    """Return when all programs are there; in CI, as root, what is missing is installed by apt.

    Raises:
        SlurmMissingError: something is missing and may not, or could not, be installed.
    """
    missing = _missing(FULL if accounting else SMALL)
    if missing and os.environ.get("CI") == "true" and os.geteuid() == 0 and shutil.which("apt-get"):
        _install()
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


def _install() -> None:
    """All of them. No service starts by itself: the lab starts its own, and a second munged would be in its way."""
    denied = not _POLICY.exists()
    if denied:
        _POLICY.write_text("#!/bin/sh\nexit 101\n")
        _POLICY.chmod(0o755)
    try:
        _apt("update")
        _apt("install", "--yes", "--no-install-recommends", *sorted({*FULL.values(), _PLUGIN, _REGISTRY}))
    finally:
        if denied:
            _POLICY.unlink()


def _apt(*arguments: str) -> None:
    ran = subprocess.run(  # noqa: S603 # our own words
        ["apt-get", "-q", *arguments],  # noqa: S607 # found on the PATH by whoever asked
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_INSTALL_SECONDS,
        check=False,
    )
    if ran.returncode != 0:
        raise SlurmMissingError(f"apt-get {arguments[0]} failed:\n{ran.stderr[-2000:]}")
