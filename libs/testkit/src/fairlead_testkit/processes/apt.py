"""Debian's packages that tests run: installed in CI, where nobody else does it."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

_POLICY = Path("/usr/sbin/policy-rc.d")
"""Path of the script that Debian asks whether a package may start its service: exit code 101 is no."""
_INSTALL_SECONDS = 600


class AptError(Exception):
    """A package could not be installed."""


def may_install() -> bool:
    """Whether this is CI, as root, on a Debian."""
    return os.environ.get("CI") == "true" and os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(packages: Iterable[str]) -> None:
    """Install them, by one of the workers at a time; none of their services starts.

    Raises:
        AptError: apt-get failed.
    """
    with (Path(tempfile.gettempdir()) / "fairlead-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with _no_service_starts():
            _apt("update")
            _apt("install", "--yes", "--no-install-recommends", *sorted(packages))


def ensure_program(program: str, package: str) -> None:
    """Return where the program is there. In CI it is installed; elsewhere the test is skipped, with the remedy."""
    if shutil.which(program) is None and may_install():
        install([package])
    if shutil.which(program) is None:
        go_without(f"{program} is not installed: apt-get install --no-install-recommends {package}")


def go_without(remedy: str) -> NoReturn:
    """Skip the test for what is missing here, with the remedy; in CI, where nothing may be missing, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(remedy, pytrace=False)
    pytest.skip(remedy)


@contextmanager
def _no_service_starts() -> Iterator[None]:
    """Keeps packages from starting services: tests start their own, and a second munged would be in their way."""
    denied = not _POLICY.exists()
    if denied:
        _POLICY.write_text("#!/bin/sh\nexit 101\n")
        _POLICY.chmod(0o755)
    try:
        yield
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
        raise AptError(f"apt-get {arguments[0]} failed:\n{ran.stderr[-2000:]}")
