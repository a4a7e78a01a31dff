"""The statements about one slurmctld: readings come in, changed statements come out. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from fairlead_bus.facts.announcer import Statements
from fairlead_bus.facts.event_diff import RunEnd, is_one_job, is_told
from fairlead_contracts.frontend.capabilities import Capabilities, TieRule
from fairlead_contracts.frontend.shipped import SLURM
from fairlead_contracts.messages.state import (
    JobArray,
    JobState,
    NodeState,
    Phase,
    PoolState,
    QueueState,
    State,
    TenantState,
    subject_of,
)
from fairlead_slurm import SlurmJob
from fairlead_slurm.cluster import Licence, SlurmNode, SlurmPartition, SlurmSettings
from fairlead_slurm.ladder import FEWEST_LEVELS, LOWEST, UNLABELLED, Ladder
from fairlead_slurm.submitting import SubmissionMark
from fairlead_slurm_bridge.statements.ended_jobs import EndedJobs
from fairlead_slurm_bridge.statements.first_seen import (
    FirstSeen,
    WaitingTurn,
    instants_by_nice,
)
from fairlead_slurm_bridge.statements.hindrances import Hindrances, KeepingOut
from fairlead_slurm_bridge.statements.jobs import (
    NO_EPOCH,
    UNSTAMPED,
    ArrayRemainder,
    TranslationFacts,
    WindowedJobs,
    as_said_before,
    ended_somehow,
    first_instant,
    is_requeued_amid,
    positioned,
    rest_of,
    state_of,
    uid_of,
)
from fairlead_slurm_bridge.statements.limits import UserLimits
from fairlead_slurm_bridge.statements.partition_pools import Naming, partition_pools
from fairlead_slurm_bridge.statements.pool_backlogs import PoolBacklogs
from fairlead_slurm_bridge.statements.whole_nodes import WholeNodes

FRONTEND = "slurm"
MULTIFACTOR = "priority/multifactor"
_BY_QOS = "preempt/qos"
_MOST_LEVELS = 1_000_000
_BEFORE_A_START = (Phase.WAITING, Phase.HELD)
_SPLIT = -1
"""Number of a task's record that was split off since the last reading: no other record's."""


class SlurmContext(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster without its jobs, which seldom changes."""

    nodes: Sequence[SlurmNode]
    partitions: Sequence[SlurmPartition]
    accounts: Sequence[str]
    settings: SlurmSettings
    licences: Sequence[Licence] = ()

    @property
    def ladder(self) -> Ladder:
        """The rungs by which levels are written."""
        return Ladder.over(self.settings.own_priority)

    @property
    def highest_level(self) -> int:
        """The highest level of a job; 0 where SiteFactor counts nothing."""
        if self.settings.priority_type != MULTIFACTOR:
            return UNLABELLED
        return min(self.ladder.highest, _MOST_LEVELS)


