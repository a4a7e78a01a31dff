"""Number of a queue's heads that are labelled: as many as could start before the admitter reacts again.

A label costs a write, and one that was given too early often another: the order changes while its job waits. So the
window follows what is seen: the starts that fall into one reaction time, with a margin for their coming in bursts.
Behind the window jobs go by the frontend's own order, for the moment that it takes to label them; what a burst takes
out of turn there, counts as its tenants' use, and the next positions make up for it.

Measured on the demo's trace in virtual time, 25 to 40 starts a second, three seeds, reactions of 0.03 to 0.12 s: 1.5 to
2.1 writes a start with the worst tenant 3.2 to 3.5 % off, against 2.3 to 3.7 writes and 2.5 to 3.1 % with 32 positions
always labelled. The most starts ever seen together, in place of their mean, label nearly all of the 32: one large job
that ends is enough.

Where jobs are woken one by one (see `waking`), labels matter to the frontend's own batch alone: to one that falls into the
moment between a release and the wake-up. There as many positions are labelled as start together on the mean; each more is a level more
that the batch tries one by one, and a try before it. A frontend may pause after tries in a row that admit nobody, and what
comes free in such a pause of the batch goes to whoever is tried next. (Kueue 0.19 does: 1 to 2 ms after the third, 4 after
the fourth, 7 after the fifth; `pkg/util/wait`.)
"""

import math
import statistics
import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from fairlead_contracts.frontend.capabilities import Capabilities

LEAST = 4
"""Positions that are labelled however little starts."""
LEAST_WHERE_WOKEN = 1
"""Positions that are labelled where a write of its own wakes the next job: only the frontend's batch reads what stands behind."""
TOGETHER_SECONDS = 0.15
"""Jobs that start within so long of each other start together: woken one after the other, two take a tenth of a second."""
MARGIN = 5.0
"""Factor of the mean number of starts that may come together."""
STARTS_SECONDS = 10.0
"""Seconds for which a start counts."""
REACTIONS_SECONDS = 60.0
"""Seconds for which a measured reaction counts."""
UNKNOWN_REACTION_SECONDS = 1.0
"""The reaction that is assumed until one was measured."""
WRITES_SECONDS = 60.0
"""Seconds for which a write counts, as one that came in time or too late: while all come too late there are few; see
`wake_state`."""
LAST_WRITES = 16
"""Number of last writes that count: where many jobs come at once, their levels are in time and say nothing of later
ones."""
LATE_LEAST = 4
"""Number of the last writes to jobs that wait no more from which on jobs start faster than levels reach them."""
MANY_STARTS = 10
"""Starts within `STARTS_SECONDS`, in all pools, from which on a frontend that answers slowly is spared."""
ANSWERS = 2.0
"""Number of the frontend's answers between two looks where many jobs start."""
CROWDED_PART = 0.5
"""The part of the time for which a process wants a CPU and has none, from which on its machine has none to spare.

Measured beside a frontend whose own load takes two cores (Kueue), it is 0.7 to 0.95, before that load 0 to 0.4."""
LATE_SECONDS = 0.5
"""Seconds of rest at most for each `LATE_LEAST` writes that came too late. Four times as long where none of them reached a
job that waits."""
_LOOKS = 4096
"""Looks that are remembered until a decision knows them: from them to their levels is a reaction."""
LATE_PART = 0.5
"""Largest part of the frontend's own batch for which such a rest lasts: a job woken after it may still come before the
batch."""


def window_size(starts: int, reaction: float, most: int, *, together: int | None = None) -> int:
    """Number of positions to label.

    Args:
        starts: jobs of the pool that started within the last `STARTS_SECONDS`.
        reaction: seconds from a start to the levels that follow from it.
        most: number of positions that the policy allows (`window`).
        together: number of jobs that started together, where they are woken one by one; None elsewhere.
    """
    margin = MARGIN * starts / STARTS_SECONDS * reaction
    if together is None:
        return min(most, LEAST + math.ceil(margin))
    return min(most, max(LEAST_WHERE_WOKEN, together) + math.floor(margin))


