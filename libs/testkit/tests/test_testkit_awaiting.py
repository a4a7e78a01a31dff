"""Waiting in tests: how often a condition is asked, and what ends a wait for a process."""

from pathlib import Path
from typing import Self

import pytest

from fairlead_testkit.processes.own_process import OwnProcess, OwnProcessError
from fairlead_testkit.timing.awaiting import POLL_SECONDS, NeverHappenedError, pause_after


@pytest.mark.parametrize(
    ("cost", "waited", "pause"),
    [
        (0.0, 0.0, POLL_SECONDS),
        (0.001, 0.2, POLL_SECONDS),
        (0.03, 0.0, 0.18),
        (0.2, 0.0, 0.25),
        (2.0, 0.0, 2.0),
        (0.0, 4.0, 0.1),
        (0.02, 2.0, 0.17),
        (0.0, 60.0, 0.25),
    ],
)
def test_who_asks_leaves_the_processors_to_others_for_longer_than_asking_took_and_the_longer_it_waits(
    cost: float, waited: float, pause: float
) -> None:
    assert pause_after(cost, waited) == pytest.approx(pause)


class Awaited(OwnProcess):
    """A process that never answers."""

    def __init__(self, folder: Path, script: str) -> None:
        super().__init__("awaited", folder / "log")
        self._script = script

    def start(self) -> Self:
        self._begin(["/bin/sh", "-c", self._script])
        self._await(lambda: False, 0.5, "it answers")
        return self


def test_a_process_that_ends_while_it_is_awaited_is_told_at_once_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(OwnProcessError, match=r"exit code 3\):\nthe port is taken"):
        Awaited(tmp_path, "echo the port is taken; exit 3").start()


def test_a_process_that_never_answers_is_told_with_its_log_and_killed(tmp_path: Path) -> None:
    process = Awaited(tmp_path, "echo a moment; exec sleep 600")
    with pytest.raises(NeverHappenedError, match=r"it answers(.|\n)*a moment"):
        process.start()
    assert not process.running
