"""The window: the heads of a pool's queues in one frontend, as far as they are labelled. Live and on paper."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping

import msgspec

from fairlead_contracts.frontend.capabilities import Capabilities


class WindowSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a window."""

    least: int
    """Positions of a queue that are taken however little may start."""
    across_queues: bool = False
    """Whether those are positions of all queues together: where each job that fits is woken by itself, whichever queue it
    stands in."""
    most: int
    """Positions of a queue that a decision has at most (the policy's `window`)."""
    room: Mapping[str, int] = {}
    """Amounts that the end of one running job can free, by resource, base units: who asks for more does not start soon."""
    together: Mapping[str, int] = {}
    """Amounts that an end usually frees: jobs that fit into them may start together, before anybody can react."""

    @classmethod
    def whole(cls, most: int) -> "WindowSize":
        """All that is known of each queue: on paper, in simulated runs, and where starts are promised among it."""
        return cls(least=most, most=most)

    @classmethod
    def of_next(
        cls,
        starts: int,
        most: int,
        able: Collection[Capabilities],
        *,
        across_queues: bool = False,
        room: Mapping[str, int] | None = None,
        together: Mapping[str, int] | None = None,
    ) -> "WindowSize":
        """The positions that may start before anybody reacts again, and as many as the frontends want labelled ahead.

        Args:
            starts: number of positions that may start.
            most: the policy's `window`.
            able: capabilities of the queues' frontends.
            across_queues: as in the window size.
            room: as in the window size; None for none.
            together: as in the window size; None for all of `room`.
        """
        ahead = max(one.labelled_ahead for one in able)
        least = max(starts, min(most, ahead))
        room = room or {}
        together = room if together is None else together
        return cls(least=least, across_queues=across_queues, most=most, room=room, together=together)


class Candidate[J, Q: Hashable](msgspec.Struct, frozen=True, gc=False):
    """A position of the order, in this frontend."""

    queue: Q
    job: J | None
    """Job that stands there; None where none could be labelled: the position fills its queue all the same."""
    demand: Mapping[str, int] = {}
    counts: bool = True
    """Whether it counts as one that can start; one that can't be labelled now does not."""
    apart: bool = False
    """Whether the job cannot start: then it takes no position of its queue's first ones, and is known beside them."""


class Window[J](msgspec.Struct, frozen=True):
    """The jobs to label, in the wanted order."""

    jobs: list[J]
    closed: bool
    """Whether it ends by its own rule, and not where the candidates end."""


def take_window[J, Q: Hashable](
    candidates: Iterable[Candidate[J, Q]], waiting: Mapping[Q, int], window_size: WindowSize
) -> Window[J]:
    """The positions that are labelled: the heads of the pool's queues, as far as they are known without gaps.

    Of each queue the first `most` positions are known. Behind a queue's last one others of the same queue may be missing,
    and they stand unlabelled, behind everything labelled. So the window ends with the position that fills the first queue
    which has more waiting: no job is labelled in front of one that the order puts before it.

    Of the jobs that cannot start the first `most` of each queue are taken where their turn is, and never count.

    A job that no single end makes room for cannot start soon, but where a frontend fills gaps those behind it can: it
    is labelled, so that they stay behind it, and does not count.

    Where positions of all queues count together, the window ends as soon as there are enough: whatever stands behind it is
    unlabelled, in every queue.

    Args:
        candidates: the positions in the wanted order.
        waiting: number of waiting jobs in each queue, without those that stand apart.
    """
    taken: list[J] = []
    seen = dict.fromkeys(waiting, 0)
    counted, beside = Counter[Q](), Counter[Q]()
    demand: dict[str, int] = {}
    for one in candidates:
        queue = one.queue
        if one.apart:
            beside[queue] += 1
            if one.job is not None and beside[queue] <= window_size.most:
                taken.append(one.job)
            continue
        if one.job is not None:
            taken.append(one.job)
            if one.counts and (not window_size.room or _fits(one.demand, window_size.room)):
                counted[queue] += 1
                for resource, amount in one.demand.items():
                    demand[resource] = demand.get(resource, 0) + amount
        seen[queue] += 1
        more = waiting[queue] > seen[queue]
        enough = counted.total() if window_size.across_queues else counted[queue]
        ends = enough >= window_size.least and not _fits(demand, window_size.together, strictly=True)
        if (ends and window_size.across_queues) or (more and (ends or seen[queue] >= window_size.most)):
            return Window(taken, closed=True)
    return Window(taken, closed=False)


def _fits(demand: Mapping[str, int], room: Mapping[str, int], *, strictly: bool = False) -> bool:
    """Whether the end of one job makes room for this, or `strictly` for more than this."""
    free = [(room.get(resource, 0), amount) for resource, amount in demand.items()]
    return all(amount < most if strictly else amount <= most for most, amount in free)
