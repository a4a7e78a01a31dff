"""Decisions: the front of the order, the state that it was made from, and the terms behind each place.

One message per (pool, shard) on `fairlead.v1.decision.<pool>.<shard>`. The shards' fronts merge into the pool's front
without coordination: each place carries its exact terms (integers), so that keys of different shards compare exactly.
"""

import msgspec

from fairlead_contracts.codec import Codec, Message
from fairlead_contracts.instants import Micros


class Place(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One waiting job's place, with the terms that put it there.

    `key = tag + rate * max(submitted, now - cap)` with `tag = weight_r * use / capacity_r / tenant weight`, r being
    the dominant resource. `tag` and `key` are the floats for people; `use` and `submitted` are the exact terms.
    """

    uid: str
    scope: str
    id: str
    tenant: str
    urgency: str
    """Its class, as granted."""
    dominant: str
    """The resource that gives the tag; empty where the tenant uses nothing yet and asks for nothing."""
    use: int
    """Base units of the dominant resource that the tenant's use and its jobs before this one come to."""
    tag: float
    key: float
    """Both are finite, and 0 where `unbounded`: JSON has no infinity."""
    submitted: Micros
    unbounded: bool = False
    """The tag is infinite (weight 0 or capacity 0): the job stands behind every bounded one of its class."""
    demand: dict[str, int] = {}


class Front(msgspec.Struct, frozen=True, kw_only=True):
    """The first waiting jobs of one queue, in order."""

    cluster: str
    queue: str
    waiting: int
    """How many wait in this shard's part of the queue, labelled or not."""
    places: list[Place]


class Basis(msgspec.Struct, frozen=True, kw_only=True):
    """What keys are computed with. Only decisions of one basis are merged: keys of two would not compare."""

    policy: int
    """Revision of the policy document."""
    capacity: dict[str, int]


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One tenant in a pool: what it may have, what it has."""

    tenant: str
    weight: float
    use: dict[str, int]
    share: float
    """Dominant share, not divided by the weight: the fraction of the pool that it holds. Finite: a resource that the
    pool has none of is left out."""
    dominant: str
    waiting: int
    running: int


class Decision(Message, frozen=True, kw_only=True):
    """One shard's decision."""

    pool: str
    shard: int
    owner: str
    epoch: int
    """Sequence of the owner's claim; 0 in the claim itself. Readers drop lower epochs."""
    turn: int
    """Counts the decisions of this epoch."""
    at: Micros
    basis: Basis | None
    """None in a claim that has not decided yet."""
    revision: dict[str, int]
    """For each cluster joined into the pool, the state-stream sequence that this was decided from."""
    fronts: list[Front] = []
    standings: list[Standing] = []
    traceparent: str | None = None


DECISION: Codec[Decision] = Codec(Decision, "decision", packed=True)
