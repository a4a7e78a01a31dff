"""One pool: its jobs in their order, split into shards of tenants, and which shards changed since they were read.

Pure: facts in, order out. A pool holds all its tenants, whoever owns their shards: the order inside is lazy, so what
nobody asks for is not sorted, and a shard that changes hands needs no state to be moved.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import msgspec

from fairlead_contracts.base.instants import MINUTE, Micros
from fairlead_contracts.messages.decisions import (
    Basis,
    KeptPast,
    Position,
    QueueHeads,
    StatedPastUse,
    TenantShare,
)
from fairlead_policy.explain.neighbourhood import count_before
from fairlead_policy.order.order import Order
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import JobQueue, WaitingJob
from fairlead_policy.rules.pool_rules import ORDER_RULES, PoolRules
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.pool_shapes import PoolShape
from fairlead_policy.usage.past import RunKey
from fairlead_policy.usage.saturation import PoolPart, Saturation
from fairlead_scorer.state.past import PoolPast

_TAKEN_WITHIN = MINUTE
"""Time within which what came free at once is surely taken; what is left of it others cannot have, as in another queue."""


class RunningJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A running job as it counts: as its tenant's use."""

    uid: str
    tenant: str
    demand: dict[str, int]
    flavors: dict[str, str] = {}
    """The flavor of which it holds each resource, as far as that is told."""
    started: Micros | None = None
    """Instant of the start. A run whose start nobody tells leaves no past use."""


type CountedJob = WaitingJob | RunningJob
"""A job as the order sees it. Held and ended jobs are not counted."""


