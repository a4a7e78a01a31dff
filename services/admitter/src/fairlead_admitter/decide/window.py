"""The window of a pool in this cluster, taken from the merged heads."""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from fairlead_admitter.decide.merged_order import MergedHeads
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_policy.levels.window import Candidate, Window, WindowSize, take_window


class Ranked(msgspec.Struct, frozen=True):
    """A position among the merged heads whose job waits in this cluster."""

    rank: int
    position: Position | None
    """The job's position; None where the job keeps it although the order does not show it."""
    job: JobState


def take_heads(
    beginning: MergedHeads,
    waiting: Mapping[str, int],
    facts: ClusterFacts,
    window_size: WindowSize,
    *,
    left_alone: Callable[[JobState], bool] = lambda _: False,
) -> Window[Ranked]:
    """The positions among a pool's heads that are labelled in this cluster: see `take_window`.

    Args:
        beginning: beginning of the pool's merged heads, of all clusters.
        waiting: number of jobs that wait in each of this cluster's queues, as the decisions say.
        facts: facts of this cluster.
        window_size: tells how far the window goes.
        left_alone: whether nothing is written to a job now: it does not count, as one that no flavor takes.
    """
    window = take_window(_candidates(beginning, facts, left_alone), waiting, window_size)
    return window if window.closed else Window(window.jobs, closed=beginning.whole)


def _candidates(
    beginning: MergedHeads, facts: ClusterFacts, left_alone: Callable[[JobState], bool]
) -> Iterator[Candidate[Ranked, str]]:
    taken: set[str] = set()
    for rank, position in enumerate(beginning.positions):
        heads = beginning.origins[position.uid].heads
        if heads.cluster != facts.cluster:
            continue
        job = facts.job(position.uid)
        # A job whose tenant changed is among two shards' heads until the old one's owner has decided, too.
        if job is None or job.phase is not Phase.WAITING or job.uid in taken:
            yield Candidate(heads.queue, None, apart=bool(heads.flavorless))
        else:
            taken.add(job.uid)
            yield Candidate(
                heads.queue,
                Ranked(rank, position, job),
                job.demand,
                counts=not (job.passed_by or left_alone(job)),
                apart=bool(heads.flavorless),
            )
