"""Questions that people ask, and their answers: JSON over request-reply.

`fairlead.v1.ask.<question>.<tenant>` is answered by one scorer, which asks the owners of the shards on the internal
`fairlead.v1.shard.<pool>.<shard>.<question>`. `_` as tenant asks about all tenants.
"""

from typing import Annotated

import msgspec

from fairlead_contracts.base.codec import Codec, Message
from fairlead_contracts.base.instants import Micros, Moment
from fairlead_contracts.base.quantities import Quantities, QuantitySeconds
from fairlead_contracts.messages.decisions import AS_IT_TRAVELS, Position, TenantShare
from fairlead_contracts.messages.explanations import PromotedPosition, ShareBreakdown, Surroundings, WhatIf


class Adherence(msgspec.Struct, frozen=True, kw_only=True):
    """The record of how admissions followed a pool's order, as one cluster's admitter saw it since it leads."""

    since: Moment
    admissions: int
    missed: int
    """Number of admissions that took room which a waiting job before them should have had."""
    idle: QuantitySeconds
    """Amounts, in base units times seconds, by resource, that stood free while a job waited that would have
    fitted."""
    hindered: int = 0
    """Number of waiting jobs that fit by quota, and that something else holds back: not counted."""
    newcomers: int = 0
    """Admissions of jobs that had come just before: not judged."""
    takeovers: int = 0
    """Admissions while no admitter led, or the one that leads had just taken over: not judged."""
    unordered: int = 0
    """Admissions while the pool had no order that may be followed: not judged."""
    unseen: int = 0
    """Admissions while the admitter did not know everything (a policy that is being read, a replay): not
    judged."""


class PromisedStarts(msgspec.Struct, frozen=True, kw_only=True, rename={"why_none": "obstacle"}):
    """The promises of reserve mode in a pool of one cluster: the jobs behind the first that does not fit wait for it."""

    why_not: str = ""
    """Reason for which nothing can be promised there although the policy wants it."""
    job: str = ""
    """The first that does not fit, as `<scope>/<name>`; empty where all fit, and where a tenant asks about
    another's."""
    tenant: str = ""
    by: Moment | None = None
    """Instant at which the job starts at the latest; None where it is promised no start."""
    why_none: str = ""
    """Reason for which the job is promised no start."""
    in_its_way: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Runs of which nobody knows the end, as `<scope>/<name>`, where that is the reason. Left out for
    none."""
    passing: list[str] = []
    """Jobs that may start before that job, as `<scope>/<name>`: they end by then, or leave room for it."""


class Steering(msgspec.Struct, frozen=True, kw_only=True):
    """The steering of one cluster: how closely it follows a pool's order, and why no closer."""

    cluster: str
    frontend: str
    enforcement: str
    """Closeness to the order: `exact`, `standing`, `close`, `within-queue`, `loose` or `tie-break`."""
    enforcement_why: str = ""
    withheld: str = ""
    """Reason for which no levels are written just now: paused, not cleared, a level could preempt, no
    admitter leads. Empty where levels are written."""
    unheard: str | msgspec.UnsetType = msgspec.UNSET
    """Reason for which the news of the cluster may be old: it does not answer, or nobody watches it. Left out
    where all is heard."""
    untaken: int | msgspec.UnsetType = msgspec.UNSET
    """Number of submissions that are published for the cluster and not taken up yet, as of a few seconds ago.
    Left out for none."""
    unanswered: int | msgspec.UnsetType = msgspec.UNSET
    """Number of jobs that have their quota and start nothing, as nobody answers the check of gangs: no
    checker leads there. Left out for none, and where a tenant asks."""
    left_alone: int | msgspec.UnsetType = msgspec.UNSET
    """Number of queued jobs that are not steered, as somebody else kept changing their levels. Left out for
    none."""
    promised: PromisedStarts | msgspec.UnsetType = msgspec.UNSET
    """Promises of reserve mode. Left out without it, and where all jobs fit."""
    levels_left: int = 0
    """Number of levels that stand there all the same: they are being taken away, or a pause keeps them."""
    preemptions_by_left_levels: int = 0
    """Number of running jobs that the frontend stopped for others while such levels stood, as far as the
    admitter that leads heard; said for as long as it leads, though the levels are gone by then."""
    adherence: Adherence | None = None
    """Record of how admissions followed the order; None where nobody measures: without a leading admitter,
    or where queues state no quota."""


FIRST_POSITIONS = 50
MOST_UNRANKED = 500
"""The most jobs without a position that an answer names of a pool: each with a reason, so fewer than positions."""