class ScoredPool:
    """The waiting and running jobs of one pool."""

    def __init__(self, name: str, shape: PoolShape, rulebook: Rulebook) -> None:
        self.name = name
        self.shape = shape
        self.dirty: set[int] = set(range(rulebook.document.shards))
        """Shards that changed since they were last decided."""
        self._rulebook = rulebook
        self.rules = rulebook.pool_rules(name, shape.capacity, shape.quota)
        """The rules that its keys are computed with."""
        self._facts = PoolFacts(self.rules)
        self._tenants: list[dict[str, int]] = [{} for _ in range(rulebook.document.shards)]
        self._queued: list[dict[JobQueue, int]] = [{} for _ in range(rulebook.document.shards)]
        self._used = Counter[str]()
        """Amounts that running jobs hold, by resource."""
        self._asked: dict[int, Mapping[str, int] | None] = {}
        """Amounts that a shard's heads ask for; None where no others wait behind them, or no queue parks jobs."""
        self._deep: dict[int, Micros | None] = {}
        """Shards of which more came free at once than their heads asked for, until that is taken, and since when that is known."""
        self._usage = _Usage(self.rules, shape) if self.rules.rescaled else None
        self.past = None if rulebook.half_life is None else PoolPast(rulebook, rulebook.half_life)
        """Past use; None where only running jobs count."""

    def mark_dirty(self, shard: int) -> None:
        """Mark a shard as changed: its last decision was not published."""
        self.dirty.add(shard)

    def mark_clean(self, shard: int) -> None:
        """Mark a shard as decided: what changes from now on makes it dirty again."""
        self.dirty.discard(shard)

    def basis_of(self, shard: int) -> Basis:
        """The basis of a shard's keys: only decisions of one basis are merged."""
        return Basis(
            policy=self.policy,
            capacity=self.shape.capacity,
            saturated=sorted(self.rules.saturated),
            past=0 if self.past is None else self.past[shard].now,
            rules=ORDER_RULES,
        )

    @property
    def policy(self) -> int:
        """Revision of the policy that it is scored by."""
        return self._rulebook.revision

    @property
    def window(self) -> int:
        """The number of positions of each queue that a decision holds."""
        return self._rulebook.document.window

    @property
    def shards(self) -> int:
        """The number of shards."""
        return len(self._tenants)

    def shard_of(self, tenant: str) -> int:
        """The shard that holds a tenant's jobs."""
        return self._rulebook.shard_of(tenant)

    def reshape(self, shape: PoolShape) -> None:
        """Takes on another capacity. Every tag changes with it, so every shard does."""
        if shape == self.shape:
            return
        rules = self.rules
        if (shape.capacity, shape.quota) != (self.shape.capacity, self.shape.quota):
            rules = self._rulebook.pool_rules(self.name, shape.capacity, shape.quota)
        if self._usage is not None:
            self._usage.reshape(rules, shape)
        self._adopt(rules)
        self.shape = shape
        self.dirty.update(range(self.shards))

    def _adopt(self, rules: PoolRules) -> None:
        """Scores by these rules, and by which resources are used up now."""
        if self._usage is not None:
            saturated = self._usage.saturation.used_up()
            rules = rules if saturated == rules.saturated else replace(rules, saturated=saturated)
        if rules is not self.rules:
            self.rules = rules
            self._facts.set_rules(rules)
            self.dirty.update(range(self.shards))

    def count(self, job: CountedJob, part: PoolPart) -> None:
        """Lets the job wait, or count as use, in a part of the pool."""
        if isinstance(job, WaitingJob):
            self._facts.wait(job)
        else:
            self._facts.run(job.uid, job.tenant, job.demand)
            if self.past is not None and job.started is not None:
                self.past.of(job.tenant).run((job.uid, job.started), job.tenant, job.demand)
        self._tally(job, 1)
        if self._usage is not None:
            self._usage.count(job, part)
            self._adopt(self.rules)

    def discount(self, job: CountedJob) -> None:
        """Forgets the job; `job` is what was counted."""
        self._facts.forget(job.uid)
        if self.past is not None and isinstance(job, RunningJob) and job.started is not None:
            self.past.of(job.tenant).leave((job.uid, job.started))
        self._tally(job, -1)
        if self._usage is not None:
            self._usage.discount(job)
            self._adopt(self.rules)

    def remember(self, run: RunKey, tenant: str, ended: Micros, demand: Mapping[str, int]) -> None:
        """Counts a run that is over as past use from now on."""
        if self.past is not None:
            self.past.of(tenant).end(run, tenant, ended, demand)
            self.dirty.add(self._rulebook.shard_of(tenant))

    def follow(self, shard: int, kept: KeptPast) -> None:
        """Goes on from what the owner of a shard stated of past use."""
        if self.past is not None and shard < self.shards:
            self.past.follow(shard, kept)

    def is_ahead_of_clock(self, shard: int, kept: KeptPast, now: Micros) -> bool:
        """Whether the statement is settled to later than now by our clock, so that it is not followed."""
        return self.past is not None and shard < self.shards and self.past.is_ahead_of_clock(shard, kept, now)

    def start_from_other_policies(self, persisted: Sequence[StatedPastUse]) -> None:
        """Begins from what owners of shards stated under other policies, where nothing is known under this one."""
        if self.past is not None:
            self.past.start_from_other_policies(persisted)

    def remembered(self, shard: int) -> int:
        """The number of the shard's tenants with past use."""
        return 0 if self.past is None or shard >= self.shards else len(self.past[shard].tenants())

    def decay_past(self, shard: int, now: Micros) -> None:
        """Lets the shard's past use decay up to now."""
        if self.past is not None:
            for tenant, past in self.past.advance(shard, now).items():
                self._facts.remember(tenant, past)

    def _tally(self, job: CountedJob, step: int) -> None:
        shard = self._rulebook.shard_of(job.tenant)
        self.dirty.add(shard)
        _add(self._tenants[shard], job.tenant, step)
        if isinstance(job, WaitingJob):
            _add(self._queued[shard], job.queue, step)
            return
        for resource, amount in job.demand.items():
            self._used[resource] += step * amount
        if step < 0:
            self._free(job.demand)

    def tenants_of(self, shard: int) -> list[str]:
        """The shard's tenants that wait or run, or did of late, by name."""
        past = () if self.past is None else self.past[shard].tenants()
        return sorted({*self._tenants[shard], *past})

    def waiting_of(self, shard: int) -> Mapping[JobQueue, int]:
        """The number of the shard's jobs that wait in each queue."""
        return self._queued[shard]

    @property
    def waiting(self) -> int:
        """The number of waiting jobs."""
        return sum(sum(queued.values()) for queued in self._queued)

    def queue_heads(self, tenants: Iterable[str], now: Micros, window: int) -> dict[JobQueue, list[Position]]:
        """The first `window` positions of these tenants in each queue."""
        return self.order_at(now).queue_heads(window, tenants)

    def note_heads(self, shard: int, startable: Iterable[QueueHeads], now: Micros) -> None:
        """Notes what a shard's heads ask for: once more than that comes free at once, the shard is decided anew."""
        asked = self._asked[shard] = _asked_before_others(startable) if self.shape.parks else None
        if shard in self._deep:
            since = self._deep[shard] = self._deep[shard] or now
            if asked is None or not self._is_free(asked) or now - since > _TAKEN_WITHIN:
                del self._deep[shard]

    def has_more_room(self, shard: int, startable: Iterable[QueueHeads]) -> bool:
        """Whether room that came free at once is still there, and exceeds what these heads of the shard ask for."""
        asked = _asked_before_others(startable) if shard in self._deep else None
        return asked is not None and self._is_free(asked)

    def _is_free(self, amounts: Mapping[str, int]) -> bool:
        """Whether more than so much is free in the pool."""
        capacity = self.shape.capacity
        return _is_less(amounts, {name: capacity.get(name, 0) - self._used[name] for name in amounts})

    def _free(self, amounts: Mapping[str, int]) -> None:
        """Takes in amounts that came free at once: a shard whose heads ask for less is decided anew, and deeper."""
        short = {one for one, asked in self._asked.items() if asked is not None and _is_less(asked, amounts)}
        self._deep |= dict.fromkeys(short)
        self.dirty |= short

    def order_at(self, now: Micros) -> Order:
        """The order of what is counted now; a value, which later changes leave as it is."""
        return self._facts.at(now)

    def position(self, uid: str, now: Micros) -> Position | None:
        """The position of one waiting job."""
        return self._facts.position(uid, now)

    def count_before(self, position: Position, now: Micros, tenants: Iterable[str]) -> dict[str, int]:
        """The number of jobs of each of these tenants that stand before the position."""
        return count_before(self.order_at(now), position, tenants)

    def standings(self, tenants: Iterable[str]) -> list[TenantShare]:
        """The shares of these tenants: what they have and may have."""
        return self._facts.snapshot.standings(tenants)

    def next_flip(self, shard: int, now: Micros) -> Micros | None:
        """The instant at which the shard's heads next move by time alone: by aging, or by decay; None if they never do."""
        flip = self.order_at(now).next_flip(self.tenants_of(shard), window=self.window)
        if self.past is None:
            return flip
        tick = self.past.next_tick(now)
        return tick if flip is None else min(flip, tick)


