"""Past use with a half-life: what a tenant used counts on, half as much after each half-life.

`past` is the mean of use over time, weighted by 2^(-age / half-life): a tenant that keeps using the same amount comes to
that amount, and one that stops has half of it left after one half-life (as exponentially weighted usage in Slurm's
priority/multifactor, https://slurm.schedmd.com/priority_multifactor.html, and the decayed virtual time of Ghodsi et al.,
"Multi-Resource Fair Queueing for Packet Processing", SIGCOMM 2012).

Decay advances on a declared tick, so that readers of one tick agree to the last unit. All numbers are integers: nothing
grows with time, and years pass as minutes do.
"""

from collections.abc import Mapping
from decimal import Context, Decimal

from fairlead_contracts.instants import SECOND, Micros

_ONE = 2**64
_FINE = 2**20
"""Parts of a base unit that are kept between ticks, so that small amounts decay as large ones do."""
_TICKS = 64
"""Ticks in a half-life, unless it is so short that they would be less than a second."""
_EXACT = Context(prec=60)


def tick_of(half_life: Micros) -> Micros:
    """The time between two steps of decay: a 64th of the half-life, in whole seconds, from one second."""
    return max(half_life // _TICKS // SECOND, 1) * SECOND


class PastUse:
    """Past use of tenants, from what they use now.

    Args:
        half_life: after which use counts half; above 0.
        tick: of decay.
        at: the instant from which on it is counted; ticks fall on whole multiples of the tick since 1970.
    """

    def __init__(self, half_life: Micros, tick: Micros, at: Micros) -> None:
        if half_life <= 0 or tick <= 0:
            raise ValueError(f"a half-life and a tick are above 0, not {half_life} and {tick}")
        power = _EXACT.divide(Decimal(-tick), Decimal(half_life))
        self._left = int(_EXACT.multiply(_EXACT.power(Decimal(2), power), Decimal(_ONE)))
        self._tick = tick
        self._now = at // tick
        self._use: dict[str, Mapping[str, int]] = {}
        self._past: dict[str, dict[str, int]] = {}

    @property
    def tick(self) -> int:
        """The number of the last tick that passed."""
        return self._now

    def set_use(self, tenant: str, use: Mapping[str, int]) -> None:
        """What the tenant uses from now on, base units; counted by ticks, as it stands when one passes."""
        if use:
            self._use[tenant] = dict(use)
        else:
            self._use.pop(tenant, None)

    def restore(self, tenant: str, past: Mapping[str, int]) -> None:
        """What was known of the tenant at this tick, base units."""
        self._past[tenant] = {resource: amount * _FINE for resource, amount in past.items() if amount > 0}

    def advance(self, now: Micros) -> bool:
        """Lets the ticks up to an instant pass; whether there were any. Time that goes back passes none."""
        ticks = now // self._tick - self._now
        if ticks <= 0:
            return False
        self._now += ticks
        for tenant in {*self._past, *self._use}:
            self._past[tenant] = self._decayed(tenant, ticks)
        self._past = {tenant: past for tenant, past in self._past.items() if past}
        return True

    def of(self, tenant: str) -> dict[str, int]:
        """The tenant's past use at the last tick, base units."""
        past = {resource: amount // _FINE for resource, amount in sorted(self._past.get(tenant, {}).items())}
        return {resource: amount for resource, amount in past.items() if amount}

    def tenants(self) -> list[str]:
        """Those that have some, by name."""
        return sorted(self._past)

    def _decayed(self, tenant: str, ticks: int) -> dict[str, int]:
        use, past = self._use.get(tenant, {}), self._past.get(tenant, {})
        after = {name: self._after(past.get(name, 0), use.get(name, 0), ticks) for name in {*use, *past}}
        return {name: amount for name, amount in after.items() if amount}

    def _after(self, past: int, use: int, ticks: int) -> int:
        """Step by step, so that it does not matter how often somebody looks; it ends where nothing changes any more."""
        for _ in range(ticks):
            before = past
            past = (past * self._left + use * _FINE * (_ONE - self._left)) // _ONE
            if past == before:
                break
        return past
