"""The parts of a snapshot, as types: as they are written, and as they are checked. Read by `snapshot`."""

from typing import ClassVar

import msgspec

from fairlead_contracts.document_parts import PolicyDocument, Strict
from fairlead_contracts.instants import Micros

# As written -----------------------------------------------------------------------------------------------------------


class WrittenPool(Strict, frozen=True, kw_only=True):
    """One pool of a snapshot."""

    name: str
    capacity: dict[str, object]


class WrittenTenant(Strict, frozen=True, kw_only=True):
    """One tenant of a snapshot."""

    name: str
    weight: float | None = None
    pool: str | None = None
    parent: str | None = None
    past_use: dict[str, object] = {}


class WrittenNode(Strict, frozen=True, kw_only=True):
    """One node of a snapshot."""

    name: str
    allocatable: dict[str, object]
    labels: dict[str, str] = {}
    used: dict[str, object] = {}
    cards: list[object] = []


class WrittenGang(Strict, frozen=True, kw_only=True):
    """The shape of a job."""

    pods: int = 1
    per_pod: dict[str, object] = {}


class WrittenRunning(Strict, frozen=True, kw_only=True, rename={"urgency": "class"}):
    """One running job of a snapshot."""

    id: str
    tenant: str
    demand: dict[str, object]
    urgency: str | None = None
    pool: str | None = None
    started: object = None
    ends: object = None
    gang: WrittenGang | None = None


class WrittenJob(Strict, frozen=True, kw_only=True, rename={"urgency": "class"}):
    """One waiting job of a snapshot."""

    id: str
    tenant: str
    demand: dict[str, object]
    submitted: object
    urgency: str | None = None
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


class WrittenSnapshot(Strict, frozen=True, kw_only=True):
    """A snapshot as it is written."""

    now: object = None
    policy: dict[str, object] = {}
    pools: list[WrittenPool] = []
    tenants: list[WrittenTenant] = []
    nodes: list[WrittenNode] = []
    running: list[WrittenRunning] = []
    jobs: list[WrittenJob] = []


# As checked: quantities in base units, instants in microseconds -------------------------------------------------------


class SnapshotPool(msgspec.Struct, frozen=True, kw_only=True):
    """A fairness domain and what it has."""

    name: str
    capacity: dict[str, int]


class SnapshotTenant(msgspec.Struct, frozen=True, kw_only=True):
    """What a snapshot says of a tenant beside the policy; None where the policy counts."""

    name: str
    weight: float | None = None
    pool: str | None = None
    parent: str | None = None
    past_use: dict[str, int] = {}
    """Decayed past use at the snapshot's instant, base units; of a tenant with children, beside theirs."""


class SnapshotNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node. Nothing is placed on nodes yet."""

    name: str
    allocatable: dict[str, int]
    labels: dict[str, str] = {}
    used: dict[str, int] = {}


class SnapshotRunning(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A running job: its demand counts as its tenant's use."""

    id: str
    tenant: str
    pool: str
    urgency: str
    demand: dict[str, int]
    started: Micros | None = None
    ends: Micros | None = None
    pods: int = 1


class SnapshotJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A waiting job."""

    DEFAULT_LEVEL: ClassVar[int] = 0

    id: str
    uid: str
    """The last tie-breaker of the order, and the frontend's; the id where none is given."""
    tenant: str
    pool: str
    urgency: str
    """The class that it has: a snapshot states what was granted, not what was asked for."""
    demand: dict[str, int]
    submitted: Micros
    queue_time: Micros
    priority_override: float | None = None
    """A number in place of its class's weight, as granted."""
    cluster: str = ""
    frontend: str = ""
    queue: str = ""
    level: int = DEFAULT_LEVEL
    runtime_limit: Micros | None = None
    pods: int = 1


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What waits and runs at one instant, and the policy to order it by."""

    now: Micros
    policy: PolicyDocument
    pools: list[SnapshotPool]
    tenants: list[SnapshotTenant] = []
    nodes: list[SnapshotNode] = []
    running: list[SnapshotRunning] = []
    jobs: list[SnapshotJob] = []
