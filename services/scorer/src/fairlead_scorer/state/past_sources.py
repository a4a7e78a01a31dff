"""Sources of past use: runs that are over, and past use as the owners of shards stated it last, and under which policy. Pure."""

from collections.abc import Callable, Iterable, Mapping, ValuesView

from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_contracts.messages.decisions import StatedPastUse
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
    """Runs that are over, each by the first end that was told, as long as somebody may have to count them again."""

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


class PersistedUsage:
    """The last statement of past use on each shard.

    Which tenants a shard has depends on the policy. A statement under one policy says nothing of the same shard under
    another. So a decision that comes before its policy is kept here until the policy comes.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], StatedPastUse] = {}
        self._first_policy = 0
        """The first policy whose statements count."""

    def note(self, statement: StatedPastUse) -> None:
        """Keeps a statement of any policy, unless it is from before all was forgotten."""
        if revision_of(statement) >= self._first_policy:
            self._last[statement.pool, statement.shard] = statement

    def forget(self, revision: int) -> None:
        """Forgets all statements, as past use does not count under this policy. No earlier one counts ever again."""
        self._last.clear()
        self._first_policy = revision

    def under(self, pool: str, revision: int) -> list[StatedPastUse]:
        """Statements on the pool's shards under this policy."""
        return [statement for statement in self._of_pool(pool) if revision_of(statement) == revision]

    def not_under(self, pool: str, revision: int) -> list[StatedPastUse]:
        """Statements on the pool's shards under other policies, the newest policy's last."""
        return sorted(
            (statement for statement in self._of_pool(pool) if revision_of(statement) != revision),
            key=revision_of,
        )

    def _of_pool(self, pool: str) -> Iterable[StatedPastUse]:
        return (one for (name, _), one in self._last.items() if name == pool and one.kept is not None)


def revision_of(statement: StatedPastUse) -> int:
    """The policy that a statement was made under; 0 where it names none."""
    return 0 if statement.basis is None else statement.basis.policy
