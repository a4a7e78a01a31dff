"""Decisions: the heads of queues in order, the state that they were made from, and the terms behind each position.

One message per (pool, shard) on `fairlead.v1.decision.<pool>.<shard>`. The shards' heads merge into the pool's
without coordination: each position carries its exact terms (integers), so that keys of different shards compare exactly.
"""

from typing import Literal

import msgspec

from fairlead_contracts import subjects
from fairlead_contracts.base.codec import Codec, Message
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.base.quantities import Quantities

type UnboundedBy = Literal["weight", "held", "asked", "beyond"]
"""The cause of an infinite share: the tenant's weight is 0; it holds a resource of which the pool has none;
its jobs before this one ask for one; or its use is larger than can be counted. The first of these that is so
is told."""


AS_IT_TRAVELS = {
    "job_class": "urgency",
    "effective": "lifted",
    "effective_late": "lifted_late",
    "own_effective": "own_lifted",
    "own_rank": "position",
    "position": "place",
    "positions": "places",
    "queue_heads": "fronts",
    "unranked": "unplaced",
    "unranked_first": "unplaced_first",
    "what_if": "prospects",
    "breakdown": "makeup",
    "counterfactuals": "moves",
}
"""Fields that have another name in messages than in code: that of the first release, which others may still
run."""


class EffectiveJob(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, rename=AS_IT_TRAVELS
):
    """The exact terms of a job that stands before another of the same top-level tenant, and holds it back.

    A top-level tenant serves its jobs in one sequence. Where the next in it would go before its predecessor by its own
    terms, it stands right behind it instead: it counts as the largest (class, key, submitted, uid) up to its position.
    """

    uid: str
    id: str = ""
    """Id of the job; empty in positions of earlier releases."""
    job_class: str
    override: float | None = None
    dominant: str
    use: int
    share: str = ""
    submitted: Micros
    unbounded: bool = False
    blocked: bool = False


class SiblingStanding(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, rename=AS_IT_TRAVELS
):
    """The standing of one tenant below the top among its siblings just before the job."""

    tenant: str
    dominant: str
    use: int
    tag: float
    """Start tag of the tenant, counted by its own entitlement; 0 where it is infinite."""
    share: str = ""
    """The exact tag as a fraction, where it is not made from `use` alone (H-DRF)."""
    unbounded_by: UnboundedBy | None = None
    """Cause of an infinite tag: the jobs of its siblings, of the same class, go first."""
    effective: EffectiveJob | None = None
    """The job of this tenant that is served before and counts for this one among the siblings; None where
    that is itself."""


class Position(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, rename=AS_IT_TRAVELS):
    """A waiting job's position, with the terms that put it there.

    `key = tag + rate * max(submitted, now - cap)` with `tag = weight_r * use / capacity_r / entitlement`, r being
    the dominant resource. `tag` and `key` are the floats for people; `use` and `submitted` are the exact terms.

    In a tree of tenants the terms are those of the top-level tenant: pools are shared between these. The order goes
    by the largest (class, key, submitted, uid) up to the job along that tenant's sequence, then by `own_rank`. What is
    largest may move with the clock beyond the aging cap, between two jobs only: the one with the largest key as
    submitted, and the one with the largest tag.
    """

    uid: str
    scope: str
    id: str
    tenant: str
    job_class: str
    """Class of the job, as granted."""
    dominant: str
    """The resource that gives the tag; empty where the tenant uses nothing yet and asks for nothing."""
    use: int
    """Base units of the dominant resource that the tenant's use and its jobs before this one come to."""
    tag: float
    key: float
    """The value that orders jobs of a class. Tag and key are finite, and 0 where `unbounded`: JSON has no
    infinity."""
    submitted: Micros
    unbounded: bool = False
    """Whether the tag is infinite (weight 0 or capacity 0): the job stands behind every bounded one of its
    class."""
    unbounded_by: UnboundedBy | None = None
    """Cause of an infinite tag; None where it is finite, and in positions of earlier releases."""
    demand: Quantities = {}
    override: float | None = None
    """A granted number in place of its class's weight."""
    share: str = ""
    """The exact tag as a fraction, where it is not made from `use` alone (H-DRF)."""
    blocked: bool = False
    """Whether the job asks for a resource that is saturated (H-DRF): it stands behind the others of its
    class."""
    top: str = ""
    """The top-level tenant; empty where that is `tenant` itself."""
    own_rank: int = 0
    """Rank in the top-level tenant's sequence, from 0."""
    effective: EffectiveJob | None = None
    """The job with the largest key, as submitted, up to this one; None where that is itself."""
    effective_late: EffectiveJob | None = None
    """The job with the largest tag up to this one; None where that is the same as the one above."""
    within: list[SiblingStanding] = []
    """The tenants below the top-level one, the leaf first; empty where there is no tree."""


