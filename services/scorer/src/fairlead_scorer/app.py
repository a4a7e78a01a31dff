"""The composition root: what a scorer is made of, and which of its tasks live together."""

import asyncio
from contextlib import AsyncExitStack

from fairlead_bus import Bus, ConnectionSettings, connect
from fairlead_bus.ownership.roster import Roster
from fairlead_bus.server.provision import require_durables
from fairlead_contracts import subjects, topology
from fairlead_policy.exact.ranking import warm_up
from fairlead_runtime.clock import wall_clock
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_scorer.dry_run import run_dry
from fairlead_scorer.query.explaining import Explainer
from fairlead_scorer.query.query_server import QueryServer
from fairlead_scorer.query.questions import Questions
from fairlead_scorer.query.reservations import ADMITTER, ReserveView
from fairlead_scorer.query.shard_asking import ShardAsker
from fairlead_scorer.query.steering_view import SteeringView
from fairlead_scorer.report.fairness_metrics import FairnessMetrics
from fairlead_scorer.report.record import ScorerRecord
from fairlead_scorer.route.router import Router, TenantPace
from fairlead_scorer.scorer import ROLE, Scorer
from fairlead_scorer.settings import ScorerSettings
from fairlead_scorer.state.state_view import StateView


async def main(settings: ScorerSettings, lifecycle: Lifecycle) -> None:
    """Runs one replica until it is asked to stop."""
    warm_up()
    record = ScorerRecord(lifecycle.metrics)
    wake = asyncio.Event()
    async with connect(ConnectionSettings.of(settings), name=ROLE, observer=lifecycle.observer) as bus:
        state_view = StateView(bus, wake, record, wall_clock)
        lifecycle.readiness.add("state", state_view.why_no_state)
        lifecycle.readiness.add("policy", state_view.why_no_policy)
        if settings.dry_run:
            async with lifecycle.supervise() as tasks:
                tasks.start("connection", bus.wait_closed())
                tasks.start("state", state_view.run())
                pace = settings.pace_seconds
                tasks.start("dry-run", run_dry(state_view, record, wake=wake, pace=pace, now=wall_clock))
        else:
            await _score(
                bus, state_view=state_view, record=record, settings=settings, lifecycle=lifecycle, wake=wake
            )


async def _score(
    bus: Bus,
    *,
    state_view: StateView,
    record: ScorerRecord,
    settings: ScorerSettings,
    lifecycle: Lifecycle,
    wake: asyncio.Event,
) -> None:
    if settings.route:
        await require_durables(bus, (topology.SUBMIT, topology.submit_durable(subjects.ANY_CLUSTER)))
    roster = Roster(bus, wake=wake)
    router = _router(bus, state_view, record, roster, settings)
    scorer = Scorer(
        bus,
        state_view,
        roster,
        router,
        record,
        settings=settings,
        replica=lifecycle.replica,
        wake=wake,
        now=wall_clock,
        spans=lifecycle.spans,
    )
    pools = lambda: state_view.cache.pools  # noqa: E731 # one line of wiring
    series = FairnessMetrics(scorer.owned, scorer.decided, scorer.dirty, pools=pools, clock=wall_clock)
    lifecycle.metrics.registry.register(series)
    asker = ShardAsker(bus, scorer.owns, timeout=settings.answer_seconds)
    reserved = ReserveView(state_view.cache, roster)
    unkept, unmarked = scorer.membership.trouble, state_view.unmarked
    steering = SteeringView(state_view.cache, state_view.words, roster, reserved, unmarked, unkept)
    explainer = Explainer(state_view.cache, asker, steering, reserved, traced=lifecycle.spans.ratio)
    questions = Questions(state_view.cache, asker, explainer, steering, wall_clock)
    why_not = lambda: state_view.why_no_state() or state_view.why_no_policy()  # noqa: E731 # one line of wiring
    server = QueryServer(bus, questions, record, why_not, settings.tenant_asks_per_second)
    lifecycle.readiness.add(
        "members", lambda: unkept() if roster.complete else "the live scorers are not known yet"
    )
    async with AsyncExitStack() as until:
        await server.open(until)
        async with lifecycle.supervise() as tasks:
            # The last one ends first: no decision leaves, then the lease is given back, and others take the shards at once.
            tasks.start("connection", bus.wait_closed())
            tasks.start("state", state_view.run())
            tasks.start("roster", roster.run())
            tasks.start("membership", scorer.take_part())
            tasks.start("score", scorer.run())
            tasks.start("route", router.run())


def _router(
    bus: Bus, state_view: StateView, record: ScorerRecord, roster: Roster, settings: ScorerSettings
) -> Router:
    return Router(
        bus,
        state_view.cache,
        record,
        wall_clock,
        pace=TenantPace(settings.tenant_submits_per_second, settings.tenant_submits_burst),
        led=lambda: {lease.cluster for lease in roster.leaders(ADMITTER)},
    )
