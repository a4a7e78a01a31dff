"""Fairlead on NATS: mirrors that know when they are complete, owners, leases, workers, questions.

The only importer of nats-py. Each trap of the server and of the client that was met on a real server is handled here
once, named in a comment and covered by a test. Errors are typed: `RetryableBusError` or `FatalBusError`.

Each room knows only those before it:

- `connection`: `client` mends nats-py, `nats_connection` sends and asks over one connection, `jetstream` holds the few calls of its
  API, `endpoints` answer; `bus` is what users have.
- `streams`: `publisher` and `bucket` write; `feed` replays a stream once, `mirror` and `follower` for ever;
  `compare_and_swap` is sure of its outcome.
- `ownership`: an `owned_subject` and `leadership` claim by it; `membership` and `roster` tell who is there.
- `work`: a `worker` takes from a work queue (`pull_request`, `fair_queue`, `overtaking`, `ack_batcher`).
- `facts`: an `announcer` says what a cluster has (`statement_publisher`), `comparison` and `repair` keep it so, `event_diff` tells what
  happened to its jobs; `mirrors` are how others read it; `retirement` takes away what a cluster that is gone has left.
- `frontend_endpoints` take what a frontend is asked to do.
- `server`: `provision` makes streams, `permissions` says who may what, `accounts` and `claims` put it into a server.

Named here are the connection and the streams, which all have; the rooms from `ownership` on are imported by module: a
command that only asks goes without.
"""

from fairlead_bus.connection import client_import as client_import  # first: before anything imports nats
from fairlead_bus.connection.bus import Bus, connect
from fairlead_bus.connection.endpoints import Asked
from fairlead_bus.connection.jetstream import Ack, Stored
from fairlead_bus.connection.settings import ConnectionSettings
from fairlead_bus.errors import (
    AnswerTimeoutError,
    BusError,
    ClosedError,
    ConnectFailedError,
    DeniedError,
    JetStreamNotFoundError,
    JetStreamRefusedError,
    KeyExistsError,
    LostOwnershipError,
    MisconfiguredError,
    NobodyAnswersError,
    NoStreamError,
    NotProvisionedError,
    NotYetError,
    PayloadTooLargeError,
    PoisonError,
    PublishUncertainError,
    Rejected,
    RemoteError,
    RetryableBusError,
    UnavailableError,
    WrongRevisionError,
)
from fairlead_bus.streams.bucket import Bucket, ReadableValue, bucket_stream, writer_of
from fairlead_bus.streams.delivery import Delivery
from fairlead_bus.streams.follower import Follower
from fairlead_bus.streams.mirror import Mirror, is_deletion
from fairlead_bus.streams.publisher import Publisher, PublishFailedError

__all__ = [
    "Ack",
    "AnswerTimeoutError",
    "Asked",
    "Bucket",
    "Bus",
    "BusError",
    "ClosedError",
    "ConnectFailedError",
    "ConnectionSettings",
    "Delivery",
    "DeniedError",
    "Follower",
    "JetStreamNotFoundError",
    "JetStreamRefusedError",
    "KeyExistsError",
    "LostOwnershipError",
    "Mirror",
    "MisconfiguredError",
    "NoStreamError",
    "NobodyAnswersError",
    "NotProvisionedError",
    "NotYetError",
    "PayloadTooLargeError",
    "PoisonError",
    "PublishFailedError",
    "PublishUncertainError",
    "Publisher",
    "ReadableValue",
    "Rejected",
    "RemoteError",
    "RetryableBusError",
    "Stored",
    "UnavailableError",
    "WrongRevisionError",
    "bucket_stream",
    "connect",
    "is_deletion",
    "writer_of",
]
