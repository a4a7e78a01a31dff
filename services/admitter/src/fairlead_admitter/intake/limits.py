"""Limits of what one tenant may submit, and of what all may: they keep a flood from the others.

Rates go by the moment at which NATS stored a submission, not by when it is handled: what waited for an admitter to come
back is not taken for a flood. Jobs that wait are counted as the cluster states them, so a limit is passed by what was
taken in within the last second or so.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import msgspec

from fairlead_bus import Delivery
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.instants import Micros, to_seconds
from fairlead_contracts.messages.submissions import RefusalReason

_REMEMBERED = 65_536
"""Tenants at most, and submissions at most, that are remembered."""
_REMEMBERED_SECONDS = 120.0
"""Seconds for which a handled submission is remembered: as long as NATS recognises a repeated message. A later repeat
counts once more."""


class TenantLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one tenant."""

    a_second: float
    """Submissions a second in the long run."""
    burst: int
    """Submissions at once, after a rest."""
    waiting: int
    """The most jobs that may wait in the cluster."""


class LimitExceeded(msgspec.Struct, frozen=True):
    """A limit that a submission exceeds: the error for its sender, and the counter's label."""

    error: FieldError
    label: RefusalReason


class _Bucket(msgspec.Struct):
    tokens: float
    at: Micros


@dataclass(eq=False)
class IntakeLimits:
    """Objects to submissions beyond the limits."""

    cluster: str
    limits: TenantLimits
    _: KW_ONLY
    waiting: Callable[[str], int]
    """Number of a tenant's jobs that wait in the cluster."""
    full: Callable[[], str | None]
    """The reason for which nothing more is taken in from anybody; None where there is room."""
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._let_through: OrderedDict[int, float] = OrderedDict()
        """Monotonic second at which each submission was let through, by its sequence in the stream: one may be
        handled several times."""

    def objection(self, tenant: str, delivery: Delivery) -> LimitExceeded | None:
        """The limit for which this submission of the tenant is not taken; None where it is taken, and counted."""
        if delivery.stream_seq in self._let_through:
            self._remember(delivery.stream_seq)
            return None
        if (full := self.full()) is not None:
            return LimitExceeded(FieldError("cluster", self.cluster, full), "storage")
        waiting = self.waiting(tenant)
        if waiting >= self.limits.waiting:
            reason = f"has {waiting} jobs waiting in cluster {self.cluster}, as many as a tenant may; send it again when some have started"
            return LimitExceeded(FieldError("tenant", tenant, reason), "backlog")
        if not self._spend(tenant, delivery.at):
            reason = f"submits more than the {self.limits.a_second:g} jobs a second that a tenant may in the long run; send it again later"
            return LimitExceeded(FieldError("tenant", tenant, reason), "rate")
        self._remember(delivery.stream_seq)
        return None

    def _remember(self, seq: int) -> None:
        now = self.clock()
        self._let_through[seq] = now
        self._let_through.move_to_end(seq)
        while len(self._let_through) > _REMEMBERED or (
            next(iter(self._let_through.values())) < now - _REMEMBERED_SECONDS
        ):
            self._let_through.popitem(last=False)

    def _spend(self, tenant: str, at: Micros) -> bool:
        """Takes one of the tenant's tokens; False where it has none."""
        bucket = self._buckets.setdefault(tenant, _Bucket(float(self.limits.burst), at))
        self._buckets.move_to_end(tenant)
        if len(self._buckets) > _REMEMBERED:
            self._buckets.popitem(last=False)
        if at > bucket.at:  # a submission that was handed back comes late
            earned = to_seconds(at - bucket.at) * self.limits.a_second
            bucket.tokens = min(float(self.limits.burst), bucket.tokens + earned)
            bucket.at = at
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True
