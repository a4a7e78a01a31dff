"""Making the server hold the topology: streams, buckets and durables."""

from collections.abc import Mapping

import msgspec

from fairlead_bus.bucket import bucket_stream
from fairlead_bus.bus import Bus
from fairlead_bus.errors import NotFoundError
from fairlead_bus.worker import MAX_DELIVER, MAX_UNFINISHED
from fairlead_contracts.topology import BucketSpec, DurableSpec, Retention, StreamSpec, Topology

_NANO = 1_000_000_000
_MARKER_SECONDS = 1.0
"""How long an expiry marker stays: the server takes no less, and a watcher that is connected sees it at once."""
_DUPLICATE_SECONDS = 120.0

type Config = dict[str, object]


class _StreamInfo(msgspec.Struct):
    config: Config


_stream_info = msgspec.json.Decoder(_StreamInfo)


async def provision(bus: Bus, topology: Topology, *, replicas: int | None = None) -> list[str]:
    """Creates what is missing and updates what differs; running it again changes nothing.

    Subjects are only ever added: a submit stream keeps the clusters that it knows.

    Args:
        bus: connected as a user who may manage streams.
        topology: what shall be there.
        replicas: copies of each stream in a cluster of servers; None leaves the server's default or what stands.

    Returns:
        What was created or changed, a sentence each.

    Raises:
        RefusedError: the server cannot change a stream in the wanted way (its retention, for example).
        RetryableBusError: not finished; run it again.
    """
    changes: list[str] = []
    for stream in topology.streams:
        changes += await _equalise(bus, stream.name, _of_stream(stream), replicas)
    for bucket in topology.buckets:
        changes += await _equalise(bus, bucket_stream(bucket.name), _of_bucket(bucket), replicas)
    for durable in topology.durables:
        changes += await _equalise_durable(bus, durable)
    return changes


async def _equalise(bus: Bus, name: str, wanted: Config, replicas: int | None) -> list[str]:
    if replicas is not None:
        wanted = {**wanted, "num_replicas": replicas}
    try:
        found = _stream_info.decode(await bus.jetstream.call(f"STREAM.INFO.{name}")).config
    except NotFoundError:
        await bus.jetstream.call(f"STREAM.CREATE.{name}", wanted)
        return [f"stream {name}: created"]
    wanted = {**wanted, "subjects": _union(found.get("subjects"), wanted["subjects"])}
    differing = _differences(found, wanted)
    if not differing:
        return []
    # Trap: an update replaces the whole configuration. What is set and not ours stays as it is.
    await bus.jetstream.call(f"STREAM.UPDATE.{name}", {**found, **wanted})
    return [f"stream {name}: {', '.join(differing)}"]


async def _equalise_durable(bus: Bus, spec: DurableSpec) -> list[str]:
    wanted = _of_durable(spec)
    try:
        found = (await bus.jetstream.consumer(spec.stream, spec.name)).config
    except NotFoundError:
        await bus.jetstream.create_consumer(spec.stream, wanted)
        return [f"durable {spec.stream}/{spec.name}: created"]
    metadata = found.get("metadata")
    if isinstance(metadata, dict):  # the server adds keys of its own
        wanted = {**wanted, "metadata": {**metadata, **_limits(spec)}}
    differing = _differences(found, wanted)
    if not differing:
        return []
    await bus.jetstream.create_consumer(spec.stream, {**found, **wanted})
    return [f"durable {spec.stream}/{spec.name}: {', '.join(differing)}"]


def _differences(found: Mapping[str, object], wanted: Mapping[str, object]) -> list[str]:
    """Each setting that is not as wanted; one that the server leaves out is at its zero."""
    return [
        f"{name} {found.get(name)!r} -> {value!r}"
        for name, value in wanted.items()
        if found.get(name) != value and (name in found or value)
    ]


def _union(found: object, wanted: object) -> list[str]:
    known = [str(subject) for subject in found] if isinstance(found, list) else []
    more = [str(subject) for subject in wanted] if isinstance(wanted, list) else []
    return known + [subject for subject in more if subject not in known]


def _nanos(seconds: float) -> int:
    return int(seconds * _NANO)


def _of_stream(spec: StreamSpec) -> Config:
    config: Config = {
        "name": spec.name,
        "subjects": list(spec.subjects),
        "retention": "workqueue" if spec.retention is Retention.WORK_QUEUE else "limits",
        "storage": "file",
        "max_age": _nanos(spec.max_age_seconds),
        "allow_direct": True,
        "duplicate_window": _nanos(_window(spec.duplicate_window_seconds, spec.max_age_seconds)),
        # subject_delete_marker_ttl stays off: it makes a second marker for every tombstone that expires.
        "allow_msg_ttl": spec.message_ttl,
    }
    if spec.retention is Retention.LAST_VALUE:
        config["max_msgs_per_subject"] = 1
    return config


def _of_bucket(spec: BucketSpec) -> Config:
    """The layout that every client's KV expects."""
    config: Config = {
        "name": bucket_stream(spec.name),
        "subjects": [f"$KV.{spec.name}.>"],
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "max_msgs_per_subject": spec.history,
        "max_age": _nanos(spec.ttl_seconds),
        "allow_direct": True,
        "allow_rollup_hdrs": True,
        "deny_delete": True,
        "duplicate_window": _nanos(_window(_DUPLICATE_SECONDS, spec.ttl_seconds)),
    }
    if spec.expiry_markers:
        # Trap: without markers nobody who follows the bucket hears that a key expired.
        config |= {"allow_msg_ttl": True, "subject_delete_marker_ttl": _nanos(_MARKER_SECONDS)}
    return config


def _window(seconds: float, max_age: float) -> float:
    """The server takes no window that is longer than messages live."""
    return min(seconds, max_age) if max_age else seconds


def _of_durable(spec: DurableSpec) -> Config:
    return {
        "name": spec.name,
        "durable_name": spec.name,
        "filter_subject": spec.filter,
        "deliver_policy": "all",
        "replay_policy": "instant",
        "ack_policy": "explicit",
        "ack_wait": _nanos(spec.ack_wait_seconds),
        "max_ack_pending": spec.max_ack_pending,
        # No limit at the server: the worker keeps it and puts the message aside, see `Worker`.
        "max_deliver": -1,
        "metadata": _limits(spec),
    }


def _limits(spec: DurableSpec) -> dict[str, str]:
    return {MAX_DELIVER: str(spec.max_deliver), MAX_UNFINISHED: str(spec.max_unfinished)}
