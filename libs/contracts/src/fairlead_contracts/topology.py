"""Streams, buckets and durables as data; the ops command of `bus` makes the server equal to it.

Limits are stated with their reasons. Storage is file and sync the server's default: a killed server loses nothing,
and `always` costs twenty times the throughput.
"""

import enum
from collections.abc import Mapping

import msgspec

from fairlead_contracts import subjects
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.tokens import decode_key, encode_key

STATE = "state"
DECISION = "decision"
SUBMIT = "submit"
ANSWER = "answer"
EVENT = "event"
DEAD = "dead"
POLICY = "policy"
KEPT_POLICIES = 32
"""Revisions that the bucket keeps of each key."""
MEMBERS = "members"
ROUTES = "routes"

HOUR = 3600
DAY = 24 * HOUR
LEAST_AGE_SECONDS = 600.0
"""The shortest age that an operator may give a stream: answers must find those who wait for them."""
NO_LIMIT = -1
"""The server's own word for a stream that may hold any number of bytes."""
MOST_OF_A_TENANT = 100_000
"""Submissions of one tenant that may lie in the stream; its next publish is refused by the server then."""
LEASE_SECONDS = 3.0
"""A lease that is not renewed for so long is gone: the bucket of leases lets its keys go."""
TOMBSTONE_SECONDS = HOUR
"""Time for which a delete stays: longer than any reader is expected to be away without replaying from
scratch."""


class Retention(enum.StrEnum):
    """The moment at which a stream lets go of a message."""

    LAST_VALUE = "last-value"
    """One message per subject is kept: the last."""
    AGE = "age"
    """A message goes after a time."""
    WORK_QUEUE = "work-queue"
    """A message goes when it was acked."""


class StreamSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The specification of one stream."""

    name: str
    subjects: list[str]
    retention: Retention
    max_age_seconds: float = 0.0
    """Age at which a message goes; 0 keeps it for ever."""
    max_age_given: bool = False
    """Whether an operator has set the age; if not, the age that stands on the server is kept."""
    max_bytes: int = 0
    """The most bytes that the stream may hold, or NO_LIMIT; 0 leaves the server's limit as it is. A full stream that
    keeps messages for a time drops the oldest; the others take no more."""
    most_of_a_subject: int = 0
    """The most messages of one subject; more are refused. 0 allows any number."""
    message_ttl: bool = False
    """Whether single messages may carry a TTL: tombstones do."""
    duplicate_window_seconds: float = 120.0
    """Time for which the server drops a message whose Nats-Msg-Id it has seen; 0 where it must store every
    one."""


class BucketSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The specification of one KV bucket."""

    name: str
    history: int = 1
    ttl_seconds: float = 0.0
    max_bytes: int = 0
    """The most bytes that the bucket may hold, or NO_LIMIT; 0 leaves the server's limit as it is. A full bucket takes
    no more."""
    expiry_markers: bool = False
    """Whether watchers hear of an expired key."""


class DurableSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The specification of one durable pull consumer, shared by the replicas of its readers."""

    stream: str
    name: str
    filter: str
    ack_wait_seconds: float = 10.0
    """Time to handle a message, above the slowest handling: after it, another replica is given the
    message."""
    max_deliver: int = 8
    """Number of failures after which a message goes to its dead-letter subject."""
    max_unfinished: int = 64
    """Number of deliveries that ended nobody knows how after which a message goes to its dead-letter subject,
    too: it may be the message that ends its workers."""
    max_ack_pending: int = 16_384
    """The most messages delivered and not acked. Messages that wait for a tenant in trouble must not fill it
    up, for then the others' are kept back."""


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """The streams, buckets and durables that the server must hold."""

    streams: list[StreamSpec]
    buckets: list[BucketSpec]
    durables: list[DurableSpec]


def submit_durable(cluster: str) -> str:
    """Name of the durable that takes a cluster's submissions."""
    return f"submit-{encode_key(cluster)}"


def answers_durable(cluster: str) -> str:
    """Name of the durable that turns a cluster's events into answers."""
    return f"answers-{encode_key(cluster)}"


def cluster_of(durable: str) -> str | None:
    """The cluster that a durable of these is for; None where it is for any."""
    cluster = decode_key(durable.partition("-")[2])
    return None if cluster == subjects.ANY_CLUSTER else cluster


