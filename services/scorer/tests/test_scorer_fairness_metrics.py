"""Fairness as metrics: what is shown of tenants and heads, and that it stays bounded."""

from fractions import Fraction

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from fairlead_contracts.base.instants import DAY, SECOND
from fairlead_contracts.messages.decisions import Basis, Position, QueueHeads, TenantShare, UnboundedBy
from fairlead_scorer.decide.decision import DecisionContent
from fairlead_scorer.decide.shard_ownership import ShardName
from fairlead_scorer.report.fairness_metrics import LABELLED_TENANTS, FairnessMetrics, hindrance, past_bound
from fairlead_testkit.inputs.builders import NOW


def a_position(
    tenant: str = "a",
    *,
    waited: int = 0,
    tag: float = 0.5,
    unbounded_by: UnboundedBy | None = None,
    blocked: bool = False,
) -> Position:
    return Position(
        uid=f"{tenant}-{waited}",
        scope=tenant,
        id="job",
        tenant=tenant,
        job_class="normal",
        dominant="cpu",
        use=1,
        tag=tag,
        key=0.0,
        submitted=NOW - waited,
        unbounded=unbounded_by is not None,
        unbounded_by=unbounded_by,
        blocked=blocked,
    )


def a_content(positions: list[Position], tenants: list[str]) -> DecisionContent:
    return DecisionContent(
        basis=Basis(policy=1, capacity={"cpu": 10}),
        queue_heads=[QueueHeads(cluster="c", queue="q", waiting=len(positions), positions=positions)],
        standings=[
            TenantShare(
                tenant=name,
                weight=1,
                entitled=0.5,
                use={"cpu": 1},
                share=0.25,
                dominant="cpu",
                waiting=2,
                running=1,
            )
            for name in tenants
        ],
    )


def shown(content: DecisionContent) -> str:
    registry = CollectorRegistry()
    registry.register(
        FairnessMetrics(
            list, lambda: [(ShardName("gpu", 3), content)], lambda: 0, pools=dict, clock=lambda: NOW
        )
    )
    return generate_latest(registry).decode()


def test_what_a_tenant_has_may_have_and_waits_for_is_shown() -> None:
    text = shown(a_content([a_position(waited=90 * SECOND), a_position(waited=30 * SECOND)], ["a"]))
    for line in (
        'fairlead_scorer_tenant_share_ratio{pool="gpu",tenant="a"} 0.25',
        'fairlead_scorer_tenant_entitlement_ratio{pool="gpu",tenant="a"} 0.5',
        'fairlead_scorer_tenant_dominant_ratio{pool="gpu",resource="cpu",tenant="a"} 0.25',
        'fairlead_scorer_tenant_waiting_jobs{pool="gpu",tenant="a"} 2.0',
        'fairlead_scorer_tenant_longest_wait_seconds{pool="gpu",tenant="a"} 90.0',
        'fairlead_scorer_pool_owned_shards{pool="gpu"} 1.0',
        'fairlead_scorer_heads{pool="gpu",why="share"} 1.0',
    ):
        assert line in text


def test_the_first_of_those_that_no_flavor_takes_keeps_no_queue_back() -> None:
    content = a_content([a_position(waited=90 * SECOND)], ["a"])
    stuck = [msgspec.structs.replace(heads, flavorless=True) for heads in content.queue_heads]
    text = shown(msgspec.structs.replace(content, queue_heads=stuck))
    assert 'fairlead_scorer_heads{pool="gpu",why="share"} 0.0' in text
    assert 'fairlead_scorer_tenant_longest_wait_seconds{pool="gpu",tenant="a"} 90.0' in text, "but it waits"


def test_more_tenants_than_anybody_looks_at_are_counted_and_not_shown() -> None:
    text = shown(a_content([], [f"t{number:04d}" for number in range(LABELLED_TENANTS + 7)]))
    assert text.count("fairlead_scorer_tenant_share_ratio{") == LABELLED_TENANTS
    assert "fairlead_scorer_tenants_left_out 7.0" in text


def test_a_job_is_past_its_bound_once_nothing_that_comes_later_can_pass_it() -> None:
    """A tag of 0.5 at a tenth of the entitlement a day is passed by what came up to five days later."""
    rate = float(Fraction(1, 10) / DAY)
    assert past_bound(a_position(waited=4 * DAY), rate, NOW) == 0
    assert past_bound(a_position(waited=6 * DAY), rate, NOW) == pytest.approx(DAY, abs=SECOND)
    assert past_bound(a_position(waited=6 * DAY), 0.0, NOW) == 0, "without aging there is no bound"
    assert past_bound(a_position(waited=6 * DAY, unbounded_by="weight"), rate, NOW) == 0


def test_heads_are_told_apart_by_what_keeps_them_back() -> None:
    assert hindrance(a_position()) == "share"
    assert hindrance(a_position(blocked=True)) == "saturated"
    assert hindrance(a_position(unbounded_by="asked")) == "asked"
