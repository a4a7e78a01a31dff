"""Capabilities of the frontends that ship with Fairlead, which state them with their queues.

Facts that state less, those of a snapshot or of an older release, leave it to the frontend's name: they are read by it here,
and nothing else asks for one.
"""

from collections.abc import Mapping

import msgspec

from fairlead_contracts.frontend.capabilities import Capabilities, TieRule

KUEUE_HARMLESS: Mapping[str, tuple[str, ...]] = {
    "withinClusterQueue": ("Never",),
    # Any reclaims what belongs to the queue whatever the levels say; from whom, the levels of what runs say.
    "reclaimWithinCohort": ("Never", "Any"),
    "borrowWithinCohort": ("Never",),
}
"""Kueue's settings."""
KUEUE_PARKING = "BestEffortFIFO"
"""Kueue's strategy that parks Workloads. Under the other one it tries the head of the queue again and again."""
KUEUE_BLOCKING = "StrictFIFO"
"""The other one: nobody behind the head is tried."""

KUEUE = Capabilities(
    ties=TieRule.SECOND,
    orders_across_queues=False,
    open_queues=False,
    preempted="Preempted",
    harmless_settings=KUEUE_HARMLESS,
    parking_strategy=KUEUE_PARKING,
    blocking_strategy=KUEUE_BLOCKING,
    # `requeueBatchPeriod` (pkg/cache/queue).
    retry_seconds=1.0,
    # It takes some 0.04 s, but waits for an answer of the API server for each job that its cycle finds no room for.
    try_seconds=0.1,
    try_answers=10,
    # One at a time, a pool in which four jobs a second end and start anew falls behind, and the batch does most of it:
    # on Kueue 0.19, idle two cores, a slot stood free for 0.6 s.
    tries_at_once=4,
    starts_a_second=20,
    # Its own load on two cores: 0.06 to 0.41 s in most seconds in which levels come too late, 0.03 to 0.05 before it takes
    # all of them.
    quick_answer_seconds=0.05,
    priority_class="WorkloadPriorityClass",
    check_command="fairlead doctor",
)
"""Kueue. A ClusterQueue orders by the timestamp, in the whole seconds that Kubernetes writes, then by the UID
(`baseCompareFunc`, pkg/cache/queue/cluster_queue.go). Between the heads of two ClusterQueues the timestamp is
the last thing compared (`entryOrdering.Less`, pkg/scheduler/scheduler.go)."""
SLURM = Capabilities(
    ties=TieRule.JOB_NUMBER,
    judges_demand=True,
    batch=256,
    labelled_ahead=32,
    check_command="fairlead slurm check",
)
"""Slurm with priority weights of 0; with others its own factors sort what is equal. It orders by the submit
time, a `time_t`, then by the job id and the number of the array's task (`sort_job_queue2`,
src/slurmctld/job_scheduler.c)."""
SIMULATED = Capabilities(needs_leave=False, batch=256, check_command="")
"""The simulated cluster. It needs nobody's leave: there is nothing to break."""

SHIPPED = {"kueue": KUEUE, "slurm": SLURM, "sim": SIMULATED}
"""Capabilities by a frontend's name, for facts that do not state them: a snapshot's, an older release's."""
_UNKNOWN = Capabilities()
_KUEUES_WORDS: Mapping[str, object] = {
    "harmless_settings": KUEUE_HARMLESS,
    "parking_strategy": KUEUE_PARKING,
    "blocking_strategy": KUEUE_BLOCKING,
}


def shipped_capabilities(frontend: str) -> Capabilities:
    """The capabilities of a frontend by its name, where its facts do not state them."""
    return SHIPPED.get(frontend, _UNKNOWN)


def unless_shipped(frontend: str, able: Capabilities) -> Capabilities | None:
    """The capabilities as a snapshot states them: None where the frontend's name says them all."""
    return None if able == SHIPPED.get(frontend) else able


def completed(stated: Capabilities) -> Capabilities:
    """The capabilities, with Kueue's words for settings and strategies of which nothing is stated.

    So facts of an older release are read, and snapshots that leave it out: no other frontend's queues have such words.
    """
    unstated = {name: value for name, value in _KUEUES_WORDS.items() if getattr(stated, name) is None}
    return msgspec.structs.replace(stated, **unstated) if unstated else stated


class AbleQueue:
    """A queue as its frontend's capabilities explain it."""

    __slots__ = ()
    frontend: str
    preemption: dict[str, str]
    capabilities: Capabilities | None

    @property
    def able(self) -> Capabilities:
        """The frontend's capabilities, by the queue's own word or else by its name."""
        return self.capabilities or shipped_capabilities(self.frontend)

    @property
    def preempting(self) -> dict[str, str]:
        """The queue's preemption settings under which a level could stop a running job."""
        return completed(self.able).preempting(self.preemption)

    @property
    def mending(self) -> list[str]:
        """The values that make these settings harmless, the first of each, as far as its frontend says any."""
        return completed(self.able).mending(sorted(self.preempting))
