"""Questions that people ask, and their answers: JSON over request-reply.

`fairlead.v1.ask.<question>.<tenant>` is answered by one scorer, which asks the owners of the shards on the internal
`fairlead.v1.shard.<pool>.<shard>.<question>`. `_` as tenant asks about all tenants.
"""

from typing import Annotated

import msgspec

from fairlead_contracts.base.codec import Codec, Message
from fairlead_contracts.base.instants import Micros, Moment
from fairlead_contracts.base.quantities import Quantities, QuantitySeconds
from fairlead_contracts.messages.decisions import AS_IT_TRAVELS, Place, TenantShare
from fairlead_contracts.messages.explanations import Around, Promoted, ShareBreakdown, WhatIf


class Adherence(msgspec.Struct, frozen=True, kw_only=True):
    """How well admissions followed a pool's order, as one cluster's admitter saw it since it leads."""

    since: Moment
    admissions: int
    missed: int
    """Those that took room which a waiting job before them should have had."""
    idle: QuantitySeconds
    """By resource, base units times seconds that stood free while a job waited that would have fitted."""
    hindered: int = 0
    """Waiting jobs that fit by quota, and that something else holds back: not counted."""
    newcomers: int = 0
    """Admissions of jobs that had come just before: not judged."""
    takeovers: int = 0
    """Admissions while no admitter led, or the one that leads had just taken over: not judged."""
    unordered: int = 0
    """Admissions while the pool had no order that may be followed: not judged."""
    unseen: int = 0
    """Admissions while the admitter did not know everything (a policy that is being read, a replay): not judged."""


class Promised(msgspec.Struct, frozen=True, kw_only=True, rename={"why_none": "obstacle"}):
    """The promises of reserve mode in a pool of one cluster: the jobs behind the first that does not fit wait for it."""

    why_not: str = ""
    """Why nothing can be promised there although the policy wants it."""
    job: str = ""
    """The first that does not fit, as `<scope>/<name>`; empty where all fit, and where a tenant asks about another's."""
    tenant: str = ""
    by: Moment | None = None
    """When it starts at the latest; None where nothing is promised to it."""
    why_none: str = ""
    """Why nothing is."""
    in_its_way: list[str] | msgspec.UnsetType = msgspec.UNSET
    """The runs of which nobody knows the end, as `<scope>/<name>`, where that is why. Left out for none."""
    passing: list[str] = []
    """Those that may start before it, as `<scope>/<name>`: they end by then, or leave room for it."""


class Steering(msgspec.Struct, frozen=True, kw_only=True):
    """How far one cluster follows a pool's order."""

    cluster: str
    frontend: str
    enforcement: str
    """`exact`, `standing`, `close`, `within-queue` or `tie-break`."""
    enforcement_why: str = ""
    withheld: str = ""
    """Why nothing is written just now: paused, not cleared, a level could preempt, no admitter leads. Empty where levels are
    written."""
    unheard: str | msgspec.UnsetType = msgspec.UNSET
    """Why what is known of the cluster may be old: it does not answer, or nobody watches it. Left out where all is heard."""
    untaken: int | msgspec.UnsetType = msgspec.UNSET
    """Submissions that are published for the cluster and not taken up yet, as of a few seconds ago. Left out for none."""
    unanswered: int | msgspec.UnsetType = msgspec.UNSET
    """Jobs that have their quota and start nothing, as nobody answers the check of gangs: no checker leads there. Left out for
    none, and where a tenant asks."""
    promised: Promised | msgspec.UnsetType = msgspec.UNSET
    """Left out without reserve mode, and where all jobs fit."""
    levels_left: int = 0
    """Levels that stand there all the same: they are being taken away, or a pause keeps them."""
    preemptions_by_left_levels: int = 0
    """Running jobs that the frontend stopped for others while such levels stood, as far as the admitter that leads
    heard; said for as long as it leads, though the levels are gone by then."""
    adherence: Adherence | None = None
    """None where nobody measures it: without a leading admitter, or where queues state no quota."""


class QueueQuestion(Message, frozen=True, kw_only=True):
    """A question for the waiting jobs, in order."""

    pool: str | None = None
    """None for all pools."""
    tenant: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=0)] = 50
    """At most so many places a pool; 0 for as many as an answer holds."""


class Approval(msgspec.Struct, frozen=True, kw_only=True, rename=AS_IT_TRAVELS):
    """A grant of a class to one job: by whom, and why."""

    job_class: str
    by: str = ""
    why: str = ""
    since: Moment | None = None
    """When; None where whoever answers does not know: the policy keeps who and why, its history when."""


class RankedPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A place with its rank in the pool, from 0."""

    rank: int
    place: Place
    share: float | None = None
    """Of the pool, of its top-level tenant just before it; None where that is of what the pool has not."""
    entitled: float = 0.0
    """The part of the pool that this tenant is entitled to: the place's tag is the one over the other."""
    owner: str | None = None
    """What the job was made for, as `<kind>/<name>`: people know that name."""
    name: str | msgspec.UnsetType = msgspec.UNSET
    """What people call the job, after what it was made for; left out where that is its id."""
    approved: Approval | None = None
    """Of a class that was granted to this job alone."""
    why: str = ""
    """In words, what lets the job at the rank before this one go first (`it` and `its tenant` are that job's); empty of
    the first, and where it is not told: of one tenant's jobs alone, and far down."""


class UnplacedJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job that has not started and has no place in the order."""

    job: str
    """As `<scope>/<name>`."""
    tenant: str
    why: str
    tasks: int = 1
    """How many it counts as: of an array the tasks that have no place."""


class PoolQueue(msgspec.Struct, frozen=True, kw_only=True):
    """One pool's order, or its beginning."""

    pool: str
    waiting: int
    places: list[RankedPlace]
    steering: list[Steering] = []
    """Of each cluster that is joined into the pool."""
    silent_shards: list[int] = []
    """Shards whose owner did not answer: the order lacks their tenants."""
    more: int = 0
    """Jobs that wait, too, and that the places leave out: of the tenant, where one was asked for."""
    unplaced: int = 0
    """Jobs that have not started and have no place: held, or with quota whose pods may not start yet. Of the tenant, where one was
    asked for."""
    unplaced_first: list[UnplacedJob] = []
    """The first of them, who was submitted first before others."""
    most: int | None = None
    """So many places an answer holds at most, whatever the limit; None from a scorer that does not say."""
    divide_by: str | msgspec.UnsetType = msgspec.UNSET
    """`weight` where the policy divides shares by weights as they stand: then `entitled` is the weight, and tags are multiples
    of no part. Left out otherwise."""


class QueueReply(Message, frozen=True, kw_only=True):
    """The order of each pool asked for."""

    at: Moment
    pools: list[PoolQueue]
    unheard: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    """By cluster: why what is known of it may be old, also of one of which nothing is known yet. Left out for none."""
    nowhere: int | msgspec.UnsetType = msgspec.UNSET
    """Jobs that have not started and whose queue leads to no pool: there is none of that name, or no ClusterQueue behind it.
    Of the tenant, where one was asked for. Left out for none, and where one pool was asked for."""
    nowhere_first: list[UnplacedJob] | msgspec.UnsetType = msgspec.UNSET
    """The first of them."""


class TenantsQuestion(Message, frozen=True, kw_only=True):
    """A question for the tenants: what they have, of what they may have."""

    pool: str | None = None


class TenantLine(msgspec.Struct, frozen=True, kw_only=True):
    """One tenant of a pool."""

    standing: TenantShare
    tag: float | None
    """Its share over what it is entitled to: 1 is exactly its part. None where it is infinite."""
    part_now: float
    """The part of the pool that its weight comes to among the tenants that run or wait; 0 for one that does neither."""


class PoolTenants(msgspec.Struct, frozen=True, kw_only=True):
    """One pool's tenants, who is entitled to most first."""

    pool: str
    capacity: Quantities
    tenants: list[TenantLine]
    steering: list[Steering] = []
    """Of each cluster that is joined into the pool."""
    silent_shards: list[int] = []
    divide_by: str | msgspec.UnsetType = msgspec.UNSET
    """`weight` where the policy divides shares by weights as they stand: then `entitled` is the weight, and tags are multiples
    of no part. Left out otherwise."""


class TenantsReply(Message, frozen=True, kw_only=True):
    """The tenants of each pool asked for."""

    at: Moment
    pools: list[PoolTenants]


class ExplainQuestion(Message, frozen=True, kw_only=True):
    """Why does this job stand where it stands?"""

    job: str
    """Its name; or its uid, its frontend's own id, or its submission id. Each but the uid with or without its scope."""
    tenant: str | None = None


