"""The past use of one pool's tenants, shard by shard, and the runs that it is made of. Pure.

The owner of a shard settles its tenants' use and states it in its decision; everybody else follows what it states. What
is settled trails the clock by `SETTLE_AFTER`; use since then is counted from the runs that state and events tell, so
whoever takes over comes to the same integers.
"""

from collections.abc import Iterator, Sequence

import msgspec

from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_contracts.messages.decisions import KeptPast, StatedPastUse
from fairlead_contracts.messages.events import Run, run_of
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.usage.past import Decay, PastUse, RunKey, tick_of

SETTLE_AFTER = 60 * SECOND
"""Longest delay with which a start or an end may be told and still count exactly, microseconds. Beyond it,
time is lost or charged. Clocks of scorers may differ by as much at most."""


type PastByTenant = dict[str, dict[str, int]]
"""Parts of base units by tenant and resource, as `PastUse` keeps them."""


class FinishedRun(Run, frozen=True, kw_only=True, gc=False):
    """A run that is over, and whose it was."""

    cluster: str
    scope: str
    uid: str

    @classmethod
    def of(cls, run: Run, *, cluster: str, scope: str, uid: str) -> "FinishedRun":
        """The run of that job."""
        return cls(**msgspec.structs.asdict(run), cluster=cluster, scope=scope, uid=uid)

    @property
    def key(self) -> RunKey:
        """The key that tells the run, whoever tells of it."""
        return self.uid, self.started


def finished_run(job: JobState) -> FinishedRun | None:
    """The run of a job that ended; None of one that did not, or never ran."""
    if job.phase is not Phase.ENDED or job.started is None or job.ended is None:
        return None
    run = run_of(job, job.started, job.ended)
    return FinishedRun.of(run, cluster=job.cluster, scope=job.scope, uid=job.uid)


