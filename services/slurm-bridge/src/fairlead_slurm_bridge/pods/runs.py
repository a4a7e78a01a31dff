"""Ends of jobs' programs, and the nodes of their processes, where slurmctld may forget them.

A slurmctld that is killed comes back as it was some seconds before. It then starts a job whose program runs or has run, and
slurmd refuses a second process of a job that it has not been told the end of, which costs the node: Slurm drains it. Only the
end of an attempt, which a prolog brings about by failing, makes slurmctld tell slurmd. So the attempt is refused there, and the
program belongs to the next one: no program runs twice, and no node is drained.

slurmctld may hear that this end is over before it is. It has slurmd abort a process that it does not know: slurmd runs the
job's epilog then, holds the job until that is done, and meanwhile calls any other end of the job done at once
(_rpc_terminate_job and _rpc_abort_job, slurmd/req.c). So the next attempt waits until the epilog has told it here.
"""

from collections.abc import Callable

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.pods.state_timer import RESTART_SECONDS
from fairlead_slurm_bridge.store import EndedProgram, HeldNode, SubmissionStore

NEXT = 2**62
"""Submit time in place of that of an attempt that is still to come: whichever begins next."""
LONG_AGO = 0
"""Submit time in place of that of an attempt that slurmctld is not asked about."""


class Runs:
    """The runs of one partition's jobs.

    Args:
        store: keeps runs over restarts.
        clock: wall seconds.
    """

    def __init__(self, store: SubmissionStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._runs = {run.job: run for run in store.runs()}
        self._held_nodes: dict[int, dict[str, HeldNode]] = {}
        for held in store.held_nodes():
            self._held_nodes.setdefault(held.job, {})[held.node] = held
        self._told: dict[int, float] = {}
        """Time at which slurmd was told a job's end, by job, where that was a moment ago."""

    # --- programs

    def ended(self, attempt: Attempt, submitted: Micros, identity: str, code: int) -> None:
        """Note that the program of this attempt has ended by itself."""
        self._keep(EndedProgram(job=attempt.job, restarts=attempt.restarts, submitted=submitted, identity=identity, code=code))  # fmt: skip

    def begins(self, job: int) -> None:
        """Note that a pod is made for the job, so that its earlier programs are past."""
        if self._runs.pop(job, None) is not None:
            self._store.forget_run(job)

    def knows(self, job: int) -> bool:
        """Whether a program of the job has ended that may be asked for again."""
        return job in self._runs

    def replay(self, attempt: Attempt, submitted: Micros, identity: str) -> bool:
        """Whether the program of this attempt has run to its end already: then its next process is told the code at once.

        To forget is to go back in time: an attempt that was submitted later is another one, which is to run.
        """
        run = self._runs.get(attempt.job)
        if run is None or not is_of(run.restarts, run.submitted, attempt, submitted):
            return False
        if run.identity != identity:
            return False
        changes = {"restarts": attempt.restarts, "submitted": submitted, "replayed": attempt.restarts}
        self._keep(msgspec.structs.replace(run, **changes))
        return True

    def code_again(self, attempt: Attempt) -> int | None:
        """The exit code to replay to a process whose program is not run once more; None for nothing."""
        run = self._runs.get(attempt.job)
        return None if run is None or run.replayed != attempt.restarts else run.code

    def code_of(self, attempt: Attempt, submitted: Micros) -> int | None:
        """The exit code of this attempt's program; None where it is not known."""
        run = self._runs.get(attempt.job)
        if run is None or not is_of(run.restarts, run.submitted, attempt, submitted):
            return None
        return run.code

    def hand_on(self, attempt: Attempt, submitted: Micros) -> None:
        """Give an end to the next attempt, as this one goes back though its program may have ended."""
        run = self._runs.get(attempt.job)
        if run is not None and is_of(run.restarts, run.submitted, attempt, submitted):
            self._keep(msgspec.structs.replace(run, restarts=attempt.restarts + 1, submitted=NEXT))

    def take_back(self, attempt: Attempt, submitted: Micros) -> None:
        """Take back an end that was handed on: the attempt has not gone back into the queue."""
        run = self._runs.get(attempt.job)
        if run is not None and (run.restarts, run.submitted) == (attempt.restarts + 1, NEXT):
            self._keep(msgspec.structs.replace(run, restarts=attempt.restarts, submitted=submitted))

    # --- nodes

    def starts(self, attempt: Attempt, node: str) -> None:
        """Note that the attempt may start on that node from now on."""
        known = self._held_nodes.get(attempt.job, {}).get(node)
        if known is None or known.restarts != attempt.restarts:
            self._keep_held_node(HeldNode(job=attempt.job, node=node, restarts=attempt.restarts))

    def reported_in(self, attempt: Attempt, node: str) -> None:
        """Record that the attempt's process reported in. Its own word of its node counts without a prolog's."""
        known = self._held_nodes.get(attempt.job, {})
        if not known or node in known:
            self._keep_held_node(
                HeldNode(job=attempt.job, node=node, restarts=attempt.restarts, reported_in=True)
            )

    def held_node(self, attempt: Attempt, node: str) -> HeldNode | None:
        """The node, if its slurmd may still hold the job and so refuse this attempt; else None.

        A later attempt than the one let start there shows that slurmd was told the end.
        """
        found = self._held_nodes.get(attempt.job, {}).get(node)
        return found if found is not None and attempt.restarts <= found.restarts else None

    def slurmd_untold(self, attempt: Attempt, node: str) -> bool:
        """Whether the node's slurmd may still hold an earlier attempt of the job, whose end no epilog has told."""
        found = self._held_nodes.get(attempt.job, {}).get(node)
        return found is not None and found.restarts < attempt.restarts

    def refused(self, attempt: Attempt, node: str) -> None:
        """Note that this attempt is refused there, so that slurmd is told its end and the next may start."""
        if self.held_node(attempt, node) is not None:  # else slurmd was told while its program was handed on
            self._keep_held_node(HeldNode(job=attempt.job, node=node, restarts=attempt.restarts))

    def slurmd_told(self, job: int, node: str) -> None:
        """Note that slurmd on that node was told of the job's end."""
        now = self._clock()
        self._told = {one: at for one, at in self._told.items() if abs(now - at) < RESTART_SECONDS}
        self._told[job] = now
        known = self._held_nodes.get(job, {})
        if known.pop(node, None) is not None:
            self._store.forget_held_node(job, node)
        if not known:
            self._held_nodes.pop(job, None)

    def rest_seconds(self, job: int) -> float:
        """Seconds until slurmd takes the job again, see `state_timer`: few, whatever the clock says."""
        told = self._told.get(job)
        return 0.0 if told is None else min(RESTART_SECONDS, max(0.0, told + RESTART_SECONDS - self._clock()))

    def _keep_held_node(self, held: HeldNode) -> None:
        at = self._held_nodes.setdefault(held.job, {})
        if at.get(held.node) != held:
            at[held.node] = held
            self._store.keep_held_node(held, self._clock())

    def _keep(self, run: EndedProgram) -> None:
        self._runs[run.job] = run
        self._store.keep_run(run, self._clock())


def is_of(restarts: int, since: Micros, attempt: Attempt, submitted: Micros) -> bool:
    """Whether what was made for an attempt of that count, submitted then, is this one's, or a later one's that is forgotten."""
    return since == NEXT or (restarts >= attempt.restarts and since >= submitted)
