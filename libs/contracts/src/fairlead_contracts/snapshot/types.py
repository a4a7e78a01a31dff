"""The parts of a snapshot, as types: as they are written, and as they are checked. Read by `snapshot`."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.base.quantities import Quantities
from fairlead_contracts.base.reading import Strict
from fairlead_contracts.frontend.capabilities import Capabilities, TieRule
from fairlead_contracts.frontend.cards import REGISTER, CardCount
from fairlead_contracts.frontend.observed import Toleration
from fairlead_contracts.frontend.shipped import AbleQueue, shipped_capabilities
from fairlead_contracts.policyfile.document import PolicyDocument

# Written and checked alike ---------------------------------------------------------------------------------------------


class CardUse(Strict, frozen=True, kw_only=True):
    """The held part of a card: vGPUs, MiB and percent of its cores."""

    count: CardCount = 0
    memory: CardCount = 0
    cores: CardCount = 0


class SnapshotCard(Strict, frozen=True, kw_only=True, rename={"model": "type"}):
    """A physical card, by the fields of HAMi's register."""

    uuid: str
    memory: CardCount
    """Memory in MiB."""
    cores: CardCount = 100
    """Cores in percent."""
    count: CardCount = 10
    """Number of vGPUs that may share it: HAMi's `deviceSplitCount`."""
    model: str = ""
    index: CardCount = 0
    numa: int = 0
    mode: str = "hami-core"
    health: bool = True
    cordoned: bool = False
    used: CardUse = CardUse()


class SnapshotPod(Strict, frozen=True, kw_only=True):
    """A pod that runs on a node, for what its annotations say that it holds of cards."""

    name: str
    annotations: dict[str, str] = {}


class SnapshotToleration(Toleration, Strict, frozen=True, kw_only=True):
    """A taint that pods tolerate, as Kubernetes writes it."""


# As written -----------------------------------------------------------------------------------------------------------


class WrittenPool(Strict, frozen=True, kw_only=True):
    """One pool of a snapshot."""

    name: str
    capacity: Mapping[str, object]
    quota: Mapping[str, object] | None = None
    """The most that it may have, as its frontends count what jobs ask for: who asks for more never starts. None where that is
    the capacity. The cards that are there now may be fewer; of cards that it does not name nobody knows a limit."""
    card_shares: bool = True
    """Whether asks for cards that nodes register weigh shares of physical cards; else they weigh what their
    demand says, as in a running Fairlead, and cards only say where jobs fit."""
    saturated: list[str] | None = None
    """Resources that are used up, with H-DRF, where that does not follow from what waits and runs: in a pool
    of several clusters or flavors, room that is free in one is no use to a job that waits for another. None
    where it follows."""


class WrittenTenant(Strict, frozen=True, kw_only=True):
    """One tenant of a snapshot, beside the policy; None where the policy counts."""

    name: str
    weight: float | None = None
    pool: str | None = None
    """Pool in which its jobs stand. Of a tenant that the policy does not name, also the only pool that it has
    a part in."""
    parent: str | None = None
    unlisted: bool = False
    """Whether the tenant counts as one that the policy does not name: it adds nothing to the sum of the
    weights."""
    past_use: Mapping[str, object] = {}
    """Decayed past use at the snapshot's instant; of a tenant with children, beside theirs."""


class WrittenNode(Strict, frozen=True, kw_only=True):
    """One node of a snapshot: what it has and what of it is used."""

    name: str
    allocatable: Mapping[str, object]
    labels: dict[str, str] = {}
    used: Mapping[str, object] | None = None
    """Amounts in use; None where that is not said: nothing, unless something runs."""
    cards: list[SnapshotCard] = []
    annotations: dict[str, str] = {}
    """Annotations of HAMi's: cards may be registered here instead."""
    pods: list[SnapshotPod] = []
    taints: list[str] = []
    """Taints as kubectl writes them: `key=value:effect`."""
    unschedulable: bool = False
    pool: str | None = None
    """Pool whose jobs alone may run here; None for those of all pools."""
    cluster: str | None = None
    """Cluster of the node, where several are in one snapshot."""


class WrittenCapabilities(Capabilities, Strict, frozen=True, kw_only=True):
    """Capabilities of a queue's frontend, in the words of the facts that it states."""