class Pace:
    """The starts of each pool, and the time that reactions take.

    Args:
        clock: monotonic seconds.
        cpu_wait: the part of the time for which this process wants a CPU and has none.
    """

    def __init__(self, clock: Callable[[], float], cpu_wait: Callable[[], float]) -> None:
        self._clock = clock
        self._cpu_wait = cpu_wait
        self._withheld: set[str] = set()
        """The pools to which no level may be written."""
        self._starts: dict[str, deque[tuple[float, int]]] = {}
        self._reactions: deque[tuple[float, float]] = deque()
        self._writes: deque[tuple[float, bool]] = deque(maxlen=LAST_WRITES)
        """Arrivals of writes: each one's monotonic second, and whether it was too late."""
        self._took: deque[float] = deque(maxlen=LAST_WRITES)
        self._able = Capabilities()

    def learn(self, able: Capabilities) -> None:
        """Takes in what the cluster's frontend states."""
        self._able = able

    def started(self, pool: str, jobs: int) -> None:
        """Counts jobs of the pool that were just seen to start."""
        if jobs:
            starts = self._starts.setdefault(pool, deque())
            _forget(starts, self._clock() - STARTS_SECONDS)
            starts.append((self._clock(), jobs))

    def reacted(self, seconds: float) -> None:
        """Notes that a level was written so many seconds after what caused it."""
        _forget(self._reactions, self._clock() - REACTIONS_SECONDS)
        self._reactions.append((self._clock(), seconds))

    def arrived(self, *, in_time: int, late: int, took: Sequence[float]) -> None:
        """Counts levels that arrived, in time or too late.

        Args:
            in_time: number of levels that reached jobs that waited.
            late: number of levels that came to jobs that waited no more.
            took: seconds until the frontend answered, by request.
        """
        self._writes += [(self._clock(), False)] * in_time + [(self._clock(), True)] * late
        self._took += took

    def withhold(self, pool: str, *, withheld: bool) -> None:
        """Notes whether levels of the pool may be written at all."""
        (self._withheld.add if withheld else self._withheld.discard)(pool)

    def late_by(self) -> float:
        """Seconds to rest between two looks; 0 where the frontend answers quickly.

        Where no level may be written no answer tells that the machine is short of CPU; how long this process waits for one
        does.

        While many jobs start, nobody needs to look more often than the frontend answers. And what is decided between two
        levels that come too late is decided for nothing: it costs the frontend the CPU that it is short of, so several
        changes are looked at together. How long our own reaction takes says nothing of that: these very rests make it
        longer. The larger the part that comes too late, the less a longer rest loses.
        """
        many = self.starts() >= MANY_STARTS
        rest = min(LATE_SECONDS, LATE_PART * self._able.retry_seconds)
        if many and self._withheld.issuperset(self._starts):
            return rest if self._cpu_wait() >= CROWDED_PART else 0.0
        until = self._clock() - WRITES_SECONDS
        late = sum(late for at, late in self._writes if at > until)
        answer = statistics.median(self._took) if self._took else 0.0
        # A rest would help nobody.
        if answer <= self._able.quick_answer_seconds:
            return 0.0
        slow = min(rest, ANSWERS * answer) if many else 0.0
        return max(slow, rest * late / LATE_LEAST if late >= LATE_LEAST else 0.0)

    def size(self, pool: str, most: int, *, woken: bool = False) -> int:
        """Number of positions of each queue of the pool to label now, at most `most`.

        Args:
            most: number of positions that the policy allows.
            woken: whether its jobs are woken one by one.
        """
        until = self._clock() - REACTIONS_SECONDS
        starts = self._lately(pool)
        reactions = [seconds for at, seconds in self._reactions if at > until]
        return window_size(
            sum(jobs for _, jobs in starts),
            # The median: one slow reaction is nothing to plan by.
            statistics.median(reactions) if reactions else UNKNOWN_REACTION_SECONDS,
            most,
            together=_started_together(starts) if woken else None,
        )

    def starts(self) -> int:
        """Number of jobs of all pools that started within the last `STARTS_SECONDS`."""
        return sum(jobs for pool in self._starts for _, jobs in self._lately(pool))

    def starts_in(self, pool: str) -> int:
        """Number of jobs of the pool that started within the last `STARTS_SECONDS`."""
        return sum(jobs for _, jobs in self._lately(pool))

    def keep(self, pools: Iterable[str]) -> None:
        """Forgets pools that are not there any more."""
        for pool in self._starts.keys() - set(pools):
            del self._starts[pool]
        self._withheld.intersection_update(pools)

    def _lately(self, pool: str) -> list[tuple[float, int]]:
        """The pool's starts within the last `STARTS_SECONDS`: each one's monotonic second, and how many."""
        until = self._clock() - STARTS_SECONDS
        return [(at, jobs) for at, jobs in self._starts.get(pool, ()) if at > until]


def _started_together(starts: Iterable[tuple[float, int]]) -> int:
    """Number of jobs that start within `TOGETHER_SECONDS` of one, itself included: the mean over all, rounded."""
    noted = list(starts)
    begins = [at for at, _ in noted]
    sums = [0, *accumulate(jobs for _, jobs in noted)]
    near = 0
    for at, jobs in noted:
        first, last = bisect_left(begins, at - TOGETHER_SECONDS), bisect_right(begins, at + TOGETHER_SECONDS)
        near += jobs * (sums[last] - sums[first])
    return round(near / sums[-1]) if noted else 0


def _forget[T](noted: deque[tuple[float, T]], until: float) -> None:
    while noted and noted[0][0] <= until:
        noted.popleft()


class Arrivals:
    """The last looks that brought job changes, by the state sequence that they reached: they measure reactions."""

    def __init__(self) -> None:
        self._looks: deque[tuple[int, float]] = deque(maxlen=_LOOKS)
        self._measured = 0

    def note(self, seq: int, at: float) -> None:
        """Notes that a look brought job changes up to this sequence, at this monotonic second."""
        if self._looks and seq < self._looks[-1][0]:
            self._looks.clear()  # the state stream was made anew
            self._measured = 0
        self._looks.append((seq, at))

    def measure(self, revision: int) -> float | None:
        """Seconds from the newest look that a decision of this state revision knew until now.

        None where no new change stands behind the decision (a policy did, or the passing of time), or where it knew
        of changes before this process did.
        """
        if revision <= self._measured:
            return None
        self._measured = revision
        latest: float | None = None
        while self._looks and self._looks[0][0] <= revision:
            latest = self._looks.popleft()[1]
        return None if latest is None else time.monotonic() - latest
