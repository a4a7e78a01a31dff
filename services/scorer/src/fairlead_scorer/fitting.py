"""Whether the nodes of a job's cluster could hold it at all."""

from fairlead_contracts.state import JobState, Phase
from fairlead_policy import outgrown
from fairlead_policy.fit import in_words
from fairlead_scorer.ledger import Ledger

_LISTED = 3
"""Reasons told of one job; the first are the plainest."""


def never_fits(job: JobState, ledger: Ledger) -> list[str]:
    """Why a waiting job cannot run on its cluster's nodes, even if nothing else ran; empty where nothing proves that."""
    if job.phase not in {Phase.WAITING, Phase.HELD}:
        return []
    obstacles = outgrown(job, ledger.nodes_of(job.cluster))
    if not obstacles:
        return []
    found = " ".join(map(in_words, obstacles[:_LISTED]))
    return [f"The nodes of cluster {job.cluster} cannot hold it, even if nothing else ran. {found}"]