class QueueQuestion(Message, frozen=True, kw_only=True):
    """A question for the waiting jobs, in order."""

    pool: str | None = None
    """Pool asked about; None for all pools."""
    tenant: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=0)] = FIRST_POSITIONS
    """Largest number of positions of each pool in an answer; 0 for as many as it holds. Who asks for more than the first
    is named so many jobs without a position, too, and three at most otherwise."""


class Approval(msgspec.Struct, frozen=True, kw_only=True, rename=AS_IT_TRAVELS):
    """A grant of a class to one job: by whom, and why."""

    job_class: str
    by: str = ""
    why: str = ""
    since: Moment | None = None
    """Instant of the grant; None where whoever answers does not know: the policy keeps who and why, its
    history when."""


class RankedPosition(msgspec.Struct, frozen=True, kw_only=True, rename=AS_IT_TRAVELS):
    """A position with its rank in the pool, from 0."""

    rank: int
    position: Position
    share: float | None = None
    """Share of the pool that its top-level tenant has just before it; None where it is of a resource that the
    pool does not have."""
    entitled: float = 0.0
    """Part of the pool that this tenant is entitled to: the position's tag is its share over this."""
    owner: str | None = None
    """Object that the job was made for, as `<kind>/<name>`: people know that name."""
    name: str | msgspec.UnsetType = msgspec.UNSET
    """Name by which people call the job, after the object that it was made for; left out where that is its
    id."""
    approved: Approval | None = None
    """Grant of a class to this job alone."""
    left_alone: Moment | msgspec.UnsetType = msgspec.UNSET
    """Instant since which the job is not steered, as somebody else kept changing its level. Left out of all
    others."""
    why: str = ""
    """Reason for which the job at the rank before this one goes first, in words (`it` and `its tenant` are
    that job's); empty of the first, and where it is not told: between jobs of one tenant, and far down."""


class UnrankedJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job that has not started and has no position in the order."""

    job: str
    """Job, as `<scope>/<name>`."""
    tenant: str
    why: str
    tasks: int = 1
    """Number of jobs that it counts as: of an array the tasks that have no position."""


class PoolQueue(msgspec.Struct, frozen=True, kw_only=True, rename=AS_IT_TRAVELS):
    """One pool's order, or its beginning."""

    pool: str
    waiting: int
    positions: list[RankedPosition]
    steering: list[Steering] = []
    """Steering of each cluster that is joined into the pool."""
    silent_shards: list[int] = []
    """Shards whose owner did not answer: the order lacks their tenants."""
    more: int = 0
    """Number of jobs that wait, too, and that the positions leave out: of the tenant, where one was asked
    for."""
    unranked: int = 0
    """Number of jobs that have not started and have no position: held, or with quota whose pods may not start
    yet. Of the tenant, where one was asked for."""
    unranked_first: list[UnrankedJob] = []
    """Jobs without a position, the first of them: who was submitted first before others."""
    most: int | None = None
    """Largest number of positions that an answer holds, whatever the limit; None from a scorer that does not
    say."""
    divide_by: str | msgspec.UnsetType = msgspec.UNSET
    """Unit of shares: `weight` where the policy divides shares by weights as they stand. Then `entitled` is
    the weight, and tags are multiples of no part. Left out otherwise."""


class QueueReply(Message, frozen=True, kw_only=True):
    """The order of each pool asked for."""

    at: Moment
    pools: list[PoolQueue]
    unheard: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    """Reasons for which the news of a cluster may be old, by cluster, also of one that has sent none yet.
    Left out for none."""
    nowhere: int | msgspec.UnsetType = msgspec.UNSET
    """Number of jobs that have not started and whose queue leads to no pool: there is none of that name, or
    no ClusterQueue behind it. Of the tenant, where one was asked for. Left out for none, and where one pool
    was asked for."""
    nowhere_first: list[UnrankedJob] | msgspec.UnsetType = msgspec.UNSET
    """Jobs whose queue leads to no pool, the first of them."""


class TenantsQuestion(Message, frozen=True, kw_only=True):
    """A question for the tenants: what they have, of what they may have."""

    pool: str | None = None


class TenantLine(msgspec.Struct, frozen=True, kw_only=True):
    """One tenant of a pool."""

    standing: TenantShare
    tag: float | None
    """Tag of the tenant: its share over its part, so 1 is exactly its part. None where it is infinite."""
    part_now: float
    """Part of the pool that its weight comes to among the tenants that run or wait; 0 for one that does
    neither."""


