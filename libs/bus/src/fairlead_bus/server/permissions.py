"""Grants on NATS of each role, as data. `accounts` puts them into NATS accounts.

A test runs every cell of the table, the yes and the no, on a real server with this configuration. Each user's own
inbox, which is named after its key, is granted beside these.

Limits that NATS leaves open: whoever may create a consumer may name any inbox of the account as its target, so a
reader can push messages of its streams into another service's inbox; and whoever may read a stream's messages by
number reads all of it. Tenants may do neither.
"""

import msgspec

from fairlead_bus.streams.bucket import bucket_stream
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.tokens import encode_token


class Grants(msgspec.Struct, frozen=True, kw_only=True):
    """Subjects that one user may publish and subscribe to; `answers` also allows replies to what it was asked."""

    publish: list[str]
    subscribe: list[str]
    answers: bool = False


def stream_names(wanted: topology.Topology) -> list[str]:
    """The names of all streams, those under the buckets too."""
    return [spec.name for spec in wanted.streams] + [bucket_stream(spec.name) for spec in wanted.buckets]


def provisioner(clusters: list[str]) -> Grants:
    """Makes streams, buckets and the durables of these clusters, and changes their settings; takes away what a cluster left.

    For that it reads leases, the policy and these clusters' facts. It writes deletes alone, which a grant cannot say.
    """
    wanted = topology.topology(clusters)
    made = [f"STREAM.{verb}.{name}" for name in stream_names(wanted) for verb in ("INFO", "CREATE", "UPDATE")]
    for durable in wanted.durables:
        name = f"{durable.stream}.{durable.name}"
        made += [f"CONSUMER.INFO.{name}", f"CONSUMER.CREATE.{name}.{durable.filter}"]
    made += [f"STREAM.MSG.GET.{bucket_stream(name)}" for name in (topology.MEMBERS, topology.POLICY)]
    made.append(f"STREAM.PURGE.{topology.SUBMIT}")
    left = [grant for cluster in clusters for grant in _retire(cluster)]
    return Grants(publish=[*dict.fromkeys([*(f"$JS.API.{verb}" for verb in made), *left])], subscribe=[])


def _retire(cluster: str) -> list[str]:
    keys = subjects.leave_key(cluster), subjects.revocation_key(cluster), subjects.lever_key(cluster)
    return [
        subjects.state_filter(cluster),
        *_mirror(topology.STATE, subjects.state_filter(cluster)),
        f"$JS.API.CONSUMER.DELETE.{topology.SUBMIT}.{topology.submit_durable(cluster)}",
        *(subjects.kv_subject(topology.POLICY, key) for key in keys),
    ]


def operator() -> Grants:
    """A person with the `fairlead` command: loads policy, pauses and releases, approves, asks, submits for any tenant."""
    return Grants(
        publish=[
            f"$KV.{topology.POLICY}.>",
            f"{subjects.ROOT}.submit.*.*",
            f"{subjects.ROOT}.ask.>",
            *_mirror(topology.STATE, subjects.state_filter()),
            *_mirror(topology.DECISION, subjects.decision_filter()),
            *_follow(topology.EVENT, subjects.event_filter()),
            *_look(topology.EVENT),
            *_mirror(topology.DEAD, subjects.dead(">")),
            *_read_bucket(topology.POLICY),
            *_read_bucket(topology.MEMBERS),
        ],
        subscribe=[subjects.answer_filter()],
    )


def watcher(cluster: str) -> Grants:
    """Owns the state of one cluster. A frontend behind the bus does so in its place, and is asked to act."""
    return Grants(
        publish=[
            subjects.state_filter(cluster),
            subjects.event_filter(cluster),
            *_lead("watcher", cluster),
            *_mirror(topology.STATE, subjects.state_filter(cluster)),
            *_read_bucket(topology.MEMBERS),
            *_read_bucket(topology.POLICY),
        ],
        subscribe=[subjects.frontend_verbs(cluster)],
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
            *_mirror(topology.STATE, subjects.state_filter()),
            *_mirror(topology.DECISION, subjects.decision_filter()),
            *_follow(topology.EVENT, subjects.event_filter()),
            f"$JS.API.STREAM.MSG.GET.{topology.EVENT}",
            f"$JS.API.STREAM.MSG.GET.{topology.ANSWER}",  # to tell tenants what they missed
            f"$JS.API.DIRECT.GET.{topology.ANSWER}",
            *_read_bucket(topology.POLICY),
            *_read_bucket(topology.MEMBERS),
            *_read_bucket(topology.ROUTES),
            *_work(topology.SUBMIT, topology.submit_durable(subjects.ANY_CLUSTER)),
            *_overtake(topology.SUBMIT),
            subjects.dead(subjects.submit_filter(subjects.ANY_CLUSTER)),
        ],
        subscribe=[f"{subjects.ROOT}.ask.>", f"{subjects.ROOT}.shard.>"],
        answers=True,
    )


