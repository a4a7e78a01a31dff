"""The window: the front of a pool, as far as it is labelled."""

from collections.abc import Callable, Mapping

import msgspec

from fairlead_admitter.facts import ClusterFacts
from fairlead_admitter.merging import Beginning
from fairlead_contracts.messages.decisions import Place
from fairlead_contracts.messages.state import JobState, Phase


class Ranked(msgspec.Struct, frozen=True):
    """A place of the merged front whose job waits in this cluster."""

    rank: int
    place: Place | None
    """None for a job that keeps its place although the order does not show it."""
    job: JobState


class Window(msgspec.Struct, frozen=True):
    """The jobs to label, in the wanted order."""

    ranked: list[Ranked]
    closed: bool
    """Whether it ends by its own rule, and not where the places given to it end."""


class Extent(msgspec.Struct, frozen=True, kw_only=True):
    """How far a window goes."""

    least: int
    """Places of a queue that are taken however little may start."""
    most: int
    """Places of a queue that a decision's front has at most (the policy's `window`)."""
    room: Mapping[str, int] = {}
    """By resource, what the end of one running job can free, in base units: jobs that fit into it may start together,
    before anybody can react."""


def _nobody(_: JobState) -> bool:
    return False


def take_window(
    beginning: Beginning,
    waiting: Mapping[str, int],
    facts: ClusterFacts,
    extent: Extent,
    *,
    left_alone: Callable[[JobState], bool] = _nobody,
) -> Window:
    """The places that are labelled: the front of the pool, as far as it is known without gaps.

    A shard publishes the first `most` places of each queue. Behind a queue's last one others of the same queue
    may be missing, and they stand unlabelled, behind everything labelled. So the window ends with the place that
    fills the first queue which has more waiting: no job is labelled in front of one that the order puts before it.

    A job that no single end makes room for cannot start soon, but where a frontend fills gaps those behind it can: it
    is labelled, so that they stay behind it, and does not count. Nor does one that can't be labelled now.

    Args:
        beginning: of the pool's merged front, of all clusters.
        waiting: how many wait in each of this cluster's queues, as the decisions say.
        facts: of this cluster.
        extent: how far it goes.
        left_alone: of a job, whether nothing is written to it now.
    """
    ranked: list[Ranked] = []
    taken: set[str] = set()
    seen = dict.fromkeys(waiting, 0)
    counted = dict.fromkeys(waiting, 0)
    together: dict[str, int] = {}
    for rank, place in enumerate(beginning.places):
        origin = beginning.origins[place.uid]
        if origin.cluster != facts.cluster:
            continue
        job = facts.job(place.uid)
        # A job whose tenant changed is in two shards' fronts until the old one's owner has decided, too.
        if job is not None and job.phase is Phase.WAITING and job.uid not in taken:
            taken.add(job.uid)
            ranked.append(Ranked(rank, place, job))
            if not left_alone(job) and (not extent.room or _fits(job.demand, extent.room)):
                counted[origin.queue] += 1
                for resource, amount in job.demand.items():
                    together[resource] = together.get(resource, 0) + amount
        seen[origin.queue] += 1
        filled = seen[origin.queue] >= extent.most or (
            counted[origin.queue] >= extent.least and not _fits(together, extent.room, strictly=True)
        )
        if filled and waiting[origin.queue] > seen[origin.queue]:
            return Window(ranked, closed=True)
    return Window(ranked, closed=beginning.whole)


def _fits(demand: Mapping[str, int], room: Mapping[str, int], *, strictly: bool = False) -> bool:
    """Whether the end of one job makes room for this, or `strictly` for more than this."""
    free = [(room.get(resource, 0), amount) for resource, amount in demand.items()]
    return all(amount < most if strictly else amount <= most for most, amount in free)