class PoolTenants(msgspec.Struct, frozen=True, kw_only=True):
    """One pool's tenants, who is entitled to most first."""

    pool: str
    capacity: Quantities
    tenants: list[TenantLine]
    steering: list[Steering] = []
    """Steering of each cluster that is joined into the pool."""
    silent_shards: list[int] = []
    divide_by: str | msgspec.UnsetType = msgspec.UNSET
    """Unit of shares: `weight` where the policy divides shares by weights as they stand. Then `entitled` is
    the weight, and tags are multiples of no part. Left out otherwise."""
    more: int | msgspec.UnsetType = msgspec.UNSET
    """Number of further tenants, where an answer cannot hold all of them. Left out for none."""


class TenantsReply(Message, frozen=True, kw_only=True):
    """The tenants of each pool asked for."""

    at: Moment
    pools: list[PoolTenants]


class ExplainQuestion(Message, frozen=True, kw_only=True):
    """A question for the reasons of one job's position."""

    job: str
    """Name of the job; or its uid, its frontend's own id, or its submission id. Each but the uid with or
    without its scope."""
    tenant: str | None = None


class AheadOf(msgspec.Struct, frozen=True, kw_only=True):
    """Number of a tenant's jobs that stand before the explained one."""

    tenant: str
    jobs: int