@dataclass(eq=False)
class StatedView:
    """The statements about one cluster."""

    cluster: str
    """Name of the cluster."""
    naming: Naming
    qos_classes: Mapping[str, str]
    """The class that a job of a QOS asks for."""
    array_window: int
    """Number of an array's waiting tasks that have a position."""
    made_of: Callable[[str, SubmissionMark, str], bool] = lambda _scope, _mark, _job: True
    """Whether the job of an id may be what its mark says, in its account. By default its comment is believed."""
    _first_seen: FirstSeen = field(default_factory=FirstSeen, init=False)
    _stated: dict[str, State] = field(default_factory=dict, init=False)
    _jobs: dict[str, tuple[SlurmJob, JobState]] = field(default_factory=dict, init=False)
    """Jobs by id, as read and as translated before any trade of submit times; with tasks in the window of an
    array."""
    _made: dict[tuple[str, str], list[str]] | None = field(default=None, init=False)
    """Ids of the jobs that name a submission, by scope and submission; None since the last reading."""
    _written: dict[str, tuple[str, int]] = field(default_factory=dict, init=False)
    """The uid and the level of each job that was given one last, by id: a job that runs keeps its SiteFactor, for when
    it is requeued."""
    _untold: int = field(default=LOWEST, init=False)
    """The level of a job of which nothing tells one. Slurm shows no SiteFactor but in the priority, and before the first
    reading whatever stands was written by others: so any of them may have one, and it is taken away. New jobs have none."""
    _rests: dict[int, tuple[ArrayRemainder, JobState]] = field(default_factory=dict, init=False)
    """Remainders of arrays, by array."""
    _context: SlurmContext | None = field(default=None, init=False)
    _whole_nodes: WholeNodes = field(default_factory=lambda: WholeNodes(()), init=False)
    _backlogs: PoolBacklogs = field(default_factory=lambda: PoolBacklogs(()), init=False)
    _limits: UserLimits = field(default_factory=UserLimits, init=False)
    _hindrances: Hindrances = field(default_factory=Hindrances, init=False)
    _keeping_out: KeepingOut = field(default_factory=KeepingOut, init=False)
    _niced: bool = field(default=False, init=False)
    """Whether a waiting job had a nice: it sorts jobs of one level from then on, beside what Slurm says of ties."""
    ended: EndedJobs = field(default_factory=EndedJobs, init=False)
    phases: Counter[Phase] = field(default_factory=Counter, init=False)
    """Number of stated jobs, by phase."""

    # --- what comes in

    def take_context(self, context: SlurmContext) -> Statements:
        """Take in the cluster without its jobs; returns changed statements."""
        if context == self._context:
            return {}
        if self._context is None or context.ladder != self._context.ladder:
            self._jobs.clear()  # levels mean something else now
            self._rests.clear()
        self._context = context
        self._whole_nodes = WholeNodes(context.nodes)
        return self._settle(self._around(context), of_jobs=False)

    def read(self, jobs: Sequence[SlurmJob]) -> Statements:
        """Take in all jobs that there are; returns changed statements."""
        context = self._known()
        found = (one for job in jobs for one in self._backlogs.by_pool(self._whole_nodes.taken_by(job)))
        apart = [as_said_before(job, self._jobs[job.id][0]) if job.id in self._jobs else job for job in found]
        self._first_seen.take(apart)
        self._translate(positioned(apart, self.array_window), context)
        self._untold = UNLABELLED
        told = list(self._told())
        around = self._settle(self._around(context), of_jobs=False) if self._meets_nice(told) else {}
        states = self._limited(self._in_turn(told))
        self.phases = Counter(state.phase for state in states)
        return around | self._settle(states, of_jobs=True)

    def _told(self) -> Iterator[tuple[SlurmJob, JobState]]:
        """The jobs that are stated by themselves, and the remainders of arrays, each as one."""
        yield from (one for one in self._jobs.values() if not self._is_of_rest(one[0]))
        yield from ((rest.first, state) for rest, state in self._rests.values())

    def _meets_nice(self, told: Iterable[tuple[SlurmJob, JobState]]) -> bool:
        """Whether this is the first reading in which a waiting job has a nice."""
        if self._niced:
            return False
        self._niced = any(job.nice and state.phase is Phase.WAITING for job, state in told)
        return self._niced

    def _in_turn(self, told: Sequence[tuple[SlurmJob, JobState]]) -> list[tuple[SlurmJob, JobState]]:
        """The jobs in the partitions that they are ranked in, with the instants that count for them."""
        spanning = {state.uid for _, state in told if self._backlogs.spans(state)}
        if spanning:
            self._backlogs.count(state for _, state in told)
        ranked = [(job, self._ranked(state) if state.uid in spanning else state) for job, state in told]
        since = instants_by_nice(_turns(ranked))
        return [
            (job, msgspec.structs.replace(state, submitted=since[state.uid]) if state.uid in since else state)
            for job, state in ranked
        ]

    def _ranked(self, state: JobState) -> JobState:
        before = self._stated.get(subject_of(state))
        queues = self._backlogs.ranked_first(state, before.queue if isinstance(before, JobState) else None)
        return msgspec.structs.replace(state, queue=queues[0], queues=queues)

    def _limited(self, told: Sequence[tuple[SlurmJob, JobState]]) -> list[JobState]:
        """The statements; of those that a limit of Slurm's holds back one keeps its position for all."""
        waiting = [one for one in told if one[1].phase is Phase.WAITING]
        missing = self._hindrances.hindered([job for job, _ in waiting], self._keeping_out)
        limited = self._limits.limited(waiting)
        return [_limited(state, limited.get(state.uid), missing.get(job.id)) for job, state in told]

    def levelled(self, job: str, level: int) -> Statements:
        """Take in a level that was written just now; returns changed statements."""
        found = self._jobs.get(job)
        if found is None:
            return {}
        read, state = found
        if self._is_of_rest(read):
            return self._split_off(read, state, level)
        self._lift(read, state, level)
        subject = subject_of(state)
        before = self._stated.get(subject)
        if not isinstance(before, JobState) or before.level == level:
            return {}
        after = self._stated[subject] = msgspec.structs.replace(before, level=level)
        return {subject: after}

    def _split_off(self, job: SlurmJob, state: JobState, level: int) -> Statements:
        """State a task by itself, and its array without it: it has a record of its own from now on."""
        rest, stated = self._rests[job.array]
        window = tuple(one for one in rest.window if one.id != job.id)
        before = self._stated.get(subject_of(stated))
        if not isinstance(before, JobState):
            return {}
        own = msgspec.structs.replace(before, id=state.id, uid=state.uid, array=None, level=level)
        changed: Statements = {subject_of(own): own}
        self._lift(msgspec.structs.replace(job, number=_SPLIT), state, level)
        self._rests[job.array] = msgspec.structs.replace(rest, tasks=rest.tasks - 1, window=window), stated
        array = JobArray(tasks=rest.tasks - 1, window=[one.task or 0 for one in window])
        changed[subject_of(stated)] = msgspec.structs.replace(before, array=array)
        for subject, after in changed.items():
            if after is not None:
                self._stated[subject] = after
        return changed

    def _lift(self, job: SlurmJob, state: JobState, level: int) -> None:
        ladder = self._known().ladder
        moved = ladder.site_factor(level, job.nice) - ladder.site_factor(state.level, job.nice)
        # A held job has no priority; and as read it may have one that its nice has cut off.
        lifted = msgspec.structs.replace(job, priority=max(1, job.priority + moved) if job.priority else 0)
        self._jobs[job.id] = lifted, msgspec.structs.replace(state, level=level)
        self._note_level(job.id, state.uid, level)

    def _note_level(self, job: str, uid: str, level: int) -> None:
        if level == UNLABELLED:
            self._written.pop(job, None)
        else:
            self._written[job] = uid, level

    def adopt(self, stood: Mapping[str, State]) -> Statements:
        """Take in what stands on NATS as this bridge takes the lead; returns changed statements.

        Jobs that this view has not, or knows by another first instant, are as NATS has them until the next reading. Ends are
        owed as NATS says: those that were owed here and are not there have been told.
        """
        forgotten = self.forget_owed()
        own = {subject: state.uid for subject, state in self._stated.items() if isinstance(state, JobState)}
        adopted = {
            subject: msgspec.structs.replace(state, epoch=NO_EPOCH, rev=UNSTAMPED)
            for subject, state in stood.items()
            if isinstance(state, JobState) and own.get(subject) != state.uid
        }
        since = dict(filter(None, map(first_instant, adopted.values())))
        self._first_seen.adopt(since)
        self._jobs = {id_: one for id_, one in self._jobs.items() if str(one[0].array) not in since}
        self._rests = {array: one for array, one in self._rests.items() if str(array) not in since}
        self._stated |= adopted
        return forgotten | adopted

    def forget_owed(self) -> Statements:
        """State the jobs whose ends are owed no more; returns changed statements."""
        owed = self.owed()
        for subject in owed:
            del self._stated[subject]
        return dict.fromkeys(owed)

    def settle(self, ends: Mapping[str, RunEnd]) -> Statements:
        """State those owed jobs no more whose ends are here by uid; returns changed statements."""
        settled = {subject: job.uid for subject, job in self.owed().items() if job.uid in ends}
        self.ended.keep({uid: ends[uid] for uid in settled.values()})
        for subject in settled:
            del self._stated[subject]
        return dict.fromkeys(settled)

    # --- what is asked

    def owed(self) -> dict[str, JobState]:
        """The jobs whose ends are still to be told, by subject: slurmctld forgot them before they were read."""
        return {
            subject: state
            for subject, state in self._stated.items()
            if is_one_job(state) and state.phase is Phase.ENDED and not is_told(state)
        }

    @property
    def context(self) -> SlurmContext | None:
        """The cluster without its jobs; None before the first reading."""
        return self._context

    def partition_of(self, name: str | None) -> str | None:
        """The partition of that name, or the default one; None where there is none or nothing was read."""
        known = () if self._context is None else self._context.partitions
        return next(
            (one.name for one in known if (one.is_default if name is None else one.name == name)), None
        )

    def waiting(self, job: str, uid: str) -> SlurmJob | None:
        """The job as it was read last; None where no such one waits."""
        found = self._jobs.get(job)
        if found is None or found[1].uid != uid or found[1].phase not in _BEFORE_A_START:
            return None
        return found[0]

    def uid_of(self, job: str) -> str | None:
        """The uid of the job that has this id now."""
        found = self._jobs.get(job)
        return None if found is None else found[1].uid

    def unseen(self, ended: Iterable[SlurmJob]) -> list[JobState]:
        """The statements of those of these jobs, which have ended as accounting has them, that slurmctld has no more."""
        facts = self._facts(self._known())
        owed = {job.uid for job in self.owed().values()}
        states = (
            state_of(job, self._first_seen.since_of_ended(job), facts)
            for job in ended
            if job.id not in self._jobs
        )
        return [one for one in states if one.uid not in owed and self.ended.end_of(one) is None]

    def jobs_of(self, scope: str, submission: str) -> list[str]:
        """The ids of the jobs that were made of this submission, as far as they and the bridge's notes tell."""
        if self._made is None:
            self._made = {}
            for _, state in self._jobs.values():
                if state.submission is not None:
                    self._made.setdefault((state.scope, state.submission), []).append(state.id)
        return self._made.get((scope, submission), [])

    # --- how

    def _known(self) -> SlurmContext:
        if self._context is None:
            raise LookupError("nothing was read of the cluster yet")
        return self._context

    def _translate(self, found: WindowedJobs, context: SlurmContext) -> None:
        facts = self._facts(context)
        window = [job for rest in found.rests for job in rest.window]
        self._made = None
        self._jobs = {job.id: self._translated(job, facts) for job in (*found.alone, *window)}
        self._rests = {rest.first.array: self._translated_rest(rest, facts) for rest in found.rests}
        self._written = {job: known for job, known in self._written.items() if job in self._jobs}

    def _facts(self, context: SlurmContext) -> TranslationFacts:
        return TranslationFacts(
            cluster=self.cluster,
            ladder=context.ladder,
            naming=self.naming,
            qos_classes=self.qos_classes,
            made_of=self.made_of,
        )

    def _translated(self, job: SlurmJob, facts: TranslationFacts) -> tuple[SlurmJob, JobState]:
        before = self._jobs.get(job.id)
        if before is not None and before[0] == job:
            return before
        since = self._first_seen.since(job)
        uid = uid_of(facts.cluster, job.array, job.task, since)
        of, level = self._written.get(job.id, (uid, self._untold))
        written = level if of == uid else UNLABELLED
        state = state_of(job, since, facts, written)
        if before is not None and is_requeued_amid(job):
            state = msgspec.structs.replace(state, started=before[1].started)
        self._note_level(job.id, uid, state.level if state.phase in _BEFORE_A_START else written)
        return job, state

    def _translated_rest(
        self, rest: ArrayRemainder, facts: TranslationFacts
    ) -> tuple[ArrayRemainder, JobState]:
        before = self._rests.get(rest.first.array)
        if before is not None and before[0] == rest:
            return before
        return rest, rest_of(rest, self._first_seen.since(rest.first), facts)

    def _is_of_rest(self, job: SlurmJob) -> bool:
        """Whether the job is stated by its array, not by itself."""
        rest = self._rests.get(job.array)
        return rest is not None and job.number == rest[0].first.number

    def _around(self, known: SlurmContext) -> list[State]:
        found = partition_pools(known.partitions, known.nodes, self.naming)
        self._backlogs = PoolBacklogs(found)
        pool_of = {partition: pool.name for pool in found for partition in pool.partitions}
        # Of a pool that starts nobody all keep their turn: when it opens, Slurm goes by the levels that stand.
        open_ = {pool_of[one.name] for one in known.partitions if one.up}
        self._keeping_out = KeepingOut(
            partitions={one.name: one for one in known.partitions},
            closed=frozenset(
                one.name for one in known.partitions if not one.up and pool_of[one.name] in open_
            ),
            licences={one.name: one.total - one.used - one.reserved for one in known.licences},
            lists_are_exact=not known.settings.nests_accounts,
        )
        stamp = {"cluster": self.cluster, "epoch": NO_EPOCH, "rev": UNSTAMPED}
        states: list[State] = [
            NodeState(
                **stamp,  # type: ignore[arg-type] # cluster is text, the others numbers
                name=node.name,
                allocatable=self.naming.amounts(node.resources),
                labels=dict.fromkeys(node.features, "true"),
                ready=node.usable,
            )
            for node in known.nodes
        ]
        states += [
            PoolState(**stamp, **_followed(known), name=pool.name, capacity=pool.capacity, common=pool.common)  # type: ignore[arg-type] # as above
            for pool in found
        ]
        able = _capabilities(known.settings, niced=self._niced)
        for partition in known.partitions:
            states.append(
                QueueState(
                    **stamp,  # type: ignore[arg-type] # as above
                    name=partition.name,
                    pool=pool_of[partition.name],
                    frontend=FRONTEND,
                    default_level=UNLABELLED,
                    lowest_level=LOWEST,
                    highest_level=known.highest_level,
                    active=partition.up,
                    capabilities=able,
                )
            )
            states += [
                TenantState(**stamp, name=partition.name, scope=account, queue=partition.name)  # type: ignore[arg-type] # as above
                for account in known.accounts
            ]
        return states

    def _settle(self, states: Iterable[State], *, of_jobs: bool) -> Statements:
        now = {subject_of(state): state for state in states}
        before = {
            subject: state
            for subject, state in self._stated.items()
            if isinstance(state, JobState) is of_jobs
        }
        if of_jobs:
            now |= self._lost(before, now)
        changed: Statements = {
            subject: state for subject, state in now.items() if before.get(subject) != state
        }
        changed |= dict.fromkeys(before.keys() - now.keys())
        gone = (self._stated[subject] for subject, state in changed.items() if state is None)
        self.ended.keep(
            {
                one.uid: RunEnd(at=one.ended, outcome=one.outcome, started=one.started)
                for one in gone
                if isinstance(one, JobState) and one.ended is not None and one.outcome is not None
            }
        )
        for subject, state in changed.items():
            if state is None:
                del self._stated[subject]
            else:
                self._stated[subject] = state
        return changed

    def _lost(self, before: Mapping[str, State], now: Mapping[str, State]) -> dict[str, State]:
        """The jobs that are gone without anybody knowing how they ended: stated as such until accounting tells."""
        if not self._known().settings.has_accounting:
            return {}
        gone = {subject: before[subject] for subject in before.keys() - now.keys()}
        there = {one.uid for one in now.values() if isinstance(one, JobState)} if gone else set()
        return {
            subject: ended_somehow(job)
            for subject, job in gone.items()
            if is_one_job(job)
            and not is_told(job)
            and job.uid not in there
            and self.ended.end_of(job) is None
        }


