"""Whether a level could make a frontend stop a running job, by the settings that it states of its queues.

One integer both queues and preempts in Kueue: a job that is lifted above a running one may be given its place. That
is fairness by eviction, and not what a level is for (Kueue documentation, "Preemption"; KEP-7990). Another frontend's
settings need no entry here: what is not known counts as dangerous.
"""

from collections.abc import Mapping

_SAFE: Mapping[str, frozenset[str]] = {
    "withinClusterQueue": frozenset({"Never"}),
    # Any reclaims what belongs to the queue whatever the levels say.
    "reclaimWithinCohort": frozenset({"Never", "Any"}),
    "borrowWithinCohort": frozenset({"Never"}),
}
"""By setting, the values under which levels decide nothing."""


def preempting_settings(preemption: Mapping[str, str]) -> dict[str, str]:
    """The settings of a queue under which a level could stop a running job.

    A setting or a value that is not known here counts as one that could: to write nothing is never the wrong guess.
    """
    return {name: value for name, value in preemption.items() if value not in _SAFE.get(name, frozenset())}
