"""The Slurm lab as pytest fixtures; part of the plugin.

Where Slurm is not installed, tests with the marker `slurm` are skipped with a line that says how to get it; where
CI=true is set it is installed before the first of them, and they fail where that cannot be.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from fairlead_testkit.processes.apt import go_without

if TYPE_CHECKING:
    from fairlead_testkit.slurmlab import SlurmLab, SlurmOptions

type SlurmLabFactory = "Callable[[SlurmOptions], SlurmLab]"
"""Starts a lab of its own for one test; all of them end with the test."""


@pytest.fixture(scope="session")
def slurm_programs() -> None:
    """Sees that Slurm's programs are installed, with a database where this is root; skips the test where they are not."""
    from fairlead_testkit.slurmlab import SlurmMissingError, SlurmOptions
    from fairlead_testkit.slurmlab.packages import ensure

    try:
        ensure(accounting=SlurmOptions().accounting)
    except SlurmMissingError as error:
        go_without(str(error))


@pytest.fixture(scope="session")
def shared_slurm_lab(slurm_programs: None) -> "Iterator[SlurmLab]":
    """The lab that all tests of a session share; take `slurm_lab` instead."""
    del slurm_programs
    from fairlead_testkit.slurmlab import SlurmLab

    with SlurmLab() as lab:
        yield lab


@pytest.fixture
def slurm_lab(shared_slurm_lab: "SlurmLab") -> "Iterator[SlurmLab]":
    """The session's lab, without jobs. Who restarts, pauses or reconfigures a part takes `slurm_labs` instead."""
    shared_slurm_lab.clear()
    yield shared_slurm_lab
    shared_slurm_lab.clear()


@pytest.fixture
def slurm_labs(slurm_programs: None) -> "Iterator[SlurmLabFactory]":
    """Starts labs of this test alone, with options."""
    del slurm_programs
    from fairlead_testkit.slurmlab import SlurmLab

    with contextlib.ExitStack() as stack:
        yield lambda options: stack.enter_context(SlurmLab(options))
