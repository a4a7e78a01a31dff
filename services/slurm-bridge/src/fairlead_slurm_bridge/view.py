"""All that a slurmctld has, as it is stated: readings come in, what is stated differently comes out. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fairlead_contracts.frontend.capabilities import SLURM, Capabilities, TieRule
from fairlead_contracts.messages.state import (
    JobState,
    NodeState,
    Phase,
    PoolState,
    QueueState,
    State,
    TenantState,
    subject_of,
)
from fairlead_slurm import (
    UNLABELLED,
    Ladder,
    SlurmAccount,
    SlurmJob,
    SlurmNode,
    SlurmPartition,
    SlurmSettings,
)
from fairlead_slurm_bridge.domains import Naming, domains
from fairlead_slurm_bridge.first_seen import FirstSeen, Remembered
from fairlead_slurm_bridge.jobs import NO_EPOCH, UNSTAMPED, Frame, state_of
from fairlead_slurm_bridge.waiting_places import Waiting, traded
from fairlead_slurm_bridge.windows import placed

type Statements = dict[str, State | None]
"""By subject; None where the object is gone."""

FRONTEND = "slurm"
MULTIFACTOR = "priority/multifactor"
_MOST_LEVELS = 1_000_000


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What changes seldom."""

    nodes: Sequence[SlurmNode]
    partitions: Sequence[SlurmPartition]
    accounts: Sequence[SlurmAccount]
    settings: SlurmSettings

    @property
    def ladder(self) -> Ladder:
        """How levels are written."""
        return Ladder.over(self.settings.own_priority)

    @property
    def highest_level(self) -> int:
        """0 where SiteFactor counts nothing."""
        if self.settings.priority_type != MULTIFACTOR:
            return UNLABELLED
        return min(self.ladder.highest, _MOST_LEVELS)


