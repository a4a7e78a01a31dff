"""Builders: one for each thing that travels, with defaults that make sense together, changed by keyword.

    a_job("train", tenant="research", gpu=8, phase=Phase.RUNNING)
    a_place(uid="u1", tag=0.25)

The defaults speak of one cluster `c1` with one pool `gpu` of 16 GPUs, one queue `main`, and the scopes as tenants. An
unknown keyword is a TypeError.
"""

from collections.abc import Mapping

import msgspec

from fairlead_contracts.base.instants import SECOND, Micros, to_datetime
from fairlead_contracts.frontend import cards, verbs
from fairlead_contracts.messages import control, decisions, events, members, questions, state
from fairlead_contracts.messages import submissions as submitted
from fairlead_contracts.policyfile import document

NOW: Micros = 1_800_000_000 * SECOND
"""The instant that builders speak of: some time in January 2027."""
NOON = to_datetime(NOW)


class Builder[T: msgspec.Struct]:
    """Builds structs like its template."""

    def __init__(self, template: T) -> None:
        self._template = template

    def __call__(self, **changes: object) -> T:
        """The template with these fields changed."""
        return msgspec.structs.replace(self._template, **changes)


def a_demand(*, cpu: float = 4, memory_gib: float = 16, gpu: float = 1) -> dict[str, int]:
    """A demand in base units from cores, GiB and cards; what is 0 is left out."""
    whole = {
        "cpu": round(cpu * 1000),
        "memory": round(memory_gib * 2**30),
        "nvidia.com/gpu": round(gpu * 1000),
    }
    return {resource: amount for resource, amount in whole.items() if amount}


def a_job(
    id: str = "job-1",  # noqa: A002 # the contract's own word
    *,
    scope: str = "team-a",
    gpu: float = 1,
    submitted: Micros = NOW,
    demand: Mapping[str, int] | None = None,
    **changes: object,
) -> state.JobState:
    """A job: waiting, unless `phase` says otherwise. Its uid is made of its scope and id."""
    job = state.JobState(
        cluster="c1",
        epoch=1,
        rev=1,
        id=id,
        uid=f"{scope}/{id}",
        scope=scope,
        queue="main",
        demand=dict(demand) if demand is not None else a_demand(cpu=4 * gpu, memory_gib=16 * gpu, gpu=gpu),
        phase=state.Phase.WAITING,
        submitted=submitted,
        queue_time=submitted,
    )
    return msgspec.structs.replace(job, **changes)


a_node = Builder(
    state.NodeState(
        cluster="c1", epoch=1, rev=1, name="node-1", allocatable=a_demand(cpu=64, memory_gib=512, gpu=8)
    )
)
a_card = Builder(cards.CardState(uuid="GPU-1", count=10, memory=24_576, cores=100))
"""A whole card of 24 GiB, shared by ten at the most."""
a_pool = Builder(
    state.PoolState(
        cluster="c1", epoch=1, rev=1, name="gpu", capacity=a_demand(cpu=128, memory_gib=1024, gpu=16)
    )
)
a_queue = Builder(state.QueueState(cluster="c1", epoch=1, rev=1, name="main", pool="gpu", frontend="sim"))
a_class = Builder(state.ClassState(cluster="c1", epoch=1, rev=1, name="urgent", value=2_000_000))
a_tenant_state = Builder(
    state.TenantState(cluster="c1", epoch=1, rev=1, name="team-a", scope="team-a", queue="main")
)
a_mark = Builder(state.SyncMark(cluster="c1", epoch=1, rev=1, incarnation="server-1", at=NOW))

a_position = Builder(
    decisions.Position(
        uid="team-a/job-1",
        scope="team-a",
        id="job-1",
        tenant="team-a",
        job_class="normal",
        dominant="nvidia.com/gpu",
        use=0,
        tag=0.0,
        key=0.0,
        submitted=NOW,
        demand=a_demand(),
    )
)
a_queue_heads = Builder(decisions.QueueHeads(cluster="c1", queue="main", waiting=1, positions=[a_position()]))
a_basis = Builder(decisions.Basis(policy=1, capacity=a_pool().capacity))
a_tenant_share = Builder(
    decisions.TenantShare(
        tenant="team-a",
        weight=1.0,
        entitled=1.0,
        use={},
        share=0.0,
        dominant="nvidia.com/gpu",
        waiting=1,
        running=0,
    )
)
a_decision = Builder(
    decisions.Decision(
        pool="c1/gpu",
        shard=0,
        owner="scorer-1",
        epoch=1,
        turn=1,
        at=NOW,
        basis=a_basis(),
        revision={"c1": 1},
        queue_heads=[a_queue_heads()],
        standings=[a_tenant_share()],
    )
)

