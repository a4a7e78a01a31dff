"""Runs that are over, as long as somebody may have to count them again. Pure."""

from collections.abc import Callable, Mapping, ValuesView

from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_contracts.topology import DAY
from fairlead_policy.usage.past import RunKey
from fairlead_scorer.state.past import FinishedRun, PoolPast

_FEW = 1000
"""Runs that are known before any are tidied away: fewer are not worth a look."""
LONGEST = 7 * DAY * SECOND
"""Microseconds for which the event stream tells of a run: whoever begins anew knows of none that is older."""
_IN_STEP = 3600 * SECOND
"""Microseconds that settled instants of pools may lie apart: that of a pool further behind is not waited for."""


class FinishedRuns:
    """Runs that are over, each by the first end that was told."""

    def __init__(self) -> None:
        self._known: dict[RunKey, FinishedRun] = {}
        self._left = _FEW

    def __len__(self) -> int:
        return len(self._known)

    @property
    def many(self) -> bool:
        """Whether it is time to tidy up: twice as many are known as were needed the last time."""
        return len(self._known) > 2 * self._left

    def values(self) -> ValuesView[FinishedRun]:
        """The runs that are known."""
        return self._known.values()

    def clear(self) -> None:
        """Forgets all runs."""
        self._known.clear()

    def note(self, run: FinishedRun) -> bool:
        """Notes a run; returns whether it is news: another run, or an earlier end of one."""
        known = self._known.get(run.key)
        if known is not None and known.ended <= run.ended:
            return False
        self._known[run.key] = run
        return True

    def tidy(self, pasts: Mapping[str, PoolPast], pool_of: Callable[[FinishedRun], str | None]) -> None:
        """Forgets the runs that their own pool has settled.

        Of a pool that cannot be decided, and of queues that lead nowhere, runs are kept as long as the event stream has
        them; we settle older ones, which changes no value.
        """
        ends = {name: earliest for name, past in pasts.items() if (earliest := past.horizon()) is not None}
        oldest = max(ends.values(), default=0) - LONGEST
        for past in pasts.values():
            past.settle_before(oldest)
        self._known = {
            key: run
            for key, run in self._known.items()
            if run.ended > max(oldest, ends.get(pool_of(run) or "", 0))
        }
        self._left = max(_FEW, len(self._known))


def needed_from(pasts: Mapping[str, PoolPast], is_current: Callable[[str], bool]) -> Micros | None:
    """The instant from which on runs must be known; None where nothing is settled yet.

    Args:
        pasts: the past use of each pool.
        is_current: whether a pool can be decided. One that cannot, and has not been for an hour, is not waited for.
    """
    ends = {name: earliest for name, past in pasts.items() if (earliest := past.horizon()) is not None}
    in_step = max(ends.values(), default=0) - _IN_STEP
    return min((end for name, end in ends.items() if end >= in_step or is_current(name)), default=None)