class WrittenQueue(Strict, frozen=True, kw_only=True):
    """One queue of a snapshot: the levels that it takes."""

    name: str
    pool: str | None = None
    frontend: str | None = None
    cluster: str | None = None
    default_level: int = 0
    lowest_level: int = 1
    highest_level: int = 1_000_000
    bands_by_class: bool = False
    preemption: dict[str, str] = {}
    capabilities: WrittenCapabilities | None = None
    ties: TieRule | None = None
    """One of its capabilities alone, as older releases wrote it; the next one, too."""
    orders_across_queues: bool | None = None


class WrittenClassValue(Strict, frozen=True, kw_only=True, rename={"job_class": "class"}):
    """A cluster's value of one class."""

    job_class: str
    value: int
    cluster: str | None = None


class WrittenShape(Strict, frozen=True, kw_only=True):
    """Some pods of a job, all alike."""

    pods: int
    per_pod: dict[str, object]
    containers: list[dict[str, object]] = []
    name: str = ""
    selector: dict[str, str] = {}
    tolerations: list[SnapshotToleration] = []


class WrittenGang(Strict, frozen=True, kw_only=True):
    """The shape of a job: so many pods, all alike, or several kinds of them."""

    pods: int | None = None
    per_pod: dict[str, object] = {}
    selector: dict[str, str] = {}
    tolerations: list[SnapshotToleration] = []
    zone_key: str | None = None
    shapes: list[WrittenShape] = []


class WrittenRunning(Strict, frozen=True, kw_only=True, rename={"job_class": "class"}):
    """One running job of a snapshot."""

    id: str
    tenant: str
    demand: dict[str, object]
    job_class: str | None = None
    pool: str | None = None
    started: object = None
    ends: object = None
    frontend: str | None = None
    gang: WrittenGang | None = None
    annotations: dict[str, str] | None = None


class WrittenJob(Strict, frozen=True, kw_only=True, gc=False, rename={"job_class": "class"}):
    """One waiting job of a snapshot."""

    id: str
    tenant: str
    demand: dict[str, object]
    submitted: object
    job_class: str | None = None
    pool: str | None = None
    uid: str | None = None
    gang: WrittenGang | None = None
    cluster: str | None = None
    frontend: str | None = None
    queue: str | None = None
    queue_time: object = None
    priority_override: float | None = None
    level: int | None = None
    runtime_limit: object = None
    annotations: dict[str, str] | None = None
    flavorless: bool = False
    limited: bool = False


def in_base_units[T: msgspec.Struct](kind: type[T], written: msgspec.Struct, **read: object) -> T:
    """The entry as it is checked: what was read of it, and all else as it is written."""
    return kind(**msgspec.structs.asdict(written) | read)


class WrittenSnapshot[Job](Strict, frozen=True, kw_only=True):
    """A snapshot as it is written; its jobs are `WrittenJob`s, or the text of each: there may be a million."""

    now: object = None
    policy: dict[str, object] = {}
    pools: list[WrittenPool] = []
    tenants: list[WrittenTenant] = []
    nodes: list[WrittenNode] = []
    queues: list[WrittenQueue] = []
    class_values: list[WrittenClassValue] = []
    running: list[WrittenRunning] = []
    jobs: list[Job] = []


# As checked: quantities in base units, instants in microseconds -------------------------------------------------------


class SnapshotPool(WrittenPool, frozen=True, kw_only=True):
    """A fairness domain and what it has."""

    capacity: Quantities
    quota: Quantities | None = None


class SnapshotTenant(WrittenTenant, frozen=True, kw_only=True):
    """A tenant as a snapshot has it beside the policy."""

    past_use: Quantities = {}


class SnapshotNode(WrittenNode, frozen=True, kw_only=True):
    """A node: what it has and what of it is used."""

    allocatable: Quantities
    used: Quantities | None = None
    cluster: str = ""

    @property
    def registers_cards(self) -> bool:
        """Whether its cards are known one by one."""
        return bool(self.cards) or REGISTER in self.annotations