class _Usage:
    """The resources of a pool that are used up (H-DRF), by its jobs and the parts of the pool that they are in."""

    def __init__(self, rules: PoolRules, shape: PoolShape) -> None:
        self.saturation = Saturation(rules, shape.rooms)
        self._counted: dict[str, tuple[PoolPart, CountedJob]] = {}

    def reshape(self, rules: PoolRules, shape: PoolShape) -> None:
        """Takes on other parts of the pool, or other capacities of them."""
        self.saturation = Saturation(rules, shape.rooms)
        for part, job in self._counted.values():
            self._add_to_saturation(part, job, 1)

    def count(self, job: CountedJob, part: PoolPart) -> None:
        self._counted[job.uid] = part, job
        self._add_to_saturation(part, job, 1)

    def discount(self, job: CountedJob) -> None:
        self._add_to_saturation(*self._counted.pop(job.uid), -1)

    def _add_to_saturation(self, part: PoolPart, job: CountedJob, step: int) -> None:
        if isinstance(job, WaitingJob):
            self.saturation.wait(part, job.demand, step)
        else:
            self.saturation.run(part, job.demand, job.flavors, step)


def _asked_before_others(startable: Iterable[QueueHeads]) -> Mapping[str, int] | None:
    """The amounts that heads ask for together; None where nobody waits behind them."""
    parts = list(startable)
    if not any(len(heads.positions) < heads.waiting for heads in parts):
        return None
    asked: dict[str, int] = {}
    for position in chain.from_iterable(heads.positions for heads in parts):
        for resource, amount in position.demand.items():
            asked[resource] = asked.get(resource, 0) + amount
    return asked


def _is_less(amounts: Mapping[str, int], than: Mapping[str, int]) -> bool:
    return all(amount < than.get(name, 0) for name, amount in amounts.items())


def _add[K](counts: dict[K, int], key: K, step: int) -> None:
    left = counts.get(key, 0) + step
    if left:
        counts[key] = left
    else:
        del counts[key]
