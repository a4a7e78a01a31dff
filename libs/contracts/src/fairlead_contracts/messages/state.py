"""The state of clusters, as their watcher states it on NATS: facts only, no policy.

One message per object on `fairlead.v1.state.<cluster>.<kind>.<scope>.<id>`, last value per subject. Each carries its
writer's leadership epoch and a revision that only grows per object; a reader drops what is lower than what it has.
All quantities are integers in base units (see quantities), all instants microseconds since the Unix epoch.
"""

import enum

import msgspec

from fairlead_contracts import subjects
from fairlead_contracts.base.codec import Codec, Message, to_packed
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.base.quantities import Quantities
from fairlead_contracts.frontend.capabilities import Capabilities
from fairlead_contracts.frontend.cards import CardState
from fairlead_contracts.frontend.shipped import AbleQueue, completed, shipped_capabilities

HIGHEST_LEVEL = 2**31 - 1
"""The highest level of all frontends: Kueue's priorities are 32 bits wide, with a sign."""


class Phase(enum.StrEnum):
    """The phase of a job in its frontend."""

    WAITING = "waiting"
    """The job is queued and eligible: it has a position in the order."""
    HELD = "held"
    """The job is queued, but not eligible to start: inactive, gated, backing off or on hold. It has no position
    in the order."""
    RUNNING = "running"
    """The job is admitted: its demand counts as its tenant's use."""
    ENDED = "ended"
    """The job finished, failed or was cancelled; it is stated for a while so that questions can still be
    answered, then deleted."""


class Outcome(enum.StrEnum):
    """The outcome of a job that ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Stated(Message, frozen=True, kw_only=True):
    """The base of every object of the state."""

    cluster: str
    epoch: int
    """Leadership epoch of the writer."""
    rev: int
    """Revision: it grows with each change of this object."""

    @property
    def stamp(self) -> tuple[int, int]:
        """The stamp that tells which of two statements of one object is the newer."""
        return self.epoch, self.rev


class NodeState(Stated, frozen=True, kw_only=True, tag_field="kind", tag="node"):
    """One node of a cluster."""

    name: str
    allocatable: Quantities
    labels: dict[str, str] = {}
    ready: bool = True
    taints: list[str] = []
    """Taints as kubectl writes them: `key=value:effect`."""
    unschedulable: bool = False
    cards: list[CardState] = []
    """Cards that HAMi registers here, with the parts that its pods hold. Empty where it registers none, and
    for older watchers."""
    cards_refused: str = ""
    """Reason for which the registered cards cannot be read: the node is stated without cards then, as HAMi
    has none of it either."""


class FlavorQuota(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The quota of one flavor in a queue or a cohort: of each resource, in base units."""

    flavor: str
    nominal: Quantities
    borrowing: Quantities = {}
    """The most that may be borrowed, by resource; a resource that is not named has no limit."""
    lending: Quantities = {}
    """The most that is lent, by resource; a resource that is not named is lent whole."""


