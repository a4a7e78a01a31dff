"""A top-level tenant and all tenants below it: what runs and waits there, and in which sequence it is served.

Its sequence depends on its own jobs and the pool's capacity alone, so shards of whole families need no word from each
other. One event makes it anew, as deep as readers look.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

import numpy as np

from fairlead_contracts.instants import Micros
from fairlead_policy.flips import first_flip
from fairlead_policy.jobs import Queue
from fairlead_policy.lane import Lane, QueueNumbers, counted_amount
from fairlead_policy.merging import Field, Node, Stretch, leaf_stretch, merge
from fairlead_policy.ranking import Ints
from fairlead_policy.scoring import Measure, Scale, lacking_of
from fairlead_policy.sequence import Sequence

_SHALLOW = 64
"""Jobs of each tenant, beside the window, that a front is first looked for among."""
_DEEPER = 4
_ALL = 2**62


class Family:
    """One top-level tenant's state in a pool, where it has tenants below it or classes are not strict.

    Args:
        top: the top-level tenant.
        measure: of the pool.
        queues: of the pool.
    """

    def __init__(self, top: str, measure: Measure, queues: QueueNumbers) -> None:
        self.top = top
        self.lanes: dict[str, Lane] = {}
        self._past: dict[str, Mapping[str, int]] = {}
        self._measure = measure
        self._queues = queues
        self._made: tuple[Micros | None, int, Sequence] | None = None

    def changed(self) -> None:
        """Something below it is another: the sequence is made anew when somebody looks."""
        self._made = None

    @property
    def idle(self) -> bool:
        """Whether nothing waits, runs or is remembered."""
        return not self.lanes and not self._past

    def remember(self, tenant: str, past: Mapping[str, int]) -> None:
        """The past use of a tenant with children: it is nobody's below."""
        if past:
            self._past[tenant] = past
        else:
            self._past.pop(tenant, None)
        self.changed()

    def past_below(self, tenant: str) -> Counter[str]:
        """Past use of a tenant and those below it that is no lane's."""
        total: Counter[str] = Counter()
        for name, past in self._past.items():
            if tenant in self._measure.rules.way_up(name):
                total.update(past)
        return total

    def use_below(self, tenant: str) -> Counter[str]:
        """What runs below a tenant, and past use."""
        total = self.past_below(tenant)
        for lane in self.lanes_below(tenant):
            total.update(lane.counted)
        return total

    def lanes_below(self, tenant: str) -> Iterator[Lane]:
        """The lanes whose use counts towards a tenant, by name."""
        for name, lane in sorted(self.lanes.items()):
            if tenant in self._measure.rules.way_up(name):
                yield lane

    def sequence(self, now: Micros, depth: int = _ALL) -> Sequence:
        """The sequence at an instant: made of the first `depth` jobs of each tenant at least."""
        lanes = [lane for _, lane in sorted(self.lanes.items()) if len(lane)]
        horizon = self._horizon(lanes, now)
        made = self._made
        longest = max(map(len, lanes), default=0)
        if made is None or made[0] != horizon or made[1] < min(depth, longest):
            field = Field.of(lanes, depth)
            found = Sequence(
                self._stretches(field, now),
                self.top,
                field,
                self._measure,
                use=self.use_below(self.top),
                now=now,
            )
            made = self._made = horizon, depth, found
        return made[2]

    def front(
        self, now: Micros, window: int, tenants: Collection[str] | None = None
    ) -> tuple[Sequence, Ints]:
        """The positions of the first `window` jobs of each queue, of these tenants or all, ascending."""
        depth = window + _SHALLOW
        while True:
            sequence = self.sequence(now, depth)
            positions = self._first_of_queues(sequence, window, tenants)
            if positions is not None:
                return sequence, positions
            depth *= _DEEPER

    def positions(self, sequence: Sequence, tenants: Collection[str] | None) -> Ints:
        """The positions of these tenants' jobs, or of all."""
        if tenants is None:
            return np.arange(len(sequence))
        chosen = np.array([lane.tenant in tenants for lane in sequence.field.lanes])
        return np.flatnonzero(chosen[sequence.lanes])

    def next_flip(self, sequence: Sequence) -> Micros | None:
        """An instant before which time alone changes nothing in the sequence; None where it never does."""
        rules, multipliers = self._measure.rules, self._measure.multipliers
        compared = (stretch.compared for stretch in sequence.stretches.values())
        flips = [first_flip(rows, rules, multipliers) for rows in compared if rows is not None]
        return min((flip for flip in flips if flip is not None), default=None)

    def _horizon(self, lanes: list[Lane], now: Micros) -> Micros | None:
        """Two instants of one horizon give one sequence: jobs beyond the cap move against the others."""
        cap = self._measure.rules.cap
        oldest = min((lane.oldest for lane in lanes), default=now)
        return None if cap is None or oldest >= now - cap else now - cap

    def _first_of_queues(
        self, sequence: Sequence, window: int, tenants: Collection[str] | None
    ) -> Ints | None:
        """None where the sequence is too short to tell."""
        waiting: Counter[Queue] = Counter()
        for lane in sequence.field.lanes:
            if tenants is None or lane.tenant in tenants:
                waiting.update(lane.waiting_by_queue)
        among = self.positions(sequence, tenants)
        numbers = sequence.queues[among]
        found = []
        for queue, count in waiting.items():
            first = among[np.flatnonzero(numbers == self._queues.number(queue))[:window]]
            if len(first) < min(window, count):
                return None
            found.append(first)
        return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)

    def _stretches(self, field: Field, now: Micros) -> dict[str, Stretch]:
        """The sequence of every tenant that has jobs in the field, from the leaves up."""
        stretches: dict[str, Stretch] = {}
        numbers = {lane.tenant: number for number, lane in enumerate(field.lanes)}
        self._stretch(self.top, field, numbers, now, stretches)
        return stretches

    def _stretch(
        self, tenant: str, field: Field, numbers: Mapping[str, int], now: Micros, found: dict[str, Stretch]
    ) -> Stretch | None:
        if tenant in numbers:
            found[tenant] = leaf_stretch(field, numbers[tenant])
            return found[tenant]
        below = self._measure.rules.children.get(tenant, ())
        parts = [self._stretch(child, field, numbers, now, found) for child in below]
        children = [part for part in parts if part is not None]
        if not children:
            return None
        found[tenant] = merge(field, children, self._node(tenant), now)
        return found[tenant]

    def _node(self, tenant: str) -> Node:
        rules = self._measure.rules
        use = self.use_below(tenant)
        counted = [counted_amount(use[name]) for name in rules.resources]
        asked = [lane.demanded for lane in self.lanes_below(tenant)]
        bound = max((held + sum(column) for held, *column in zip(counted, *asked, strict=True)), default=0)
        lacking = lacking_of(use, rules) is not None
        return Node(Scale(self._measure, rules.weight_of(tenant)), counted, bound, lacking)
