"""Whether the frontend still obeys the lever that the leave to steer names.

The doctor finds the lever once. A frontend that is restarted with another configuration may obey another one from then
on, and tells nobody: levels would be written, and change nothing. So the leader asks again: when it begins to lead,
when leave is given, every few seconds, and soon after the frontend was away. In between it glances: one request that
may show that the answer has changed. It states its finding beside the leave, where all who write levels or answer
questions read it; `judge_withholding` of policy says what follows from it. A probe without an answer changes nothing.

The finding is the leader's own: where somebody overwrites it, deletes it or makes it unreadable, it is stated again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, InitVar, dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

import msgspec
import structlog

from fairlead_admitter.errors import AdmitterError
from fairlead_bus import BusError
from fairlead_contracts.messages.leave import Leave, LeverFound, LeverName
from fairlead_runtime.metrics import Metrics

LOOK_SECONDS = 1.0
CONFIRM_SECONDS = 2.0
"""Seconds until a new finding is probed once more: one probe is several requests, and a restart may fall between
them."""
GLANCE_SECONDS = 2.0
"""Seconds between two glances. Until one notices that the frontend obeys another lever, people hear that it follows."""
RETRY_SECONDS = 2.0
"""Seconds after a probe that nobody answered, as while the frontend restarts."""
REST_SECONDS = 3.0
"""Seconds at least between two probes for which outages alone are the reason."""
SILENT_SECONDS = 10.0
"""Seconds without an answer after which the frontend counts as silent: one that is restarted answers sooner."""
INEFFECTIVE_SECONDS = 30.0
"""Seconds at most between two probes while the frontend obeys another lever: levels shall be written soon after it
obeys ours."""


class ObeyedLevers(msgspec.Struct, frozen=True, kw_only=True):
    """The levers that a probe found obeyed."""

    lever: LeverName | None
    """The lever that is obeyed; None where the probe cannot tell."""
    evidence: str
    """The evidence for the finding, in words for people."""


class LeverProber(Protocol):
    """A prober of the lever that a frontend obeys."""

    @property
    def outages(self) -> int:
        """Number of times so far that the frontend did not answer: it may have been restarted."""

    async def probe(self) -> ObeyedLevers:
        """Find out by dry runs which lever the frontend obeys.

        Raises:
            AdmitterError: the frontend does not answer just now.
        """

    async def glance(self) -> LeverName | None:
        """The lever that one request hints at; None for no hint. Nothing is written.

        Raises:
            AdmitterError: the frontend does not answer just now.
        """


@dataclass(eq=False)
class LeverWatch:
    """Keeps what is stated of the lever up to date while this replica leads."""

    probing: LeverProber
    _: KW_ONLY
    leave: Callable[[], Leave | None]
    """The leave to steer the cluster; None where there is none, and nothing to ask."""
    found: Callable[[], LeverFound | None]
    """The finding that is stated now."""
    state: Callable[[LeverFound], Awaitable[object]]
    """States something else."""
    lead: Callable[[], int | None]
    """The epoch under which this replica leads, else None."""
    metrics: InitVar[Metrics]
    every: float
    """Seconds between two probes."""
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self, metrics: Metrics) -> None:
        self._lead_and_leave: tuple[int, Leave] | None = None
        self._due = self._glance_due = 0.0
        self._probed_at = -REST_SECONDS
        self._outages = 0
        self._unconfirmed: LeverName | None = None
        self._doubt = ""
        self._unanswered_since: float | None = None
        """Monotonic second of the first question without an answer; None where the last question was answered."""
        self._unanswered_why = ""
        self._stated: LeverFound | None = None
        """Our finding under this lead and leave; None until it is stated."""
        self._stated_by_others: LeverFound | None = None
        self._put_back_at = -REST_SECONDS
        self._probes = metrics.counter(
            "lever_probes", "Questions which lever the frontend obeys, by answer.", labels=["found"]
        )
        self._put_back = metrics.counter(
            "lever_put_back",
            "Times that what was found of the lever was stated again over what somebody else wrote.",
        )
        self._ineffective = metrics.gauge(
            "lever_ineffective", "1 while the frontend does not obey the lever that the leave names."
        )
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Ask the frontend, where it is time to."""
        epoch, leave = self.lead(), self.leave()
        self._ineffective.set(leave is not None and bool(leave.why_ineffective(self.found())))
        if epoch is None or leave is None:
            self._lead_and_leave = None
            self._note_answer()
            return
        now = self.clock()
        if self._lead_and_leave != (epoch, leave):
            self._lead_and_leave, self._unconfirmed, self._due = (epoch, leave), None, now
            self._stated, self._stated_by_others = None, self.found()
        if self._outages != self.probing.outages:
            self._outages = self.probing.outages
            self._due = min(self._due, max(now, self._probed_at + REST_SECONDS))
        await self._restate_overwritten(now)
        if now >= self._due:
            await self._probe_now(leave, now)
        elif now >= self._glance_due:
            self._glance_due = now + GLANCE_SECONDS
            await self._glance(leave, now)

    async def _probe_now(self, leave: Leave, now: float) -> None:
        self._probed_at = now
        self._due = now + await self._probe(leave)

    async def _glance(self, leave: Leave, now: float) -> None:
        """Glances. A hint of another lever counts as found once: the probe that follows is the second finding."""
        found = self.found()
        if found is None or self._stated not in (None, found):
            return
        silent_since = self._unanswered_since
        self._note_question(now)
        try:
            hint = await self.probing.glance()
        except AdmitterError as error:
            self._unanswered_why = str(error)
            return  # whoever writes meets the same, and counts it as an outage
        if hint is None:  # nothing was asked
            self._unanswered_since = silent_since
            return
        self._note_answer()
        if hint != found.lever:
            self._unconfirmed = hint
            await self._probe_now(leave, now)

    async def _restate_overwritten(self, now: float) -> None:
        """States our finding again where somebody wrote over it; where we have none yet, has the frontend probed."""
        found = self.found()
        if self._stated is None:
            if found != self._stated_by_others:
                self._stated_by_others = found
                self._due = min(self._due, max(now, self._probed_at + REST_SECONDS))
        elif found != self._stated and now >= self._put_back_at + REST_SECONDS:
            self._put_back_at = now
            self._put_back.inc()
            self._log.warning("lever overwritten", by=found and found.lever, lever=self._stated.lever)
            await self._publish(self._stated)

    def told(self) -> str | None:
        """The lever and how sure it is, for people; None where nothing is steered."""
        leave = self.leave()
        if leave is None:
            return None
        found = self.found()
        said: list[str] = [leave.lever]
        if found is not None and found.lever != leave.lever:
            said.append(f"the cluster obeys {found.lever} (seen {found.at:%Y-%m-%d %H:%M} UTC)")
        if self._doubt:
            said.append(f"at the last look nobody could tell: {self._doubt}")
        return "; ".join(said)

    def why_silent(self) -> str | None:
        """The frontend's long silence, for which nothing can be written to it, in words; None where it answers."""
        since = self._unanswered_since
        if since is None or (age := self.clock() - since) <= SILENT_SECONDS:
            return None
        why = f": {self._unanswered_why}" if self._unanswered_why else ""
        return f"it has not answered for {age:.0f} s{why}"

    def _note_question(self, now: float) -> None:
        if self._unanswered_since is None:
            self._unanswered_since = now

    def _note_answer(self) -> None:
        self._unanswered_since, self._unanswered_why = None, ""

    async def _probe(self, leave: Leave) -> float:
        """Probes the frontend; returns for how many seconds not to probe again."""
        self._note_question(self.clock())
        try:
            obeyed = await self.probing.probe()
        except AdmitterError as error:
            self._probes.labels("unanswered").inc()
            self._doubt = self._unanswered_why = str(error)
            return RETRY_SECONDS
        self._note_answer()
        self._probes.labels(obeyed.lever or "unknown").inc()
        if obeyed.lever is None:
            self._unconfirmed, self._doubt = None, obeyed.evidence
            return self.every
        self._doubt = ""
        if not self._is_news(obeyed.lever, leave):
            self._unconfirmed = None
        elif self._unconfirmed != obeyed.lever:
            self._unconfirmed = obeyed.lever
            return CONFIRM_SECONDS
        else:
            self._unconfirmed = None
            await self._state_found(obeyed.lever, obeyed.evidence, leave)
        if leave.lever != obeyed.lever:
            return min(self.every, INEFFECTIVE_SECONDS)
        return self.every

    def _is_news(self, lever: LeverName, leave: Leave) -> bool:
        found = self.found()
        if found is None or found.lever != lever:
            return True
        return found.at <= leave.at and lever != leave.lever

    async def _state_found(self, lever: LeverName, evidence: str, leave: Leave) -> None:
        # After the leave that it was found under, whatever the clock of whoever gave it says.
        at = max(datetime.now(UTC), leave.at + timedelta(microseconds=1))
        found = LeverFound(cluster=leave.cluster, lever=lever, at=at, evidence=evidence)
        say = self._log.info if lever == leave.lever else self._log.warning
        say("lever found", lever=lever, leave=leave.lever, evidence=evidence)
        self._stated = found
        await self._publish(found)

    async def _publish(self, found: LeverFound) -> None:
        try:
            await self.state(found)
        except BusError as error:
            self._log.warning("lever not stated", lever=found.lever, why=str(error))
