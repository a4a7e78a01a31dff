"""The admitter's mirrors: its cluster's state, all decisions, the policy bucket and the leases.

A standby sees the same, so that it knows everything at the moment it leads.
"""

import asyncio
import time
from collections.abc import Collection, Iterator
from operator import is_not

import msgspec
import structlog

from fairlead_admitter.observe.decision_gate import DecisionGate, DecisionVerdict, Holders
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_admitter.observe.policy_view import DOCUMENT_SUBJECT, PolicyView
from fairlead_bus import Bucket, Bus, RetryableBusError
from fairlead_bus.facts.mirrors import decision_mirror, policy_mirror, state_mirror
from fairlead_bus.ownership.roster import Roster
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.decisions import DECISION, Decision
from fairlead_contracts.messages.members import LeaderLease, MemberLease
from fairlead_contracts.messages.state import JobState, Phase, QueueState
from fairlead_contracts.policyfile.read import decode_document
from fairlead_policy.levels.operators import is_word, leave_of, lever_of, revocation_of, words_on
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.stated_jobs import JobChange

ADMITTER = "admitter"
"""The role of this service, one of which leads per cluster."""
STATE_SECONDS = 0.01
"""Seconds from a change of the state to the look at it: by then the decision on it has mostly come. Decisions wait for
nothing."""
SCORER = "scorer"
"""The role whose leases say who may decide."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The news of one look."""

    jobs: list[JobChange]
    judged: list[tuple[Decision, DecisionVerdict]]
    news: bool
    """Whether the changes happened just now; otherwise a first replay shows what happened long ago."""
    state_seq: int
    """The sequence of the state stream up to which the facts hold everything."""
    before_seq: int
    """The sequence of the state stream up to which the look before had everything."""
    at: float
    """Monotonic seconds at the look."""

    @property
    def started(self) -> Iterator[JobState]:
        """The jobs that started since the look before: their start instant is a new one."""
        for change in self.jobs:
            job, before = change.after, change.before
            if (
                job is not None
                and job.started is not None
                and job.started != (None if before is None else before.started)
            ):
                yield job


class DelayedEvent(asyncio.Event):
    """Sets another event a moment after it is set itself: changes that come until then are looked at together."""

    def __init__(self, other: asyncio.Event) -> None:
        super().__init__()
        self._other = other
        self._timer: asyncio.TimerHandle | None = None

    def set(self) -> None:
        """Has the other event set in a moment."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(STATE_SECONDS, self._set_other)

    def cancel(self) -> None:
        """Cancels the wake-up: a look came first, for another reason."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_other(self) -> None:
        self._timer = None
        self._other.set()


