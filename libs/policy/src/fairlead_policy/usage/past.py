"""Past use with a half-life: what a tenant used counts on, half as much after each half-life.

`past` is the mean of use over time, weighted by 2^(-age / half-life): a tenant that keeps using the same amount comes to
that amount, and one that stops has half of it left after one half-life (as exponentially weighted usage in Slurm's
priority/multifactor, https://slurm.schedmd.com/priority_multifactor.html, and the decayed virtual time of Ghodsi et al.,
"Multi-Resource Fair Queueing for Packet Processing", SIGCOMM 2012).

Decay advances on a declared tick, so that readers of one tick agree to the last unit:

    past(n) = floor(past(n - 1) * left + (1 - left) * mean use over tick n),    left = 2^(-tick / half-life)

All numbers are integers: nothing grows with time, and years pass as minutes do. Use before an instant is settled, use
after it is counted from the runs themselves. So where the line is drawn changes nothing, and a run that is told twice, or
again after it was settled, is counted once: time is counted, not tellings.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from decimal import Context, Decimal
from itertools import chain
from typing import NamedTuple

from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_policy.rules.pool_rules import LARGEST

_ONE = 2**64
PARTS = 2**32
"""Parts of a base unit that are kept between ticks, so that small amounts decay as large ones do."""
_TICKS = 64
_SHORTEST_TICK, _LONGEST_TICK = SECOND, 600 * SECOND
_EXACT = Context(prec=60)

type RunKey = tuple[str, Micros]
"""Uid and start: a job that was stopped and put back runs more than once."""

type PastAmounts = Mapping[str, int]


def tick_of(half_life: Micros) -> Micros:
    """The time between two steps of decay: a 64th of the half-life in whole seconds, from one second to ten minutes."""
    return min(max(half_life // _TICKS // SECOND * SECOND, _SHORTEST_TICK), _LONGEST_TICK)


class Decay:
    """The decay of use from tick to tick.

    Args:
        half_life: time after which use counts half, microseconds; above 0.
        tick: time between two steps of decay, microseconds; above 0.
    """

    def __init__(self, half_life: Micros, tick: Micros) -> None:
        if half_life <= 0 or tick <= 0:
            raise ValueError(f"a half-life and a tick are above 0, not {half_life} and {tick}")
        power = _EXACT.divide(Decimal(-tick), Decimal(half_life))
        self.tick = tick
        self.left = int(_EXACT.multiply(_EXACT.power(Decimal(2), power), Decimal(_ONE)))
        """The part of past use that is left after one tick, in 2^64ths."""

    def after(self, past: int, integral: int, ticks: int) -> int:
        """The parts after so many ticks of the same use; it ends where nothing changes any more.

        Args:
            past: parts at their beginning.
            integral: integral of use over each tick, base units times microseconds.
            ticks: their number; whole ticks, one by one, so that it does not matter how often somebody looks.
        """
        kept, whole = self.left * self.tick, _ONE * self.tick
        gained = integral * PARTS * (_ONE - self.left)
        for _ in range(ticks):
            before = past
            past = (past * kept + gained) // whole
            if past == before:
                break
        return past


class _Run(NamedTuple):
    """A run of a job."""

    tenant: str
    started: Micros
    ended: Micros | None
    """End of the run; None while it runs."""
    demand: PastAmounts


class PastUse:
    """Past use of tenants, from what was settled of them and from runs since."""

    def __init__(self, decay: Decay) -> None:
        self._decay = decay
        self._settled: dict[str, dict[str, int]] = {}
        """Past use in parts, by tenant and resource, at the settled tick."""
        self.settled: int | None = None
        """The number of the tick up to which use is settled, counted since 1970; None before `begin`."""
        self._runs: dict[RunKey, _Run] = {}
        self._steady: dict[str, Counter[str]] = {}
        """The use of runs that began before the settled tick and still run, the same in each tick; by tenant."""
        self._edges: dict[str, dict[RunKey, _Run]] = {}
        """Runs that begin or end behind the settled tick."""
        self._now = self._advanced_to = 0
        self._known: dict[str, dict[str, int]] = {}
        self._stale: set[str] = set()

    # What is told -------------------------------------------------------------------------------------------------

    def begin(self, tick: int, kept: Mapping[str, PastAmounts]) -> None:
        """Goes on from what was kept at a tick, in parts, by tenant; runs count from there on."""
        self.settled = tick
        self._settled = {tenant: dict(parts) for tenant, parts in kept.items()}
        self._steady = {}
        self._refile(self._runs)
        self._advanced_to = 0

    def run(self, key: RunKey, tenant: str, demand: PastAmounts) -> None:
        """Notes that a job runs, unless its run is known to be over."""
        known = self._runs.get(key)
        if known is None or known.ended is None:
            self._replace_run(key, _Run(tenant, key[1], None, _counted(demand)))

    def end(self, key: RunKey, tenant: str, ended: Micros, demand: PastAmounts) -> None:
        """Notes that a run is over. Its earliest end counts; the same end told again brings its demand anew."""
        known = self._runs.get(key)
        if known is None or known.ended is None or ended <= known.ended:
            self._replace_run(key, _Run(tenant, key[1], ended, _counted(demand)))

    def leave(self, key: RunKey) -> None:
        """Notes that the job does not run any more, or not here. Its end is another fact, which `end` takes."""
        known = self._runs.get(key)
        if known is not None and known.ended is None:
            self._drop_run(key)

    # What follows -------------------------------------------------------------------------------------------------

    def advance(self, tick: int) -> dict[str, dict[str, int]]:
        """The past use, in base units, of each tenant whose past use is another than at the last call; {} for none.

        Args:
            tick: the number of the last tick that passed, by the clock. Before the settled tick, which some clock was
                at, nothing is known of: there, past use stands still until the clock has come to it.
        """
        if self.settled is None:
            return {}
        stale, self._stale = self._stale, set()
        self._now, before, self._advanced_to = tick, self._advanced_to, max(tick, self.settled)
        if self._advanced_to != before:
            stale = {*self._settled, *self._steady, *self._edges, *self._known}
        changed = {}
        for tenant in sorted(stale):
            parts = self._parts_at(tenant, self._advanced_to)
            past = {name: amount // PARTS for name, amount in sorted(parts.items()) if amount >= PARTS}
            if past != self._known.get(tenant, {}):
                changed[tenant] = self._known[tenant] = past
            if not past:
                self._known.pop(tenant, None)
        return changed

    def of(self, tenant: str) -> dict[str, int]:
        """The tenant's past use as `advance` last found it, base units."""
        return self._known.get(tenant, {})

    @property
    def now(self) -> int:
        """The number of the tick that `advance` was last told."""
        return self._now

    def tenants(self) -> Collection[str]:
        """The tenants with past use."""
        return self._known.keys()

    def settle(self, tick: int) -> None:
        """Settles use up to a tick, from which on runs are counted: no past use changes by it."""
        if self.settled is None or tick <= self.settled:
            return
        tenants = {*self._settled, *self._steady, *self._edges}
        parts = {tenant: self._parts_at(tenant, tick) for tenant in tenants}
        self._settled = {tenant: found for tenant, found in parts.items() if found}
        self.settled = tick
        self._refile(dict(chain.from_iterable(edges.items() for edges in self._edges.values())))

    def kept(self) -> dict[str, dict[str, int]]:
        """The settled use, in parts, by tenant."""
        return self._settled

    # Inside -------------------------------------------------------------------------------------------------------

    def _settled_until(self) -> Micros:
        return 0 if self.settled is None else self.settled * self._decay.tick

    def _replace_run(self, key: RunKey, run: _Run) -> None:
        if self._runs.get(key) == run:
            return
        self._drop_run(key)
        if run.ended is not None and run.ended <= max(run.started, self._settled_until()):
            return  # it is settled, or never ran
        self._runs[key] = run
        self._file_run(key, run)
        self._stale.add(run.tenant)

    def _drop_run(self, key: RunKey) -> None:
        run = self._runs.pop(key, None)
        if run is None:
            return
        self._stale.add(run.tenant)
        edges = self._edges.get(run.tenant, {})
        if edges.pop(key, None) is None:
            steady = self._steady.get(run.tenant, Counter())
            steady.subtract(run.demand)
            self._steady[run.tenant] = +steady
            if not self._steady[run.tenant]:
                del self._steady[run.tenant]
        elif not edges:
            del self._edges[run.tenant]

    def _file_run(self, key: RunKey, run: _Run) -> None:
        if run.ended is None and run.started <= self._settled_until():
            if run.demand:
                self._steady.setdefault(run.tenant, Counter()).update(run.demand)
        else:
            self._edges.setdefault(run.tenant, {})[key] = run

    def _refile(self, runs: Mapping[RunKey, _Run]) -> None:
        """Files all runs or all edge runs anew: the settled tick is another one. Those that ended before it are forgotten."""
        line, self._edges = self._settled_until(), {}
        for key, run in list(runs.items()):
            if run.ended is None or run.ended > line:
                self._file_run(key, run)
            else:
                del self._runs[key]

    def _parts_at(self, tenant: str, tick: int) -> dict[str, int]:
        """The parts by resource, from the settled tick up to another one."""
        settled = self._settled.get(tenant, {})
        slopes = self._use_changes(tenant, tick)
        found = {
            name: self._faded(settled.get(name, 0), slopes.get(name, {}), tick)
            for name in {*settled, *slopes}
        }
        return {name: parts for name, parts in found.items() if parts}

    def _faded(self, parts: int, slopes: Mapping[int, int], until: int) -> int:
        integral, done = 0, self.settled or 0
        for tick in sorted(slopes):
            parts = self._decay.after(parts, integral, tick - 1 - done)
            done = tick - 1
            integral += slopes[tick]
        return self._decay.after(parts, integral, until - done)

    def _use_changes(self, tenant: str, until: int) -> dict[str, dict[int, int]]:
        """The slopes by resource and tick: by how much the integral of use over the tick differs from that over the one before."""
        tick, line = self._decay.tick, self._settled_until()
        slopes: dict[str, dict[int, int]] = {}
        first = (self.settled or 0) + 1
        for name, amount in self._steady.get(tenant, {}).items():
            slopes.setdefault(name, {})[first] = amount * tick
        end = until * tick
        for run in self._edges.get(tenant, {}).values():
            start, stop = max(run.started, line), end if run.ended is None else min(run.ended, end)
            if start >= stop:
                continue
            steps = [step for step in _steps(start, stop, tick) if step[0] <= until]
            for name, amount in run.demand.items():
                into = slopes.setdefault(name, {})
                for at, step in steps:
                    into[at] = into.get(at, 0) + amount * step
        return slopes


def _counted(demand: PastAmounts) -> PastAmounts:
    return {name: min(amount, LARGEST) for name, amount in demand.items() if amount > 0}


def _steps(start: Micros, stop: Micros, tick: Micros) -> list[tuple[int, int]]:
    """The changes of a run's time from tick to tick: (tick, microseconds). Tick n ends at n * tick."""
    first, last = start // tick + 1, -(-stop // tick)
    begun, done = first * tick - start, stop - (last - 1) * tick
    if first == last:
        return [(first, stop - start), (first + 1, start - stop)]
    return [(first, begun), (first + 1, tick - begun), (last, done - tick), (last + 1, -done)]