class CohortQuota(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The quota of a node above queues that share quota."""

    name: str
    parent: str = ""
    quotas: list[FlavorQuota] = []


class PoolState(Stated, frozen=True, kw_only=True, tag_field="kind", tag="pool"):
    """One fairness domain as the cluster has it: the capacity that a set of queues competes for."""

    name: str
    capacity: Quantities
    flavors: dict[str, Quantities] = {}
    """Capacity by flavor, where several give one resource: a job takes each of its resources from one of
    them. Else empty."""
    common: dict[str, Quantities] = {}
    """Parts of the capacity that are of other pools of the cluster as well, by a name that those pools give the same
    machines: joined, the pools have them once."""
    enforcement: str = "exact"
    """Closeness with which the frontend can follow an order: `exact`, `standing`, `close`, `within-queue`, `loose`
    or `tie-break`."""
    enforcement_why: str = ""
    """Reason for which it is no closer, in words; empty where it is exact."""
    enforcement_mixed: str = ""
    """Closeness where the jobs that wait are not all alike; empty where that makes no difference."""
    enforcement_mixed_why: str = ""
    """Reason for the closeness among unlike jobs, in words."""
    reservable: bool = False
    """Whether the first job that does not fit keeps its place here, and what is free can be had by nobody
    else."""
    reservable_why: str = ""
    """Reason for which no place is kept, in words; empty where one is, or where nobody says."""
    cohorts: list[CohortQuota] = []
    """Nodes above its queues; empty where its queues share nothing, and for older watchers."""


class QueueState(AbleQueue, Stated, frozen=True, kw_only=True, tag_field="kind", tag="queue"):
    """One queue of a frontend: where its jobs stand, and the levels that it takes."""

    name: str
    pool: str
    frontend: str
    default_level: int = 0
    """Level of a job that nobody labelled."""
    lowest_level: int = 1
    highest_level: int = 1_000_000
    """Highest level that may be written; with the lowest, the band of levels here."""
    bands_by_class: bool = False
    """Whether each class has levels of its own here, above the value that the cluster gives it (see
    ClassState)."""
    preemption: dict[str, str] = {}
    """Settings that say which jobs the frontend may stop for a waiting one, by its own words: for Kueue
    `withinClusterQueue`, `reclaimWithinCohort` and `borrowWithinCohort`. Empty where it never preempts."""
    strategy: str = ""
    """Rule for the jobs behind one that does not fit: Kueue's `StrictFIFO` or `BestEffortFIFO`; empty where
    unknown."""
    active: bool = True
    """Whether the queue starts jobs at all just now."""
    cohort: str = ""
    """The node of the pool that it stands under; empty for none."""
    quotas: list[FlavorQuota] = []
    """Quotas that its jobs can have, in the order in which its frontend tries the flavors; empty where nobody
    says."""
    by_quota_alone: bool = False
    """Whether its jobs start as soon as there is quota, whatever a single node could hold: nodes keep none
    waiting."""
    capabilities: Capabilities | None = None
    """Capabilities of its frontend; None where an older release states the queue."""

    @property
    def reclaims(self) -> bool:
        """Whether its jobs take back what other queues borrowed, whatever the levels are: running jobs are stopped then."""
        return completed(self.able).reclaims(self.preemption)

    @property
    def parks(self) -> bool:
        """Whether the queue puts aside what does not fit, until room comes free."""
        return completed(self.able).parks(self.strategy)

    @property
    def may_park(self) -> bool:
        """Whether its frontend puts aside what does not fit under some strategy, be it not the queue's."""
        stated = self.able.parking_strategy
        # As with the command, an older release may state others and not this one.
        return bool(shipped_capabilities(self.frontend).parking_strategy if stated is None else stated)

    @property
    def blocks(self) -> bool:
        """Whether its first job, where it does not fit, keeps the others back."""
        return completed(self.able).blocks(self.strategy)

    @property
    def check_command(self) -> str:
        """The command that looks its cluster over, as it is typed; empty where none does."""
        stated = self.able.check_command
        # An older release states other capabilities and not this one: its frontend's name says it.
        return shipped_capabilities(self.frontend).check_command or "" if stated is None else stated


class ClassState(Stated, frozen=True, kw_only=True, tag_field="kind", tag="class"):
    """A cluster's own word on a class: the level that a job of it has when nobody steers."""

    name: str
    value: int


class TenantState(Stated, frozen=True, kw_only=True, tag_field="kind", tag="tenant"):
    """One account or local queue through which jobs enter a queue."""

    name: str
    scope: str
    queue: str


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault in a job's own words, which cannot be followed: the field, the value there, and the remedy."""

    field: str
    value: str
    remedy: str


class JobShape(msgspec.Struct, frozen=True, kw_only=True, rename={"card_annotations": "card_wishes"}):
    """Some pods of a job, all alike."""

    name: str
    pods: int
    """Number of these pods: the job starts with no fewer."""
    demand: Quantities
    """Amounts that one pod asks for."""
    selector: dict[str, str] = {}
    """Labels that their nodes must have."""
    card_asks: list[dict[str, int]] = []
    """Requests of one pod for cards, one of each container that makes any (`CARD_RESOURCES`). In `demand`
    they are summed up. Empty where the demand says it all: one container that asks for whole cards."""
    card_annotations: dict[str, str] = {}
    """Annotations of the pods by which HAMi chooses cards (`cards.CARD_ANNOTATIONS`); they travel as
    `card_wishes`, the first release's word."""


class JobHolder(enum.StrEnum):
    """The holder that keeps a queued job from starting."""

    USER = "user"
    """Whoever submitted it, or somebody of the same account."""
    ADMIN = "admin"
    """An operator of the cluster."""
    DEPENDENCY = "dependency"
    """Another job, that has to end first."""


class JobArray(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Waiting tasks of one array, stated together: they ask for the same, one behind the other."""

    tasks: int
    """Number of tasks that wait."""
    window: list[int]
    """Numbers of the tasks that have a position, in their order: the rest comes when these have started."""


def task_uid(array: str, task: int) -> str:
    """The uid of a task, from that of its array; those of one array sort as their numbers do."""
    return f"{array}_{task:010d}"


def job_name(id: str, owner: str | None) -> str:  # noqa: A002 - the word of the contracts
    """The one name by which people know a job: that of the object that it was made for, if any, else its id.

    Args:
        id: the frontend's own id, such as that of a Workload.
        owner: the object that it was made for, as `<kind>/<name>`.
    """
    return (owner or "").partition("/")[2] or id


class JobState(Stated, frozen=True, kw_only=True, tag_field="kind", tag="job", gc=False):
    """One job: the unit of admission."""

    id: str
    """Name of the job, unique in its scope."""
    uid: str
    """Identity over all clusters and all time; the last tie-breaker of the order."""
    scope: str
    """Namespace or account."""
    queue: str
    """Queue in which it stands, or runs."""
    demand: Quantities
    """Amounts that the whole job asks for, all pods together; of an array, one task."""
    phase: Phase
    submitted: Micros
    queue_time: Micros
    """The instant by which the frontend breaks ties between equal levels."""
    level: int = 0
    levelled_by: str = ""
    """Writer of a queued job's level, by the name under which the frontend keeps that; empty where it does
    not say, and of a job that nobody gave one."""
    base: int = 0
    """Level that it has when nobody steers: of Kueue its priority, or what that was before an admitter wrote a level there.
    Never read back from a level."""
    pods: int = 1
    shapes: tuple[JobShape, ...] = ()
    """Pods of a waiting job, by their kinds. Empty where `demand` and `pods` say it: pods that are all alike,
    select no nodes and ask for no parts of cards. A job that runs, or ran, has them where its pods ask for
    cards."""
    equivalence: str = ""
    """Mark that a waiting job shares with others: its frontend tries one of them, and knows of the rest.
    Empty where the jobs' requests say it."""
    requested_class: str | None = None
    priority_override: int | None = None
    """Priority that it asks for in its class's place."""
    local_queue: str | None = None
    """The tenant's entry queue, where the frontend has such: a Kueue LocalQueue of the scope."""
    owner: str | None = None
    """Object that it was made for, as `<kind>/<name>`: people know that name."""
    submission: str | None = None
    """The id under which it was submitted on NATS, where it was."""
    flavors: dict[str, str] = {}
    """Flavors of a running job by resource, where several give it."""
    charged: dict[str, Quantities] = {}
    """Quota that a running job holds of its queue's, by flavor and resource. Empty where nobody says."""
    started: Micros | None = None
    unchecked: str = ""
    """Check that has yet to let a running job start, in words, such as an admission check of Kueue. It counts
    as use, and has no pods. Empty where it started."""
    open_checks: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Names of the admission checks that such a job waits for. Left out for none."""
    admitted: Micros | msgspec.UnsetType = msgspec.UNSET
    """The instant at which such a job's checks let it start. Left out where it had none to wait for."""
    ended: Micros | None = None
    outcome: Outcome | None = None
    """Outcome of a job that ended; None while nobody knows it: its frontend forgot the job, and is still to tell."""
    run_limit: Micros | None = None
    """Time for which it may run from its next start, or from its last; None for as long as it likes."""
    ends_by: Micros | None = None
    """Instant at which the frontend stops it at the latest, while it runs; None where it has no limit, or its
    time does not run yet."""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    """Annotations that are short, of the job and of the object that it was made for: policy may tell tenants
    by them."""
    said: str = ""
    """Reason for which it waits, as the frontend said last."""
    flavorless: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether the frontend said of a waiting job that none of its queue's flavors takes it, whatever quota is
    free, and passes it by. Left out where it did not."""
    refused_by: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """Flavors of which the frontend said that they do not take a waiting job, whatever quota is free. Left out for none,
    and of pod sets that other flavors take."""
    limited: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether the frontend said of a waiting job that a limit of its user's or account's is reached, or that a node, a
    licence or the like is missing, whatever is free: others start past it until that ends. Left out where it did not."""
    held_by: str = ""
    """Reason for which it is held, in words; empty where it is not, and from writers that do not say."""
    holder: JobHolder | None = None
    """Holder of the job; None where it is not held, and where its frontend has other reasons."""
    queues: tuple[str, ...] = ()
    """Queues in which it may start, where there are several: it is ranked in the first of them, and starts in
    any."""
    array: JobArray | None = None
    """Array whose waiting tasks this states: the task of number n is the job `<id>_<n>`, its uid that of
    `task_uid`. Once it has a level of its own, or runs, it is stated by itself under that name, and leaves
    the window. None for a single job."""
    carries: str | None = None
    """Uid of a job of another cluster that this one carries out, as a pod carries out a Slurm job. In a pool
    whose clusters share hardware the two count once, as that one."""
    faults: tuple[Fault, ...] = ()
    traceparent: str | None = None

    @property
    def began(self) -> Micros | None:
        """The instant from which it could run; None before that, also while it has its quota and waits for its checks."""
        return None if self.unchecked else self.admitted or self.started

    @property
    def passed_by(self) -> bool:
        """Whether its frontend starts others past it as things are, whatever is free."""
        return bool(self.flavorless or self.limited)

    @property
    def name(self) -> str:
        """The name that people call it by; see job_name."""
        return job_name(self.id, self.owner)

    @property
    def full_name(self) -> str:
        """The name with its scope: every command takes it."""
        return f"{self.scope}/{self.name}"


class SyncMark(Stated, frozen=True, kw_only=True, tag_field="kind", tag="mark"):
    """The watcher has made the state on NATS equal to its cluster, on this incarnation of the server.

    A server crash can bring deleted objects back. The watcher reconciles after each (re)connect and then publishes a
    mark with the incarnation that it is connected to; a pool is scored only while the marks of its clusters carry
    the reader's own incarnation.
    """

    incarnation: str
    at: Micros


type State = NodeState | PoolState | QueueState | ClassState | TenantState | JobState | SyncMark

STATE: Codec[State] = Codec(
    NodeState | PoolState | QueueState | ClassState | TenantState | JobState | SyncMark,
    "state",
    packed=True,
)

encode_state = to_packed


_KINDS: dict[type[State], subjects.StateKind] = {
    NodeState: "node",
    PoolState: "pool",
    QueueState: "queue",
    ClassState: "class",
}
"""Kinds of objects that are known by their names alone."""


def subject_of(state: State) -> str:
    """The subject under which the object is stated."""
    match state:
        case JobState():
            return subjects.state(state.cluster, "job", state.id, scope=state.scope)
        case TenantState():
            return subjects.state(state.cluster, "tenant", state.name, scope=state.scope)
        case SyncMark():
            return subjects.mark(state.cluster)
        case _:
            return subjects.state(state.cluster, _KINDS[type(state)], state.name)


def is_stated_at(subject: str, state: State, seq: int = 0) -> bool:
    """Whether an object is stated where it belongs: who may write one subject may not speak of another's object.

    Its stream sequence tells nothing: epochs of state are sequences of another stream.
    """
    del seq
    try:
        return subject_of(state) == subject
    except FieldError:  # it has a name that no subject can hold
        return False
