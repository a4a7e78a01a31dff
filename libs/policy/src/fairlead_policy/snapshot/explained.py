"""One job of a snapshot explained: what a scorer would say of it with the same facts."""

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Place, Standing
from fairlead_contracts.messages.explanations import Prospects
from fairlead_contracts.snapshot.types import Snapshot
from fairlead_policy.exact.terms import top_of
from fairlead_policy.explain.explanation import prospects_in
from fairlead_policy.explain.forecast_text import prospects_in_words
from fairlead_policy.explain.reasons import class_in_words, terms_in_words
from fairlead_policy.explain.surroundings import count_before
from fairlead_policy.order.pool_order import PoolOrder
from fairlead_policy.snapshot.ordering import orders_of


class ExplainedJob(msgspec.Struct, frozen=True, kw_only=True):
    """One waiting job with all that its place is made of."""

    pool: str
    place: Place
    rank: int
    """From 0."""
    waiting: int
    """How many wait in the pool."""
    ahead: dict[str, int]
    """How many jobs of each tenant stand before it, those with most first."""
    standing: Standing | None
    """Of its top-level tenant."""
    prospects: Prospects
    reasons: list[str]
    """The same in words."""


def explain_in_snapshot(snapshot: Snapshot, job: str) -> list[ExplainedJob]:
    """The waiting jobs of that id or uid; none where there is none.

    Raises:
        DocumentError: as `order_snapshot`.
    """
    uids = [(one.pool, one.uid) for one in snapshot.jobs if job in (one.id, one.uid)]
    if not uids:
        return []
    orders = orders_of(snapshot)
    found = (_explained(pool, orders[pool], uid, snapshot.now) for pool, uid in uids)
    return [one for one in found if one is not None]


def _explained(pool: str, known: PoolOrder, uid: str, now: Micros) -> ExplainedJob | None:
    place, order, rules = known.place(uid, now), known.at(now), known.rules
    if place is None:
        return None
    prospects, counts = prospects_in(order, place), count_before(order, place)
    standings = {one.tenant: one for one in order.standings([place.tenant])}
    standing = standings.get(top_of(place))
    return ExplainedJob(
        pool=pool,
        place=place,
        rank=sum(counts.values()),
        waiting=sum(order.waiting().values()),
        ahead=dict(sorted(counts.items(), key=lambda part: (-part[1], part[0]))),
        standing=standing,
        prospects=prospects,
        reasons=[
            class_in_words(place, rules),
            *terms_in_words(place, standing, rules, now),
            *prospects_in_words(prospects, place, rules, now),
        ],
    )
