"""Making the server hold the topology: streams, buckets and durables."""

import asyncio
import time
from collections.abc import Mapping

import msgspec

from fairlead_bus.connection.bus import Bus
from fairlead_bus.errors import JetStreamNotFoundError, RetryableBusError
from fairlead_bus.streams.bucket import bucket_stream
from fairlead_bus.work.worker import MAX_DELIVER, MAX_UNFINISHED
from fairlead_contracts.subjects import ROOT
from fairlead_contracts.topology import DEAD, BucketSpec, DurableSpec, Retention, StreamSpec, Topology

_NANO = 1_000_000_000
_MARKER_SECONDS = 1.0
"""Life of an expiry marker: the server takes no less, and a watcher that is connected sees it at once."""
_DUPLICATE_SECONDS = 120.0
_LEAST_DUPLICATE_SECONDS = 0.1
"""Shortest window for duplicates that the server takes; it reads 0 as its own two minutes."""
_WINDOW_CAN_BE_OFF = (2, 14)
"""First release in which a stream that has a source besides its subjects may do without a window for duplicates."""
_NO_SOURCE = {"name": DEAD, "filter_subject": f"{ROOT}.dead._none"}
"""A source that never gives anything: nobody publishes this subject."""

_TIMEOUT_SECONDS = 30.0
"""Longest time for which servers that do not answer are asked again."""
_LOOK_AGAIN_SECONDS = 0.5

type Config = dict[str, object]


class _StreamInfo(msgspec.Struct):
    config: Config


_stream_info = msgspec.json.Decoder(_StreamInfo)


class TopologyChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change that makes one stream, bucket or durable as it is wanted."""

    what: str
    """The object that changes, as `stream state` or `durable submit/submit-c1`."""
    differing: list[str]
    """Settings that are not as wanted, as `max_age 0 -> 5`; empty where the object is missing as a whole."""
    config: Config
    """The configuration that the server is given."""
    stream: str
    """The stream's name, or that of the stream that the durable is of."""
    is_durable: bool = False

    @property
    def is_new(self) -> bool:
        """Whether the object is missing as a whole."""
        return not self.differing

    @property
    def drops_window(self) -> bool:
        """Whether a stream that had a window for duplicates is to be without."""
        dropped = any(setting.startswith("duplicate_window ") for setting in self.differing)
        return dropped and not self.config["duplicate_window"]

    def sentence(self, missing: str = "created") -> str:
        """The change in one line for people."""
        return f"{self.what}: {missing if self.is_new else ', '.join(self.differing)}"


async def provision(bus: Bus, topology: Topology, *, replicas: int | None = None) -> list[str]:
    """Creates what is missing and updates what differs; running it again changes nothing.

    Returns:
        What was created or changed, a sentence each.

    Raises:
        as `find_changes` and `make`; what may pass by itself, after half a minute.
    """
    made: dict[str, None] = {}
    end = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        try:
            for change in await find_changes(bus, topology, replicas=replicas):
                made[change.sentence()] = None  # before it is known: who looks again may find it made
                await make(bus, change)
        except RetryableBusError:
            # A cluster that has just come up, or elects a leader, answers late or not at all.
            if time.monotonic() > end:
                raise
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        else:
            return list(made)


async def find_changes(bus: Bus, topology: Topology, *, replicas: int | None = None) -> list[TopologyChange]:
    """Finds what the server lacks or has otherwise, in the order in which it is to be made. Changes nothing.

    Subjects are only ever added: a submit stream keeps the clusters that it knows.

    Args:
        bus: connected as a user who may manage streams.
        topology: the streams, buckets and durables that shall be there.
        replicas: copies of each stream in a cluster of servers; None leaves the server's default or what stands.

    Raises:
        RetryableBusError: not finished; run it again.
    """
    window_can_be_off = bus.connection.server_release >= _WINDOW_CAN_BE_OFF
    configs = [_of_stream(spec, window_can_be_off=window_can_be_off) for spec in topology.streams]
    configs += [_of_bucket(spec) for spec in topology.buckets]
    sticky = {spec.name for spec in topology.streams if not spec.max_age_given}
    found = [
        await _stream_change(bus, config, replicas, keeps_age=config["name"] in sticky) for config in configs
    ]
    found += [await _durable_change(bus, durable) for durable in topology.durables]
    return [change for change in found if change is not None]


