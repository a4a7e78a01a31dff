"""Explanations: the parts of a waiting job's place, the jobs right before it and why, and what would move it.

All of it is data: amounts are base units, instants are exact, words are made at the edge.
"""

from typing import Literal

import msgspec

from fairlead_contracts.base.instants import Micros, Moment
from fairlead_contracts.base.quantities import Quantities
from fairlead_contracts.messages.decisions import AS_IT_TRAVELS, Place, UnboundedBy

type ComparedTerm = Literal[
    "class", "used-up", "infinite", "share", "waiting", "submitted", "uid", "own-order"
]
"""What decides between two neighbours: the class; that one asks for a resource that is used up (H-DRF), or has an
infinite share; the start tag; the time waited; with equal keys the submit instant, then the uid; or the sequence in
which a tenant serves what is its own."""

type Cause = Literal["ends", "starts", "time", "class", "weight"]
"""What would move a job: its own tenant's running jobs end; another tenant starts jobs; time goes by; a higher class;
another weight."""


class TenantHolding(msgspec.Struct, frozen=True, kw_only=True):
    """The amount of one resource that a tenant's running jobs hold."""

    tenant: str
    resource: str
    amount: int


class ShareBreakdown(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a job's start tag: the three together, by capacity and entitlement, give the tag."""

    tenant: str
    """Its top-level tenant: pools are shared between these."""
    weight: float
    entitled: float = 0.0
    """The part of the pool that this comes to; 0 where its tag is infinite."""
    running: Quantities = {}
    own_running: Quantities = {}
    """What of it the job's own tenant holds: the same, where that is at the top itself."""
    past: Quantities = {}
    """Decayed past use."""
    before: Quantities = {}
    """What the tenant's own jobs before this one ask for."""
    jobs: int = 0
    """How many those are."""
    shares: dict[str, float] = {}
    """By resource, over what it is entitled to; the largest is the start tag."""


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """The surroundings of a place in one part of a pool."""

    nearest: list[Place] = []
    """Directly before it, the nearest first."""
    behind: list[Place] = []
    """Directly behind it, the nearest first."""
    foremost: Place | None = None
    """The first job of other top-level tenants that it may pass: of its class."""
    fixed: int = 0
    """How many stand before it whatever its share: of higher classes, and its own tenant's."""
    asked: Quantities = {}
    """What all jobs before it that can start ask for, of the resources that it asks for."""
    used: Quantities = {}
    """What runs, of the same resources."""
    holders: list[TenantHolding] = []
    """Who holds most of them."""
    fading: bool = False
    """Whether past use counts for any tenant: it fades, and moves places as it does."""
    moves_at: Micros | None = None
    """An instant before which time alone moves no job inside the trees that these jobs are of; None where it never does."""


class Promoted(msgspec.Struct, frozen=True, kw_only=True):
    """A job's place in another class, or after an end."""

    place: Place
    own: int
    """How many of its top-level tenant's jobs would stand before it."""


class Neighbour(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=AS_IT_TRAVELS):
    """A job that stands right before, and the term that puts it there."""

    uid: str
    scope: str
    id: str
    tenant: str
    job_class: str
    term: ComparedTerm
    within: str = ""
    """The tenant below which the two part ways; empty where that is the pool itself."""
    side: str = ""
    """The tenant on its way up whose start tag counts there; empty where that is its own."""
    own_side: str = ""
    """The same of the explained job."""
    effective: str = ""
    """Id of the job by whose terms it counts there, as its tenants serve that one first; empty where it counts by its own."""
    own_effective: str = ""
    """The same of the explained job."""
    share_lead: float = 0.0
    """By how much the start tag on its side is lower; negative where it is higher."""
    class_lead: float = 0.0
    """By how much its class is worth more, in share, where classes are not strict; negative where it is worth less. With
    classes that divide the tag: what these divisions add to `share_lead`."""
    waiting_lead: float = 0.0
    """By how much its waiting is worth more, in share; negative where it is worth less. The three leads together are by how
    much its key is lower."""
    unbounded_by: UnboundedBy | None = None
    """With `infinite`: what makes the start tag on the explained job's side infinite."""


class Counterfactual(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=AS_IT_TRAVELS):
    """One change that would move the job, all else being equal."""

    cause: Cause
    ahead: bool = True
    """Whether the job comes forward; else another passes it."""
    rank: int | None = None
    """Its place then, from 0, where it is known."""
    passed: str = ""
    """Uid of the job that it passes, or that passes it."""
    passed_id: str = ""
    passed_tenant: str = ""
    tenant: str = ""
    """Whose use or weight changes."""
    amounts: Quantities = {}
    """The least amounts that have to end, or to start, base units."""
    held: Quantities = {}
    """What the tenant's running jobs hold of these resources now."""
    at: Moment | None = None
    """The first instant at which it is so."""
    job_class: str = ""
    weight: float = 0.0


class RoomForecast(msgspec.Struct, frozen=True, kw_only=True):
    """A place is not a start: what has to end before the job fits into the pool."""

    free: Quantities = {}
    """Of the resources that it asks for, what nobody holds; less than 0 where more runs than the pool has."""
    missing: Quantities = {}
    """What has to end before it fits by itself; empty where it fits now."""
    in_turn: Quantities = {}
    """What has to end before it fits, if all jobs before it start first, but for those larger than the pool."""
    holders: list[TenantHolding] = []
    """Who holds most of what is missing."""


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """Why a waiting job stands where it stands, and what would move it."""

    makeup: ShareBreakdown | None = None
    nearest: list[Neighbour] = []
    """Those that stand directly before it, the nearest first."""
    moves: list[Counterfactual] = []
    still: bool = False
    """Whether time alone changes nothing between it and its neighbours."""
    fading: bool = False
    """Whether past use counts in the pool: instants of aging are then those without its fading."""
    room: RoomForecast | None = None