_EVENT: dict[str, object] = {
    "id": "event-1",
    "at": NOON,
    "cluster": "c1",
    "tenant": "team-a",
    "scope": "team-a",
    "job": "job-1",
    "uid": "team-a/job-1",
}


def _event[T: events.Event](kind: type[T], **terms: object) -> Builder[T]:
    return Builder(msgspec.convert(_EVENT | {"kind": kind.__struct_config__.tag} | terms, kind))


a_queued_event = _event(events.JobQueued, queue="main", demand=a_demand())
a_started_event = _event(events.JobStarted, waited_seconds=60.0, level=10, demand=a_demand())
an_ended_event = _event(events.JobEnded, outcome="succeeded", ran_seconds=600.0)
a_level_event = _event(
    events.LevelWritten,
    before=0,
    level=10,
    pool="c1/gpu",
    shard=0,
    epoch=1,
    turn=1,
    rank=0,
    because="raised to stand before team-b/job-2",
)

a_submission = Builder(
    submitted.Submission(id="train-1", tenant="team-a", demand=a_demand(), run_seconds=600.0)
)


def a_cancellation(job: str) -> bytes:
    """A body that takes the job of this id back."""
    return msgspec.json.encode({"id": job, "cancel": True})


def a_body(**changes: object) -> bytes:
    """A submission's body as somebody would publish it; a keyword of None takes the field out, `class_` is `class`."""
    body: dict[str, object] = {
        "v": 1,
        "id": "train-1",
        "demand": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": 1},
        "run_seconds": 600,
    }
    body |= {name.removesuffix("_"): value for name, value in changes.items()}
    return msgspec.json.encode({name: value for name, value in body.items() if value is not None})


a_member = Builder(members.MemberLease(role="scorer", replica="scorer-1", renewed=NOW))
a_holding = Builder(members.Holding(pool="c1/gpu", shards=[0], current=True))
a_leader = Builder(
    members.LeaderLease(role="admitter", cluster="c1", replica="admitter-1", epoch=1, renewed=NOW)
)
a_control = Builder(control.Control(mode=control.Mode.PAUSED, at=NOON, by="somebody", why="a test"))

a_document = Builder(
    document.PolicyDocument(
        tenants=[document.Tenant(name="team-a", weight=3.0), document.Tenant(name="team-b", weight=1.0)]
    )
)


def a_weighted_policy(
    weights: Mapping[str, float], pool: str = "gpu", member: str = "sim/gpu", **more: object
) -> document.PolicyDocument:
    """A policy of one pool.

    Args:
        member: the cluster's pool that it is of.
    """
    return a_document(
        pools=[document.Pool(name=pool, members=[member])],
        tenants=[document.Tenant(name=name, weight=weight) for name, weight in weights.items()],
        **more,
    )


a_grant = Builder(document.Grant(tenant="team-a", classes=["urgent"], by="somebody", why="a test"))

a_create = Builder(
    verbs.CreateJob(
        scope="team-a",
        id="train-1",
        digest="d",
        queue=None,
        demand=a_demand(),
        pods=1,
        requested_class=None,
        submission="train-1",
        submitted=NOW,
        run=600 * SECOND,
    )
)
a_create_jobs = Builder(verbs.CreateJobs(epoch=1, jobs=[a_create()]))
a_set_level = Builder(verbs.SetLevel(scope="team-a", id="job-1", uid="team-a/job-1", level=10))
a_set_levels = Builder(verbs.SetLevels(epoch=1, levels=[a_set_level()]))
a_delete = Builder(verbs.DeleteJob(scope="team-a", id="job-1"))
a_delete_jobs = Builder(verbs.DeleteJobs(epoch=1, jobs=[a_delete()]))

a_ranked_position = Builder(questions.RankedPosition(rank=0, position=a_position(), share=0.0, entitled=1.0))
a_pool_queue = Builder(questions.PoolQueue(pool="c1/gpu", waiting=1, positions=[a_ranked_position()]))
a_queue_reply = Builder(questions.QueueReply(at=NOON, pools=[a_pool_queue()]))
a_tenant_line = Builder(questions.TenantLine(standing=a_tenant_share(), tag=0.0, part_now=1.0))
a_pool_tenants = Builder(
    questions.PoolTenants(pool="c1/gpu", capacity=a_pool().capacity, tenants=[a_tenant_line()])
)
a_tenants_reply = Builder(questions.TenantsReply(at=NOON, pools=[a_pool_tenants()]))
an_explanation = Builder(
    questions.Explanation(
        cluster="c1", scope="team-a", id="job-1", uid="team-a/job-1", phase="waiting", queue="main"
    )
)
an_explain_reply = Builder(questions.ExplainReply(at=NOON, found=[an_explanation()]))