async def make(bus: Bus, change: TopologyChange) -> None:
    """Makes one change.

    Raises:
        RefusedError: the server cannot change a stream in the wanted way (its retention, for example).
        RetryableBusError: nobody knows whether it is made; look again.
    """
    if change.is_durable:
        await bus.jetstream.create_consumer(change.stream, change.config)
        return
    verb = "CREATE" if change.is_new else "UPDATE"
    if change.drops_window:
        # Trap: an update has the known ids looked through at once, and the server may do so before it has taken the new
        # window in (2.14, `stream.updateWithAdvisory`). They would then count as duplicates for all of the old one. With
        # a second update the first of its windows is in by then.
        least = {**change.config, "duplicate_window": _nanos(_LEAST_DUPLICATE_SECONDS)}
        await bus.jetstream.call(f"STREAM.{verb}.{change.stream}", least)
    await bus.jetstream.call(f"STREAM.{verb}.{change.stream}", change.config)


async def require_durables(bus: Bus, *durables: tuple[str, str]) -> None:
    """Raises where a durable (stream, name) is missing, before the service leads. A server that cannot say now lets it pass.

    Raises:
        NotProvisionedError: some of them is missing.
    """
    for stream, name in durables:
        try:
            await bus.jetstream.durable(stream, name)
        except RetryableBusError:
            return


async def _stream_change(
    bus: Bus, wanted: Config, replicas: int | None, *, keeps_age: bool
) -> TopologyChange | None:
    name = str(wanted["name"])
    what = f"stream {name}"
    if replicas is not None:
        wanted = {**wanted, "num_replicas": replicas}
    try:
        found = _stream_info.decode(await bus.jetstream.call(f"STREAM.INFO.{name}")).config
    except JetStreamNotFoundError:
        return TopologyChange(what=what, differing=[], config=wanted, stream=name)
    wanted = {**wanted, "subjects": _union(found.get("subjects"), wanted["subjects"])}
    if keeps_age and found.get("max_age"):  # an operator's word, or the default that it had from us
        wanted = {**wanted, "max_age": found["max_age"]}
    differing = _differences(found, wanted)
    if not differing:
        return None
    # Trap: an update replaces the whole configuration. What is set and not ours stays as it is.
    return TopologyChange(what=what, differing=differing, config={**found, **wanted}, stream=name)


async def _durable_change(bus: Bus, spec: DurableSpec) -> TopologyChange | None:
    what, wanted = f"durable {spec.stream}/{spec.name}", _of_durable(spec)
    try:
        found = (await bus.jetstream.consumer(spec.stream, spec.name)).config
    except JetStreamNotFoundError:
        return TopologyChange(what=what, differing=[], config=wanted, stream=spec.stream, is_durable=True)
    metadata = found.get("metadata")
    if isinstance(metadata, dict):  # the server adds keys of its own
        wanted = {**wanted, "metadata": {**metadata, **_limits(spec)}}
    differing = _differences(found, wanted)
    if not differing:
        return None
    config = {**found, **wanted}
    return TopologyChange(what=what, differing=differing, config=config, stream=spec.stream, is_durable=True)


def _differences(found: Mapping[str, object], wanted: Mapping[str, object]) -> list[str]:
    """Differences of settings from the wanted ones, as `max_age 0 -> 5`; one that the server leaves out is at its zero."""
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


def _of_stream(spec: StreamSpec, *, window_can_be_off: bool) -> Config:
    off = window_can_be_off and not spec.duplicate_window_seconds
    window = 0.0 if off else max(spec.duplicate_window_seconds, _LEAST_DUPLICATE_SECONDS)
    aged = spec.retention is Retention.AGE
    config: Config = {
        "name": spec.name,
        "subjects": list(spec.subjects),
        "retention": "workqueue" if spec.retention is Retention.WORK_QUEUE else "limits",
        "storage": "file",
        "max_age": _nanos(spec.max_age_seconds),
        "allow_direct": True,
        "duplicate_window": _nanos(_window(window, spec.max_age_seconds)),
        # subject_delete_marker_ttl stays off: it makes a second marker for every tombstone that expires.
        "allow_msg_ttl": spec.message_ttl,
        # JSON whose names and ids come again and again: an eighth of it is left on disk.
        "compression": "s2" if aged else "none",
    }
    if spec.max_bytes:
        config |= {"max_bytes": spec.max_bytes, "discard": "old" if aged else "new"}
    if spec.most_of_a_subject:
        config |= {
            "max_msgs_per_subject": spec.most_of_a_subject,
            "discard": "new",
            "discard_new_per_subject": True,
        }
    if spec.retention is Retention.LAST_VALUE:
        config["max_msgs_per_subject"] = 1
    if off:
        config["sources"] = [_NO_SOURCE]
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
        # A single message with such a header would take the history away, from which services find the last policy that
        # validates. The server itself needs it for markers.
        "allow_rollup_hdrs": spec.expiry_markers,
        "deny_delete": True,
        "duplicate_window": _nanos(_window(_DUPLICATE_SECONDS, spec.ttl_seconds)),
    }
    if spec.max_bytes:
        config["max_bytes"] = spec.max_bytes
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
