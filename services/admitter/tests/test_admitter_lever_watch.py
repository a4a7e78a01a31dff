"""The admitter looks after what it stated of the lever."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from fairlead_admitter.apply.lever_probe import (
    CONFIRM_SECONDS,
    GLANCE_SECONDS,
    LOOK_SECONDS,
    REST_SECONDS,
    SILENT_SECONDS,
    LeverWatch,
    ObeyedLevers,
)
from fairlead_admitter.errors import FrontendBalkedError
from fairlead_contracts.messages.leave import Leave, LeverFound, LeverName
from fairlead_runtime.metrics import Metrics

AT = datetime(2026, 1, 1, tzinfo=UTC)
LEAVE = Leave(cluster="c1", at=AT, by="ann", lever="boost")


@dataclass
class OneLeverFrontend:
    """A frontend that obeys one lever, and what stands on NATS of it."""

    obeys: LeverName = "boost"
    stands: LeverFound | None = None
    stated: list[LeverFound] = field(default_factory=list)
    probes: int = 0
    glances: int = 0
    now: float = 0.0
    epoch: int | None = 1
    outages: int = 0
    dead: bool = False

    async def probe(self) -> ObeyedLevers:
        self.probes += 1
        self._answer()
        return ObeyedLevers(lever=self.obeys, evidence="it was tried")

    async def glance(self) -> LeverName | None:
        self.glances += 1
        self._answer()
        return self.obeys

    def _answer(self) -> None:
        if self.dead:
            raise FrontendBalkedError("the webhook: connection refused")

    async def state(self, found: LeverFound) -> None:
        self.stated.append(found)
        self.stands = found

    def watch(self) -> LeverWatch:
        return LeverWatch(
            self,
            leave=lambda: LEAVE,
            found=lambda: self.stands,
            state=self.state,
            lead=lambda: self.epoch,
            metrics=Metrics("admitter"),
            every=300.0,
            clock=lambda: self.now,
        )

    async def looks(self, watch: LeverWatch, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            await watch.look()
            self.now += LOOK_SECONDS


FOREIGN = LeverFound(cluster="c1", lever="priority", at=AT + timedelta(days=900), evidence="made up")


@pytest.mark.parametrize("foreign", [None, FOREIGN, msgspec.structs.replace(FOREIGN, lever="boost")])
async def test_what_it_stated_is_stated_again_over_what_somebody_else_wrote(
    foreign: LeverFound | None,
) -> None:
    scene = OneLeverFrontend()
    watch = scene.watch()
    await scene.looks(watch, CONFIRM_SECONDS + 2 * LOOK_SECONDS)
    [mine] = scene.stated
    asked = scene.probes
    scene.stands = foreign
    await scene.looks(watch, LOOK_SECONDS)
    assert (scene.stands, scene.stated, scene.probes) == (mine, [mine, mine], asked)
    await scene.looks(watch, 10 * LOOK_SECONDS)
    assert scene.stated == [mine, mine]


async def test_who_writes_without_end_makes_a_write_now_and_then_of_it() -> None:
    scene = OneLeverFrontend()
    watch = scene.watch()
    await scene.looks(watch, CONFIRM_SECONDS + 2 * LOOK_SECONDS)
    mine = scene.stated[-1]
    for number in range(30):
        scene.stands = msgspec.structs.replace(FOREIGN, evidence=str(number))
        await scene.looks(watch, LOOK_SECONDS)
    assert len(scene.stated) <= 2 + 30 * LOOK_SECONDS / REST_SECONDS
    await scene.looks(watch, 2 * REST_SECONDS)
    assert scene.stands == mine


async def test_over_what_a_predecessor_stated_the_frontend_is_asked() -> None:
    """The new leader does not know what its predecessor found; the frontend does."""
    scene = OneLeverFrontend(stands=LeverFound(cluster="c1", lever="boost", at=AT + timedelta(seconds=1)))
    watch = scene.watch()
    await scene.looks(watch, 5 * REST_SECONDS)
    assert (scene.stated, scene.probes) == ([], 1)
    scene.stands = FOREIGN
    await scene.looks(watch, CONFIRM_SECONDS + 2 * LOOK_SECONDS)
    [mine] = scene.stated
    assert mine.lever == "boost"
    assert mine == scene.stands


async def test_who_does_not_lead_puts_nothing_back() -> None:
    scene = OneLeverFrontend()
    watch = scene.watch()
    await scene.looks(watch, CONFIRM_SECONDS + 2 * LOOK_SECONDS)
    scene.epoch, scene.stands = None, FOREIGN
    await scene.looks(watch, 5 * REST_SECONDS)
    assert scene.stands == FOREIGN


async def test_a_change_is_noticed_by_a_glance_and_stated_once_a_probe_agrees() -> None:
    scene = OneLeverFrontend()
    watch = scene.watch()
    await scene.looks(watch, CONFIRM_SECONDS + 2 * LOOK_SECONDS)
    probes, scene.glances = scene.probes, 0
    await scene.looks(watch, 5 * GLANCE_SECONDS)
    assert (scene.probes, scene.glances) == (probes, 5), "a glance that shows nothing new costs no probe"
    scene.obeys, before = "priority", scene.now
    while scene.stated[-1].lever == "boost":
        await scene.looks(watch, LOOK_SECONDS)
    assert scene.now - before <= GLANCE_SECONDS + LOOK_SECONDS
    assert scene.probes == probes + 1


async def test_a_frontend_that_does_not_answer_is_told_until_it_answers() -> None:
    scene = OneLeverFrontend()
    watch = scene.watch()
    await scene.looks(watch, CONFIRM_SECONDS + 2 * LOOK_SECONDS)
    scene.dead = True
    await scene.looks(watch, SILENT_SECONDS)
    assert watch.why_silent() is None, "a restart is no silence"
    await scene.looks(watch, 3 * GLANCE_SECONDS)
    said = watch.why_silent()
    assert said is not None
    assert said.startswith("it has not answered for 1")
    assert said.endswith("the webhook: connection refused")
    scene.dead = False
    await scene.looks(watch, 2 * GLANCE_SECONDS)
    assert watch.why_silent() is None


async def test_a_question_that_stays_open_is_silence_too() -> None:
    scene = OneLeverFrontend()
    watch = scene.watch()
    await scene.looks(watch, CONFIRM_SECONDS + 2 * LOOK_SECONDS)
    asked, hung = asyncio.Event(), asyncio.Event()

    async def never() -> LeverName | None:
        asked.set()
        await hung.wait()
        return scene.obeys

    scene.glance = never  # type: ignore[method-assign] # a frontend that takes the question and hangs
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(scene.looks(watch, 2 * GLANCE_SECONDS))
        await asked.wait()
        scene.now += SILENT_SECONDS + 1
        assert watch.why_silent() == "it has not answered for 11 s"
        hung.set()
        await asking
    assert watch.why_silent() is None


async def test_who_does_not_lead_asks_nothing_and_says_nothing_of_silence() -> None:
    scene = OneLeverFrontend()
    watch = scene.watch()
    scene.dead = True
    await scene.looks(watch, 2 * SILENT_SECONDS)
    assert watch.why_silent() is not None
    scene.epoch = None
    await scene.looks(watch, LOOK_SECONDS)
    assert watch.why_silent() is None
