"""Who may do what on NATS: the grants of each role as data, and the server's configuration made of them.

A test runs every cell of the table, the yes and the no, on a real server with this configuration.

Limits that NATS leaves open: whoever may create a consumer may name any inbox as its target, so a reader can push
messages of its streams into another's inbox; and whoever may read a stream's messages by number reads all of it.
"""

import json
from collections.abc import Mapping

import msgspec

from fairlead_bus.bucket import bucket_stream
from fairlead_bus.bus import inbox_prefix
from fairlead_contracts import subjects, topology
from fairlead_contracts.tokens import encode_token


class Grants(msgspec.Struct, frozen=True, kw_only=True):
    """What one user may publish and subscribe to; `answers` also allows replies to what it was asked."""

    publish: list[str]
    subscribe: list[str]
    answers: bool = False


def ops() -> Grants:
    """Creates streams, buckets and durables; loads policy; pauses and releases."""
    return Grants(publish=[">"], subscribe=[">"])


def watcher(cluster: str, *, name: str = "watcher") -> Grants:
    """Owns the state of one cluster. The simulated cluster does so under the name `sim`, and is asked to act."""
    return Grants(
        publish=[
            subjects.state_filter(cluster),
            subjects.event_filter(cluster),
            *_lead("watcher", cluster),
            *_read(topology.STATE, subjects.state_filter(cluster)),
            *_read_bucket(topology.MEMBERS),
            *_read_bucket(topology.POLICY),
        ],
        subscribe=[_inbox(name), f"{subjects.ROOT}.sim.{encode_token(cluster)}.*"],
        answers=True,
    )


def scorer() -> Grants:
    """Decides for all pools, answers questions, and routes submissions for any cluster to one."""
    return Grants(
        publish=[
            subjects.decision_filter(),
            f"{subjects.ROOT}.submit.*.*",
            subjects.answer_filter(),
            f"{subjects.ROOT}.shard.>",
            f"$KV.{topology.MEMBERS}.member.scorer.*",
            f"$KV.{topology.ROUTES}.>",
            *_read(topology.STATE, subjects.state_filter()),
            *_read(topology.DECISION, subjects.decision_filter()),
            *_follow(topology.EVENT, subjects.event_filter()),
            f"$JS.API.STREAM.MSG.GET.{topology.EVENT}",
            *_read_bucket(topology.POLICY),
            *_read_bucket(topology.MEMBERS),
            *_read_bucket(topology.ROUTES),
            *_work(topology.SUBMIT, topology.submit_durable(subjects.ANY_CLUSTER)),
            subjects.dead(subjects.submit_filter(subjects.ANY_CLUSTER)),
        ],
        subscribe=[_inbox("scorer"), f"{subjects.ROOT}.ask.>", f"{subjects.ROOT}.shard.>", "$SRV.>"],
        answers=True,
    )


def admitter(cluster: str) -> Grants:
    """Makes one cluster follow the order, takes its submissions and answers their senders."""
    return Grants(
        publish=[
            subjects.event_filter(cluster),
            subjects.answer_filter(),
            f"$JS.API.STREAM.MSG.GET.{topology.ANSWER}",  # what a sender was told last, where it sends again
            f"{subjects.ROOT}.sim.{encode_token(cluster)}.*",
            *_lead("admitter", cluster),
            f"$KV.{topology.MEMBERS}.member.admitter.*",
            subjects.kv_subject(topology.POLICY, subjects.lever_key(cluster)),
            *_read(topology.STATE, subjects.state_filter(cluster)),
            *_read(topology.DECISION, subjects.decision_filter()),
            *_read_bucket(topology.POLICY),
            *_read_bucket(topology.MEMBERS),
            *_work(topology.SUBMIT, topology.submit_durable(cluster)),
            *_work(topology.EVENT, topology.answers_durable(cluster)),
            subjects.dead(subjects.submit_filter(cluster)),
            subjects.dead(subjects.event_filter(cluster)),
        ],
        subscribe=[_inbox("admitter")],
    )


def checker(cluster: str) -> Grants:
    """Leads the checkers of one cluster, and nothing else: what it knows and says is in the cluster."""
    return Grants(
        publish=[*_lead("checker", cluster), *_read_bucket(topology.MEMBERS)], subscribe=[_inbox("checker")]
    )


def watchdog() -> Grants:
    """Sees who leads, and nothing else."""
    return Grants(publish=_read_bucket(topology.MEMBERS), subscribe=[_inbox("watchdog")])


def submitter(tenant: str, *, name: str = "cli") -> Grants:
    """Submits jobs as one tenant, hears of them, and asks about the tenant.

    Args:
        tenant: the only one.
        name: that it connects under. Users of one name can read each other's answers to questions.
    """
    return Grants(
        publish=[
            f"{subjects.ROOT}.submit.*.{encode_token(tenant)}",
            f"{subjects.ROOT}.ask.*.{encode_token(tenant)}",
            # No reading by number and no stream info here: those would show other tenants' answers.
            *_follow(topology.ANSWER, subjects.answer_filter(tenant)),
            f"$JS.API.DIRECT.GET.{topology.ANSWER}.{subjects.answer_filter(tenant)}",
        ],
        subscribe=[_inbox(name), subjects.answer_filter(tenant)],
    )


def authorization(users: Mapping[str, Grants]) -> str:
    """The `authorization` block of a nats-server configuration.

    Args:
        users: grants by public NKey.
    """
    listed = ",\n".join(f"    {_user(nkey, grants)}" for nkey, grants in users.items())
    return f"authorization {{\n  users = [\n{listed}\n  ]\n}}\n"


def _user(nkey: str, grants: Grants) -> str:
    permissions: dict[str, object] = {"publish": grants.publish, "subscribe": grants.subscribe}
    if grants.answers:
        # A question may be answered once, and not for ever.
        permissions["allow_responses"] = {"max": 1, "expires": "30s"}
    return json.dumps({"nkey": nkey, "permissions": permissions})


def _inbox(name: str) -> str:
    return f"{inbox_prefix(name)}.>"


def _follow(stream: str, filtered: str) -> list[str]:
    """An ordered feed of a filter: the consumer's name comes before it, flow control after."""
    return [
        f"$JS.API.CONSUMER.CREATE.{stream}.*.{filtered}",
        f"$JS.FC.{stream}.>",
    ]


def _read(stream: str, filtered: str) -> list[str]:
    """A mirror, and the last message of a subject."""
    return [
        *_follow(stream, filtered),
        f"$JS.API.CONSUMER.INFO.{stream}.*",
        f"$JS.API.STREAM.INFO.{stream}",
        f"$JS.API.STREAM.MSG.GET.{stream}",
    ]


def _read_bucket(bucket: str) -> list[str]:
    return _read(bucket_stream(bucket), f"$KV.{bucket}.>")


def _work(stream: str, durable: str) -> list[str]:
    """A worker on a durable."""
    return [
        f"$JS.API.CONSUMER.INFO.{stream}.{durable}",
        f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}",
        f"$JS.ACK.{stream}.{durable}.>",
    ]


def _lead(role: str, cluster: str) -> list[str]:
    return [subjects.kv_subject(topology.MEMBERS, subjects.leader_key(role, cluster))]