class Watch:
    """Looks at everything that a decision to write depends on."""

    def __init__(self, bus: Bus, cluster: str, wake: asyncio.Event) -> None:
        self.facts = ClusterFacts(cluster)
        self.gate = DecisionGate()
        self.policy = PolicyView()
        self.roster = Roster(bus, wake=wake, each_renewal=False)
        self._bus = bus
        self._leases: list[MemberLease] = []
        self._holders = Holders([])
        """Scorers that live and what they hold, made of these leases."""
        self._bucket = Bucket(bus, topology.POLICY)
        self._words_heard: dict[str, bytes | None] = {}
        self._shards: dict[str, tuple[str, int]] = {}
        self._known = asyncio.Event()
        self._history = 0
        """Number of the decision stream's history that the gate knows."""
        self._document_due = False
        self._replayed = False
        self._seq = 0
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        self._delayed_wake = DelayedEvent(wake)
        self._state = state_mirror(bus, cluster, self._delayed_wake)
        # `gate` drops what comes from the past.
        self._decisions = decision_mirror(bus, DECISION, wake)
        self._policy = policy_mirror(bus, wake)

    async def run(self) -> None:
        """Keep all mirrors until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._state.run(), name="mirror state")
            group.create_task(self._decisions.run(), name="mirror decisions")
            group.create_task(self._policy.run(), name="mirror policy")
            group.create_task(self.roster.run(), name="roster")

    def unknown(self) -> str | None:
        """The part that is not known completely just now; None if all is."""
        missing = [
            name
            for name, complete in (
                ("state", self._state.complete),
                ("decisions", self._decisions.complete),
                ("policy", self._policy.complete and not self._document_due),
                ("leases", self.roster.complete),
            )
            if not complete
        ]
        if missing:
            return f"the replay of {', '.join(missing)} is not complete{self._state.setback}"
        if not self._reconciled():
            return f"cluster {self.facts.cluster!r} has not stated its state on this server yet"
        return None

    def why_no_policy(self) -> str | None:
        """The reason for which there is no policy to follow; None where there is one. Levels are taken back without it."""
        return None if self.policy.rulebook is not None else "the policy bucket holds no valid document"

    def intake_known(self) -> bool:
        """Whether submissions can be judged: the cluster and the policy are known."""
        return (
            self._state.complete
            and self._reconciled()
            and self._policy.complete
            and not self._document_due
            and self.policy.rulebook is not None
        )

    def _reconciled(self) -> bool:
        """Whether the state is the cluster's. Without a mark of this server it may lack objects, or have deleted ones."""
        mark = self.facts.mark
        return mark is not None and mark.incarnation == self._bus.incarnation

    async def wait_known(self) -> None:
        """Return as soon as submissions can be judged."""
        while not self.intake_known():
            self._known.clear()
            await self._known.wait()

    def pools(self) -> dict[str, frozenset[str]]:
        """The cluster's queues, by the policy's pools."""
        return self.policy.queues_by_pool(self.facts.cluster, self.facts.queues)

    def pool_of(self, queue: str) -> str | None:
        """The policy's pool of a queue of the cluster; None for a queue that nobody states."""
        return next((pool for pool, queues in self.pools().items() if queue in queues), None)

    def holders(self) -> Holders:
        """The scorers that live now, and what they hold."""
        leases = list(self.roster.members(SCORER).values())
        # Each pool asks in each turn; a lease is replaced by another, and never changed.
        if len(leases) != len(self._leases) or any(map(is_not, leases, self._leases)):
            self._leases, self._holders = leases, Holders(leases)
        return self._holders

    def leader(self) -> LeaderLease | None:
        """The leader of this cluster's admitters, as the leases have it."""
        return self.roster.leader(ADMITTER, self.facts.cluster)

    def control_stands(self, pool: str) -> bool:
        """Whether the operators' words on the pool are still those of the last look: a pause stops writes at once."""
        cluster = self.facts.cluster
        words = [*words_on(pool), leave_of(cluster), revocation_of(cluster), lever_of(cluster)]
        return all(self._policy.values.get(word) == self._words_heard.get(word) for word in words)

    def words_heard(self, pool: str) -> tuple[bytes | None, ...]:
        """The operators' words on the pool, as the last look heard them: each that is said anew makes another value."""
        return tuple(map(self._words_heard.get, words_on(pool)))

    def room_comes(self, queues: Collection[str]) -> bool:
        """Whether a job of these queues is known to have ended since the last look."""
        for subject, value in self._state.pending.items():
            before = self.facts.stated(subject)
            ran = isinstance(before, JobState) and before.phase is Phase.RUNNING and before.queue in queues
            if ran and not (isinstance(value, JobState) and value.phase is Phase.RUNNING):
                return True
        return False

    def preemption_stands(self, queues: Collection[str]) -> bool:
        """Whether these queues preempt as they did at the last look: levels that were safe then are safe now."""
        for value in self._state.pending.values():
            if isinstance(value, QueueState) and value.name in queues:
                before = self.facts.queues.get(value.name)
                if before is not None and before.preemption != value.preemption:
                    return False
        return True

    async def look(self) -> Observation:
        """Takes in what changed since the last look."""
        await self._look_at_policy()
        self._delayed_wake.cancel()
        before_seq, state = self._seq, self._state.take()
        self._seq = state.seq
        jobs = self.facts.apply(state.changed)
        self._forget_epochs_of_old_stream()
        judged = []
        for subject, decision in self._decisions.take().changed.items():
            if decision is None:
                if subject in self._shards:
                    self.gate.withdraw(*self._shards.pop(subject))
            else:
                self._shards[subject] = (decision.pool, decision.shard)
                judged.append((decision, self.gate.accept(decision)))
        if self.intake_known():
            self._known.set()
        news, self._replayed = self._replayed, self._replayed or state.complete
        return Observation(
            jobs=jobs,
            judged=judged,
            news=news,
            state_seq=state.seq,
            before_seq=before_seq,
            at=time.monotonic(),
        )

    def _forget_epochs_of_old_stream(self) -> None:
        """Forgets decisions where their stream was made anew or put back: epochs are its sequences, and begin again."""
        if self._history != self._decisions.history:
            self._history, self.gate = self._decisions.history, DecisionGate()
            self._log.warning("the decision stream was made anew or put back: epochs begin again")

    async def _look_at_policy(self) -> None:
        changed = self._policy.take().changed
        for subject in filter(is_word, changed):
            self._words_heard[subject] = changed[subject]
            self.policy.words.hear(subject, changed[subject])
            if why := self.policy.words.unreadable.get(subject):
                self._log.error("an operator's word is unreadable, taken as a stop", key=subject, why=why)
        self._document_due = self._document_due or DOCUMENT_SUBJECT in changed
        if self._document_due:
            await self._read_document()

    async def _read_document(self) -> None:
        """Reads the policy document from the stream's leader, with its revision, once the mirror says that it changed."""
        try:
            found = await self._bucket.newest_readable(subjects.DOCUMENT_KEY, decode_document)
        except RetryableBusError:
            return  # NATS is away: nothing is written meanwhile, and the next look asks again
        self._document_due = False
        if found.why_not_last is not None:
            # Scorers find the same one, and a decision of another revision isn't followed.
            self._log.error(
                "policy refused: the last revision that validates holds",
                revision=found.last_rev,
                why=str(found.why_not_last),
                holds=found.rev or "what was read before, if anything",
            )
        if found.value is not None:
            self._enact(Rulebook(found.value, found.rev))
        elif found.deleted or not found.last_rev:
            self._enact(None)

    def _enact(self, rulebook: Rulebook | None) -> None:
        self.policy.rulebook = rulebook
        self.facts.classify(self.policy.granted_class)
