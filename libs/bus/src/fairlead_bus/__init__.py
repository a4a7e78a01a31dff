"""Fairlead on NATS: mirrors that know when they are complete, owners, leases, workers, questions.

The only importer of nats-py. Each trap of the server and of the client that was met on a real server is handled here
once, named in a comment and covered by a test. Errors are typed: `RetryableBusError` or `FatalBusError`.

From the ground up: `client` mends nats-py, `wire` sends and asks over one connection, `jetstream` holds the few calls of
its API, `bus` is what users have. On it stand `publisher`, `serving`, `bucket`; `feed` replays a stream once, `mirror`
and `follower` for ever; `worker` takes from a work queue (`turns`, `overtaking`, `settling`). `swap` is compare-and-swap: `owner` and `leadership` claim by
it; `membership`, `roster` and `assignment` share work out. `announcer` says what a cluster has, `chronicle` what happened to its jobs. `provision` makes streams, `permissions` says who may what.
it; `membership`, `roster` and `assignment` share work out. `announcer` says what a cluster has, `frontend_endpoints` takes
what one is asked to do. `provision` makes streams, `permissions` says who may what.
"""

from fairlead_bus import websockets as websockets  # first: before anything imports nats
from fairlead_bus.announcer import Announcer, Doors, Outgoing, Statements, Step
from fairlead_bus.assignment import assign
from fairlead_bus.bucket import Bucket, Entry, Readable, bucket_stream, writer_of
from fairlead_bus.bus import Bus, connect
from fairlead_bus.chronicle import Chronicle, End, Eviction, Forgetful
from fairlead_bus.delivery import Delivery
from fairlead_bus.discovery import Service
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
    KeyExistsError,
    LostOwnershipError,
    NobodyAnswersError,
    NoStreamError,
    NotFoundError,
    NotProvisionedError,
    NotYetError,
    PayloadTooLargeError,
    PoisonError,
    PublishUncertainError,
    RefusedError,
    Rejected,
    RemoteError,
    ReplayBrokenError,
    RetryableBusError,
    UnavailableError,
    WrongLastSequenceError,
    WrongRevisionError,
)
from fairlead_bus.follower import Follower
from fairlead_bus.frontend_endpoints import EpochFence, FrontendEndpoints, Obedient
from fairlead_bus.jetstream import Ack, Stored
from fairlead_bus.leadership import Leadership
from fairlead_bus.membership import Membership
from fairlead_bus.mirror import Changes, Mirror, is_deletion
from fairlead_bus.observer import SILENT, BusObserver, Tally
from fairlead_bus.owner import OwnedSubject
from fairlead_bus.provision import Change, find_changes, make, provision, require_durables
from fairlead_bus.publisher import Publisher, PublishFailedError
from fairlead_bus.revisions import Revisions
from fairlead_bus.roster import Roster
from fairlead_bus.serving import Asked, Endpoint
from fairlead_bus.settings import ConnectionSettings
from fairlead_bus.worker import Worker

__all__ = [
    "SILENT",
    "Ack",
    "Announcer",
    "AnswerTimeoutError",
    "Asked",
    "Bucket",
    "Bus",
    "BusError",
    "BusObserver",
    "Change",
    "Changes",
    "Chronicle",
    "ClosedError",
    "ConnectFailedError",
    "ConnectionLostError",
    "ConnectionSettings",
    "Delivery",
    "DeniedError",
    "DisconnectedError",
    "Doors",
    "End",
    "Endpoint",
    "Entry",
    "EpochFence",
    "Eviction",
    "FatalBusError",
    "Follower",
    "Forgetful",
    "FrontendEndpoints",
    "InvalidMessageError",
    "KeyExistsError",
    "Leadership",
    "LostOwnershipError",
    "Membership",
    "Mirror",
    "NoStreamError",
    "NobodyAnswersError",
    "NotFoundError",
    "NotProvisionedError",
    "NotYetError",
    "Obedient",
    "Outgoing",
    "OwnedSubject",
    "PayloadTooLargeError",
    "PoisonError",
    "PublishFailedError",
    "PublishUncertainError",
    "Publisher",
    "Readable",
    "RefusedError",
    "Rejected",
    "RemoteError",
    "ReplayBrokenError",
    "RetryableBusError",
    "Revisions",
    "Roster",
    "Service",
    "Statements",
    "Step",
    "Stored",
    "Tally",
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