class QueueHeads(msgspec.Struct, frozen=True, kw_only=True, rename=AS_IT_TRAVELS):
    """The first waiting jobs of one queue, in order: of those that some flavor takes, or of those that none does."""

    cluster: str
    queue: str
    flavorless: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether these are jobs that cannot start as things are, and stand apart: no flavor takes them, they are larger than
    the pool, or limited. Left out of others, and by earlier releases, which have all jobs of a queue together."""
    waiting: int
    """Number of jobs that wait in this shard's part of the queue, labelled or not."""
    positions: list[Position]


class Basis(msgspec.Struct, frozen=True, kw_only=True):
    """The basis of keys. Only decisions of one basis are merged: keys of two would not compare."""

    policy: int
    """Revision of the policy document."""
    capacity: Quantities
    saturated: list[str] = []
    """The resources that are used up (H-DRF), sorted: keys of two such sets do not compare either."""
    past: int = 0
    """The tick that past use was decayed to; 0 where it does not count."""
    rules: int = 0
    """The number of the rules that orders are made by; 0 from releases that state none. Two releases may have two."""


class TenantShare(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The standing of one tenant in a pool: its use, and what it is entitled to."""

    tenant: str
    weight: float
    """Weight of the tenant, as the policy states it."""
    entitled: float = 0.0
    """The part of the pool that its weight comes to among its siblings', from the top: its tag is its share
    over it. 0 puts its jobs last."""
    use: Quantities
    share: float
    """Dominant share, not divided by what the tenant is entitled to: what it has of `dominant`, past use too,
    as a fraction of what the pool has, times that resource's weight. Finite: a resource that the pool has
    none of is left out."""
    dominant: str
    waiting: int
    running: int
    parent: str | None = None
    """The tenant that its use counts towards."""
    past: Quantities = {}
    """Decayed past use that counts beside `use`, base units."""


class KeptPast(msgspec.Struct, frozen=True, kw_only=True):
    """The past use of a shard's tenants, decayed to an instant: whoever takes the shard over goes on from here.

    All use before the instant is in it, and none after: facts told again about what came before change nothing.
    """

    at: Micros
    half_life: Micros
    tenants: dict[str, dict[str, str]] = {}
    """Past use by tenant and resource, in parts of a base unit (see `PastUse`): integers as text, for they
    may pass 64 bits."""


class Decision(Message, frozen=True, kw_only=True, rename=AS_IT_TRAVELS):
    """The decision of one shard."""

    pool: str
    shard: int
    owner: str
    epoch: int
    """Sequence of the owner's claim; 0 in the claim itself. Readers drop lower epochs."""
    turn: int
    """Counts the decisions of this epoch."""
    at: Micros
    basis: Basis | None
    """Basis of the keys; None in a claim that has not decided yet."""
    revision: dict[str, int]
    """Revisions, by cluster joined into the pool: the sequence in the state stream that this was decided
    from."""
    queue_heads: list[QueueHeads] = []
    standings: list[TenantShare] = []
    kept: KeptPast | None = None
    """Past use of the tenants; None where it does not count."""
    traceparent: str | None = None


class StatedPastUse(Message, frozen=True, kw_only=True):
    """The past use that a decision states, which is all that other scorers read of it."""

    pool: str
    shard: int
    basis: Basis | None = None
    """Basis of the decision: under its policy the shard's tenants are its own."""
    kept: KeptPast | None = None


def is_decided_at(subject: str, told: Decision | StatedPastUse, seq: int) -> bool:
    """Whether a decision stands where its shard's belongs, and is none of an epoch that is yet to come.

    Args:
        seq: its own stream sequence: a claim stands before what is decided under it.
    """
    if isinstance(told, Decision) and told.epoch > seq:
        return False
    try:
        return subjects.decision(told.pool, told.shard) == subject
    except FieldError:  # it names a pool that no subject can hold
        return False


DECISION: Codec[Decision] = Codec(Decision, "decision", packed=True)
STATED_PAST_USE: Codec[StatedPastUse] = Codec(StatedPastUse, "stated past use", packed=True)