def topology(clusters: list[str]) -> Topology:
    """The topology for these clusters. A submit to any other cluster fails at once: no stream takes it.

    Raises:
        FieldError: a cluster is named twice, or has the name that stands for all of them.
    """
    targets = [*clusters, subjects.ANY_CLUSTER]
    for cluster in clusters:
        if targets.count(cluster) > 1:
            raise FieldError("clusters", cluster, "a cluster needs a name of its own, and not 'any'")
    return Topology(streams=_streams(targets), buckets=_buckets(), durables=_durables(clusters, targets))


def limited(
    wanted: Topology, *, max_bytes: Mapping[str, int], max_age_seconds: Mapping[str, float]
) -> Topology:
    """The topology with an operator's limits, by the names of streams and buckets.

    Raises:
        FieldError: there is no such stream, its messages do not go by age, or the limit is too small.
    """
    streams = {spec.name: spec for spec in wanted.streams}
    buckets = {spec.name: spec for spec in wanted.buckets}
    for name, seconds in max_age_seconds.items():
        if name not in streams or streams[name].retention is not Retention.AGE:
            aged = [spec.name for spec in wanted.streams if spec.retention is Retention.AGE]
            raise FieldError("max_age", name, f"only these keep messages for a time: {', '.join(aged)}")
        if seconds < LEAST_AGE_SECONDS:
            raise FieldError("max_age", seconds, f"must be at least {LEAST_AGE_SECONDS:g} s")
        streams[name] = msgspec.structs.replace(streams[name], max_age_seconds=seconds, max_age_given=True)
    for name, most in max_bytes.items():
        if most <= 0 and most != NO_LIMIT:
            raise FieldError("max_bytes", most, "must be positive, or none")
        if name in streams:
            streams[name] = msgspec.structs.replace(streams[name], max_bytes=most)
        elif name in buckets:
            buckets[name] = msgspec.structs.replace(buckets[name], max_bytes=most)
        else:
            raise FieldError("max_bytes", name, f"there are: {', '.join([*streams, *buckets])}")
    return msgspec.structs.replace(wanted, streams=list(streams.values()), buckets=list(buckets.values()))


def _streams(targets: list[str]) -> list[StreamSpec]:
    return [
        StreamSpec(
            name=STATE, subjects=[subjects.state_filter()], retention=Retention.LAST_VALUE, message_ttl=True
        ),
        StreamSpec(name=DECISION, subjects=[subjects.decision_filter()], retention=Retention.LAST_VALUE),
        StreamSpec(
            name=SUBMIT,
            subjects=[subjects.submit_filter(cluster) for cluster in targets],
            retention=Retention.WORK_QUEUE,
            most_of_a_subject=MOST_OF_A_TENANT,
            # The tenants share this stream and choose their Nats-Msg-Ids: one tenant's would swallow another's job.
            # Admitters know a repeat by tenant, id and body.
            duplicate_window_seconds=0.0,
        ),
        _kept_for(ANSWER, subjects.answer_filter(), HOUR),
        _kept_for(EVENT, subjects.event_filter(), 7 * DAY),
        _kept_for(DEAD, subjects.dead(">"), 30 * DAY),
    ]


def _kept_for(name: str, pattern: str, seconds: float) -> StreamSpec:
    return StreamSpec(name=name, subjects=[pattern], retention=Retention.AGE, max_age_seconds=seconds)


def _buckets() -> list[BucketSpec]:
    return [
        BucketSpec(name=POLICY, history=KEPT_POLICIES),
        BucketSpec(name=MEMBERS, ttl_seconds=LEASE_SECONDS, expiry_markers=True),
        BucketSpec(name=ROUTES, ttl_seconds=7 * DAY),
    ]


def _durables(clusters: list[str], targets: list[str]) -> list[DurableSpec]:
    submits = [
        DurableSpec(stream=SUBMIT, name=submit_durable(target), filter=subjects.submit_filter(target))
        for target in targets
    ]
    answers = [
        DurableSpec(stream=EVENT, name=answers_durable(cluster), filter=subjects.event_filter(cluster))
        for cluster in clusters
    ]
    return submits + answers