def admitter(cluster: str) -> Grants:
    """Makes one cluster follow the order, takes its submissions and answers their senders."""
    return Grants(
        publish=[
            subjects.event_filter(cluster),
            subjects.answer_filter(),
            f"$JS.API.STREAM.MSG.GET.{topology.ANSWER}",  # what a sender was told last, where it sends again
            subjects.frontend_verbs(cluster),
            *_lead("admitter", cluster),
            f"$KV.{topology.MEMBERS}.member.admitter.*",
            subjects.kv_subject(topology.POLICY, subjects.lever_key(cluster)),
            *_mirror(topology.STATE, subjects.state_filter(cluster)),
            *_mirror(topology.DECISION, subjects.decision_filter()),
            *_read_bucket(topology.POLICY),
            *_read_bucket(topology.MEMBERS),
            *_work(topology.SUBMIT, topology.submit_durable(cluster)),
            *_overtake(topology.SUBMIT),
            *_work(topology.EVENT, topology.answers_durable(cluster)),
            subjects.dead(subjects.submit_filter(cluster)),
            subjects.dead(subjects.event_filter(cluster)),
            "$JS.API.INFO",  # how full NATS is
            f"$JS.API.STREAM.INFO.{topology.DEAD}",
        ],
        subscribe=[],
    )


def checker(cluster: str) -> Grants:
    """Leads the checkers of one cluster, and nothing else: what it knows and says is in the cluster."""
    return Grants(publish=[*_lead("checker", cluster), *_read_bucket(topology.MEMBERS)], subscribe=[])


def watchdog() -> Grants:
    """The grants of the watchdog, which sees who leads, and nothing else."""
    return Grants(publish=_read_bucket(topology.MEMBERS), subscribe=[])


def submitter(tenant: str) -> Grants:
    """Submits jobs as one tenant, hears of them as it goes, and asks about the tenant: also for answers that it missed."""
    return Grants(
        publish=[share.subject for share in shares(tenant) if share.is_service],
        subscribe=[share.subject for share in shares(tenant) if not share.is_service],
    )


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A service that a tenant's account may call in the services' account, or a stream that it hears from there."""

    name: str
    subject: str
    is_service: bool

    @property
    def kind(self) -> str:
        """The kind of the share, as NATS calls it."""
        return "service" if self.is_service else "stream"


def shares(tenant: str) -> list[Share]:
    """Services and streams that cross for this one tenant, and nothing of anybody else."""
    return _shares(encode_token(tenant))


def _shares(tenant_token: str) -> list[Share]:
    return [
        Share(name="submit", subject=f"{subjects.ROOT}.submit.*.{tenant_token}", is_service=True),
        Share(name="ask", subject=f"{subjects.ROOT}.ask.*.{tenant_token}", is_service=True),
        Share(name="answer", subject=f"{subjects.ROOT}.answer.{tenant_token}.>", is_service=False),
    ]


SHARES_OF_ALL = _shares("*")
"""Services and streams that cross for some tenant, with a wildcard in the tenant's place."""


def _follow(stream: str, filtered: str) -> list[str]:
    """An ordered feed that is pushed: the consumer's name comes before the filter, flow control after."""
    return [
        f"$JS.API.CONSUMER.CREATE.{stream}.*.{filtered}",
        f"$JS.FC.{stream}.>",
    ]


def _mirror(stream: str, filtered: str) -> list[str]:
    """A mirror: a feed that is asked for slice by slice. Of streams alone that have no durables, which it could ask, too."""
    return [
        f"$JS.API.CONSUMER.CREATE.{stream}.*.{filtered}",
        f"$JS.API.CONSUMER.MSG.NEXT.{stream}.*",
        *_look(stream),
    ]


def _look(stream: str) -> list[str]:
    """Subjects by which a user reads the last message of a subject, and sees how far a stream and its consumers are."""
    return [
        f"$JS.API.CONSUMER.INFO.{stream}.*",
        f"$JS.API.STREAM.INFO.{stream}",
        f"$JS.API.STREAM.MSG.GET.{stream}",
    ]


def _read_bucket(bucket: str) -> list[str]:
    return _mirror(bucket_stream(bucket), f"$KV.{bucket}.>")


def _work(stream: str, durable: str) -> list[str]:
    """Subjects of a worker on a durable."""
    return [
        f"$JS.API.CONSUMER.INFO.{stream}.{durable}",
        f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}",
        f"$JS.ACK.{stream}.{durable}.>",
    ]


def _overtake(stream: str) -> list[str]:
    """Subjects by which a worker finds what stands behind a flood."""
    return [f"$JS.API.STREAM.INFO.{stream}", f"$JS.API.DIRECT.GET.{stream}"]


def _lead(role: str, cluster: str) -> list[str]:
    return [subjects.kv_subject(topology.MEMBERS, subjects.leader_key(role, cluster))]
