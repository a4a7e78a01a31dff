"""The cluster that takes a submission which names none."""

from collections.abc import Collection

import pytest

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.messages.state import Phase, State, subject_of
from fairlead_contracts.messages.submissions import Submission
from fairlead_contracts.policyfile.document import Grant, Match, PolicyDocument, Tenant
from fairlead_policy.snapshot.stated_facts import StatedKey
from fairlead_scorer.route.choice import NoQueueError, choose
from fairlead_scorer.route.router import with_id
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_testkit.inputs.builders import (
    a_demand,
    a_document,
    a_job,
    a_pool,
    a_queue,
    a_submission,
    a_tenant_state,
)
from fairlead_testkit.timing.in_hand import all_steps

BOTH: list[State] = [
    made(cluster=cluster) for cluster in ("c1", "c2") for made in (a_pool, a_queue, a_tenant_state)
]


def chosen(
    *states: State,
    submission: Submission | None = None,
    sent: dict[StatedKey, dict[str, int]] | None = None,
    document: PolicyDocument | None = None,
    led: Collection[str] = (),
) -> str:
    cache = ClusterCache()
    all_steps(cache.adopting(document or a_document(), 1))
    all_steps(cache.learning({subject_of(state): state for state in states}))
    assert cache.rulebook is not None
    return choose(cache, cache.rulebook, submission or a_submission(), sent or {}, led)[0]


def refusal(*states: State, **changes: object) -> FieldError:
    with pytest.raises(FieldError) as caught:
        chosen(*states, submission=a_submission(**changes))
    return caught.value


def test_equal_clusters_are_taken_by_name() -> None:
    assert chosen(*BOTH) == "c1"
    assert chosen(*reversed(BOTH)) == "c1"


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.WAITING])
def test_the_cluster_with_most_room_is_taken(phase: Phase) -> None:
    assert chosen(*BOTH, a_job(phase=phase)) == "c2"


def test_held_and_ended_jobs_take_no_room() -> None:
    assert chosen(*BOTH, a_job("h", phase=Phase.HELD), a_job("e", phase=Phase.ENDED)) == "c1"


def test_where_more_waits_than_fits_the_shorter_backlog_is_taken() -> None:
    assert chosen(*BOTH, a_job("a", gpu=40), a_job("b", cluster="c2", uid="b", gpu=39)) == "c2"


def test_what_was_sent_and_does_not_show_yet_counts() -> None:
    assert chosen(*BOTH, sent={("c1", "gpu"): a_demand()}) == "c2"


def test_a_cluster_that_nobody_leads_is_passed_over_where_another_is_led() -> None:
    assert chosen(*BOTH, led={"c2"}) == "c2"
    assert chosen(*BOTH, a_job("a", cluster="c2", uid="a"), led={"c2"}) == "c2"
    assert chosen(*BOTH, a_job(), led={"c1", "c2"}) == "c2"
    assert chosen(*BOTH, led={"c3"}) == "c1"


def test_a_cluster_that_nobody_leads_is_taken_where_no_led_one_can_hold_the_job() -> None:
    small = a_pool(capacity=a_demand(cpu=1000, memory_gib=10000, gpu=2))
    assert chosen(*BOTH, small, submission=a_submission(demand=a_demand(gpu=4)), led={"c1"}) == "c2"


def test_a_cluster_that_is_too_small_is_passed_over() -> None:
    small = a_pool(capacity=a_demand(cpu=1000, memory_gib=10000, gpu=2))
    assert chosen(*BOTH, small, submission=a_submission(demand=a_demand(gpu=4))) == "c2"


def test_a_named_queue_decides_among_the_clusters_that_have_it() -> None:
    side = a_queue(cluster="c2", name="side")
    assert chosen(*BOTH, side, submission=a_submission(queue="side")) == "c2"
    refused = refusal(*BOTH, queue="nowhere")
    assert refused.field == "queue"


def test_a_tenant_without_a_queue_is_refused() -> None:
    refused = refusal(*BOTH, a_tenant_state(cluster="c2", scope="team-c"), tenant="team-b")
    assert refused.field == "tenant"
    assert isinstance(refused, NoQueueError)
    assert refused.reason == (
        "no cluster has a queue for tenant 'team-b': check the name, or ask an operator for a queue"
    ), "a sender hears of no other tenant"
    assert refused.for_operators.endswith("; these have one: team-a, team-c")


def test_a_tenant_that_the_policy_does_not_know_is_refused() -> None:
    error = refusal(*BOTH, tenant="stranger")
    assert (error.field, error.value) == ("tenant", "stranger")


def test_a_cluster_whose_match_rules_leave_the_account_out_is_passed_over() -> None:
    only_there = Tenant(name="both", match=Match(scopes=["team-a"], clusters=["c2"]))
    document = PolicyDocument(tenants=[only_there], grants=[Grant(tenant="both", classes=["urgent"])])
    assert chosen(*BOTH, document=document) == "c2"
    assert chosen(*BOTH, submission=a_submission(job_class="urgent"), document=document) == "c2"
    with pytest.raises(FieldError, match="no cluster has a queue"):
        chosen(*BOTH, submission=a_submission(tenant="both"), document=document)


def test_what_no_cluster_can_hold_is_refused_with_each_ones_reason() -> None:
    error = refusal(*BOTH, demand=a_demand(gpu=17))
    assert error.field == "demand.nvidia.com/gpu"
    assert "c1:" in error.reason
    assert "c2:" in error.reason


def test_where_one_cluster_alone_could_take_it_its_reason_is_the_whole_reason() -> None:
    refused = refusal(a_pool(), a_queue(), a_tenant_state(), demand=a_demand(gpu=17))
    assert (refused.field, refused.value) == ("demand.nvidia.com/gpu", "17")
    assert refused.reason.startswith("is more than the whole pool has, ")


def test_an_unknown_resource_is_refused() -> None:
    refused = refusal(*BOTH, demand={"quantum": 1000})
    assert refused.field == "demand.quantum"
    assert "c1: demand.quantum is not a resource of the pool, which has cpu, " in refused.reason


def test_a_class_that_is_not_granted_is_refused() -> None:
    assert refusal(*BOTH, job_class="urgent").field == "class"


def test_the_id_goes_into_a_body_that_has_none_and_the_rest_stays_as_it_was_sent() -> None:
    assert (
        with_id(b'{"demand": {"cpu": 1.50}, "id": "mine"}', "other")
        == b'{"demand": {"cpu": 1.50}, "id": "mine"}'
    )
    assert with_id(b'{"demand": {"cpu": 1.50}}', "seq-7") == b'{"demand":{"cpu": 1.50},"id":"seq-7"}'
    assert with_id(b'{"id": null, "pods": 2}', "m") == b'{"id":"m","pods":2}'


def test_only_the_frontend_that_is_asked_for_is_taken() -> None:
    slurm = a_queue(cluster="c2", frontend="slurm")
    assert chosen(*BOTH, slurm, submission=a_submission(frontend="slurm")) == "c2"
    refused = refusal(*BOTH, slurm, frontend="kueue")
    assert (refused.field, refused.value) == ("frontend", "kueue")
    assert "c2: frontend is not that of the cluster, which is slurm" in refused.reason
