"""Capabilities: how a frontend compares jobs and what it can do, stated with its queues. The core asks these and never a name.

Among them is whether a level could make a frontend stop a running job: it states the values of its settings under which
levels stop nobody. Where one integer both queues and preempts, as in Kueue, a job that is lifted above a running one may be
given its place. That is fairness by eviction, and not what a level is for (Kueue documentation, "Preemption"; KEP-7990).
Those of the frontends that ship with Fairlead stand in `shipped`.
"""

import enum
from collections.abc import Iterable, Mapping

import msgspec


class TieRule(enum.StrEnum):
    """The rule by which a frontend orders jobs of one level."""

    INSTANT = "instant"
    """Queue time to the microsecond, then uid."""
    SECOND = "second"
    """Queue time in whole seconds, then uid."""
    JOB_NUMBER = "job-number"
    """Queue time in whole seconds, then the numbers of the job and of its task in an array."""
    CHANCE = "chance"
    """Something that nobody outside can tell: each position needs a level of its own."""


_AS_IT_TRAVELS = {"needs_leave": "needs_clearance"}
"""Fields that have another name in messages than in code: leave was called clearance in the first release."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=_AS_IT_TRAVELS):
    """The capabilities of one frontend, beside the levels that its queues take and what it may stop for a waiting job."""

    ties: TieRule = TieRule.INSTANT
    orders_across_queues: bool = True
    """Whether the frontend orders jobs of one level and one instant across its queues; if not, that is
    chance."""
    needs_leave: bool = True
    """Whether levels are written only where somebody gave leave."""
    open_queues: bool = True
    """Whether a submission may name any queue, where its tenant has no entry of its own to one."""
    judges_demand: bool = False
    """Whether the frontend itself refuses a submission for more than its nodes could ever have. Its pools' capacities then say what
    its nodes have now, and refuse nothing."""
    preempted: str = ""
    """The frontend's word, in an eviction, for room that was made for another job; empty where it has
    none."""
    batch: int = 1
    """The most levels that one request to it carries."""
    labelled_ahead: int = 0
    """Positions of each queue that want a level however little starts, as far as the policy's window goes: where
    starts are heard of late, several may happen before anybody can label the next."""
    harmless_settings: Mapping[str, tuple[str, ...]] | None = None
    """Values of its queues' preemption settings under which levels stop no running job, by setting, the one under which
    nobody is stopped at all first; None where an older release states the queue."""
    parking_strategy: str | None = None
    """The strategy of a queue that puts aside what does not fit, until room comes free; None where the frontend does not
    say, as of an older release."""
    blocking_strategy: str | None = None
    """The strategy of a queue whose first job, where it does not fit, keeps the others back; None as with
    `parking_strategy`."""
    # What a frontend does not state of these six is what older releases took of every one.
    retry_seconds: float = 1.0
    """Seconds after something came free in which the frontend of itself tries anew all that it put aside: its batch."""
    try_seconds: float = 0.1
    """Seconds after a job got another level in which the frontend has surely tried it."""
    try_answers: int = 10
    """Number of the frontend's answers to a write in which it has surely tried the job, where these take longer."""
    tries_at_once: int = 4
    """The most jobs that are given a level to be tried while none of them was seen to start or to be refused yet."""
    starts_a_second: int = 20
    """Starts of a queue in a second, above which its jobs wait for the frontend's time and not for room."""
    quick_answer_seconds: float = 0.05
    """Seconds within which the frontend answers a write where it has CPU to spare."""
    priority_class: str = "priority class"
    """The frontend's word for what gives a job of a class its level when nobody steers."""
    check_command: str | None = None
    """The command that looks a cluster over and gives leave to write there, as it is typed; empty where none does, None
    where an older release states the queue."""

    def preempting(self, settings: Mapping[str, str]) -> dict[str, str]:
        """The settings of a queue under which a level could stop a running job.

        A setting or a value that the frontend does not call harmless counts as one that could: to write nothing is
        never the wrong guess.
        """
        harmless = self.harmless_settings or {}
        return {name: value for name, value in settings.items() if value not in harmless.get(name, ())}

    def reclaims(self, settings: Mapping[str, str]) -> bool:
        """Whether running jobs of other queues may be stopped for those of such a queue, whatever the levels are."""
        known = self.harmless_settings or {}
        return any(value in known.get(name, ())[1:] for name, value in settings.items())

    def mending(self, settings: Iterable[str]) -> list[str]:
        """The values that make such settings harmless, the first of each, as far as the frontend says any."""
        known = ((self.harmless_settings or {}).get(name) for name in settings)
        return list(dict.fromkeys(values[0] for values in known if values))

    def parks(self, strategy: str) -> bool:
        """Whether a queue of this strategy puts aside what does not fit."""
        return bool(strategy) and strategy == self.parking_strategy

    def blocks(self, strategy: str) -> bool:
        """Whether the first job of a queue of this strategy keeps the others back where it does not fit."""
        return bool(strategy) and strategy == self.blocking_strategy
