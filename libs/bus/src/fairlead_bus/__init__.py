"""Fairlead on NATS: mirrors that know when they are complete, owners, leases, workers, questions.

The only importer of nats-py. Each trap of the server and of the client that was met on a real server is handled here
once, named in a comment and covered by a test. Errors are typed: `RetryableBusError` or `FatalBusError`.

Each room knows only those before it:

- `connection`: `client` mends nats-py, `wire` sends and asks over one connection, `jetstream` holds the few calls of its
  API, `endpoints` answer; `bus` is what users have.
- `streams`: `publisher` and `bucket` write; `feed` replays a stream once, `mirror` and `follower` for ever;
  `compare_and_swap` is sure of its outcome.
- `ownership`: an `owned_subject` and `leadership` claim by it; `membership`, `roster` and `assignment` share work out.
- `work`: a `worker` takes from a work queue (`turns`, `overtaking`, `settling`).
- `facts`: an `announcer` says what a cluster has, `comparison`, `repair` and `audit` keep it so, `event_diff` tells what
  happened to its jobs.
- `serving`: `frontend_endpoints` take what a frontend is asked to do, `discovery` is for the tools.
- `server`: `provision` makes streams, `permissions` says who may what, `accounts` and `claims` put it into a server.

The rooms from `ownership` on are imported with the first of their names: a command that only asks goes without.
"""

import importlib
from typing import TYPE_CHECKING

from fairlead_bus.connection import client_import as client_import  # first: before anything imports nats
from fairlead_bus.connection.bus import Bus, connect
from fairlead_bus.connection.endpoints import Asked, Endpoint
from fairlead_bus.connection.jetstream import Ack, Stored
from fairlead_bus.connection.settings import ConnectionSettings
from fairlead_bus.errors import (
    AnswerTimeoutError,
    BusError,
    ClosedError,
    ConnectFailedError,
    ConnectionLostError,
    DeniedError,
    DisconnectedError,
    FatalBusError,
    InvalidMessageError,
    JetStreamNotFoundError,
    JetStreamRefusedError,
    KeyExistsError,
    LostOwnershipError,
    NobodyAnswersError,
    NoStreamError,
    NotProvisionedError,
    NotYetError,
    PayloadTooLargeError,
    PoisonError,
    PublishUncertainError,
    Rejected,
    RemoteError,
    ReplayBrokenError,
    RetryableBusError,
    UnavailableError,
    WrongLastSequenceError,
    WrongRevisionError,
)
from fairlead_bus.observer import SILENT, BusObserver, BusTally
from fairlead_bus.streams.bucket import Bucket, BucketEntry, Readable, bucket_stream, writer_of
from fairlead_bus.streams.delivery import Delivery
from fairlead_bus.streams.follower import Follower
from fairlead_bus.streams.mirror import Mirror, MirrorChanges, is_deletion
from fairlead_bus.streams.publisher import Publisher, PublishFailedError
from fairlead_bus.streams.revisions import Revisions

if TYPE_CHECKING:
    from fairlead_bus.facts.announcer import Announcer, Outgoing, RequestEndpoints, StateChange, Statements
    from fairlead_bus.facts.event_diff import EventDiff, LastEviction, NoMemory, RunEnd
    from fairlead_bus.ownership.assignment import assign
    from fairlead_bus.ownership.leadership import Leadership
    from fairlead_bus.ownership.membership import Membership
    from fairlead_bus.ownership.owned_subject import OwnedSubject
    from fairlead_bus.ownership.roster import Roster
    from fairlead_bus.pace import LinePace
    from fairlead_bus.server.provision import TopologyChange, find_changes, make, provision, require_durables
    from fairlead_bus.serving.discovery import Service
    from fairlead_bus.serving.frontend_endpoints import EpochFence, FrontendEndpoints, FrontendVerbs
    from fairlead_bus.work.worker import Worker

__all__ = [
    "SILENT",
    "Ack",
    "Announcer",
    "AnswerTimeoutError",
    "Asked",
    "Bucket",
    "BucketEntry",
    "Bus",
    "BusError",
    "BusObserver",
    "BusTally",
    "ClosedError",
    "ConnectFailedError",
    "ConnectionLostError",
    "ConnectionSettings",
    "Delivery",
    "DeniedError",
    "DisconnectedError",
    "Endpoint",
    "EpochFence",
    "EventDiff",
    "FatalBusError",
    "Follower",
    "FrontendEndpoints",
    "FrontendVerbs",
    "InvalidMessageError",
    "JetStreamNotFoundError",
    "JetStreamRefusedError",
    "KeyExistsError",
    "LastEviction",
    "Leadership",
    "LinePace",
    "LostOwnershipError",
    "Membership",
    "Mirror",
    "MirrorChanges",
    "NoMemory",
    "NoStreamError",
    "NobodyAnswersError",
    "NotProvisionedError",
    "NotYetError",
    "Outgoing",
    "OwnedSubject",
    "PayloadTooLargeError",
    "PoisonError",
    "PublishFailedError",
    "PublishUncertainError",
    "Publisher",
    "Readable",
    "Rejected",
    "RemoteError",
    "ReplayBrokenError",
    "RequestEndpoints",
    "RetryableBusError",
    "Revisions",
    "Roster",
    "RunEnd",
    "Service",
    "StateChange",
    "Statements",
    "Stored",
    "TopologyChange",
    "UnavailableError",
    "Worker",
    "WrongLastSequenceError",
    "WrongRevisionError",
    "assign",
    "bucket_stream",
    "connect",
    "find_changes",
    "is_deletion",
    "make",
    "provision",
    "require_durables",
    "writer_of",
]

_ON_DEMAND = {
    "facts.announcer": ("Announcer", "Outgoing", "RequestEndpoints", "StateChange", "Statements"),
    "facts.event_diff": ("EventDiff", "LastEviction", "NoMemory", "RunEnd"),
    "ownership.assignment": ("assign",),
    "ownership.leadership": ("Leadership",),
    "ownership.membership": ("Membership",),
    "ownership.owned_subject": ("OwnedSubject",),
    "ownership.roster": ("Roster",),
    "server.provision": ("TopologyChange", "find_changes", "make", "provision", "require_durables"),
    "serving.discovery": ("Service",),
    "serving.frontend_endpoints": ("EpochFence", "FrontendEndpoints", "FrontendVerbs"),
    "pace": ("LinePace",),
    "work.worker": ("Worker",),
}
"""What services have and a command that only asks has not: the modules of these rooms are imported with the first name."""
_ROOM_OF = {name: module for module, names in _ON_DEMAND.items() for name in names}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """A name of a room that is imported on demand (PEP 562)."""
        if name not in _ROOM_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
        globals()[name] = found
        return found
