"""The window of a pool in this cluster, taken from the merged front."""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from fairlead_admitter.decide.merged_order import MergedHeads
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.messages.decisions import Place
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_policy.levels.window import Candidate, Extent, Window, take_window


class Ranked(msgspec.Struct, frozen=True):
    """A place of the merged front whose job waits in this cluster."""

    rank: int
    place: Place | None
    """The job's place; None where the job keeps it although the order does not show it."""
    job: JobState


def _leave_none_alone(_: JobState) -> bool:
    return False


def take_front(
    beginning: MergedHeads,
    waiting: Mapping[str, int],
    facts: ClusterFacts,
    extent: Extent,
    *,
    left_alone: Callable[[JobState], bool] = _leave_none_alone,
) -> Window[Ranked]:
    """The places of a pool's front that are labelled in this cluster: see `take_window`.

    Args:
        beginning: beginning of the pool's merged front, of all clusters.
        waiting: number of jobs that wait in each of this cluster's queues, as the decisions say.
        facts: facts of this cluster.
        extent: tells how far the window goes.
        left_alone: whether nothing is written to a job now: it does not count, as one that no flavor takes.
    """
    window = take_window(_candidates(beginning, facts, left_alone), waiting, extent)
    return window if window.closed else Window(window.jobs, closed=beginning.whole)


def _candidates(
    beginning: MergedHeads, facts: ClusterFacts, left_alone: Callable[[JobState], bool]
) -> Iterator[Candidate[Ranked, str]]:
    taken: set[str] = set()
    for rank, place in enumerate(beginning.places):
        front = beginning.origins[place.uid].front
        if front.cluster != facts.cluster:
            continue
        job = facts.job(place.uid)
        # A job whose tenant changed is in two shards' fronts until the old one's owner has decided, too.
        if job is None or job.phase is not Phase.WAITING or job.uid in taken:
            yield Candidate(front.queue, None, apart=bool(front.flavorless))
        else:
            taken.add(job.uid)
            yield Candidate(
                front.queue,
                Ranked(rank, place, job),
                job.demand,
                counts=not (job.flavorless or left_alone(job)),
                apart=bool(front.flavorless),
            )
