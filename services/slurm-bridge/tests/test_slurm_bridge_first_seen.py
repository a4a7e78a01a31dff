"""First instants of jobs: kept over requeues, told of jobs that are gone, and not taken for those of another job."""

import msgspec
import pytest

from fairlead_contracts.base.instants import SECOND
from fairlead_slurm_bridge.statements.first_seen import FirstSeen
from fairlead_testkit.inputs.slurm_builders import NOON, a_slurm_job

ONE, TWO = (a_slurm_job(number, submitted=NOON) for number in ("1", "2"))


def test_an_ended_job_has_the_instant_by_which_it_was_known() -> None:
    seen = FirstSeen()
    seen.take([ONE, TWO])
    instants = [seen.since(one) for one in (ONE, TWO)]
    assert len(set(instants)) == 2, "of one second, each has its own instant"
    assert [seen.since_of_ended(one) for one in (ONE, TWO)] == instants
    seen.take([])
    assert [seen.since_of_ended(one) for one in (ONE, TWO)] == instants
    requeued = msgspec.structs.replace(TWO, submitted=NOON + 60 * SECOND)
    assert seen.since_of_ended(requeued) == instants[1], "only the submit time moved"


def test_a_job_has_not_the_instant_of_a_later_one_that_was_given_its_number() -> None:
    seen = FirstSeen()
    seen.take([msgspec.structs.replace(ONE, submitted=NOON + 9 * SECOND)])
    assert seen.since_of_ended(ONE) == NOON


def test_of_the_jobs_that_are_gone_the_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead_slurm_bridge.statements.first_seen._MOST_GONE", 1)
    seen = FirstSeen()
    seen.adopt({"1": NOON + 5, "2": NOON + 6})
    seen.take([TWO])
    seen.take([])
    assert [seen.since_of_ended(one) for one in (ONE, TWO)] == [NOON, NOON + 6]