class PoolPast:
    """Past use in one pool.

    Args:
        rulebook: says which shard a tenant is in.
        half_life: the policy's half-life.
    """

    def __init__(self, rulebook: Rulebook, half_life: Micros) -> None:
        self._rulebook = rulebook
        self._half_life = half_life
        self._decay = Decay(half_life, tick_of(half_life))
        self._behind = -(-SETTLE_AFTER // self._decay.tick)
        self._shards = [PastUse(self._decay) for _ in range(rulebook.document.shards)]
        self._from_other_policies: set[int] = set()
        """Shards whose past use is taken from statements under other policies: nobody has stated any under this one."""

    def of(self, tenant: str) -> PastUse:
        """The past use of the tenant's shard."""
        return self._shards[self._rulebook.shard_of(tenant)]

    def __getitem__(self, shard: int) -> PastUse:
        return self._shards[shard]

    def advance(self, shard: int, now: Micros) -> dict[str, dict[str, int]]:
        """Settles what is due and lets the ticks up to now pass; see `PastUse.advance`.

        A shard of which nothing was ever kept begins with nothing.
        """
        use, tick = self._shards[shard], now // self._decay.tick
        due = tick - self._behind
        self._from_other_policies.discard(shard)
        if use.settled is None:
            use.begin(due, {})
        use.settle(due)
        return use.advance(tick)

    def next_tick(self, now: Micros) -> Micros:
        """The instant at which the next tick passes."""
        return (now // self._decay.tick + 1) * self._decay.tick

    def kept_past(self, shard: int) -> KeptPast | None:
        """The past use that a decision states, for others to go on from."""
        use = self._shards[shard]
        if use.settled is None:
            return None
        tenants = {
            tenant: {name: str(parts) for name, parts in sorted(found.items())}
            for tenant, found in sorted(use.kept().items())
        }
        return KeptPast(at=use.settled * self._decay.tick, half_life=self._half_life, tenants=tenants)

    def is_ahead_of_clock(self, shard: int, kept: KeptPast, now: Micros) -> bool:
        """Whether a statement is settled to later than now by our clock, while we have settled use of our own."""
        return kept.at > now and self._shards[shard].settled is not None

    def follow(self, shard: int, kept: KeptPast) -> None:
        """Goes on from a statement of the shard's owner under this policy, unless it is older than what is known."""
        use, tick = self._shards[shard], self._tick_at(kept.at)
        if use.settled is not None and tick < use.settled and shard not in self._from_other_policies:
            return
        self._from_other_policies.discard(shard)
        own = self._by_shard(shard, kept)[shard]
        if use.settled != tick or use.kept() != own:
            use.begin(tick, own)

    def start_from_other_policies(self, persisted: Sequence[StatedPastUse]) -> None:
        """Begins from what was stated under other policies, where nothing is known under this one.

        A tenant may have been in another shard then. What is known already is never given up for it: the shard's
        tenants may be others now, and the runs since then are known as well.

        Args:
            persisted: statements on all shards; of two on one tenant the last counts.
        """
        vague = {
            shard
            for shard, use in enumerate(self._shards)
            if use.settled is None or shard in self._from_other_policies
        }
        found: dict[int, list[tuple[int, PastByTenant]]] = {}
        for statement in persisted if vague else ():
            if statement.kept is not None:
                tick = self._tick_at(statement.kept.at)
                for shard, own in self._by_shard(statement.shard, statement.kept).items():
                    found.setdefault(shard, []).append((tick, own))
        for shard in vague & found.keys():
            self._shards[shard].begin(*self._joined_at_latest(found[shard]))
            self._from_other_policies.add(shard)

    def _by_shard(self, shard: int, kept: KeptPast) -> dict[int, PastByTenant]:
        """A shard's statement, split by the shards that its tenants are in now."""
        found: dict[int, PastByTenant] = {shard: {}}
        for tenant, use in kept.tenants.items():
            parts = {name: int(amount) for name, amount in use.items()}
            found.setdefault(self._rulebook.shard_of(tenant), {})[tenant] = parts
        return found

    def _joined_at_latest(self, words: Sequence[tuple[int, PastByTenant]]) -> tuple[int, PastByTenant]:
        """Statements of several ticks, decayed to the last of them and joined."""
        latest = max(tick for tick, _ in words)
        together: PastByTenant = {}
        for tick, kept in words:
            faded = PastUse(self._decay)
            faded.begin(tick, kept)
            faded.settle(latest)
            together |= faded.kept()
        return latest, together

    def take_over(self, before: "PoolPast") -> None:
        """Goes on from what was settled under the policy before, whichever shards its tenants are in now."""
        latest, found = before.settle_all()
        if latest is None:
            return
        tick = self._tick_at(latest)
        for shard, use in enumerate(self._shards):
            own = {name: parts for name, parts in found.items() if self._rulebook.shard_of(name) == shard}
            use.begin(tick, own)

    def settle_all(self) -> tuple[Micros | None, dict[str, dict[str, int]]]:
        """Settles all shards to the latest instant that one is settled to; returns it, and all past use then."""
        latest = max(self.horizons(), default=None)
        found: dict[str, dict[str, int]] = {}
        if latest is not None:
            for use in self._shards:
                use.settle(latest // self._decay.tick)
                found |= use.kept()
        return latest, found

    def horizon(self) -> Micros | None:
        """The earliest instant that a shard is settled to; None where none is."""
        return min(self.horizons(), default=None)

    def settle_before(self, instant: Micros) -> None:
        """Settles shards that nobody decides, up to the last tick before an instant."""
        for use in self._shards:
            use.settle(instant // self._decay.tick)

    def horizons(self) -> Iterator[Micros]:
        """The instants from which on runs are needed."""
        for use in self._shards:
            if use.settled is not None:
                yield use.settled * self._decay.tick

    def _tick_at(self, instant: Micros) -> int:
        """The first tick not before an instant: with another half-life part of a tick is lost, none counts twice."""
        return -(-instant // self._decay.tick)