class Shortfall(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that is too little for a job, and by how much."""

    answer: str
    """Kind of the shortfall. `never`: not even if nothing else ran; `no-quota`: its pool has not enough left;
    `no-room`: its cluster has not."""
    term: str
    """A resource; or of cards `card-memory`, `card-cores` and `cards`; or `pods` of the job."""
    wanted: int
    most: int
    """Amount that there is: of cards and nodes, on the one that has most of it now, or ever where `never` is
    said; of a pool, the amount left."""
    total: int | None = None
    """Amount that is free in all; None where nobody summed it up."""
    unit: str = ""
    """Unit of the numbers: `MiB` and `%` of cards, `cards`, `pods`; empty for base units of the resource."""
    who: str
    """Pods that it is too little for, by their name in the job, or the pool that has too little."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True, rename=AS_IT_TRAVELS):
    """One job and everything that its position is made of."""

    cluster: str
    scope: str
    id: str
    uid: str
    phase: str
    queue: str
    submission: str | None = None
    pool: str | None = None
    tenant: str | None = None
    rank: int | None = None
    waiting: int | None = None
    position: Position | None = None
    standing: TenantShare | None = None
    """Standing of its top-level tenant: by that it is measured against the jobs of others."""
    level: int = 0
    base: int = 0
    owner: str | None = None
    name: str | msgspec.UnsetType = msgspec.UNSET
    """Name by which people call the job, after the object that it was made for; left out where that is its
    id. Every command takes it, alone or behind the scope and a `/`."""
    said: str = ""
    """Reason for which it waits, as the frontend said last."""
    unchecked: str | msgspec.UnsetType = msgspec.UNSET
    """Check that has yet to let the job start, in words: of a running job that has its quota and no pods yet.
    Left out of all others."""
    left_alone: Moment | msgspec.UnsetType = msgspec.UNSET
    """Instant since which the job is not steered, as somebody else kept changing its level. Left out of all
    others."""
    steering: Steering | None = None
    ahead: list[AheadOf] = []
    waited_seconds: float = 0.0
    refused_class: str | None = None
    """A class that it asked for and was not granted."""
    approved: Approval | None = None
    """Grant of a class to this job alone."""
    what_if: WhatIf | None = None
    """Terms of a waiting job's position, its neighbours, and the changes that would move it."""
    reasons: list[str] = []
    """Sentences that tell the same."""
    never: list[str] = []
    """Reasons for which the nodes of its cluster could not hold it even if nothing ran, in words; empty where
    they could, or where that is not known."""
    no_quota: list[str] = []
    """Resources that its pool has too little of, after the running jobs, in words; of a job that could run
    otherwise."""
    no_room: list[str] = []
    """Reasons for which the cards of its cluster cannot hold it now though its pool has quota left, in words;
    empty where they could, or where that is not known."""
    shortfalls: list[Shortfall] = []
    """Numbers behind `never`, `no_quota` and `no_room`."""
    trace: str | msgspec.UnsetType = msgspec.UNSET
    """The id of its trace; left out where that is not kept."""
    divide_by: str | msgspec.UnsetType = msgspec.UNSET
    """Unit of shares: `weight` where the policy divides shares by weights as they stand. Then `entitled` is
    the weight, and tags are multiples of no part. Left out otherwise."""


class ExplainReply(Message, frozen=True, kw_only=True):
    """The jobs of that name, explained; several where the name is not unique, none where nobody knows it."""

    at: Moment
    found: list[Explanation]
    near: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Jobs, three at most, whose names begin like one that nobody knows, with their scopes. Left out for
    none."""


MOST_ANSWERS = 100
"""The most answers to submissions, and submissions asked about, in one message."""


class AnswerQuestion(Message, frozen=True, kw_only=True):
    """A question for the fate of submissions, by senders that were away while it was told: answers are kept for an hour."""

    tenant: str | None = None
    """Tenant that asks: the subject's, unless that is `_`."""
    submissions: Annotated[list[str], msgspec.Meta(max_length=MOST_ANSWERS)] | None = None
    """Ids of the submissions; None for all of the tenant."""
    after: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Place behind which answers are wanted: the `after` of the reply before; 0 for all that are kept."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ANSWERS)] = MOST_ANSWERS


class AnswerReply(Message, frozen=True, kw_only=True):
    """Answers, oldest first; of several submissions one after the other."""

    answers: list[msgspec.Raw]
    """Answers as they were published, see `submissions`."""
    after: int
    """Place to ask again from."""
    more: bool
    """Whether there are more answers behind these now."""


class ShardQuestion(Message, frozen=True, kw_only=True, rename=AS_IT_TRAVELS):
    """A question of a scorer to the owner of one shard; also carries the instant, so that all shards answer for the same."""

    at: Micros
    limit: Annotated[int, msgspec.Meta(ge=0)] = 0
    tenant: str | None = None
    below: Position | None = None
    """Position before which the owner counts positions, by tenant."""
    uid: str | None = None
    """Job whose position alone the owner gives."""
    among: list[Position] = []
    """Positions before each of which the owner counts the shard's jobs."""
    what_if: bool = False
    """Whether the owner says more: with `uid`, the terms of its position and its positions in higher classes; with
    `below`, its surroundings; with `higher`, these counts."""
    higher: list[Position] = []
    """Positions that the job would have; before each the owner counts the jobs of other top-level tenants."""
    passing: list[Position] = []
    """Positions, with `uid`, that the job might pass: for each the owner tells the amounts of its tenant's
    running jobs that have to end first."""


class ShardReply(Message, frozen=True, kw_only=True, rename=AS_IT_TRAVELS):
    """One shard's part of an answer."""

    pool: str
    shard: int
    policy: int
    capacity: Quantities
    waiting: int
    positions: list[Position] = []
    standings: list[TenantShare] = []
    ahead: list[AheadOf] = []
    before: list[int] = []
    """Counts for the question's `among`, in its order."""
    breakdown: ShareBreakdown | None = None
    promoted: list[PromotedPosition] = []
    around: Surroundings | None = None
    higher: list[int] = []
    """Counts for the question's `higher`, in its order."""
    ends: list[Quantities | None] = []
    """Amounts for the question's `passing`, in its order; None where no end does it."""
    ended: list[PromotedPosition | None] = []
    """Positions of the job after each of these ends, where its rank has to be tried."""


class Problem(Message, frozen=True, kw_only=True):
    """A fault for which a question could not be answered: the field, the value found there, and why."""

    field: str
    value: str
    reason: str


QUEUE_QUESTION: Codec[QueueQuestion] = Codec(QueueQuestion, "queue question", packed=False)
QUEUE_REPLY: Codec[QueueReply] = Codec(QueueReply, "queue reply", packed=False)
TENANTS_QUESTION: Codec[TenantsQuestion] = Codec(TenantsQuestion, "tenants question", packed=False)
TENANTS_REPLY: Codec[TenantsReply] = Codec(TenantsReply, "tenants reply", packed=False)
EXPLAIN_QUESTION: Codec[ExplainQuestion] = Codec(ExplainQuestion, "explain question", packed=False)
EXPLAIN_REPLY: Codec[ExplainReply] = Codec(ExplainReply, "explain reply", packed=False)
ANSWER_QUESTION: Codec[AnswerQuestion] = Codec(AnswerQuestion, "answer question", packed=False)
ANSWER_REPLY: Codec[AnswerReply] = Codec(AnswerReply, "answer reply", packed=False)
SHARD_QUESTION: Codec[ShardQuestion] = Codec(ShardQuestion, "shard question", packed=True)
SHARD_REPLY: Codec[ShardReply] = Codec(ShardReply, "shard reply", packed=True)
PROBLEM: Codec[Problem] = Codec(Problem, "problem", packed=False)