class AheadOf(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs of a tenant stand before the job."""

    tenant: str
    jobs: int


class Shortfall(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that is too little for a job, and by how much."""

    answer: str
    """`never`: not even if nothing else ran; `no-quota`: its pool has not enough left; `no-room`: its cluster has not."""
    term: str
    """A resource; or of cards `card-memory`, `card-cores` and `cards`; or `pods` of the job."""
    wanted: int
    most: int
    """Of cards and nodes, on the one that has most of it now, or ever where `never` is said; of a pool, what is left."""
    total: int | None = None
    """Free in all; None where nobody summed it up."""
    unit: str = ""
    """`MiB` and `%` of cards, `cards`, `pods`; empty for base units of the resource."""
    who: str
    """The pods that it is too little for, by their name in the job, or the pool that has too little."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """One job and everything that its place is made of."""

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
    place: Place | None = None
    standing: TenantShare | None = None
    """Of its top-level tenant: by that it is measured against the jobs of others."""
    level: int = 0
    base: int = 0
    owner: str | None = None
    name: str | msgspec.UnsetType = msgspec.UNSET
    """What people call the job, after what it was made for; left out where that is its id. Every command takes it, alone or
    behind the scope and a `/`."""
    said: str = ""
    """What the frontend last said of why it waits."""
    unchecked: str | msgspec.UnsetType = msgspec.UNSET
    """Of a running job that has its quota and no pods yet: what has yet to let it start, in words. Left out of all others."""
    steering: Steering | None = None
    ahead: list[AheadOf] = []
    waited_seconds: float = 0.0
    refused_class: str | None = None
    """A class that it asked for and was not granted."""
    approved: Approval | None = None
    """Of a class that was granted to this job alone."""
    prospects: WhatIf | None = None
    """Of a waiting job: what its place is made of, its neighbours, and what would move it."""
    reasons: list[str] = []
    """The same in words."""
    never: list[str] = []
    """In words, why the nodes of its cluster could not hold it even if nothing ran; empty where they could, or where
    that is not known."""
    no_quota: list[str] = []
    """In words, what its pool has too little of after what runs; of a job that could run otherwise."""
    no_room: list[str] = []
    """In words, why the cards of its cluster cannot hold it now though its pool has quota left; empty where they could, or
    where that is not known."""
    shortfalls: list[Shortfall] = []
    """The numbers of these three."""
    trace: str | msgspec.UnsetType = msgspec.UNSET
    """The id of its trace; left out where that is not kept."""
    divide_by: str | msgspec.UnsetType = msgspec.UNSET
    """`weight` where the policy divides shares by weights as they stand: then `entitled` is the weight, and tags are multiples
    of no part. Left out otherwise."""


class ExplainReply(Message, frozen=True, kw_only=True):
    """The jobs of that name, explained; several where the name is not unique, none where nobody knows it."""

    at: Moment
    found: list[Explanation]
    near: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Where nobody knows it, up to three jobs whose names begin so, with their scopes. Left out for none."""


MOST_ANSWERS = 100
"""Answers to submissions, and submissions asked about, in one message."""


class AnswerQuestion(Message, frozen=True, kw_only=True):
    """A question for the fate of submissions, by senders that were away while it was told: answers are kept for an hour."""

    tenant: str | None = None
    """The subject's, unless that is `_`."""
    submissions: Annotated[list[str], msgspec.Meta(max_length=MOST_ANSWERS)] | None = None
    """Their ids; None for all of the tenant."""
    after: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Only what was told behind this place: the `after` of the reply before; 0 for all that is kept."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ANSWERS)] = MOST_ANSWERS


class AnswerReply(Message, frozen=True, kw_only=True):
    """Answers, oldest first; of several submissions one after the other."""

    answers: list[msgspec.Raw]
    """As they were published, see `submissions`."""
    after: int
    """Ask again from here."""
    more: bool
    """Whether there is more behind them now."""


class ShardQuestion(Message, frozen=True, kw_only=True):
    """A question of a scorer to the owner of one shard; also carries the instant, so that all shards answer for the same."""

    at: Micros
    limit: Annotated[int, msgspec.Meta(ge=0)] = 0
    tenant: str | None = None
    below: Place | None = None
    """Count the places that stand before this one, by tenant."""
    uid: str | None = None
    """Give this job's place alone."""
    among: list[Place] = []
    """For each of these places, count how many of the shard's jobs stand before it."""
    prospects: bool = False
    """With `uid`, also what its place is made of and where it would stand in higher classes; with `below`, also what
    stands around it; with `higher`, these counts."""
    higher: list[Place] = []
    """For each of these, places that the job would have, count the jobs of other top-level tenants before it."""
    passing: list[Place] = []
    """With `uid`: for each of these, what of its tenant's running jobs has to end before the job passes it."""


class ShardReply(Message, frozen=True, kw_only=True):
    """One shard's part of an answer."""

    pool: str
    shard: int
    policy: int
    capacity: Quantities
    waiting: int
    places: list[Place] = []
    standings: list[TenantShare] = []
    ahead: list[AheadOf] = []
    before: list[int] = []
    """The counts for the question's `among`, in its order."""
    makeup: ShareBreakdown | None = None
    promoted: list[Promoted] = []
    around: Around | None = None
    higher: list[int] = []
    """The counts for the question's `higher`, in its order."""
    ends: list[Quantities | None] = []
    """Base units by resource for the question's `passing`, in its order; None where no end does it."""
    ended: list[Promoted | None] = []
    """Where the job would stand after each of these, where its rank has to be tried."""


class Problem(Message, frozen=True, kw_only=True):
    """A question that could not be answered: the field, what was found, why."""

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
