"""A policy with fewer shards, met while the assignment cannot be trusted: what is held on to must do no harm."""

import asyncio
from pathlib import Path

import pytest

from fairlead_bus.ownership.roster import Roster
from fairlead_contracts.messages.state import subject_of
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_runtime.clock import wall_clock
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_scorer import ScorerSettings
from fairlead_scorer.decide.shard_ownership import ShardName
from fairlead_scorer.report.record import ScorerRecord
from fairlead_scorer.route.router import Router, TenantPace
from fairlead_scorer.scorer import Scorer
from fairlead_scorer.state.state_view import StateView
from fairlead_testkit import NatsServer
from fairlead_testkit.by_hand.bus_harness import BusHarness
from fairlead_testkit.inputs.builders import NOW, a_pool, a_queue
from fairlead_testkit.timing.in_hand import all_steps

pytestmark = pytest.mark.integration


async def test_a_shard_that_the_policy_took_away_is_never_decided(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with BusHarness.open(nats_server, tmp_path) as harness:
        lifecycle = Lifecycle("scorer", "s1")
        wake, record = asyncio.Event(), ScorerRecord(lifecycle.metrics)
        state_view = StateView(harness.bus, wake, record, wall_clock)
        scorer = Scorer(
            harness.bus,
            state_view,
            Roster(harness.bus, wake=wake),
            Router(harness.bus, state_view.cache, record, lambda: NOW, pace=TenantPace(1, 1), led=tuple),
            record,
            settings=ScorerSettings(),
            replica="s1",
            wake=wake,
            now=lambda: NOW,
            spans=lifecycle.spans,
        )
        held = ShardName("c1/gpu", 12)
        all_steps(state_view.cache.adopting(PolicyDocument(tenants=[], shards=16), 1))
        all_steps(state_view.cache.learning({subject_of(state): state for state in (a_pool(), a_queue())}))
        assert scorer.is_behind(held)
        all_steps(state_view.cache.adopting(PolicyDocument(tenants=[], shards=4), 2))
        scorer.put_back(held)
        assert not scorer.is_behind(held)
        assert state_view.cache.pools["c1/gpu"].dirty == set(range(4))
