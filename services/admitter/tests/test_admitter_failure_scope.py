"""Failures in one scope keep no other from its levels, whoever fails and why; what fails everywhere backs off."""

from collections.abc import Collection, Sequence

import pytest

from fairlead_admitter.apply.frontend_backoff import FrontendBackoff, weigh
from fairlead_admitter.apply.level_applier import LevelApplier, WriteResult
from fairlead_admitter.decide.outcome import PlanOutcome
from fairlead_admitter.decide.steering import LevelWrite
from fairlead_admitter.errors import FrontendBalkedError, FrontendForbiddenHereError
from fairlead_admitter.observe.expectations import Expectations, WriteConfirmation
from fairlead_admitter.observe.job_backoff import LONGEST_SECONDS
from fairlead_contracts.messages.state import JobState
from fairlead_testkit.inputs.builders import a_job

PASS_SECONDS = 0.05

type Failure = type[FrontendBalkedError | FrontendForbiddenHereError]


class FailingFrontend:
    """Fails for some scopes and some jobs."""

    keeps_order = False

    def __init__(self, failing: Failure, bad: Collection[str]) -> None:
        self._failing = failing
        self.bad = set(bad)
        self.asked: list[str] = []

    async def write(self, batch: Sequence[LevelWrite]) -> Sequence[WriteResult]:
        [write] = batch
        assert write.level
        self.asked.append(write.job.uid)
        if {write.job.scope, write.job.uid} & self.bad:
            return [self._failing(f"no right to patch in {write.job.scope}")]
        return [WriteConfirmation(mark="m")]


class SteeringPasses:
    """Passes over jobs that all shall be raised, the first to the front; around what rests.

    Those `behind` are queued, too, and right where they stand.
    """

    def __init__(
        self, frontend: FailingFrontend, jobs: list[JobState], behind: Collection[JobState] = ()
    ) -> None:
        self.now = 0.0
        self.left = jobs
        self._queued = [*jobs, *behind]
        self.expectations = Expectations(lambda: self.now)
        self.frontend_backoff = FrontendBackoff(lambda: self.now, stale_after=10.0)
        self._frontend = frontend

    async def a_pass(self) -> PlanOutcome:
        plan = [
            LevelWrite(
                job=job,
                before=0,
                level=1000 - rank,
                rank=rank,
                position=None,
                tie=(job.queue_time, job.uid),
            )
            for rank, job in enumerate(self.left)
            if not self.expectations.leaves_alone(job)
        ]
        application = LevelApplier(
            self._frontend,
            self.expectations,
            lambda _: None,
            queues=dict,
            in_flight=16,
            at_once=256,
            longest=9.0,
        )
        applied = await application.carry_out("p", plan, lambda: True)
        weigh(applied, self._queued, backoff=self.expectations.backoff, frontend=self.frontend_backoff)
        landed = {write.job.uid for write, _ in applied.landed}
        self.left = [job for job in self.left if job.uid not in landed]
        self.now += PASS_SECONDS + self.frontend_backoff.seconds_left
        return applied

    async def passes(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            await self.a_pass()


def jobs(scope: str, count: int) -> list[JobState]:
    return [a_job(f"{scope}{number}", uid=f"{scope}{number:03}", scope=scope) for number in range(count)]


@pytest.mark.parametrize("failing", [FrontendBalkedError, FrontendForbiddenHereError])
@pytest.mark.parametrize("bad_scopes", [1, 2, 12])
async def test_scopes_that_fail_in_front_keep_no_other_from_its_levels(
    failing: Failure, bad_scopes: int
) -> None:
    bad = [f"a{number:02}" for number in range(bad_scopes)]
    steering = SteeringPasses(
        FailingFrontend(failing, bad), [*(job for scope in bad for job in jobs(scope, 5)), *jobs("b", 100)]
    )
    await steering.passes(20.0)
    assert {job.scope for job in steering.left} == set(bad)
    assert steering.frontend_backoff.trouble() is None
    for scope in bad:
        assert f"no right to patch in {scope}" in (steering.expectations.backoff.told() or "")


async def test_one_job_that_a_policy_dislikes_keeps_no_other_of_its_scope() -> None:
    steering = SteeringPasses(FailingFrontend(FrontendForbiddenHereError, ["a000"]), jobs("a", 50))
    await steering.passes(1.0)
    assert [job.uid for job in steering.left] == ["a000"]


@pytest.mark.parametrize("scopes", ["a", "abc"])
async def test_a_frontend_that_forbids_everybody_is_left_alone_and_its_missing_right_is_said(
    scopes: str,
) -> None:
    frontend = FailingFrontend(FrontendForbiddenHereError, scopes)
    steering = SteeringPasses(frontend, [job for scope in scopes for job in jobs(scope, 40)])
    await steering.passes(60.0)
    assert "no right" in (steering.frontend_backoff.trouble() or "")
    asked = len(frontend.asked)
    await steering.passes(LONGEST_SECONDS)
    assert len(frontend.asked) - asked <= 2 * 16
    # The right is given, or the API server has come up.
    frontend.bad.clear()
    await steering.passes(2 * LONGEST_SECONDS)
    assert not steering.left
    assert steering.frontend_backoff.trouble() is None


async def test_a_missing_right_is_said_although_the_queues_end_is_never_tried() -> None:
    frontend = FailingFrontend(FrontendForbiddenHereError, "abc")
    front = [job for scope in "abc" for job in jobs(scope, 9)]
    steering = SteeringPasses(frontend, front, behind=jobs("z", 1))
    await steering.passes(LONGEST_SECONDS)
    assert "no right" in (steering.frontend_backoff.trouble() or "")
    asked = len(frontend.asked)
    await steering.passes(LONGEST_SECONDS)
    assert len(frontend.asked) - asked <= 3 * 16, "each scope backs off by itself"


async def test_scopes_that_fail_for_long_are_no_trouble_of_those_that_go_well() -> None:
    frontend = FailingFrontend(FrontendForbiddenHereError, "ab")
    steering = SteeringPasses(frontend, [*jobs("a", 3), *jobs("b", 3), *jobs("c", 3)])
    for _ in range(200):
        await steering.a_pass()
        steering.now += 1.0
        if not any(job.scope == "c" for job in steering.left):
            break
    for _ in range(200):
        await steering.a_pass()
        assert steering.frontend_backoff.trouble() is None
        assert not steering.frontend_backoff.seconds_left
        steering.now += 1.0
