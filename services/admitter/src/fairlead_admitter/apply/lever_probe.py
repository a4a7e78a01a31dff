"""Whether the frontend still obeys the lever that the leave to steer names.

The doctor finds the lever once. A frontend that is restarted with another configuration may obey another one from then
on, and tells nobody: levels would be written, and change nothing. So the leader asks again: when it begins to lead, when
leave is given, every few seconds, and soon after the frontend was away. In between it glances: one request that may show
that the answer would be another one now. What it finds it states beside the leave, where
everybody who writes or answers reads it; what follows from it is judged in policy. Finding no answer changes nothing.

What stands there is the leader's own: what somebody else writes over it, deletes or makes unreadable is stated again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
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
"""What is found must be found twice: one probe is several requests, and a restart may fall between them."""
GLANCE_SECONDS = 2.0
"""Between two glances. Until it is noticed that the frontend obeys another lever, people are told that it follows."""
RETRY_SECONDS = 2.0
"""After a probe that nobody answered, as while the frontend restarts."""
REST_SECONDS = 3.0
"""Between two probes where outages alone are the reason to ask."""
SILENT_SECONDS = 10.0
"""After which a frontend that does not answer counts as silent: one that is restarted answers again within seconds."""
INEFFECTIVE_SECONDS = 30.0
"""Between two probes while levels are withheld: they shall be written soon after the frontend reads them again."""


class Obeyed(msgspec.Struct, frozen=True, kw_only=True):
    """The levers that a probe found obeyed."""

    lever: LeverName | None
    """None where it cannot tell."""
    evidence: str
    """For people."""


class LeverProber(Protocol):
    """Asks a frontend which lever it obeys."""

    @property
    def outages(self) -> int:
        """How often the frontend did not answer so far: it may have been restarted."""

    async def probe(self) -> Obeyed:
        """Ask it. Nothing is written.

        Raises:
            AdmitterError: nobody answers just now.
        """

    async def glance(self) -> LeverName | None:
        """The lever that one request hints at; None for no hint. Nothing is written.

        Raises:
            AdmitterError: nobody answers just now.
        """


class LeverWatch:
    """Keeps what is stated of the lever up to date while this replica leads.

    Args:
        probing: asks the frontend.
        leave: the leave to steer the cluster; None where there is none, and nothing to ask.
        found: what is stated now.
        state: states something else.
        lead: the epoch under which this replica leads, else None.
        metrics: of the process.
        every: seconds between two probes.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        probing: LeverProber,
        *,
        leave: Callable[[], Leave | None],
        found: Callable[[], LeverFound | None],
        state: Callable[[LeverFound], Awaitable[object]],
        lead: Callable[[], int | None],
        metrics: Metrics,
        every: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._probing = probing
        self._leave = leave
        self._found = found
        self._state = state
        self._lead = lead
        self._every = every
        self._clock = clock
        self._occasion: tuple[int, Leave] | None = None
        self._due = self._glance_due = 0.0
        self._asked = -REST_SECONDS
        self._outages = 0
        self._suspected: LeverName | None = None
        self._doubt = ""
        self._unanswered_since: float | None = None
        """Since when it was asked and did not answer; None where the last question was answered."""
        self._unanswered_why = ""
        self._stated: LeverFound | None = None
        """What we stated on this occasion."""
        self._seen: LeverFound | None = None
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
        """Ask, where it is time to."""
        epoch, leave = self._lead(), self._leave()
        self._ineffective.set(leave is not None and bool(leave.why_ineffective(self._found())))
        if epoch is None or leave is None:
            self._occasion = None
            self._answered()
            return
        now = self._clock()
        if self._occasion != (epoch, leave):
            self._occasion, self._suspected, self._due = (epoch, leave), None, now
            self._stated, self._seen = None, self._found()
        if self._outages != self._probing.outages:
            self._outages = self._probing.outages
            self._due = min(self._due, max(now, self._asked + REST_SECONDS))
        await self._look_after_own_word(now)
        if now >= self._due:
            await self._ask_now(leave, now)
        elif now >= self._glance_due:
            self._glance_due = now + GLANCE_SECONDS
            await self._glance(leave, now)

    async def _ask_now(self, leave: Leave, now: float) -> None:
        self._asked = now
        self._due = now + await self._ask(leave)

    async def _glance(self, leave: Leave, now: float) -> None:
        """A hint counts as found once: a probe that agrees is the second finding."""
        found = self._found()
        if found is None or self._stated not in (None, found):
            return
        silent_since = self._unanswered_since
        self._asking(now)
        try:
            hint = await self._probing.glance()
        except AdmitterError as error:
            self._unanswered_why = str(error)
            return  # whoever writes meets the same, and counts it as an outage
        if hint is None:  # nothing was asked
            self._unanswered_since = silent_since
            return
        self._answered()
        if hint != found.lever:
            self._suspected = hint
            await self._ask_now(leave, now)

    async def _look_after_own_word(self, now: float) -> None:
        """Somebody else may write the key: what we stated is stated again, and else the frontend is asked."""
        found = self._found()
        if self._stated is None:
            if found != self._seen:
                self._seen = found
                self._due = min(self._due, max(now, self._asked + REST_SECONDS))
        elif found != self._stated and now >= self._put_back_at + REST_SECONDS:
            self._put_back_at = now
            self._put_back.inc()
            self._log.warning("lever overwritten", by=found and found.lever, lever=self._stated.lever)
            await self._say(self._stated)

    def told(self) -> str | None:
        """The lever and how sure it is, for people; None where nothing is steered."""
        leave = self._leave()
        if leave is None:
            return None
        found = self._found()
        said: list[str] = [leave.lever]
        if found is not None and found.lever != leave.lever:
            said.append(f"the cluster obeys {found.lever} (seen {found.at:%Y-%m-%d %H:%M} UTC)")
        if self._doubt:
            said.append(f"at the last look nobody could tell: {self._doubt}")
        return "; ".join(said)

    def why_silent(self) -> str | None:
        """Why nothing can be written to the frontend: it has not answered for some time, also while a question is open."""
        since = self._unanswered_since
        if since is None or (age := self._clock() - since) <= SILENT_SECONDS:
            return None
        why = f": {self._unanswered_why}" if self._unanswered_why else ""
        return f"it has not answered for {age:.0f} s{why}"

    def _asking(self, now: float) -> None:
        if self._unanswered_since is None:
            self._unanswered_since = now

    def _answered(self) -> None:
        self._unanswered_since, self._unanswered_why = None, ""

    async def _ask(self, leave: Leave) -> float:
        """Returns for how many seconds not to ask again."""
        self._asking(self._clock())
        try:
            obeyed = await self._probing.probe()
        except AdmitterError as error:
            self._probes.labels("unanswered").inc()
            self._doubt = self._unanswered_why = str(error)
            return RETRY_SECONDS
        self._answered()
        self._probes.labels(obeyed.lever or "unknown").inc()
        if obeyed.lever is None:
            self._suspected, self._doubt = None, obeyed.evidence
            return self._every
        self._doubt = ""
        if not self._is_news(obeyed.lever, leave):
            self._suspected = None
        elif self._suspected != obeyed.lever:
            self._suspected = obeyed.lever
            return CONFIRM_SECONDS
        else:
            self._suspected = None
            await self._tell(obeyed.lever, obeyed.evidence, leave)
        if leave.lever != obeyed.lever:
            return min(self._every, INEFFECTIVE_SECONDS)
        return self._every

    def _is_news(self, lever: LeverName, leave: Leave) -> bool:
        found = self._found()
        if found is None or found.lever != lever:
            return True
        return found.at <= leave.at and lever != leave.lever

    async def _tell(self, lever: LeverName, evidence: str, leave: Leave) -> None:
        # After the leave that it was found under, whatever the clock of whoever gave it says.
        at = max(datetime.now(UTC), leave.at + timedelta(microseconds=1))
        found = LeverFound(cluster=leave.cluster, lever=lever, at=at, evidence=evidence)
        say = self._log.info if lever == leave.lever else self._log.warning
        say("lever found", lever=lever, leave=leave.lever, evidence=evidence)
        self._stated = found
        await self._say(found)

    async def _say(self, found: LeverFound) -> None:
        try:
            await self._state(found)
        except BusError as error:
            self._log.warning("lever not stated", lever=found.lever, why=str(error))
