"""Explanations: the parts of a waiting job's position, the jobs right before it and why, and what would move it.

All of it is data: amounts are base units, instants are exact, words are made at the edge.
"""

from typing import Literal

import msgspec

from fairlead_contracts.base.instants import Micros, Moment
from fairlead_contracts.base.quantities import Quantities
from fairlead_contracts.messages.decisions import AS_IT_TRAVELS, Position, UnboundedBy

type ComparedTerm = Literal[
    "class", "used-up", "infinite", "share", "waiting", "submitted", "uid", "own-order"
]
"""The term that decides between two neighbours: the class; that one asks for a resource that is used up
(H-DRF), or has an infinite share; the start tag; the time waited; with equal keys the submit instant, then
the uid; or the sequence in which a tenant serves its own jobs."""

type Cause = Literal["ends", "starts", "time", "class", "weight"]
"""The change that would move a job: its own tenant's running jobs end; another tenant starts jobs; time goes
by; a higher class; another weight."""


class TenantHolding(msgspec.Struct, frozen=True, kw_only=True):
    """The amount of one resource that a tenant's running jobs hold."""

    tenant: str
    resource: str
    amount: int


class ShareBreakdown(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a job's start tag: the three together, by capacity and entitlement, give the tag."""

    tenant: str
    """Top-level tenant of the job: pools are shared between these."""
    weight: float
    entitled: float = 0.0
    """The part of the pool that this comes to; 0 where its tag is infinite."""
    running: Quantities = {}
    own_running: Quantities = {}
    """The part of `running` that the job's own tenant holds: all of it, where that is the top-level tenant
    itself."""
    past: Quantities = {}
    """Decayed past use."""
    before: Quantities = {}
    """Amounts that the tenant's own jobs before this one ask for, those that can start."""
    jobs: int = 0
    """Number of the jobs in `before`."""
    shares: dict[str, float] = {}
    """Shares by resource, each over the part that the tenant is entitled to; the largest is the start tag."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """The surroundings of a position in one part of a pool."""

    nearest: list[Position] = []
    """Positions directly before it, the nearest first."""
    behind: list[Position] = []
    """Positions directly behind it, the nearest first."""
    foremost: Position | None = None
    """The first job of other top-level tenants that it may pass: of its class."""
    fixed: int = 0
    """Number of jobs that stand before it whatever its share: of higher classes, and of its own tenant."""
    asked: Quantities = {}
    """Sums of what the jobs before it ask for, those that can start; of the resources that it asks for itself."""
    used: Quantities = {}
    """Amounts that run, of the same resources."""
    holders: list[TenantHolding] = []
    """Tenants that hold most of them."""
    fading: bool = False
    """Whether past use counts for any tenant: it fades, and moves positions as it does."""
    moves_at: Micros | None = None
    """An instant before which time alone moves no job inside the trees that these jobs are of; None where it
    never does."""


class PromotedPosition(msgspec.Struct, frozen=True, kw_only=True, rename=AS_IT_TRAVELS):
    """A job's position in another class, or after an end."""

    position: Position
    own: int
    """Number of its top-level tenant's jobs that would stand before it."""


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
    """The tenant on this job's way up whose start tag counts there; empty where that is its own."""
    own_side: str = ""
    """The tenant on the explained job's way up, likewise; empty where that is its own."""
    effective: str = ""
    """Id of the job by whose terms it counts there, as its tenants serve that one first; empty where it
    counts by its own."""
    own_effective: str = ""
    """Id of the job by whose terms the explained one counts there, likewise; empty where it counts by its
    own."""
    share_lead: float = 0.0
    """The difference by which the start tag on its side is lower; negative where it is higher."""
    class_lead: float = 0.0
    """The difference by which its class is worth more, in share, where classes are not strict; negative where
    it is worth less. With classes that divide the tag: the amount that these divisions add to
    `share_lead`."""
    waiting_lead: float = 0.0
    """The difference by which its waiting is worth more, in share; negative where it is worth less. The three
    leads add up to the difference by which its key is lower."""
    unbounded_by: UnboundedBy | None = None
    """Cause, with `infinite`, for which the start tag on the explained job's side is infinite."""


class Counterfactual(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=AS_IT_TRAVELS):
    """A change that would move the job, all else being equal."""

    cause: Cause
    ahead: bool = True
    """Whether the job comes forward; else another passes it."""
    rank: int | None = None
    """Rank of the job then, from 0, where it is known."""
    passed: str = ""
    """Uid of the job that it passes, or that passes it."""
    passed_id: str = ""
    passed_tenant: str = ""
    tenant: str = ""
    """Tenant whose use or weight changes."""
    amounts: Quantities = {}
    """The least amounts that have to end, or to start, base units."""
    held: Quantities = {}
    """Amounts of these resources that the tenant's running jobs hold now."""
    at: Moment | None = None
    """The first instant at which it is so."""
    job_class: str = ""
    weight: float = 0.0


class RoomForecast(msgspec.Struct, frozen=True, kw_only=True):
    """The room that a job lacks. A position is not a start: jobs have to end before it fits into the pool."""

    free: Quantities = {}
    """Amounts that nobody holds, of the resources that it asks for; less than 0 where more runs than the pool
    has."""
    missing: Quantities = {}
    """Amounts that have to end before it fits by itself; empty where it fits now."""
    in_turn: Quantities = {}
    """Amounts that have to end before it fits, if all jobs before it start first, but for those larger than
    the pool."""
    holders: list[TenantHolding] = []
    """Tenants that hold most of `missing`."""


class WhatIf(msgspec.Struct, frozen=True, kw_only=True, rename=AS_IT_TRAVELS):
    """The explanation of a waiting job's position, and the changes that would move it."""

    breakdown: ShareBreakdown | None = None
    nearest: list[Neighbour] = []
    """Jobs that stand directly before it, the nearest first."""
    counterfactuals: list[Counterfactual] = []
    still: bool = False
    """Whether time alone changes nothing between it and its neighbours."""
    fading: bool = False
    """Whether past use counts in the pool: instants of aging are then those without its fading."""
    room: RoomForecast | None = None