def _limited(state: JobState, why_unranked: str | None, missing: str | None) -> JobState:
    """The job's statement; as one that others start past where a limit reaches it or what it asks for is missing."""
    if why_unranked:
        return msgspec.structs.replace(state, phase=Phase.HELD, held_by=why_unranked)
    if why_unranked is None and missing is None:
        return state
    return msgspec.structs.replace(state, limited=True, said=missing or state.said)


def _turns(told: Iterable[tuple[SlurmJob, JobState]]) -> Iterator[WaitingTurn]:
    """The jobs that may trade places: single ones, and arrays as one."""
    for job, state in told:
        if state.phase is Phase.WAITING:
            group = (state.scope, state.queue, state.requested_class)
            yield WaitingTurn(uid=state.uid, group=group, nice=job.nice, since=state.submitted)


def _followed(known: SlurmContext) -> dict[str, str]:
    """The enforcement of a pool that is not exact. slurmctld does not tell which QOS may stop which."""
    if known.highest_level < FEWEST_LEVELS:
        why = f"slurmctld's settings leave room for {known.highest_level} of {FEWEST_LEVELS} levels (`fairlead slurm check`)"
    elif unbounded := known.settings.unbounded_by:
        why = f"with {', '.join(unbounded)} Slurm's own factors may pass a level (`fairlead slurm check`)"
    elif known.settings.preempt_type == _BY_QOS:
        why = f"with {_BY_QOS} a job whose QOS may stop others starts from anywhere in the order"
    else:
        return {}
    return {"enforcement": "loose", "enforcement_why": why}


def _capabilities(settings: SlurmSettings, *, niced: bool) -> Capabilities:
    """The capabilities of a slurmctld with these settings. Where Slurm's own factors count, or a nice does, they sort what is equal: no tie can be told."""
    if not settings.own_priority and not niced:
        return SLURM
    return msgspec.structs.replace(SLURM, ties=TieRule.CHANCE)
