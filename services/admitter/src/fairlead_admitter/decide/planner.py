"""The planner: what the admitter remembers between two turns, and what it knows of a pool at one instant.

It is told what was seen, what was decided and what became of it, and makes views of that. What follows from a view is
`deciding`'s, and the loop's to carry out. Time is a value. So the same things told in the same order give the same plans.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from fairlead_admitter.decide.deciding import KnownCluster, MemoryUpdate, PoolMemory, PoolView
from fairlead_admitter.decide.label_budget import LabelBudget
from fairlead_admitter.decide.merged_order import MergedOrder
from fairlead_admitter.decide.newcomers import Newcomers
from fairlead_admitter.decide.outcome import PlanOutcome
from fairlead_admitter.decide.pace import Pace
from fairlead_admitter.decide.protection import Protection
from fairlead_admitter.decide.reserving import Reservations
from fairlead_admitter.decide.steering import WriteCause
from fairlead_admitter.decide.turn_clock import TurnClock
from fairlead_admitter.decide.wake_state import WakeMemory
from fairlead_admitter.observe.decision_gate import (
    DecisionGate,
    DecisionOrigin,
    Doubt,
    Holders,
    PoolHeads,
    UnsettledPool,
)
from fairlead_admitter.observe.expectations import Expectations
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_admitter.observe.policy_view import PolicyView
from fairlead_admitter.observe.watch import Observation
from fairlead_contracts.frontend.capabilities import Capabilities
from fairlead_contracts.messages.leave import LeverName
from fairlead_contracts.messages.state import JobState
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_policy.levels.class_bands import ClassBand, class_bands_by
from fairlead_policy.levels.withholding import judge_withholding
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.rules.rulebook import Rulebook

_NO_DOCUMENT = PolicyDocument(tenants=[])
_LABELS = (WriteCause.HEADS, WriteCause.LEFT)


class DecisionInputs(Protocol):
    """The facts that decisions on levels are made from, and measured by."""

    facts: ClusterFacts
    gate: DecisionGate
    policy: PolicyView

    def holders(self) -> Holders:
        """The scorers that live now, and what they hold."""


class Planner:
    """Remembers between two turns, and views pool by pool what `decide` is to go by.

    Args:
        known: the facts that are seen.
        expectations: the trail of writes.
        reserving: keeps promises where the policy wants them.
        clock: time of the turn.
        cpu_wait: the part of the time for which this process wants a CPU and has none.
        tick: seconds for which an order is kept that nothing but time changes.
        dry_run: whether what is decided is only said.
    """

    def __init__(
        self,
        known: DecisionInputs,
        expectations: Expectations,
        *,
        reserving: Reservations,
        clock: TurnClock,
        cpu_wait: Callable[[], float],
        tick: float,
        dry_run: bool = False,
    ) -> None:
        self._known = known
        self._dry_run = dry_run
        self._reservations = reserving
        self._clock = clock
        self._tick = tick
        self.pace = Pace(clock.monotonic, cpu_wait)
        """Starts of jobs, the time of reactions, and whether levels come too late."""
        self._labels = LabelBudget(clock.monotonic)
        self._budgeted: set[str] = set()
        """The pools whose labels are charged: they go to jobs that have no room."""
        self._newcomers = Newcomers()
        self._resharded: Rulebook | None = None
        """The policy by which newcomers are in their shards."""
        self._protection = Protection(clock.monotonic)
        self._wake_state = WakeMemory(clock.monotonic)
        self._merged: dict[str, tuple[float, MergedOrder]] = {}
        self._rules: dict[str, tuple[Rulebook, Mapping[str, int], PoolRules]] = {}
        """Rules by which a pool's heads were merged last, by pool, with the rulebook and the capacity that they were
        made from: rules name every tenant."""
        self._levers: dict[str, LeverName] = {}
        """Lever by which a pool's levels that stand were written, by pool."""
        self._seen = KnownCluster(
            facts=known.facts,
            expectations=expectations,
            pace=self.pace,
            newcomers=self._newcomers,
            protection=self._protection,
            class_of=known.policy.granted_class,
        )

    # What it is told

    def keep(self, pools: Mapping[str, frozenset[str]]) -> None:
        """Forgets pools that are not there any more."""
        self._merged = {pool: merged for pool, merged in self._merged.items() if pool in pools}
        self._rules = {pool: rules for pool, rules in self._rules.items() if pool in pools}
        self.pace.keep(pools)
        self._wake_state.keep(pools)
        self._budgeted.intersection_update(pools)
        self._levers = {pool: lever for pool, lever in self._levers.items() if pool in pools}
        self._reservations.keep(pools)

    def lead(self, epoch: int | None) -> None:
        """Leads from now on, or stands by (None)."""
        self._protection.begin_anew(self._known.facts)
        self._wake_state.begin_anew()
        self._levers.clear()
        self._reservations.lead(epoch)

    def note(self, seen: Observation, pools: Mapping[str, frozenset[str]]) -> None:
        """Takes in what was seen to happen, as a turn begins."""
        self._wake_state.take_up_due()
        self._protection.note(seen.jobs)
        stated = self._known.facts.queues
        able = {pool: stated[min(names)].able for pool, names in pools.items()}
        self._wake_state.learn(able)
        # The queues of a cluster are one frontend's.
        self.pace.learn(next(iter(able.values()), Capabilities()))
        if seen.news:
            self._wake_state.note(pools, seen.jobs, seen.before_seq)
        self._newcomers.forget_old(seen.at)
        if self._known.policy.rulebook is not self._resharded:
            self._resharded = self._known.policy.rulebook
            self._newcomers.reshard(self._shard_of)
        if not (seen.jobs and seen.news):
            return
        self._newcomers.note(seen.jobs, seen.state_seq, seen.at, self._shard_of)
        started = [change.after.queue for change in seen.jobs if change.admitted and change.after is not None]
        for pool, queues in pools.items():
            self.pace.started(pool, sum(queue in queues for queue in started))

    def remember(self, pool: str, decided: MemoryUpdate) -> None:
        """Remembers what was decided."""
        (self._budgeted.add if decided.budgeted else self._budgeted.discard)(pool)
        self.pace.withhold(pool, withheld=decided.withheld)
        if decided.lever is not None:
            self._levers[pool] = decided.lever
        if decided.reserving is not None:
            self._reservations.remember(pool, decided.reserving)
        if decided.trail is not None:
            self._wake_state.remember(pool, decided.trail)
        if decided.settled:
            self._protection.stand(*decided.settled)

    def applied(self, pool: str, applied: PlanOutcome) -> None:
        """Takes in what became of a plan's writes."""
        running = [write for write, _ in applied.landed if write.of_running]
        writes = [write for write, _ in applied.landed if not write.of_running]
        woken = self._wake_state.trail(pool).woken
        labels = [one for one in writes if one.cause in _LABELS and one.job.uid not in woken]
        self._labels.spend(len(labels) if pool in self._budgeted else 0, applied.took)
        self._wake_state.landed(pool, writes, late=applied.gone, took=applied.took)
        self.pace.arrived(in_time=len(writes), late=applied.gone, took=applied.took)
        self._protection.written(running)
        self._protection.refused(write.job.uid for write in applied.refused_lifts)

    def wake_in(self) -> float | None:
        """Seconds until time alone makes something due; None where nothing is."""
        due = [self._reservations.wake_in(self._clock.wall()), self._wake_state.wake_in()]
        return min((seconds for seconds in due if seconds is not None), default=None)

    def outpaced(self) -> dict[str, list[str]]:
        """The queues that start jobs faster than levels reach them, by pool.

        Only those of a frontend that can park: what is not there in time waits until room comes free.
        """
        queues = self._known.facts.queues
        found = {
            pool: [name for name in names if name in queues and queues[name].may_park]
            for pool, names in self._wake_state.outpaced().items()
        }
        return {pool: names for pool, names in found.items() if names}

    def origins(self, pool: str) -> Mapping[str, DecisionOrigin]:
        """Decisions that the positions of a pool come from, by uid."""
        _, merged = self._merged.get(pool, (0.0, None))
        return merged.beginning.origins if merged is not None else {}

    # What follows

    def view(self, pool: str, names: frozenset[str]) -> PoolView:
        """Views a pool as it is known now."""
        facts, policy = self._known.facts, self._known.policy
        queues = [facts.queues[name] for name in sorted(names)]
        rulebook = policy.rulebook
        leave = policy.words.leave(facts.cluster)
        heads: PoolHeads | UnsettledPool = UnsettledPool(doubt=Doubt.NO_POLICY)
        class_bands: list[ClassBand] = []
        if rulebook is not None:
            heads = self._known.gate.settle(
                pool,
                shards=rulebook.document.shards,
                policy=rulebook.revision,
                holders=self._known.holders(),
            )
            class_bands = class_bands_by(rulebook.document, queues, facts.classes)
            if not class_bands and isinstance(heads, PoolHeads):
                heads = UnsettledPool(doubt=Doubt.NO_BAND)
        return PoolView(
            pool=pool,
            queues=queues,
            rulebook=rulebook,
            leave=leave,
            withholding=judge_withholding(
                _NO_DOCUMENT if rulebook is None else rulebook.document,
                queues,
                leave,
                control=policy.words.control(pool),
                values=facts.classes,
                found=policy.words.lever_found(facts.cluster),
                revocation=policy.words.revocation(facts.cluster),
                dry_run=self._dry_run,
            ),
            heads=heads,
            class_bands=class_bands,
            known=self._seen,
            memory=PoolMemory(
                lever=self._levers.get(pool),
                reserved=self._reservations.of(pool),
                trail=self._wake_state.trail(pool),
            ),
            now=self._clock.monotonic(),
            wall=self._clock.wall(),
            merged=lambda heads, rulebook: self.merged(pool, heads, rulebook),
            dry_run=self._dry_run,
            writable=self._reservations.writable(),
            labels=self._labels.most(self.pace.starts()),
        )

    def merged(self, pool: str, heads: PoolHeads, rulebook: Rulebook) -> MergedOrder:
        """The order of a pool's heads at this instant, made once for all who ask in a turn.

        It is kept as long as its heads are the same: then another one would be equal, whoever asks first. Past the aging
        cap it moves by time alone; there it is kept for a tick, as an order of so short a time ago is good enough.
        """
        now = self._clock.monotonic()
        made, known = self._merged.get(pool, (0.0, None))
        same = known is not None and known.heads.same_as(heads)
        if known is not None and same and (now - made < self._tick or not known.moves_at(self._clock.wall())):
            return known
        rules = self._rules_of(pool, rulebook, heads.basis.capacity)
        merged = MergedOrder(heads, rules, self._clock.wall(), rulebook.document.window)
        self._merged[pool] = (now, merged)
        return merged

    def _shard_of(self, job: JobState) -> int:
        rulebook = self._known.policy.rulebook
        return 0 if rulebook is None else rulebook.shard_of(rulebook.tenant_of(job))

    def _rules_of(self, pool: str, rulebook: Rulebook, capacity: Mapping[str, int]) -> PoolRules:
        made_by, of, rules = self._rules.get(pool, (None, {}, None))
        if rules is None or made_by is not rulebook or of != capacity:
            rules = rulebook.pool_rules(pool, capacity)
            self._rules[pool] = rulebook, capacity, rules
        return rules
