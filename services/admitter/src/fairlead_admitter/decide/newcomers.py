"""Newcomers: jobs that came so lately that no decision can have placed them yet.

The facts are always a little ahead of the decisions. A job that is in the facts and in no front stands, as far as a
plan can tell, behind the window; had its frontend's tie put it before the window's last, the window would be lifted
over it. Kueue's ties within one second are UIDs, so of jobs that arrive together every other one would cost such
a write, only to be in the window itself a moment later. So nothing is lifted over a newcomer.
"""

from collections.abc import Callable, Iterable
from itertools import takewhile

import msgspec

from fairlead_admitter.observe.facts import JobChange
from fairlead_contracts.messages.state import JobState, Phase

NEW_SECONDS = 1.0
"""A job that no decision has placed after this long is not at the front. Far above a reaction, and a burst of arrivals
stands by ties alone for so long at most."""


class _Seen(msgspec.Struct, frozen=True):
    job: JobState
    state_seq: int
    at: float


class Newcomers:
    """The jobs that began to wait within the last moments."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def note(self, changes: Iterable[JobChange], state_seq: int, at: float) -> None:
        """Take note of what happened to jobs.

        Args:
            changes: of one look.
            state_seq: of the state stream: the look saw everything up to it.
            at: monotonic seconds of the look.
        """
        self.forget_old(at)
        for change in changes:
            before, after = change.before, change.after
            waited = before is not None and before.phase is Phase.WAITING
            if after is not None and after.phase is Phase.WAITING and not waited:
                self._seen.pop(after.uid, None)  # the newest stands last
                self._seen[after.uid] = _Seen(after, state_seq, at)
            elif before is not None and (after is None or after.phase is not Phase.WAITING):
                self._seen.pop(before.uid, None)

    def forget_old(self, at: float) -> None:
        """Forgets newcomers that were seen long before that moment, in monotonic seconds."""
        while self._seen:
            uid, seen = next(iter(self._seen.items()))
            if at - seen.at < NEW_SECONDS:
                return
            del self._seen[uid]

    def undecided(self, decided: Callable[[JobState], int], *, at_least: int = 0) -> set[str]:
        """The uids of those that came after what was decided on.

        Args:
            decided: of the decision that would place the job, the state-stream sequence that it was made from.
            at_least: the least that `decided` says of any job. Whose tenant a job is takes its time to find out, and of
                a thousand that came within the second few are newer than all decisions.
        """
        late = takewhile(lambda one: one[1].state_seq > at_least, reversed(self._seen.items()))
        return {uid for uid, seen in late if decided(seen.job) < seen.state_seq}
