"""The composition root of the simulated cluster's service."""

import asyncio
from contextlib import closing
from pathlib import Path

from fairlead_bus import Bus, ConnectionSettings, connect
from fairlead_bus.facts.announcer import Announcer
from fairlead_bus.frontend_endpoints import EpochFence, FrontendEndpoints
from fairlead_bus.ownership.leadership import Leadership
from fairlead_contracts.base.instants import from_seconds
from fairlead_runtime.clock import wall_clock
from fairlead_runtime.frontend_spans import FrontendSpans
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_sim.changes import JobRetention
from fairlead_sim.cluster import SimCluster
from fairlead_sim.config import load_cluster
from fairlead_sim.instruments import SimInstruments
from fairlead_sim.service import SimService
from fairlead_sim.settings import SimSettings
from fairlead_sim.statements import everything
from fairlead_sim.store import ClusterStore

ROLE = "watcher"
"""Role of the simulated cluster: it stands in the watcher's place, as the state of its cluster is its own to
publish."""


async def main(settings: SimSettings, lifecycle: Lifecycle) -> None:
    """Wire the service and run it until it shall end."""
    config = load_cluster(settings.cluster_file)
    with closing(
        ClusterStore(Path(settings.store), settings.cluster, durability=settings.durability)
    ) as store:
        cluster = SimCluster(
            settings.cluster,
            config,
            uid_prefix=store.identity,
            retention=JobRetention(
                ended=from_seconds(settings.ended_keep_seconds),
                names=from_seconds(settings.names_keep_seconds),
            ),
            find_used=store.find,
        )
        traces = FrontendSpans(lifecycle.spans, wall_clock, settings.cluster)
        service = SimService(
            cluster, store, SimInstruments(lifecycle.metrics), clock=wall_clock, happened=traces.happened
        )
        async with connect(ConnectionSettings.of(settings), name="sim", observer=lifecycle.observer) as bus:
            await _serve(bus, service, cluster, lifecycle, traces)


async def _serve(
    bus: Bus, service: SimService, cluster: SimCluster, lifecycle: Lifecycle, traces: FrontendSpans
) -> None:
    wake = asyncio.Event()
    leadership = Leadership(bus, role=ROLE, cluster=cluster.name, replica=lifecycle.replica, wake=wake)
    announcer = Announcer(
        bus,
        leadership,
        cluster=cluster.name,
        wake=wake,
        next_rev=cluster.next_rev,
        clock=wall_clock,
        endpoints=FrontendEndpoints(
            bus, cluster.name, service, leadership, EpochFence(service.fence, service.obey)
        ),
        published=service.published,
        taken_over=lambda stood: traces.taken_over(stood, everything(cluster)),
    )
    lifecycle.readiness.add("leader", announcer.why_not_ready)
    async with lifecycle.supervise() as tasks:
        tasks.start("connection", bus.wait_closed())
        tasks.start("leadership", leadership.run())
        tasks.start("cluster", service.run(announcer.update))
        tasks.start("announcer", announcer.run())
