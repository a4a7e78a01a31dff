"""Runs of Slurm's programs, where there is no Slurm."""

import time
from pathlib import Path

import pytest

from fairlead_slurm.controller import CommandController
from fairlead_slurm.errors import ConfigurationMissingError


async def test_a_slurm_conf_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    began = time.process_time()
    with pytest.raises(ConfigurationMissingError, match=r"no slurm\.conf at .*gone\.conf"):
        await CommandController(tmp_path / "gone.conf").settings()
    assert time.process_time() - began < 1


async def test_the_one_of_the_environment_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", "/nowhere/slurm.conf")
    with pytest.raises(ConfigurationMissingError, match=r"/nowhere/slurm\.conf"):
        await CommandController().jobs()