class View:
    """What is stated of one cluster.

    Args:
        cluster: its name.
        naming: of resources.
        qos_classes: the class that a job of a QOS asks for.
        array_window: how many waiting tasks of an array have a place.
        first_seen: when jobs were first submitted.
    """

    def __init__(
        self,
        cluster: str,
        *,
        naming: Naming,
        qos_classes: Mapping[str, str],
        array_window: int,
        first_seen: FirstSeen,
    ) -> None:
        self._cluster = cluster
        self._naming = naming
        self._qos_classes = qos_classes
        self._array_window = array_window
        self._first_seen = first_seen
        self._stated: dict[str, State] = {}
        self._jobs: dict[str, tuple[SlurmJob, JobState]] = {}
        """By id: as read, and as translated before anybody traded places."""
        self._surroundings: Surroundings | None = None
        self.phases: Counter[Phase] = Counter()
        """How many jobs are stated, by phase."""

    # --- what comes in

    def surround(self, surroundings: Surroundings) -> Statements:
        """What the cluster has beside jobs; returns what is stated differently."""
        if surroundings == self._surroundings:
            return {}
        if self._surroundings is None or surroundings.ladder != self._surroundings.ladder:
            self._jobs.clear()  # levels mean something else now
        self._surroundings = surroundings
        return self._settle(self._around(surroundings), of_jobs=False)

    def read(self, jobs: Sequence[SlurmJob]) -> tuple[Statements, Remembered]:
        """All jobs that there are; returns what is stated differently, and what is to be remembered."""
        surroundings = self._known()
        remembered = self._first_seen.take(jobs)
        frame = Frame(
            cluster=self._cluster,
            ladder=surroundings.ladder,
            naming=self._naming,
            qos_classes=self._qos_classes,
        )
        self._jobs = {job.id: self._translated(job, frame) for job in placed(jobs, self._array_window)}
        since = traded(_waiting(self._jobs.values()))
        states = [
            msgspec.structs.replace(state, submitted=since[state.id]) if state.id in since else state
            for _, state in self._jobs.values()
        ]
        self.phases = Counter(state.phase for state in states)
        return self._settle(states, of_jobs=True), remembered

    def levelled(self, job: str, level: int) -> Statements:
        """A level was written just now; returns what is stated differently."""
        found = self._jobs.get(job)
        if found is None:
            return {}
        read, state = found
        ladder = self._known().ladder
        lifted = msgspec.structs.replace(read, priority=level * ladder.step + read.priority % ladder.step)
        self._jobs[job] = lifted, msgspec.structs.replace(state, level=level)
        subject = subject_of(state)
        before = self._stated.get(subject)
        if not isinstance(before, JobState) or before.level == level:
            return {}
        after = self._stated[subject] = msgspec.structs.replace(before, level=level)
        return {subject: after}

    # --- what is asked

    @property
    def surroundings(self) -> Surroundings | None:
        """What the cluster has beside jobs; None before the first reading."""
        return self._surroundings

    def waiting(self, job: str, uid: str) -> SlurmJob | None:
        """The job as it was read last; None where no such one waits."""
        found = self._jobs.get(job)
        if found is None or found[1].uid != uid or found[1].phase not in (Phase.WAITING, Phase.HELD):
            return None
        return found[0]

    def uid_of(self, job: str) -> str | None:
        """The uid of the job that has this id now."""
        found = self._jobs.get(job)
        return None if found is None else found[1].uid

    # --- how

    def _known(self) -> Surroundings:
        if self._surroundings is None:
            raise LookupError("nothing was read of the cluster yet")
        return self._surroundings

    def _translated(self, job: SlurmJob, frame: Frame) -> tuple[SlurmJob, JobState]:
        before = self._jobs.get(job.id)
        if before is not None and before[0] == job:
            return before
        return job, state_of(job, self._first_seen.since(job.id), frame)

    def _around(self, known: Surroundings) -> list[State]:
        found = domains(known.partitions, known.nodes, self._naming)
        pool_of = {partition: domain.name for domain in found for partition in domain.partitions}
        stamp = {"cluster": self._cluster, "epoch": NO_EPOCH, "rev": UNSTAMPED}
        states: list[State] = [
            NodeState(
                **stamp,  # type: ignore[arg-type] # cluster is text, the others numbers
                name=node.name,
                allocatable=self._naming.amounts(node.resources),
                labels=dict.fromkeys(node.features, "true"),
                ready=node.usable,
            )
            for node in known.nodes
        ]
        states += [
            PoolState(**stamp, name=domain.name, capacity=domain.capacity)  # type: ignore[arg-type] # as above
            for domain in found
        ]
        able = _capabilities(known.settings)
        for partition in known.partitions:
            states.append(
                QueueState(
                    **stamp,  # type: ignore[arg-type] # as above
                    name=partition.name,
                    pool=pool_of[partition.name],
                    frontend=FRONTEND,
                    default_level=UNLABELLED,
                    lowest_level=UNLABELLED + 1,
                    highest_level=known.highest_level,
                    active=partition.up,
                    capabilities=able,
                )
            )
            states += [
                TenantState(**stamp, name=partition.name, scope=account, queue=partition.name)  # type: ignore[arg-type] # as above
                for account in _leaves(known.accounts)
            ]
        return states

    def _settle(self, states: Iterable[State], *, of_jobs: bool) -> Statements:
        now = {subject_of(state): state for state in states}
        before = {
            subject: state
            for subject, state in self._stated.items()
            if isinstance(state, JobState) is of_jobs
        }
        changed: Statements = {
            subject: state for subject, state in now.items() if before.get(subject) != state
        }
        changed |= dict.fromkeys(before.keys() - now.keys())
        for subject, state in changed.items():
            if state is None:
                del self._stated[subject]
            else:
                self._stated[subject] = state
        return changed


def _waiting(jobs: Iterable[tuple[SlurmJob, JobState]]) -> Iterable[Waiting]:
    for read, state in jobs:
        if state.phase is Phase.WAITING:
            yield Waiting(
                id=state.id,
                group=(state.scope, state.queue, state.requested_class),
                nice=read.nice,
                since=state.submitted,
            )


def _leaves(accounts: Sequence[SlurmAccount]) -> list[str]:
    parents = {account.parent for account in accounts}
    return [account.name for account in accounts if account.name not in parents]


def _capabilities(settings: SlurmSettings) -> Capabilities:
    """Where Slurm's own factors count, they sort what is equal: no tie can be told, and each place needs a level."""
    if not settings.own_priority:
        return SLURM
    return msgspec.structs.replace(SLURM, ties=TieRule.CHANCE)