class SnapshotQueue(AbleQueue, msgspec.Struct, frozen=True, kw_only=True):
    """A queue of a frontend and the levels that it takes, as a cluster states them (see `QueueState`)."""

    name: str
    pool: str
    frontend: str = ""
    cluster: str = ""
    """Cluster of the queue, where several are in one snapshot."""
    default_level: int = 0
    """The level of a job that nobody labelled."""
    lowest_level: int = 1
    highest_level: int = 1_000_000
    bands_by_class: bool = False
    """Whether each class has levels of its own there, above the value that the cluster gives it."""
    preemption: dict[str, str] = {}
    """Settings that say which jobs the frontend may stop for a waiting one, in its own words; empty where it
    never preempts."""
    capabilities: Capabilities | None = None
    """Capabilities of its frontend; None where its name says them."""


class SnapshotClassValue(WrittenClassValue, frozen=True, kw_only=True):
    """A cluster's own word on a class: the level that a job of it has when nobody steers (see `ClassState`)."""

    cluster: str = ""


class SnapshotShape(msgspec.Struct, frozen=True, kw_only=True):
    """Some pods of a job, all alike."""

    name: str
    pods: int
    demand: Quantities | None = None
    """Amounts that one pod asks for; None where the job's demand goes evenly over its pods."""
    containers: list[Quantities] = []
    """Requests of one pod for cards, one of each container that makes any, in place of their sum in `demand`.
    Empty for a single container."""
    selector: dict[str, str] = {}
    tolerations: list[SnapshotToleration] = []


class SnapshotGang(msgspec.Struct, frozen=True, kw_only=True):
    """A job's word on its pods beside their number."""

    shapes: list[SnapshotShape]
    zone_key: str | None = None
    """A label whose value must be the same on all nodes of the gang."""
    annotations: dict[str, str] = {}
    """Annotations of its pods, by which HAMi chooses nodes and cards."""


class SnapshotRunning(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A running job: its demand counts as its tenant's use."""

    id: str
    tenant: str
    pool: str
    job_class: str
    demand: Quantities
    started: Micros | None = None
    ends: Micros | None = None
    frontend: str = ""
    """The queueing system that runs it: its quota may count otherwise than pods ask."""
    pods: int = 1
    gang: SnapshotGang | None = None


def name_in_snapshot(tenant: str, id: str) -> str:  # noqa: A002 - the word of the contracts
    """A job's name as every command takes it; an id has the scope already where that is not called as the tenant is."""
    return id if "/" in id else f"{tenant}/{id}"


class SnapshotJob(msgspec.Struct, frozen=True, gc=False):
    """A waiting job. Made by position where many are read: that costs half of what names cost."""

    DEFAULT_LEVEL: ClassVar[int] = 0

    id: str
    uid: str
    """The last tie-breaker of the order, and the frontend's; the id where none is given."""
    tenant: str
    pool: str
    job_class: str
    """The class that it has: a snapshot states what was granted, not what was asked for."""
    demand: Quantities
    submitted: Micros
    queue_time: Micros
    cluster: str = ""
    frontend: str = ""
    queue: str = ""
    level: int = DEFAULT_LEVEL
    runtime_limit: Micros | None = None
    priority_override: float | None = None
    """A number in place of its class's weight, as granted."""
    flavorless: bool = False
    """Whether its frontend said that none of its queue's flavors takes it, whatever quota is free."""
    limited: bool = False
    """Whether its frontend said that a limit of its user's or account's is reached, whatever is free."""
    pods: int = 1
    gang: SnapshotGang | None = None
    """Word on the job's pods; None where it says no more than their number."""

    @property
    def scope(self) -> str:
        """A snapshot says no other than the tenant."""
        return self.tenant

    @property
    def full_name(self) -> str:
        """The job's name as every command takes it."""
        return name_in_snapshot(self.scope, self.id)

    @property
    def override(self) -> float | None:
        """The number in place of its class's weight, as orders name it."""
        return self.priority_override

    @property
    def able(self) -> Capabilities:
        """The capabilities of its frontend by its name, for a job whose queue the snapshot does not state."""
        return shipped_capabilities(self.frontend)


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A pool's waiting and running jobs at one instant, and the policy to order them by."""

    now: Micros
    policy: PolicyDocument
    pools: list[SnapshotPool]
    tenants: list[SnapshotTenant] = []
    nodes: list[SnapshotNode] = []
    queues: list[SnapshotQueue] = []
    """Queues. Where a pool has one here, it has all: its jobs stand in no other. Without any, queues take
    plain levels."""
    class_values: list[SnapshotClassValue] = []
    running: list[SnapshotRunning] = []
    jobs: list[SnapshotJob] = []
